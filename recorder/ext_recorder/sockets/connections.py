"""Recorded connections of a socket server: the live clients that they match, and a player for each.

A client gets the recorded connection whose first message matches its own. Each connection is replayed as a session on
stdio. A message that the server sends unprompted while no call is open may have been caused by another client, so it
also waits for the latest message of any other client. Log and exit of the server wait for all previous messages of all
clients.
"""

from __future__ import annotations

from ext_recorder.cassette.events import OWN_FILES, Data, Mark
from ext_recorder.cassette.reader import Reader
from ext_recorder.protocols.fast_id import scan_id
from ext_recorder.replay.replay import make_matcher_and_writer
from ext_recorder.replay.request_matcher import RecordedRequest
from ext_recorder.replay.strict import StrictPlayer
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS

from .address import receive

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Collection, Iterable, Iterator

    from ext_recorder.cassette.events import Event
    from ext_recorder.cassette.header import Header
    from ext_recorder.replay.actions import ActionBuffer
    from ext_recorder.replay.player import Player
    from ext_recorder.replay.replay import Options
    from ext_recorder.replay.request_matcher import RequestMatcher
    from ext_recorder.replay.response_writer import ResponseWriter
    from ext_sdk.core.wire.framing import Framing

    from .address import Listener

    # Returns True if all messages of the clients up to this line of the cassette have arrived.
    Arrived = Callable[[int], bool]


class RecordedConnection:
    """A recorded connection.

    Attributes:
        number: value of `conn` of its events.
        line: its first line in the cassette.
        greets: the server sends the first message.
        first: the first event of the client; None if the client sends nothing.
        closed: its end was recorded; else it was open when the server ended.
    """

    __slots__ = ("closed", "first", "greets", "line", "number")

    def __init__(self, number: int, line: int) -> None:
        self.number = number
        self.line = line
        self.greets = False
        self.first: Data | None = None
        self.closed = False


def connections(path: str) -> list[RecordedConnection]:
    """Return the recorded connections, in their order. Reads the complete file.

    Raises:
        CassetteError: the file cannot be read.
    """
    recorded: dict[int, RecordedConnection] = {}
    with Reader(path) as reader:
        for event in reader:
            if event.conn == OWN_FILES:
                continue
            connection = recorded.get(event.conn)
            if connection is None:
                connection = recorded[event.conn] = RecordedConnection(event.conn, reader.line)
            if not isinstance(event, Data):
                connection.closed = connection.closed or event.kind == "eof"
            elif event.kind == "in" and connection.first is None:
                connection.first = event
            elif event.kind == "out" and connection.first is None:
                connection.greets = True
    return [recorded[number] for number in sorted(recorded)]


class ConnectionReader(Reader):
    """Reader of the events of one connection as a session, whose end is an exit.

    Args:
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

    def again(self) -> ConnectionReader:
        """Return another reader of the same part, at its start."""
        return ConnectionReader(self.path, self._number, closed=self._closed)

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
        requests, responses, actions, framing: see Player.
        arrived: returns True if all messages of other connections up to a line have arrived.
    """

    _is_coupled = True

    def __init__(
        self,
        reader: ConnectionReader,
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

    def may_play(self, event: Event) -> bool:
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

    def may_play(self, event: Event) -> bool:
        return not self._part.cause or self._arrived(self._part.cause)


class Positions:
    """Positions in the cassette, by connection. Connections that have ended have no position.

    Args:
        recorded: the connections; none of them has begun.
    """

    def __init__(self, recorded: Iterable[RecordedConnection]) -> None:
        self._open: dict[int, Player | int] = {connection.number: connection.line for connection in recorded}

    def begin(self, number: int, player: Player) -> None:
        """Set the player of a connection."""
        self._open[number] = player

    def end(self, number: int) -> None:
        """Remove a connection that has ended."""
        del self._open[number]

    def arrived(self, line: int) -> bool:
        """Return True if all messages of the clients that are recorded above this line have been received."""
        return all(_position(player) > line for player in self._open.values())

    def all(self) -> list[int]:
        """Return all positions."""
        return [_position(player) for player in self._open.values()]


def _position(player: Player | int) -> int:
    """Return the line above which all messages of the client have been received."""
    if isinstance(player, int):
        return player
    # In order `any`, a later message may come first, so events that depend on it wait for the end of the connection.
    return player.next_line() if isinstance(player, StrictPlayer) else 0


class Arrival:
    """A live connection that is not matched yet."""

    __slots__ = ("decoder", "received", "socket")

    def __init__(self, client: socket.socket, header: Header) -> None:
        self.socket = client
        self.received: list[bytes] = []
        self.decoder = FRAMINGS[header.framing].decoder()


class Arrivals:
    """Live connections that are not matched yet, and the recorded ones without a live one.

    Args:
        report: called with a message about a client for which no recorded connection is left.

    Attributes:
        missing: recorded connections without a live one.
    """

    def __init__(
        self, path: str, header: Header, options: Options, listener: Listener, report: Callable[[str], None]
    ) -> None:
        self._path = path
        self._header = header
        self._options = options
        self._listener = listener
        self._report = report
        self._fresh: dict[int, Arrival] = {}
        self.missing = connections(path)
        self._count = len(self.missing)

    @property
    def files(self) -> list[int]:
        """Return the file descriptors to poll for `act`."""
        return [self._listener.fd, *self._fresh]

    def act(self, ready: Collection[int]) -> Iterator[tuple[Arrival, RecordedConnection]]:
        """Accept and read after poll(). Yield the clients that are matched now, with their recorded connections."""
        fresh = list(self._fresh.items())
        if self._listener.fd in ready and (client := self._listener.accept()):
            arrival = Arrival(client, self._header)
            if not self.missing and not self._fresh:
                self._refuse(client)
            elif self.missing and self.missing[0].greets:
                yield arrival, self.missing.pop(0)
            else:
                self._fresh[client.fileno()] = arrival
        for fd, arrival in fresh:
            if fd in ready:
                yield from self._receive(fd, arrival)

    def _receive(self, fd: int, arrival: Arrival) -> Iterator[tuple[Arrival, RecordedConnection]]:
        """Read from a client, and match it by its first message."""
        data = receive(arrival.socket)
        if data is None:
            return
        arrival.received.append(data)
        arrival.decoder.receive_data(data)
        item = arrival.decoder.next_event()
        if item is None and data:
            return
        del self._fresh[fd]
        if not self.missing:
            self._refuse(arrival.socket)
            return
        # The recorded connection whose first message matches; the first connection if none does.
        payload = item.payload if isinstance(item, Frame) else None
        candidates = [recorded for recorded in self.missing if payload is not None or recorded.first is None]
        connection = next(iter(candidates), self.missing[0])
        for recorded in self.missing if len(self.missing) > 1 else ():
            if payload is not None and recorded.first and not recorded.first.raw and not recorded.greets:
                requests, _ = make_matcher_and_writer(self._path, self._header, self._options)
                if requests.accepts(RecordedRequest(recorded.first.payload, recorded.line), payload):
                    connection = recorded
                    break
        self.missing.remove(connection)
        yield arrival, connection

    def _refuse(self, client: socket.socket) -> None:
        self._report(f"one connection more than the {self._count} in {self._path}: it is closed")
        client.close()
