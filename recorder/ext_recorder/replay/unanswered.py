"""Requests of a recorded host that have no answer, because the recording was interrupted before it came.

A child that exits by itself in mid-call, or closes its output, has answered by that. A host that cancels a call, or
that asks the child to end, expects no answer either. What is left was cut off: a replay can't wait for it, and a
recorder says so.
"""

from __future__ import annotations

from ext_recorder.cassette.events import Data
from ext_recorder.messages.call_tracker import OpenCalls
from ext_recorder.protocols.dialect import id_key, pointers_of
from ext_recorder.protocols.fast_id import scan_first_id, scan_id

from .request_matcher import RecordedRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cassette.reader import Reader
    from ext_recorder.protocols.dialect import ClassifiedMessage, Dialect
    from ext_sdk.core.wire.framing import Framing

# A host sends these to end a child; a terminal sends them when its user does.
ENDING_SIGNALS = frozenset({"SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"})
# This dialect has a message for the end for those of its children that know one.
ANY_JSON_RPC = "jsonrpc"


_HOST, _CHILD = "host", "child"  # what ended a connection


def unanswered(reader: Reader, dialect: Dialect, framing: Framing, *, after: int = 0) -> list[RecordedRequest]:
    """Return the requests of the host that were never answered, in their order.

    Args:
        reader: the cassette, at its start.
        dialect: its protocol.
        framing: its framing.
        after: the events down to this line are not read.

    Raises:
        CassetteError: from the reader.
    """
    if not dialect.calls:
        return []
    calls = _Calls(dialect)
    ended: dict[int, str] = {}  # by connection: what ended it first
    all_ended = ""  # what ended those that were open until then
    for event in reader:
        if reader.line <= after:
            continue
        if isinstance(event, Data):
            for payload in event.payloads(framing) if event.kind != "err" else ():
                calls.take(event.conn, event.kind, payload, reader.line)
        elif event.kind == "eof" and event.value != "err":
            ended.setdefault(event.conn, all_ended or (_HOST if event.value == "in" else _CHILD))
        elif event.kind == "exit":
            all_ended = all_ended or _CHILD
        elif event.kind == "signal" and event.value in ENDING_SIGNALS:
            all_ended = all_ended or _HOST
    return [call for conn, call in calls.left() if ended.get(conn, all_ended) != _CHILD]


def interruption(
    reader: Reader, dialect: Dialect, framing: Framing, *, after: int = 0, server: bool = False, script: bool = False
) -> str:
    """Return why a recorded session is not a complete one; "" if it is.

    A signal ends it too early if its protocol has a message for the end, and the host has not sent that. Other children
    have no other end than a signal, and neither have servers.

    Args:
        reader: the cassette, at its start.
        dialect: its protocol.
        framing: its framing.
        after: the events down to this line were recorded before; they are not checked.
        server: it is a session of a socket server.
        script: the child is a program that a signal interrupts, not one that waits for requests.

    Raises:
        CassetteError: from the reader.
    """
    with reader.again() as again:
        signal = "" if server else _killed(again) if script else _early_signal(again, dialect, after)
    left = unanswered(reader, dialect, framing, after=after)
    if left:
        with reader.again() as again:
            del left[: sum(event.kind == "omitted" for event in again)]  # each may be the answer to one
    if signal:
        return f"it was ended by {signal}"
    if left:
        more = f", and {len(left) - 1} more" if len(left) > 1 else ""
        message = left[0].message(dialect)
        return f"request {message.method} (line {left[0].line}) has no response{more}"
    return ""


def _killed(reader: Reader) -> str:
    return next((str(event.value) for event in reader if event.kind == "exit" and isinstance(event.value, str)), "")


def _early_signal(reader: Reader, dialect: Dialect, after: int) -> str:
    """Return the signal that ended the session before its host did; "" if none did.

    A signal to the process group ends the child as well, perhaps before the recorder notices it: then it is the exit.
    """
    if not dialect.final or dialect.name == ANY_JSON_RPC:
        return ""
    for event in reader:
        if reader.line <= after:
            continue
        if isinstance(event, Data):
            if event.kind == "in" and any(method.encode() in event.payload for method in dialect.final):
                return ""
        elif event.kind == "exit":
            return str(event.value) if event.value in ENDING_SIGNALS else ""
        elif event.value == "in":
            return ""
        elif event.value in ENDING_SIGNALS:
            return str(event.value)
    return ""


