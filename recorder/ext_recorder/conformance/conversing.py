"""A small host that holds a conversation with a child, and notes what was said."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

from ext_recorder.cassette.events import Data, Mark
from ext_sdk.protocols.dialect import DIALECTS, id_key
from ext_sdk.protocols.places import MISSING, resolve
from ext_sdk.wire.errors import MessageError
from ext_sdk.wire.framing import FRAMINGS, Frame
from ext_sdk.wire.json_text import dumps, loads

from .conversations import AWAIT
from .host import PATIENCE_SECONDS, QUIET_SECONDS, READ_BYTES, Violation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Self

    from ext_recorder.cassette.events import Event

    from .conversations import Step


class Talk:
    """A running child, and what was said so far. A context manager, which ends it with its group.

    Args:
        command: argv.
        folder: its working directory.
        protocol: of its messages.
        known: what "$name" stands for.
        patience: seconds to wait for what must come.

    Attributes:
        events: what was said.
        left_out: steps that could not be said.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        protocol: str,
        known: Mapping[str, object],
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self.events: list[Event] = []
        self.left_out = 0
        self._command = command
        self._folder = folder
        self._dialect = DIALECTS[protocol]
        self._framing = FRAMINGS[self._dialect.framing]
        self._decoder = self._framing.decoder()
        self._known = {"workdir": str(folder), **known}
        self._patience = patience
        self._heard: list[object] = []  # messages of the child as JSON values
        self._answered: list[bytes | None] = []
        self._methods: list[str] = []  # of messages that were not awaited yet
        self._open = True

    def __enter__(self) -> Self:
        """Start the child. Raises Violation where it can't be."""
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd=self._folder,
                start_new_session=True,
            )
        except OSError as error:
            raise Violation(f"can't be started: {error}") from None
        self._started = monotonic()
        return self

    def __exit__(self, *exception: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()

    def hold(self, steps: Sequence[Step]) -> None:
        """Say everything, wait for what has to come, and let the child end."""
        for step, following in zip(steps, [*steps[1:], {}], strict=True):
            if AWAIT in step:
                awaited = step[AWAIT]
                if isinstance(awaited, str):
                    self._await_method(awaited)
                else:
                    self._await_answer(id_key(awaited, ""))
                continue
            said = self._filled(step)
            if said is MISSING:
                self.left_out += 1
                continue
            payload = dumps(said).encode()
            message = self._dialect.classify(payload)
            self._say(payload)
            if message.kind == "request" and AWAIT not in following:
                self._await_answer(message.key)
        self._end()

    def _filled(self, value: object) -> object:
        """A step with what its placeholders stand for; MISSING where one of them means nothing."""
        if isinstance(value, str) and value.startswith("$"):
            if value.startswith("$/"):
                found = (resolve(each, value[1:]) for each in reversed(self._heard))
                return next((each for each in found if each is not MISSING), MISSING)
            name, slash, rest = value[1:].partition("/")
            meant = self._known.get(name, MISSING)
            return f"{meant}/{rest}" if slash and meant is not MISSING else meant
        if isinstance(value, dict):
            members = {key: self._filled(each) for key, each in value.items()}
            return MISSING if MISSING in members.values() else members
        if isinstance(value, (list, tuple)):
            items = [self._filled(each) for each in value]
            return MISSING if any(each is MISSING for each in items) else items
        return value

    def _say(self, payload: bytes) -> None:
        assert self._process.stdin is not None
        self.events.append(Data("in", monotonic() - self._started, payload))
        with suppress(BrokenPipeError):  # what it still says is heard
            os.write(self._process.stdin.fileno(), self._framing.encode(payload))

    def _await_answer(self, key: bytes | None) -> None:
        until = monotonic() + self._patience
        while key not in self._answered and self._hear(until - monotonic()):
            pass
        if key not in self._answered:
            self._patience = min(self._patience, QUIET_SECONDS)  # the rest need not wait as long for a child that owes

    def _await_method(self, method: str) -> None:
        """Where none comes, the conversation goes on; what is missing is skipped, or told by the rules."""
        until = monotonic() + self._patience
        while method not in self._methods:
            if not self._hear(min(until - monotonic(), QUIET_SECONDS * 10)):
                return
        self._methods.remove(method)

    def _hear(self, seconds: float) -> bool:
        """Take what comes. Returns whether anything did."""
        assert self._process.stdout is not None
        if not self._open or seconds <= 0 or not select.select([self._process.stdout], [], [], seconds)[0]:
            return False
        data = os.read(self._process.stdout.fileno(), READ_BYTES)
        if data:
            self._decoder.receive_data(data)
        else:
            self._open = False
            self._decoder.receive_eof()
        while item := self._decoder.next_event():
            now = monotonic() - self._started
            if not isinstance(item, Frame):
                self.events.append(Data("out", now, item.wire, raw=True))
                continue
            self.events.append(Data("out", now, item.payload))
            message = self._dialect.classify(item.payload)
            self._methods.append(message.method)
            if message.kind == "response" and self._dialect.is_last(message):
                self._answered.append(message.key)
            with suppress(MessageError):
                self._heard.append(loads(message.text))
        return True

    def _end(self) -> None:
        """What is still said is heard; then the end of its input tells the child to end."""
        while self._hear(QUIET_SECONDS):
            pass
        assert self._process.stdin is not None
        self._process.stdin.close()
        until = monotonic() + self._patience
        while self._open and self._hear(until - monotonic()):
            pass
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(max(0.0, until - monotonic()))
            self.events.append(Mark("exit", monotonic() - self._started, code))
