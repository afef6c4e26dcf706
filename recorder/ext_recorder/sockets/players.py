"""Players of one socket server: one for each connection, and one for the events that belong to no connection.

Each connection is replayed as a session on stdio. A message that the server sends unprompted while no call is open may
have been caused by another client, so it also waits for the latest message of any other client. Log and exit of the
server wait for all previous messages of all clients.
"""

from __future__ import annotations

from ext_recorder.cassette.events import OWN_FILES, Data, Mark
from ext_recorder.cassette.reader import Reader
from ext_recorder.protocols.fast_id import scan_id
from ext_recorder.replay.strict import StrictPlayer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ext_recorder.cassette.events import Event
    from ext_recorder.replay.actions import ActionBuffer
    from ext_recorder.replay.request_matcher import RequestMatcher
    from ext_recorder.replay.response_writer import ResponseWriter
    from ext_sdk.core.wire.framing import Framing

    # Returns True if all messages of the clients up to this line of the cassette have arrived.
    Arrived = Callable[[int], bool]


class Part(Reader):
    """Reader of the events of one connection as a session, whose end is an exit.

    Args:
        path: the cassette.
        number: the connection; OWN_FILES for the output and exit of the server itself.
        closed: whether its end was recorded.

    Attributes:
        cause: line of the latest message of any client before the current event; 0 if it was of this connection.
    """

    def __init__(self, path: str, number: int, *, closed: bool = False) -> None:
        self.cause = 0
        self._number = number
        self._closed = closed
        super().__init__(path)

    def again(self) -> Part:
        """Return another reader of the same part, at its start."""
        return Part(self.path, self._number, closed=self._closed)

    def __iter__(self) -> Iterator[Event]:
        number, own = self._number, self._number == OWN_FILES
        last: Event | None = None
        for event in super().__iter__():
            if event.conn != number:
                if event.conn != OWN_FILES and isinstance(event, Data) and event.kind == "in":
                    self.cause = self.line
                continue
            if isinstance(event, Mark) and event.kind == "open":
                continue
            if own and (event.kind == "in" or (event.kind == "eof" and event.value == "in")):
                continue
            if event.kind == "in":
                self.cause = 0
            event.conn = 1
            last = event
            yield event
        if self._closed:
            yield Mark("exit", 0.0, 0)
        elif own and isinstance(last, Mark) and last.kind == "signal":
            yield Mark("exit", last.time, last.value)  # a recorder that has not started the server records no exit


class ConnectionPlayer(StrictPlayer):
    """Player of one connection in order `strict`.

    Args:
        reader: its events.
        requests, responses, actions, framing: see Player.
        arrived: returns True if all messages of other connections up to a line have arrived.
    """

    _is_coupled = True

    def __init__(
        self,
        reader: Part,
        requests: RequestMatcher,
        responses: ResponseWriter,
        actions: ActionBuffer,
        framing: Framing,
        *,
        arrived: Arrived,
    ) -> None:
        super().__init__(reader, requests, responses, actions, framing)
        self._part = reader
        self._arrived = arrived

    def _may_play(self, event: Event) -> bool:
        cause = self._part.cause
        if not cause or self._responses.has_open_calls:
            return True
        if not isinstance(event, Data) or event.kind != "out" or event.raw:
            return True
        scanned = scan_id(event.payload)
        kind = scanned[0] if scanned else self._requests.dialect.classify(event.payload).kind
        return kind not in {"request", "notification"} or self._arrived(cause)


class OwnPlayer(ConnectionPlayer):
    """Player of the events that belong to no connection."""

    def _may_play(self, event: Event) -> bool:
        return not self._part.cause or self._arrived(self._part.cause)
