"""`replay --listen`: the recorded server, without the server. Each client is played the connection that it makes.

A client's connection is the first recorded one, in their order, that begins with what the client says; so clients that
come side by side, in another order than once, each get their own. Where the server spoke first it is the next one.
"""

from __future__ import annotations

import socket
from functools import partial

from ext_recorder.cassette.events import OWN_FILES
from ext_recorder.cassette.reader import Reader
from ext_recorder.errors import RecorderError
from ext_recorder.hearing import Recorded
from ext_recorder.loop import EXIT_CANNOT_PLAY, wait
from ext_recorder.outlets import Outlet, claim_standard_files, host_outlet, tell
from ext_recorder.player import EXIT_DIFFERS
from ext_recorder.replay import Options, die, instruments, make_player, make_stage, write_report
from ext_recorder.shell import Shell
from ext_recorder.signals import Signals, signal_name
from ext_recorder.stage import Stage
from ext_recorder.strict import StrictPlayer
from ext_sdk.protocols.dialect import DIALECTS
from ext_sdk.wire.framing import FRAMINGS, Frame

from .address import Address
from .players import ConnectionPlayer, OwnPlayer, Part
from .recorded import connections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cassette.header import Header
    from ext_recorder.player import Player
    from ext_recorder.stage import Output

    from .address import Listener
    from .recorded import Connection

_READ_BYTES = 65_536
_NOBODY = -1


def run_server(path: str, listen: str, options: Options) -> int:
    """Be the recorded server, at an address.

    Args:
        path: the cassette.
        listen: the address.
        options: how to replay.

    Returns:
        As `run_replay` does.
    """
    claim_standard_files()
    err = host_outlet(2)
    try:
        with Reader(path) as reader:
            header = reader.header
        server = Server(path, header, options, Address.parse(listen, "--listen").listen(), err)
        status = server.run()
    except RecorderError as error:
        tell(err, str(error))
        return EXIT_CANNOT_PLAY
    if options.report:
        write_report(options.report, path, status, server.told)
    return status if isinstance(status, int) else die(status)


class _Client:
    """A live connection; `shell` once it is known which one it is.

    Attributes:
        socket: the connection.
        heard: what the client has said so far; kept until then.
        connection: the recorded one.
        shell: plays it.
    """

    __slots__ = ("connection", "decoder", "heard", "shell", "socket")

    def __init__(self, client: socket.socket, header: Header) -> None:
        self.socket = client
        self.heard: list[bytes] = []
        self.decoder = FRAMINGS[header.framing].decoder()
        self.connection: Connection | None = None
        self.shell: Shell | None = None


