"""`replay --listen`: replay a recorded socket server. Each client gets the recorded connection that matches its own.

An event that depends on another connection waits for that; see `connections`.
"""

from __future__ import annotations

from functools import partial

from ext_recorder.cassette.events import OWN_FILES
from ext_recorder.cassette.reader import Reader
from ext_recorder.errors import RecorderError
from ext_recorder.messages.provenance import check, headline
from ext_recorder.posix.output import OutputSink, host_outlet, write_message
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
from ext_sdk.core.stdio import claim_standard_files
from ext_sdk.core.wire.framing import FRAMINGS

from .address import Address, shut
from .connections import Arrivals, ConnectionPlayer, ConnectionReader, OwnPlayer, Positions

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

    from ext_recorder.cassette.header import Header
    from ext_recorder.replay.actions import Output
    from ext_recorder.replay.player import Player

    from .address import Listener
    from .connections import Arrival, RecordedConnection
    from .http_server import HttpServer

_NO_INPUT = -1  # in the place of a file descriptor


def run_server(path: str, listen: str, options: Options) -> int:
    """Replay a recorded server at an address.

    Returns:
        The exit status, see `run_replay`.
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
    """A live connection, and the recorded one that is replayed to it."""

    __slots__ = ("driver", "number", "socket")

    def __init__(self, client: socket.socket, number: int, driver: PlayerDriver) -> None:
        self.socket = client
        self.number = number
        self.driver = driver


class Server:
    """A replayed socket server.

    Attributes:
        differences: messages about differences between this session and the recorded one.
        repeated: number of messages that were replayed again, because a client asked again.
    """

    def __init__(
        self, path: str, header: Header, options: Options, listener: Listener, err: OutputSink, *, report: Report | None
    ) -> None:
        self._path = path
        self._header = header
        self._options = options
        self._listener = listener
        self._err = err
        self._arrivals = Arrivals(path, header, options, listener, self._report_extra)
        self._positions = Positions(self._arrivals.missing)
        self._clients: list[_Client] = []
        self._differs = False
        self._silence = SILENCE_MS
        self._patience: int | None = SILENCE_MS
        self.differences: list[str] = report.differences if report else []
        self.repeated = 0
        # Output on standard files, signals and the exit belong to no connection.
        raw = type(header)("raw", DIALECTS["raw"].framing, bindings=header.bindings)
        requests, responses = make_matcher_and_writer(path, raw, options)
        actions = ActionBuffer(paced=0 < options.speed < MAX)
        part, framing = ConnectionReader(path, OWN_FILES), FRAMINGS[raw.framing]
        player = OwnPlayer(part, requests, responses, actions, framing, arrived=self._positions.arrived)
        outlets: dict[Output, OutputSink] = {"out": host_outlet(1), "err": err}
        self._own = PlayerDriver(player, actions, _NO_INPUT, outlets, options.speed)
        if report:
            report.repeated = lambda: self.repeated

    def run(self) -> int | str:
        """Serve until the recorded server ends, or a signal arrives. Return the exit code or the name of the signal."""
        signals = Signals()
        signals.catch()
        write_message(self._err, f"listening on {self._listener.address}, {headline(self._path, self._header)}")
        try:
            self._own.start()
            while self._own.status is None:
                self._turn(signals)
            for client in self._clients:
                if client.driver.status is None:
                    client.driver.receive_data(b"")  # the end of the server ends its connections
            while any(driver.backlog() for driver in self._drivers()):
                self._turn(signals)
            for client in self._clients:
                if client.driver.status is not None:
                    self._count(client.driver)
            for connection in self._arrivals.missing:
                where = f"{self._path}:{connection.line}"
                self._report(f"the recorded connection {connection.number} ({where}) was never made")
                self._differs = self._differs or self._options.order == "strict"
        finally:
            signals.close()
            self._listener.close()
        return EXIT_DIFFERS if self._differs else self._own.status

    def _turn(self, signals: Signals) -> None:
        ready, polled = wait(self._drivers(), [signals.fd, *self._arrivals.files], self._patience)
        if ready:
            self._patience = self._silence
        elif not any(driver.backlog() for driver in self._drivers()):
            early = [client.driver.receive_silence() for client in self._clients]
            self._silence = NEXT_SILENCE_MS if any(early) else self._silence
            self._patience = self._silence if any(early) else None
        if signals.fd in ready:
            for number, _ in signals.take():
                self._own.receive_signal(signal_name(number))
        for arrival, connection in self._arrivals.act(ready):
            self._begin(arrival, connection)
        for driver in self._drivers():
            driver.act(ready, polled)
        self._resume()
        for client in [client for client in self._clients if client.driver.status is not None]:
            if not client.driver.backlog():
                self._count(client.driver)
                self._positions.end(client.number)
                self._clients.remove(client)
                client.socket.close()

    def _drivers(self) -> list[PlayerDriver]:
        return [self._own, *(client.driver for client in self._clients)]

    # --- Clients ------------------------------------------------------------------------------------------------------

    def _begin(self, arrival: Arrival, connection: RecordedConnection) -> None:
        """Start the replay of a connection to the client that matches it."""
        actions = make_action_buffer(self._header, self._options)
        part = ConnectionReader(self._path, connection.number, closed=connection.closed)
        player: Player
        if self._options.order == "strict":
            requests, responses = make_matcher_and_writer(self._path, self._header, self._options)
            framing = FRAMINGS[self._header.framing]
            arrived = self._positions.arrived
            connection_player = ConnectionPlayer(part, requests, responses, actions, framing, arrived=arrived)
            player = with_repeats(connection_player, actions, self._options)
        else:
            player = make_player(part, actions, self._options)
        player.on_host_data = actions.on_host_data
        player.differences = self.differences
        source = arrival.socket.fileno()
        out = OutputSink(source, arrival.socket.send, partial(shut, arrival.socket))
        driver = PlayerDriver(player, actions, source, {"out": out, "err": self._err}, self._options.speed)
        self._clients.append(_Client(arrival.socket, connection.number, driver))
        self._positions.begin(connection.number, player)
        driver.start()
        for data in arrival.received:
            driver.receive_data(data)

    def _count(self, driver: PlayerDriver) -> None:
        """Add the result of a connection that has ended."""
        self.repeated += driver.player.repeated
        self._differs = self._differs or driver.status == EXIT_DIFFERS

    def _resume(self) -> None:
        """Continue the players whose dependencies have arrived, until none makes progress."""
        while True:
            before = self._positions.all()
            for driver in self._drivers():
                driver.resume()
            if before == self._positions.all():
                return

    # --- Differences --------------------------------------------------------------------------------------------------

    def _report_extra(self, text: str) -> None:
        self._report(text)
        self._differs = True

    def _report(self, text: str) -> None:
        self.differences.append(text)
        write_message(self._err, text)