class CompletenessCheck:
    """Proof, while a session is recorded, that it is complete, so that its cassette need not be read again.

    It only knows the ids that `glance` finds. Whatever else occurs makes the session doubtful, which costs time and
    nothing else: `interruption` decides then.

    Args:
        dialect: the protocol.
    """

    __slots__ = ("_open", "doubtful")

    def __init__(self, dialect: Dialect) -> None:
        self.doubtful = bool(dialect.calls) and not _has_glances(dialect)
        self._open: dict[bytes, bytes] = {}  # requests by id; of further connections, by connection and id

    @property
    def is_complete(self) -> bool:
        """Return True if every request has a response, and no signal ended the session."""
        return not self.doubtful and not self._open

    def add_message(self, conn: int, stream: str, payload: bytes) -> None:
        """Read a message of either side. All messages pass here."""
        if self.doubtful:
            return
        seen = scan_first_id(payload) or scan_id(payload)
        if seen is None:
            self.doubtful = b'"id"' in payload or b"\\" in payload  # without an id it is no call
            return
        kind, start, end = seen
        key = payload[start:end] if conn == 1 else b"%d " % conn + payload[start:end]
        calls = self._open
        if stream == "in":
            if kind == "request":
                self.doubtful = key in calls
                calls[key] = payload
        elif kind == "response" or calls.get(key) == payload:  # an echo is a response, see `_end_echo`
            calls.pop(key, None)

    def add_mark(self, kind: str, value: int | str) -> None:
        """Read what is not a message: a signal, or the exit status of the child."""
        if kind in {"signal", "omitted"} or (kind == "exit" and isinstance(value, str)):
            self.doubtful = True


def _has_glances(dialect: Dialect) -> bool:
    return dialect.fast_scannable and not (dialect.forms or dialect.unfinished)


class _Calls:
    """Open calls of the host."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._open: OpenCalls[tuple[int, bytes], RecordedRequest] = OpenCalls()
        self._early: set[int] = set()  # connections with an HTTP response that came before the end of its request
        self._glances = _has_glances(dialect)
        special = {*dialect.final, *dialect.optional_id, *dialect.references}
        self._special = tuple(method.encode() for method in special)

    def take(self, conn: int, stream: str, payload: bytes, line: int) -> None:
        """Take a message of either side into account."""
        seen = scan_id(payload) if self._glances else None
        if seen is not None and seen[0] == "response" and stream == "out":
            self._end(conn, payload[seen[1] : seen[2]])
        elif seen is not None and seen[0] == "request" and stream == "in" and not self._is_special(payload):
            self._begin(conn, payload[seen[1] : seen[2]], payload, line)
        elif stream == "in" or seen is None:
            self._take_read(conn, stream, payload, line)
        elif seen[0] == "request":
            self._end_echo(conn, payload[seen[1] : seen[2]], payload)

    def _take_read(self, conn: int, stream: str, payload: bytes, line: int) -> None:
        message = self._dialect.classify(payload)
        if stream == "in":
            self._cancel(conn, message)
            if message.kind == "request" and message.key is not None and self._expects_answer(message):
                self._begin(conn, message.key, payload, line)
        elif message.kind == "response" and self._dialect.is_last(message):
            self._end(conn, message.key)
        elif message.kind == "request":
            self._end_echo(conn, message.key or b"", payload)

    def _end_echo(self, conn: int, key: bytes, payload: bytes) -> None:
        """A child that repeats a request as it is, such as `cat`, has answered it; any other request is its own."""
        call = self._open.first((conn, key))
        if call and call.payload == payload:
            self._end(conn, key)

    def _is_special(self, payload: bytes) -> bool:
        return any(method in payload for method in self._special)

    def _begin(self, conn: int, key: bytes, payload: bytes, line: int) -> None:
        if conn in self._early:
            self._early.discard(conn)
        else:
            self._open.begin((conn, key), RecordedRequest(payload, line))

    def left(self) -> list[tuple[int, RecordedRequest]]:
        """Return the calls that are still open, with their connections, in their order."""
        found = [(conn, call) for (conn, _), calls in self._open.items() for call in calls]
        return sorted(found, key=lambda item: item[1].line)

    def _expects_answer(self, message: ClassifiedMessage) -> bool:
        return message.method not in self._dialect.final and message.method not in self._dialect.optional_id

    def _cancel(self, conn: int, message: ClassifiedMessage) -> None:
        for pointer in pointers_of(self._dialect.references, message.method):
            value = message.at(pointer)
            if isinstance(value, (str, int)) and not isinstance(value, bool):
                self._end(conn, id_key(value, ""))

    def _end(self, conn: int, key: bytes | None) -> None:
        if key is None:  # an answer that does not say to which call
            key = next((open_key for where, open_key in self._open if where == conn), b"")
        if self._open.end((conn, key)) is None and self._dialect.name == "http":
            self._early.add(conn)