class Server:
    """One replayed server.

    Args:
        path: the cassette.
        header: its header.
        options: how to replay.
        listener: where clients come.
        err: standard error.

    Attributes:
        told: what was otherwise than recorded.
    """

    def __init__(self, path: str, header: Header, options: Options, listener: Listener, err: Outlet) -> None:
        self._path = path
        self._header = header
        self._options = options
        self._listener = listener
        self._err = err
        self._free = connections(path)
        self._count = len(self._free)
        self._clients: list[_Client] = []
        self._positions: dict[int, Player | int] = {one.number: one.line for one in self._free}
        self._differs = False
        self._own = self._own_shell()
        self.told: list[str] = []

    def run(self) -> int | str:
        """Serve until the recorded server ends, or a signal comes. Returns the exit code, or the signal's name."""
        signals = Signals()
        signals.catch()
        tell(self._err, f"listening on {self._listener.address}, replaying {self._path}")
        try:
            self._own.start()
            while self._own.status is None:
                self._turn(signals)
            self._end()
            while any(shell.backlog() for shell in self._shells()):
                self._turn(signals)
        finally:
            signals.close()
            self._listener.close()
        return EXIT_DIFFERS if self._differs else self._own.status

    def _turn(self, signals: Signals) -> None:
        fresh = {client.socket.fileno(): client for client in self._clients if client.shell is None}
        ready, asked = wait(self._shells(), [signals.fd, self._listener.fd, *fresh])
        if signals.fd in ready:
            for number, _ in signals.take():
                self._own.receive_signal(signal_name(number))
        if self._listener.fd in ready:
            self._accept()
        for fd, client in fresh.items():
            if fd in ready:
                self._hear_first(client)
        for shell in self._shells():
            shell.act(ready, asked)
        self._resume()
        for client in [each for each in self._clients if each.shell and each.shell.status is not None]:
            if not client.shell.backlog():  # type: ignore[union-attr]  # those without were left out
                self._part(client)

    def _shells(self) -> list[Shell]:
        return [self._own, *(client.shell for client in self._clients if client.shell)]

    # --- Clients ------------------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        client = self._listener.accept()
        if client is None:
            return
        if not self._free and not any(each.shell is None for each in self._clients):
            self._tell(f"one connection more than the {self._count} in {self._path}: it is closed")
            self._differs = True
            client.close()
            return
        self._clients.append(_Client(client, self._header))
        if self._free and self._free[0].greets:
            self._begin(self._clients[-1], self._free[0])

    def _hear_first(self, client: _Client) -> None:
        """Take what a client says before it is known which recorded one it is."""
        try:
            data = client.socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        client.heard.append(data)
        client.decoder.receive_data(data)
        item = client.decoder.next_event()
        if item is None and data:
            return
        if not self._free:
            self._tell(f"one connection more than the {self._count} in {self._path}: it is closed")
            self._differs = True
            self._clients.remove(client)
            client.socket.close()
            return
        self._begin(client, self._recognised(item.payload if isinstance(item, Frame) else None))

    def _recognised(self, payload: bytes | None) -> Connection:
        """The recorded connection that begins like this; the first one where none does."""
        if payload is not None and len(self._free) > 1:
            for one in self._free:
                if one.first is not None and not one.first.raw and not one.greets:
                    ear, _ = instruments(self._path, self._header, self._options)
                    if ear.accepts(Recorded(one.first.payload, one.line), payload):
                        return one
        return next((one for one in self._free if payload is not None or one.first is None), self._free[0])

    def _begin(self, client: _Client, connection: Connection) -> None:
        self._free.remove(connection)
        stage = make_stage(self._header, self._options)
        part = Part(self._path, connection.number, closed=connection.closed)
        player = self._player(part, stage)
        player.overhear = stage.overhear
        out = Outlet(client.socket.fileno(), client.socket.send, partial(_shut, client.socket))
        outlets: dict[Output, Outlet] = {"out": out, "err": self._err}
        client.connection = connection
        client.shell = Shell(player, stage, client.socket.fileno(), outlets, self._options.speed)
        self._positions[connection.number] = player
        client.shell.start()
        for data in client.heard:
            client.shell.receive_data(data)

    def _player(self, part: Part, stage: Stage) -> Player:
        if self._options.order != "strict":
            return make_player(part, stage, self._options)
        ear, voice = instruments(self._path, self._header, self._options)
        framing = FRAMINGS[self._header.framing]
        return ConnectionPlayer(part, ear, voice, stage, framing, arrived=self._arrived)

    def _part(self, client: _Client) -> None:
        """A connection is over."""
        assert client.shell is not None
        assert client.connection is not None
        self.told += client.shell.player.told
        self._differs = self._differs or client.shell.status == EXIT_DIFFERS
        del self._positions[client.connection.number]
        self._clients.remove(client)
        client.socket.close()

    # --- What depends on other connections ----------------------------------------------------------------------------

    def _arrived(self, line: int) -> bool:
        return all(self._position(number) > line for number in self._positions)

    def _position(self, number: int) -> int:
        """All that this client said above this line has come."""
        player = self._positions[number]
        if isinstance(player, int):
            return player
        # In any order nobody can say what has not come yet: what depends on it waits for the connection's end.
        return player.next_line() if isinstance(player, StrictPlayer) else 0

    def _resume(self) -> None:
        """Let those go on for whom what they waited for has come; that may be what others wait for."""
        while True:
            before = [self._position(number) for number in self._positions]
            for shell in self._shells():
                shell.resume()
            if before == [self._position(number) for number in self._positions]:
                return

    def _own_shell(self) -> Shell:
        """What the server did on its own account: lines, on this process' own standard files."""
        header = type(self._header)("raw", DIALECTS["raw"].framing, bindings=self._header.bindings)
        ear, voice = instruments(self._path, header, self._options)
        stage = Stage(paced=self._options.speed > 0)
        part = Part(self._path, OWN_FILES)
        player = OwnPlayer(part, ear, voice, stage, FRAMINGS[header.framing], arrived=self._arrived)
        outlets: dict[Output, Outlet] = {"out": host_outlet(1), "err": self._err}
        return Shell(player, stage, _NOBODY, outlets, self._options.speed)

    # --- The end ------------------------------------------------------------------------------------------------------

    def _end(self) -> None:
        """The server has ended: so have its connections. What never came is told."""
        for client in [each for each in self._clients if each.shell]:
            shell = client.shell
            assert shell is not None
            if shell.status is None:
                shell.receive_data(b"")
            if shell.status is not None:
                self._differs = self._differs or shell.status == EXIT_DIFFERS
                self.told += shell.player.told
        for one in self._free:
            self._tell(f"the recorded connection {one.number} ({self._path}:{one.line}) was never made")
            self._differs = self._differs or self._options.order == "strict"

    def _tell(self, text: str) -> None:
        self.told.append(text)
        tell(self._err, text)


def _shut(client: socket.socket) -> None:
    """Let the client see the end."""
    try:
        client.shutdown(socket.SHUT_WR)
    except OSError:  # it has gone already
        return
