"""Search for requests of a recorded host without a response, because the recording was interrupted.

A call is also complete if the child exits by itself or closes its output during the call, and if the host cancels it. A
request that ends the child needs no response. All other calls were cut off: a replay cannot wait for their responses,
and a recorder reports them.
"""

from __future__ import annotations

from ext_recorder.cassette.events import Data
from ext_recorder.messages.open_calls import OpenCalls
from ext_recorder.protocols.dialect import id_key, pointers_of
from ext_recorder.protocols.fast_id import scan_first_id, scan_id

from .request_matcher import RecordedRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cassette.reader import Reader
    from ext_recorder.protocols.dialect import Dialect
    from ext_sdk.core.wire.framing import Framing

# Signals by which a host, or the user of a terminal, ends a child.
ENDING_SIGNALS = frozenset({"SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"})
# Not all children of this dialect support its message for the end of a session.
ANY_JSON_RPC = "jsonrpc"


_HOST, _CHILD = "host", "child"  # what ended a connection


def unanswered(reader: Reader, dialect: Dialect, framing: Framing, *, after: int = 0) -> list[RecordedRequest]:
    """Return the requests of the host without a response, in their order.

    Args:
        reader: the cassette, at its start.
        after: the events up to this line are skipped.

    Raises:
        CassetteError: from the reader.
    """
    if not dialect.calls:
        return []
    calls = _Calls(dialect)
    ended: dict[int, str] = {}  # by connection: what ended it first
    all_ended = ""  # what ended all connections that were open then
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
    """Return the reason why a recorded session is incomplete; "" if it is complete.

    A signal ends a session too early if its protocol has a message for the end that the host has not sent. Servers, and
    children of other protocols, can only be ended by a signal.

    Args:
        reader: the cassette, at its start.
        after: the events up to this line were recorded before; they are not checked.
        server: it is a session of a socket server.
        script: the child is a program that a signal interrupts, not one that waits for requests.

    Raises:
        CassetteError: from the reader.
    """
    with reader.again() as again:
        if server:
            signal = ""
        elif script:
            exits = (event.value for event in again if event.kind == "exit" and isinstance(event.value, str))
            signal = str(next(exits, ""))
        else:
            signal = _early_signal(again, dialect, after)
    left = unanswered(reader, dialect, framing, after=after)
    if left:
        with reader.again() as again:
            del left[: sum(event.kind == "omitted" for event in again)]  # each may be the response to a request
    if signal:
        return f"it was ended by {signal}"
    if left:
        more = f", and {len(left) - 1} more" if len(left) > 1 else ""
        message = left[0].message(dialect)
        return f"request {message.method} (line {left[0].line}) has no response{more}"
    return ""


def _early_signal(reader: Reader, dialect: Dialect, after: int) -> str:
    """Return the signal that ended the session before its host did; "" if none did.

    A signal to the process group may end the child before the recorder receives it: then only the exit is recorded.
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
    """Check during a recording that the session is complete, so that its cassette need not be read again.

    It only uses the ids that `scan_id` finds. Anything else makes the session doubtful, which costs only time:
    `interruption` decides then.
    """

    __slots__ = ("_open", "doubtful")

    def __init__(self, dialect: Dialect) -> None:
        self.doubtful = bool(dialect.calls) and not _has_plain_ids(dialect)
        self._open: dict[bytes, bytes] = {}  # requests by id; those of further connections by connection and id

    @property
    def is_complete(self) -> bool:
        """Return True if every request has a response, and no signal ended the session."""
        return not self.doubtful and not self._open

    def add_message(self, conn: int, stream: str, payload: bytes) -> None:
        """Check a message of either side. This is called for all messages."""
        if self.doubtful:
            return
        seen = scan_first_id(payload) or scan_id(payload)
        if seen is None:
            self.doubtful = b'"id"' in payload or b"\\" in payload  # without an id it is not a call
            return
        kind, start, end = seen
        key = payload[start:end] if conn == 1 else b"%d " % conn + payload[start:end]
        calls = self._open
        if stream == "in":
            if kind == "request":
                self.doubtful = key in calls
                calls[key] = payload
        elif kind == "response" or calls.get(key) == payload:  # an echo is a response, see `_Calls._end_echo`
            calls.pop(key, None)

    def add_mark(self, kind: str, value: int | str) -> None:
        """Check an event without bytes, such as a signal or the exit."""
        if kind in {"signal", "omitted"} or (kind == "exit" and isinstance(value, str)):
            self.doubtful = True


def _has_plain_ids(dialect: Dialect) -> bool:
    return dialect.fast_scannable and not (dialect.forms or dialect.unfinished)


class _Calls:
    """Open calls of the host."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._open: OpenCalls[tuple[int, bytes], RecordedRequest] = OpenCalls()
        self._early: set[int] = set()  # connections with an HTTP response before the end of its request
        self._scans_ids = _has_plain_ids(dialect)
        special = {*dialect.final, *dialect.optional_id, *dialect.references}
        self._special = tuple(method.encode() for method in special)

    def take(self, conn: int, stream: str, payload: bytes, line: int) -> None:
        """Add a message of either side."""
        seen = scan_id(payload) if self._scans_ids else None
        if seen is not None:
            kind, id = seen[0], payload[seen[1] : seen[2]]
            if stream == "out":
                if kind == "response":
                    self._end(conn, id)
                elif kind == "request":
                    self._end_echo(conn, id, payload)
                return
            if kind == "request" and not any(method in payload for method in self._special):
                self._begin(conn, id, payload, line)
                return
        self._take_parsed(conn, stream, payload, line)

    def _take_parsed(self, conn: int, stream: str, payload: bytes, line: int) -> None:
        dialect, message = self._dialect, self._dialect.classify(payload)
        if stream == "in":
            for pointer in pointers_of(dialect.references, message.method):  # a cancellation
                value = message.at(pointer)
                if isinstance(value, (str, int)) and not isinstance(value, bool):
                    self._end(conn, id_key(value, ""))
            needs_response = message.method not in dialect.final and message.method not in dialect.optional_id
            if message.kind == "request" and message.key is not None and needs_response:
                self._begin(conn, message.key, payload, line)
        elif message.kind == "response" and dialect.is_last(message):
            self._end(conn, message.key)
        elif message.kind == "request":
            self._end_echo(conn, message.key or b"", payload)

    def _end_echo(self, conn: int, key: bytes, payload: bytes) -> None:
        """Close a call whose request the child repeats unchanged, as `cat` does: that is the response."""
        call = self._open.first((conn, key))
        if call and call.payload == payload:
            self._end(conn, key)

    def _begin(self, conn: int, key: bytes, payload: bytes, line: int) -> None:
        if conn in self._early:
            self._early.discard(conn)
        else:
            self._open.begin((conn, key), RecordedRequest(payload, line))

    def left(self) -> list[tuple[int, RecordedRequest]]:
        """Return the open calls with their connections, in their order."""
        left = [(conn, call) for (conn, _), calls in self._open.items() for call in calls]
        return sorted(left, key=lambda item: item[1].line)

    def _end(self, conn: int, key: bytes | None) -> None:
        if key is None:  # a response without an id
            key = next((open_key for where, open_key in self._open if where == conn), b"")
        if self._open.end((conn, key)) is None and self._dialect.name == "http":
            self._early.add(conn)
