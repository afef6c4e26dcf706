"""Script of the host: the recorded requests, when to send them, and when to give up; without I/O."""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING

from ext_recorder.cassette.events import Data, omission
from ext_recorder.errors import CassetteError, UsageError
from ext_recorder.messages.path_bindings import path_in
from ext_recorder.protocols.dialect import id_key, pointers_of
from ext_recorder.replay.player import SECOND_CONNECTION
from ext_sdk.core.wire.errors import FrameTooLong
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.json_codec import dumps, quote
from ext_sdk.core.wire.json_pointer import locate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ext_recorder.cassette.events import Event, Mark
    from ext_recorder.cassette.reader import Reader
    from ext_recorder.messages.name_map import NameMap
    from ext_recorder.messages.open_calls import IdMap
    from ext_recorder.messages.path_bindings import ReplayBindings
    from ext_recorder.protocols.dialect import ClassifiedMessage, Dialect
    from ext_recorder.verify.child_messages import ChildMessages
    from ext_recorder.verify.pairing import LiveDifferences
    from ext_sdk.core.wire.framing import Framing

AHEAD_EVENTS = 1_000  # that are read ahead


class LookaheadReader:
    """Reader of the events of a cassette, with look-ahead."""

    def __init__(self, reader: Reader) -> None:
        self.path = reader.path
        self._reader = reader
        self._events = iter(reader)
        self._read: deque[tuple[Event, int]] = deque()  # and not yet come to

    def next(self) -> tuple[Event, int] | None:
        """Return the next event and its line; None at the end."""
        if self._read:
            return self._read.popleft()
        event = next(self._events, None)
        return None if event is None else (event, self._reader.line)

    def put_back(self, following: tuple[Event, int]) -> None:
        """Put an event back, to return it again."""
        self._read.appendleft(following)

    def next_line(self) -> int | None:
        """Return the line of the next event; None at the end."""
        following = self.next()
        if following is None:
            return None
        self.put_back(following)
        return following[1]

    def rest(self) -> Iterator[tuple[Event, int]]:
        """Yield all remaining events."""
        while (following := self.next()) is not None:
            yield following

    def soon(self) -> Iterator[tuple[Event, int]]:
        """Return the next events without consuming them."""
        while len(self._read) < AHEAD_EVENTS and (event := next(self._events, None)) is not None:
            self._read.append((event, self._reader.line))
        yield from self._read


LAST = 1 << 60  # a line below all lines of a cassette
OUTBOX_BYTES = 1_048_576  # maximum size of the outbox, after which the cassette is not read further


