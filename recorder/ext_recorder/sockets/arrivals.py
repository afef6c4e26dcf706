"""Clients that come, until it is known which recorded connection each of them makes.

It is the first recorded one, in their order, that begins with what the client says; so clients that come side by side,
in another order than once, each get their own. Where the server spoke first it is the next one.
"""

from __future__ import annotations

from ext_recorder.hearing import Recorded
from ext_recorder.replay import instruments
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS

from .address import receive
from .recorded import connections

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Collection, Iterator

    from ext_recorder.cassette.header import Header
    from ext_recorder.replay import Options

    from .address import Listener
    from .recorded import Connection


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
                    ear, _ = instruments(self._path, self._header, self._options)
                    if ear.accepts(Recorded(one.first.payload, one.line), payload):
                        return one
        return next((one for one in self.missing if payload is not None or one.first is None), self.missing[0])

    def _refuse(self, client: socket.socket) -> None:
        self._tell(f"one connection more than the {self._count} in {self._path}: it is closed")
        client.close()
