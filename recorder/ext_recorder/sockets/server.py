"""`replay --listen`: the recorded server, without the server. Each client is played the connection that it makes.

Which one that is, `arrivals` finds out; `players` play it; and what depends on another connection waits for that.
"""

from __future__ import annotations

from functools import partial

from ext_recorder.cassette.events import OWN_FILES
from ext_recorder.cassette.reader import Reader
from ext_recorder.errors import RecorderError
from ext_recorder.messages.provenance import check, headline
from ext_recorder.posix.output import OutputSink, claim_standard_files, host_outlet, write_message
from ext_recorder.posix.signals import Signals, signal_name
from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.replay.actions import ActionBuffer
from ext_recorder.replay.event_loop import EXIT_CANNOT_PLAY, NEXT_SILENCE_MS, SILENCE_MS, PlayerDriver, wait
from ext_recorder.replay.player import EXIT_DIFFERS
from ext_recorder.replay.replay import (
    MAX,
    Options,
    die,
    make_action_buffer,
    make_matcher_and_writer,
    make_player,
    with_repeats,
)
from ext_recorder.replay.report import Report
from ext_sdk.core.wire.framing import FRAMINGS

from .address import Address, shut
from .connection_matching import Arrivals, Positions
from .players import ConnectionPlayer, OwnPlayer, Part

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

    from ext_recorder.cassette.header import Header
    from ext_recorder.replay.actions import Output
    from ext_recorder.replay.player import Player

    from .address import Listener
    from .connection_matching import Arrival, Connection
    from .http_server import HttpServer

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
    report = Report(options.report, path) if options.report else None
    try:
        with Reader(path) as reader:
            header = reader.header
        if options.live:
            check(path, header, options.live)
        if report:
            report.begin()
        kind: type[Server | HttpServer] = Server
        if header.framing == "http":
            from .http_server import HttpServer

            kind = HttpServer
        server = kind(path, header, options, Address.parse(listen, "--listen").listen(), err, report=report)
        status = server.run()
    except RecorderError as error:
        write_message(err, str(error))
        status = EXIT_CANNOT_PLAY
    if report:
        report.end(status)
    return status if isinstance(status, int) else die(status)


class _Client:
    """A live connection, and the recorded one that is played to it.

    Attributes:
        socket: the connection.
        number: of the recorded one.
        shell: plays it.
    """

    __slots__ = ("number", "shell", "socket")

    def __init__(self, client: socket.socket, number: int, shell: PlayerDriver) -> None:
        self.socket = client
        self.number = number
        self.shell = shell