class HostScript:
    """Script of the host for one connection.

    Args:
        timeout: maximum seconds that a response may take in addition to its time in the recording.
        may: returns True if other connections have sent all messages above a line of the cassette.

    Attributes:
        outbox: pending actions: bytes for the child, None to close its input, the name of a signal to send;
            see `take`.
        over: True if nothing more is sent, so the child may exit.
        gave_up: True if the session did not reach its end.
        output_ended: the child has closed its stdout.
        sent: number of messages that were sent.
        exit: recorded exit code, or signal; None if it is not recorded.
    """

    def __init__(
        self,
        ahead: LookaheadReader,
        child: ChildMessages,
        sender: RequestWriter,
        findings: LiveDifferences,
        *,
        timeout: float,
        may: Callable[[int], bool] | None = None,
    ) -> None:
        self._ahead = ahead
        self._child = child
        self._window = child.window
        self._sender = sender
        self._findings = findings
        self._timeout = timeout
        self._may = may
        self._progress = 0.0  # time of the last progress
        self._exit_time = 0.0
        self._closed = False  # the child's input
        self.output_ended = False
        self.outbox: deque[bytes | str | None] = deque()
        self.over = False
        self.gave_up = False
        self.sent = 0
        self.exit: int | str | None = None

    def start(self, now: float) -> None:
        """Begin the session with a running child."""
        self._progress = now
        self.advance(now)

    def restart_time_limit(self, now: float) -> None:
        """Restart the time limit, after a wait for other connections."""
        self._progress = now

    @property
    def position(self) -> int:
        """Return the line of the next expected message or action; LAST at the end."""
        if self.over:
            return LAST
        awaited = self._window.awaited()
        if awaited:
            return awaited[0].line
        return LAST if (line := self._ahead.next_line()) is None else line

    def receive_data(self, data: bytes, now: float) -> None:
        """Add bytes of the child's stdout."""
        self._child.receive_data(data)
        self._take(now)

    def receive_eof(self, now: float) -> None:
        """Add the end of its stdout."""
        self._child.receive_eof()
        self._take(now)
        self.output_ended = True
        if not self.over:
            # Messages that are still expected, or recorded further below, cannot arrive any more.
            events = (line for event, line in self._ahead.soon() if isinstance(event, Data) and event.kind == "out")
            expected = next(iter(self._window.awaited()), None)
            if line := expected.line if expected else next(events, 0):
                self._findings.ended(line, expected)
                self.give_up()
            self.advance(now)

    def receive_error(self, data: bytes) -> None:
        """Add bytes of its stderr; b"" at the end."""
        if self._child.lines:
            self._child.lines.receive_data(data)

    def deadline(self) -> float:
        """Return the time at which to call `timed_out` if no event happens before."""
        awaited = self._window.awaited()
        gap = (awaited[0].time if awaited else self._exit_time) - self._child.reached
        return self._progress + max(0.0, gap) + self._timeout

    def timed_out(self, now: float) -> None:
        """Report the expected message that did not come before the deadline."""
        awaited = self._window.awaited()
        response = next((message for message in awaited if message.identity[0] == "response"), None)
        if response is None:
            for message in awaited:
                self._window.give_up(message)
            self._progress = now
            self.advance(now)
            return
        self._findings.late(response, max(0.0, response.time - self._child.reached), self._timeout)
        self.give_up()

    def take(self) -> bytes | str | None:
        """Return the next action of the outbox; consecutive bytes are joined to one write."""
        first = self.outbox.popleft()
        if not isinstance(first, bytes):
            return first
        parts = [first]
        while self.outbox and isinstance(self.outbox[0], bytes):
            parts.append(self.outbox[0])
            self.outbox.popleft()
        return b"".join(parts)

    def give_up(self) -> None:
        """End a session that cannot continue."""
        if not self.over:
            self.over = self.gave_up = True
            unsent = (event for event, _ in self._ahead.rest() if isinstance(event, Data) and event.kind == "in")
            if left := sum(len(self._child.items(event)) for event in unsent):
                self._findings.given_up(left)

    def finish(self) -> None:
        """Report the remaining differences after the child has exited."""
        self._window.finish(missing=not self.gave_up)
        if self._child.lines:
            self._child.lines.finish()

    def advance(self, now: float) -> None:
        """Add all due messages to the outbox. Call it again if the outbox is empty, or after new input."""
        while not self.over and sum(len(wire) for wire in self.outbox if isinstance(wire, bytes)) < OUTBOX_BYTES:
            following = self._ahead.next()
            if following is None:
                self._end(now)
                return
            event, line = following
            if event.conn != 1:
                raise UsageError(f"{self._ahead.path}:{line}: {SECOND_CONNECTION}")
            if isinstance(event, Data) and event.kind != "in":
                if event.kind == "out" and self._window.full and not self.output_ended:
                    self._ahead.put_back(following)
                    return
                self._child.expect(event, line)
            elif isinstance(event, Data) or event.kind == "signal" or (event.kind, event.value) == ("eof", "in"):
                if not self._is_due(line):
                    self._ahead.put_back(following)
                    return
                self._do(event, line, now)
            elif event.kind == "omitted":
                raise CassetteError(self._ahead.path, line, f"{omission(event)}, so the session cannot be verified")
            elif event.kind == "exit":
                self.exit, self._exit_time = event.value, event.time

    def _is_due(self, line: int) -> bool:
        if self.output_ended:
            return True
        if self._window.awaited() or (self._may and not self._may(line)):
            return False
        self._window.settle()
        return True

    def _do(self, event: Data | Mark, line: int, now: float) -> None:
        """Begin a turn of the host."""
        self._progress, self._child.reached = now, event.time
        if isinstance(event, Data):
            try:
                for message, wire in self._sender.wire(event):
                    if message is not None:
                        self._child.add_sent(event, message)
                    if wire and not self._closed:
                        self.sent += 1
                        self.outbox.append(wire)
            except (ValueError, FrameTooLong) as error:
                raise CassetteError(self._ahead.path, line, f"can't be sent: {error}") from error
        elif event.kind == "signal":
            self.outbox.append(str(event.value))
        else:
            self._close()

    def _end(self, now: float) -> None:
        """End the script. Without a recorded exit, the input is closed so that the child exits."""
        if self._is_due(LAST):
            self._progress = now
            if self.exit is None:
                self._close()
            self.over = True

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            self.outbox.append(None)

    def _take(self, now: float) -> None:
        """Handle the messages of the child."""
        while (message := self._child.next_event()) is not None:
            if message.known:
                self._progress = now
            if message.refusal and not self._closed:
                self.outbox.append(message.refusal)
            self.advance(now)


PROJECTS = ("root", "folder")  # of language servers, which have work only where files are
FOLDERS = ("workdir", "cwd", *PROJECTS)  # bindings for which a folder is created; the others need --bind
_MARK = b"[redacted:"


