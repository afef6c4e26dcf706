"""Commands of a task: scripts, and agents that are commands. No process of a command survives the task or this host.

A process that a command leaves behind, such as a server that an agent starts, runs until `Commands.close`, because
later steps may use it. The supervisor of `ext_sdk.core.process` ends it if this host is killed.
"""

from __future__ import annotations

import codecs
import os
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Self

from ext_sdk.core.process.child import ExitStatus, ProcessError
from ext_sdk.core.process.output import Output, Pump
from ext_sdk.core.process.spawner import Command, Spawner
from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.core.redaction.secret_names import secret_variables
from ext_sdk.core.text import cut

from .files import HostError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ext_sdk.core.process.child import Child
    from ext_sdk.polling import Deadline

SPAWNER = Spawner()  # starts its fork server with the first command
TICK = 0.05  # seconds between two checks of the deadline
SILENT_TICKS = 3  # without output after the exit of a command, whose other processes then run in the background
GRACE = 1.0  # seconds between SIGTERM and SIGKILL
KILL_WAIT = 1.0  # seconds to wait for the end of killed processes
SECRET_LINE = 16  # characters of a line of a secret that is also replaced on its own
KEPT_BYTES = 1024 * 1024  # of the beginning of an output; of its end, 64 KiB are kept


def shell() -> str:
    """Return the shell of scripts and agents: $SHELL, as in mcpchecker."""
    return os.environ.get("SHELL") or "/usr/bin/bash"


def redactor_of(environ: Mapping[str, str]) -> Redactor:
    """Return the redactor of all that is shown of a run.

    Args:
        environ: its values whose names or formats are those of secrets are replaced, also line by line.
    """
    secrets = secret_variables(environ)
    redactor = Redactor(secrets, rules=True)
    for name, value in secrets.items():
        lines = value.splitlines() if "\n" in value else []
        for line in (line.strip() for line in lines):
            if len(line) >= SECRET_LINE:
                redactor.add(name, line)
    return redactor


def excerpt(text: str, limit: int, *, end: bool = False) -> str:
    """Return the first characters of a text, or the last, without a part of a secret that this would cut.

    Secrets in a text that is not cut stay: reports replace them.
    """
    if len(text) <= limit:
        return text
    redacted = redactor_of(os.environ).redact_text(text)
    return redacted[-limit:] if end else cut(redacted, limit)


class CommandEnd(NamedTuple):
    """End of a command.

    Attributes:
        status: None if it is unknown.
        output: standard output and standard error, in their order.
        reason: why it was stopped: "" if it ended by itself.
    """

    status: ExitStatus | None
    output: Output
    seconds: float
    reason: str = ""

    @property
    def failure(self) -> str:
        """Return why it counts as failed; "" for exit code 0."""
        if self.reason:
            return self.reason
        if self.status is None:
            return "its exit status is unknown: its supervisor was killed"
        return "" if self.status.code == 0 else str(self.status)


@dataclass(frozen=True)
class AgentResult:
    """Result of an agent's run.

    Attributes:
        output: its final message, which `context.agent.output` of the verify steps has.
        error: why it failed; "" if it did not. The task is then not verified.
        details: more for reports, as JSON: tool calls, messages, tokens.
        close: called after the cleanup of the task; ends what the agent has left running.
    """

    output: str
    error: str = ""
    details: Mapping[str, object] = field(default_factory=dict)
    close: Callable[[], object] = lambda: None


class Commands:
    """Commands of one trial of a task. Use it as a context manager: the end stops what they left running."""

    def __init__(self) -> None:
        self._background: list[tuple[Child, threading.Event, threading.Thread]] = []

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        folder: Path,
        deadline: Deadline,
        stdin: bytes = b"",
        on_output: Callable[[str], object] | None = None,
    ) -> CommandEnd:
        """Run a command until it exits, or stop all its processes at the deadline.

        Args:
            env: its complete environment.
            stdin: its input, followed by end of file.
            on_output: receives the output, as it is written.

        Raises:
            HostError: the command cannot be started.
        """
        output = Output(KEPT_BYTES)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")

        def sink(data: bytes) -> None:
            output.write(data)
            if on_output and (text := decoder.decode(data)):
                on_output(text)

        began = time.monotonic()
        child, pump = _start(argv, env, folder, sink, stdin)
        silent = 0
        while not pump.done and silent < SILENT_TICKS and not deadline.expired:
            before = time.monotonic()
            read = pump.step(TICK)
            waited = time.monotonic() - before >= TICK * 0.9
            silent = silent + waited if child.status is not None and not read else 0
        reason = ""
        if not pump.done and child.status is None:
            reason = "cancelled" if deadline.stopped.is_set() else f"stopped after {time.monotonic() - began:.1f} s"
            child.stop(grace=GRACE)
            give_up = time.monotonic() + GRACE + KILL_WAIT
            pump.run(lambda: time.monotonic() > give_up, TICK)
        if child.gone:
            pump.close()
            child.close()
        else:
            self.leave(child, pump)
        return CommandEnd(child.status, output, time.monotonic() - began, reason)

    def leave(self, child: Child, pump: Pump) -> None:
        """Read the output of background processes until the end, so that they are not blocked or killed by it."""
        ended = threading.Event()

        def drain() -> None:
            pump.run(ended.is_set, TICK)
            pump.close()

        thread = threading.Thread(target=drain, daemon=True, name="output of background processes")
        thread.start()
        self._background.append((child, ended, thread))

    def close(self) -> None:
        """Stop all processes that commands left running, and wait until they have ended."""
        for child, _, _ in self._background:
            child.stop(grace=GRACE)
        until = time.monotonic() + GRACE + KILL_WAIT
        for child, ended, thread in self._background:
            thread.join(max(0.0, until - time.monotonic()))
            ended.set()
            thread.join()
            child.close()
        self._background.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _start(
    argv: Sequence[str], env: Mapping[str, str], folder: Path, sink: Callable[[bytes], object], stdin: bytes
) -> tuple[Child, Pump]:
    with ExitStack() as theirs, ExitStack() as ours:
        try:
            directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            theirs.callback(os.close, directory)
            reader, writer = os.pipe()
            theirs.callback(os.close, writer)
            ours.callback(os.close, reader)
            source, feed = os.pipe()
            theirs.callback(os.close, source)
            ours.callback(os.close, feed)
            command = Command(argv, env=env, directory=directory, grace=GRACE, keep=True)
            child = SPAWNER.spawn(command, stdin=source, stdout=writer, stderr=writer)
        except (ProcessError, ValueError) as error:
            raise HostError(str(error)) from None
        except OSError as error:
            raise HostError(f"cannot start {argv[0]!r}: {error.strerror}: {error.filename or folder}") from None
        ours.pop_all()
    pump = Pump(child, {reader: sink}, stdin=feed, data=stdin)
    if not stdin:
        with suppress(OSError):
            pump.step(0)  # closes the input
    return child, pump