class Server:
    """One replayed server.

    Args:
        path: the cassette.
        header: its header.
        options: how to replay.
        listener: where clients come.
        err: standard error.
        report: of `--report`; None: it was not given.

    Attributes:
        told: what was otherwise than recorded.
        repeated: the number of messages that were played again, on request.
    """

    def __init__(
        self, path: str, header: Header, options: Options, listener: Listener, err: OutputSink, *, report: Report | None
    ) -> None:
        self._path = path
        self._header = header
        self._options = options
        self._listener = listener
        self._err = err
        self._arrivals = Arrivals(path, header, options, listener, self._one_too_many)
        self._positions = Positions(self._arrivals.missing)
        self._clients: list[_Client] = []
        self._differs = False
        self._silence = SILENCE_MS
        self._patience: int | None = SILENCE_MS
        self.told: list[str] = report.told if report else []
        self._own = self._own_shell()
        self.repeated = 0
        if report:
            report.repeated = lambda: self.repeated

    def run(self) -> int | str:
        """Serve until the recorded server ends, or a signal comes. Returns the exit code, or the signal's name."""
        signals = Signals()
        signals.catch()
        write_message(self._err, f"listening on {self._listener.address}, {headline(self._path, self._header)}")
        try:
            self._own.start()
            while self._own.status is None:
                self._turn(signals)
            for client in self._clients:
                if client.shell.status is None:
                    client.shell.receive_data(b"")  # the server has ended: so have its connections
            while any(shell.backlog() for shell in self._shells()):
                self._turn(signals)
            self._look_back()
        finally:
            signals.close()
            self._listener.close()
        return EXIT_DIFFERS if self._differs else self._own.status

    def _turn(self, signals: Signals) -> None:
        ready, asked = wait(self._shells(), [signals.fd, *self._arrivals.files], self._patience)
        if ready:
            self._patience = self._silence
        elif not any(shell.backlog() for shell in self._shells()):
            early = [client.shell.receive_silence() for client in self._clients]
            self._silence = NEXT_SILENCE_MS if any(early) else self._silence
            self._patience = self._silence if any(early) else None
        if signals.fd in ready:
            for number, _ in signals.take():
                self._own.receive_signal(signal_name(number))
        for arrival, connection in self._arrivals.act(ready):
            self._begin(arrival, connection)
        for shell in self._shells():
            shell.act(ready, asked)
        self._resume()
        for client in [each for each in self._clients if each.shell.status is not None]:
            if not client.shell.backlog():
                self._part(client)

    def _shells(self) -> list[PlayerDriver]:
        return [self._own, *(client.shell for client in self._clients)]

    # --- Clients ------------------------------------------------------------------------------------------------------

    def _begin(self, arrival: Arrival, connection: Connection) -> None:
        """It is known which connection a client makes."""
        actions = make_action_buffer(self._header, self._options)
        player = self._player(Part(self._path, connection.number, closed=connection.closed), actions)
        player.on_host_data = actions.on_host_data
        player.told = self.told
        source = arrival.socket.fileno()
        out = OutputSink(source, arrival.socket.send, partial(shut, arrival.socket))
        shell = PlayerDriver(player, actions, source, {"out": out, "err": self._err}, self._options.speed)
        self._clients.append(_Client(arrival.socket, connection.number, shell))
        self._positions.begin(connection.number, player)
        shell.start()
        for data in arrival.heard:
            shell.receive_data(data)

    def _player(self, part: Part, actions: ActionBuffer) -> Player:
        if self._options.order != "strict":
            return make_player(part, actions, self._options)
        requests, responses = make_matcher_and_writer(self._path, self._header, self._options)
        framing = FRAMINGS[self._header.framing]
        player = ConnectionPlayer(part, requests, responses, actions, framing, arrived=self._positions.arrived)
        return with_repeats(player, actions, self._options)

    def _part(self, client: _Client) -> None:
        """A connection is over."""
        self._look_at(client.shell)
        self._positions.end(client.number)
        self._clients.remove(client)
        client.socket.close()

    def _look_at(self, shell: PlayerDriver) -> None:
        """What was otherwise than recorded on a connection that is over."""
        self.repeated += shell.player.repeated
        self._differs = self._differs or shell.status == EXIT_DIFFERS

    # --- What depends on other connections ----------------------------------------------------------------------------

    def _resume(self) -> None:
        """Let those go on for whom what they waited for has come; that may be what others wait for."""
        while True:
            before = self._positions.all()
            for shell in self._shells():
                shell.resume()
            if before == self._positions.all():
                return

    def _own_shell(self) -> PlayerDriver:
        """What the server did on its own account: lines, on this process' own standard files."""
        header = type(self._header)("raw", DIALECTS["raw"].framing, bindings=self._header.bindings)
        requests, responses = make_matcher_and_writer(self._path, header, self._options)
        actions = ActionBuffer(paced=0 < self._options.speed < MAX)
        part = Part(self._path, OWN_FILES)
        player = OwnPlayer(
            part, requests, responses, actions, FRAMINGS[header.framing], arrived=self._positions.arrived
        )
        outlets: dict[Output, OutputSink] = {"out": host_outlet(1), "err": self._err}
        return PlayerDriver(player, actions, _NOBODY, outlets, self._options.speed)

    # --- The end ------------------------------------------------------------------------------------------------------

    def _look_back(self) -> None:
        """What never came is told."""
        for client in self._clients:
            if client.shell.status is not None:
                self._look_at(client.shell)
        for one in self._arrivals.missing:
            self._tell(f"the recorded connection {one.number} ({self._path}:{one.line}) was never made")
            self._differs = self._differs or self._options.order == "strict"

    def _one_too_many(self, text: str) -> None:
        self._tell(text)
        self._differs = True

    def _tell(self, text: str) -> None:
        self.told.append(text)
        write_message(self._err, text)
