"""Who was connected in a recorded session, at a glance."""

from __future__ import annotations

from ext_recorder.cassette.events import OWN_FILES, Data
from ext_recorder.cassette.reader import Reader
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

    from ext_recorder.cassette.header import Header
    from ext_recorder.replay.player import Player
    from ext_recorder.replay.replay import Options

    from .address import Listener


class Connection:
    """One recorded connection.

    Attributes:
        number: as `conn` has it.
        line: where it begins.
        greets: the server speaks first.
        first: the first event of the client; None where it says nothing.
        closed: its end was recorded; without, it was open when the server ended.
    """

    __slots__ = ("closed", "first", "greets", "line", "number")

    def __init__(self, number: int, line: int) -> None:
        self.number = number
        self.line = line
        self.greets = False
        self.first: Data | None = None
        self.closed = False


def connections(path: str) -> list[Connection]:
    """The recorded connections, in their order. Reads all of the file, and keeps the first message of each.

    Raises:
        CassetteError: it can't be read.
    """
    found: dict[int, Connection] = {}
    with Reader(path) as reader:
        for event in reader:
            if event.conn == OWN_FILES:
                continue
            one = found.get(event.conn)
            if one is None:
                one = found[event.conn] = Connection(event.conn, reader.line)
            if not isinstance(event, Data):
                one.closed = one.closed or event.kind == "eof"
            elif event.kind == "in" and one.first is None:
                one.first = event
            elif event.kind == "out" and one.first is None:
                one.greets = True
    return [found[number] for number in sorted(found)]


class Positions:
    """Lines of the cassette by connection; of those that are over there are none.

    Args:
        recorded: the connections, none of which is made yet.
    """

    def __init__(self, recorded: Iterable[Connection]) -> None:
        self._known: dict[int, Player | int] = {one.number: one.line for one in recorded}

    def begin(self, number: int, player: Player) -> None:
        """A connection is made, and this plays it."""
        self._known[number] = player

    def end(self, number: int) -> None:
        """It is over."""
        del self._known[number]

    def arrived(self, line: int) -> bool:
        """Has everything come that the clients said down to this line?"""
        return all(_position(each) > line for each in self._known.values())

    def all(self) -> list[int]:
        """All of them."""
        return [_position(each) for each in self._known.values()]


def _position(player: Player | int) -> int:
    """All that this client said above this line has come."""
    if isinstance(player, int):
        return player
    # In any order nobody can say what has not come yet: what depends on it waits for the connection's end.
    return player.next_line() if isinstance(player, StrictPlayer) else 0


class Arrival:
    """A live connection.

    Attributes:
        socket: of the client.
        heard: what it has said so far.
    """

    __slots__ = ("decoder", "heard", "socket")

    def __init__(self, client: socket.socket, header: Header) -> None:
        self.socket = client
        self.heard: list[bytes] = []
        self.decoder = FRAMINGS[header.framing].decoder()


class Arrivals:
    """Those who have come, and those who are still to come.

    Args:
        path: the cassette.
        header: its header.
        options: how to replay.
        listener: where clients come.
        tell: is told of a client for whom there is no recorded connection.

    Attributes:
        missing: recorded connections that nobody has made yet.
    """

    def __init__(
        self, path: str, header: Header, options: Options, listener: Listener, tell: Callable[[str], None]
    ) -> None:
        self._path = path
        self._header = header
        self._options = options
        self._listener = listener
        self._tell = tell
        self._fresh: dict[int, Arrival] = {}
        self.missing = connections(path)
        self._count = len(self.missing)

    @property
    def files(self) -> list[int]:
        """What is to be polled for `act`."""
        return [self._listener.fd, *self._fresh]

    def act(self, ready: Collection[int]) -> Iterator[tuple[Arrival, Connection]]:
        """After poll(): the clients that are known by now, and which connections they make."""
        fresh = list(self._fresh.items())
        if self._listener.fd in ready:
            yield from self._accept()
        for fd, arrival in fresh:
            if fd in ready:
                yield from self._hear(fd, arrival)

    def _accept(self) -> Iterator[tuple[Arrival, Connection]]:
        client = self._listener.accept()
        if client is None:
            return
        if not self.missing and not self._fresh:
            self._refuse(client)
            return
        arrival = Arrival(client, self._header)
        if self.missing and self.missing[0].greets:
            yield arrival, self.missing.pop(0)
        else:
            self._fresh[client.fileno()] = arrival

    def _hear(self, fd: int, arrival: Arrival) -> Iterator[tuple[Arrival, Connection]]:
        """Take what a client says before it is known which one it is."""
        data = receive(arrival.socket)
        if data is None:
            return
        arrival.heard.append(data)
        arrival.decoder.receive_data(data)
        item = arrival.decoder.next_event()
        if item is None and data:
            return
        del self._fresh[fd]
        if not self.missing:
            self._refuse(arrival.socket)
            return
        connection = self._recognised(item.payload if isinstance(item, Frame) else None)
        self.missing.remove(connection)
        yield arrival, connection

    def _recognised(self, payload: bytes | None) -> Connection:
        """The recorded connection that begins like this; the first one where none does."""
        if payload is not None and len(self.missing) > 1:
            for one in self.missing:
                if one.first is not None and not one.first.raw and not one.greets:
                    requests, _ = make_matcher_and_writer(self._path, self._header, self._options)
                    if requests.accepts(RecordedRequest(one.first.payload, one.line), payload):
                        return one
        return next((one for one in self.missing if payload is not None or one.first is None), self.missing[0])

    def _refuse(self, client: socket.socket) -> None:
        self._tell(f"one connection more than the {self._count} in {self._path}: it is closed")
        client.close()
