"""Players beside each other: one for each connection, and one for what belongs to none.

Within a connection the rule of `player` holds. What the server says there in answer to nothing, while no call is open,
may have been caused by another client; so it also waits for what a client had said last, where that was another one.
What the server does on its own account (its log, its exit) waits for all that any client had said before.
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

    # Has everything come that the clients said down to this line of the cassette?
    Arrived = Callable[[int], bool]


class Part(Reader):
    """The events of one connection, as a cassette of its own: its end is an exit.

    Args:
        path: the cassette.
        number: the connection; OWN_FILES for what belongs to none, without what came in there.
        closed: whether its end was recorded.

    Attributes:
        cause: the line of what a client had said last before the event given last, where that was another
            connection; else 0.
    """

    def __init__(self, path: str, number: int, *, closed: bool = False) -> None:
        self.cause = 0
        self._number = number
        self._closed = closed
        super().__init__(path)

    def again(self) -> Part:
        """Another reader of the same part, at its start."""
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
            yield Mark("exit", last.time, last.value)  # of the recorder, which had not started the server itself


class ConnectionPlayer(StrictPlayer):
    """Plays one connection in its order.

    Args:
        reader: its events.
        requests, responses, actions, framing: see Player.
        arrived: asked about other connections.
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

    def _may(self, event: Event) -> bool:
        cause = self._part.cause
        return not cause or self._responses.has_open_calls or not self._is_unasked(event) or self._arrived(cause)

    def _is_unasked(self, event: Event) -> bool:
        if not isinstance(event, Data) or event.kind != "out" or event.raw:
            return False
        seen = scan_id(event.payload)
        kind = seen[0] if seen else self._requests.dialect.classify(event.payload).kind
        return kind in {"request", "notification"}


class OwnPlayer(ConnectionPlayer):
    """Plays what belongs to no connection."""

    def _may(self, event: Event) -> bool:
        return not self._part.cause or self._arrived(self._part.cause)