class RequestWriter:
    """Converter of recorded messages to live bytes.

    Args:
        dialect: finds paths, names and calls in messages.
        bindings: placeholder and live paths.
        counterparts: names, recorded and live.
        child_calls: recorded ids of requests of the child, mapped to live ids.
        secrets: values by their rule, as in {"env.API_TOKEN": …}.
        new_folder: creates a folder for a binding of this name, and returns its path.
        handed: returns pointers of values in a message of the host that the child generated.

    Attributes:
        unbound: names of bindings that were sent unchanged, because they have no live value.
        unknown_secrets: placeholders that were sent unchanged, because their values are unknown.
    """

    def __init__(
        self,
        dialect: Dialect,
        framing: Framing,
        *,
        bindings: ReplayBindings,
        counterparts: NameMap,
        child_calls: IdMap,
        secrets: Mapping[str, str],
        new_folder: Callable[[str], str],
        handed: Callable[[ClassifiedMessage], Iterable[str]],
    ) -> None:
        self._dialect = dialect
        self._framing = framing
        self._bindings = bindings
        self._counterparts = counterparts
        self._child_calls = child_calls
        self._secrets = secrets
        self._new_folder = new_folder
        self._handed = handed
        self.unbound: dict[str, None] = {}
        self.unknown_secrets: dict[str, None] = {}

    def wire(self, event: Data) -> Iterator[tuple[ClassifiedMessage | None, bytes]]:
        """Yield pairs to send for an event: the recorded message, or None for other bytes; and the bytes.

        The bytes are b"" for a response to a request that the child did not send.
        """
        for item in event.items(self._framing):
            if not isinstance(item, Frame):
                yield None, self._bindings.to_live(item.wire, json=False)
                continue
            message = self._dialect.classify(item.payload)
            payload = self._live(message)
            if payload == item.payload and item.wire:
                yield message, item.wire
            else:
                yield message, b"" if payload is None else self._framing.encode(payload, item.head)

    def _live(self, message: ClassifiedMessage) -> bytes | None:
        for name, pointer in self._dialect.bound.get(message.method, {}).items():
            path = path_in(message.at(pointer))
            if name in FOLDERS and self._bindings.live(path) is None and self._bindings.is_placeholder(name, path):
                self._bindings.bind(path, self._new_folder(name))  # this message is the first to name the folder
        text = message.text
        changes = list(self._changes(message))
        if message.kind == "response" and message.key is not None:
            calls = self._child_calls
            live = calls.end(message.key) if self._dialect.is_last(message) else calls.live(message.key)
            if live is None:
                return None
            changes.append((*message.span, live.decode("utf-8", "surrogateescape")))
        for start, end, new in sorted(changes, reverse=True):
            text = text[:start] + new + text[end:]
        payload = text.encode("utf-8", "surrogateescape")
        if _MARK in payload:
            payload = self._with_secrets(payload)
        self.unbound.update(dict.fromkeys(self._bindings.unbound(payload)))
        return self._bindings.to_live(payload, json=message.kind != "other") if self._bindings else payload

    def _changes(self, message: ClassifiedMessage) -> Iterator[tuple[int, int, str]]:
        """Yield the spans of names with different live values, and those values."""
        for start, end, value in locate(message.text, pointers_of(self._dialect.names, message.method)):
            live = self._counterparts.live(id_key(value, message.text[start:end]))
            if live is not None:
                yield start, end, dumps(live)
        if message.method == "initialize":  # of LSP: a server exits once the process of its client has exited
            for start, end, value in locate(message.text, ["/params/processId"]):
                if isinstance(value, int):
                    yield start, end, str(os.getpid())
        yield from self._handed_out(message)
        for start, end, value in locate(message.text, pointers_of(self._dialect.mentions, message.method)):
            recorded = id_key(value, message.text[start:end])
            live_id = self._child_calls.live(recorded)
            if live_id != recorded:
                yield start, end, live_id.decode("utf-8", "surrogateescape")

    def _handed_out(self, message: ClassifiedMessage) -> Iterator[tuple[int, int, str]]:
        """Yield the spans of values that the child generated: strings anywhere, numbers at the named pointers."""
        for start, end, value in locate(message.text, self._handed(message)):
            live = None if isinstance(value, str) else self._counterparts.live(id_key(value, message.text[start:end]))
            if live is not None:
                yield start, end, dumps(live)
        members = message.envelope.members if message.envelope else {}
        for member in filter(None, map(members.get, message.form.content)):
            yield from self._counterparts.sent(message.text, member.start, member.end)

    def _with_secrets(self, payload: bytes) -> bytes:
        from ext_sdk.core.redaction.patterns import PLACEHOLDER

        parts: list[bytes] = []
        position = 0
        for match in PLACEHOLDER.finditer(payload):
            placeholder = match[0].decode()
            value = self._secrets.get(placeholder.removeprefix("[redacted:").rpartition("#")[0])
            if value is None:
                self.unknown_secrets[placeholder] = None
                continue
            parts += (payload[position : match.start()], quote(value)[1:-1].encode("utf-8", "surrogateescape"))
            position = match.end()
        return b"".join((*parts, payload[position:]))
