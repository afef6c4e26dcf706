"""The relay: the recording proxy of a socket server. It opens one connection to the server for each client.

client  <-- socket -->  relay (this process)  <-- socket -->  server
                          |  events
                          v
                        writer process (forked)  -->  cassette

The server is either started by the relay, which also forwards its standard files, or already running.
"""

from __future__ import annotations

import os
import signal
import socket
from contextlib import contextmanager
from functools import partial
from select import POLLIN
from time import monotonic

from ext_recorder.cassette.events import OWN_FILES
from ext_recorder.posix.output import OutputSink, host_outlet, pipe_outlet, release, write_message
from ext_recorder.posix.signals import Signals, signal_name
from ext_recorder.record import writer_process
from ext_recorder.record.event_encoder import END
from ext_recorder.record.note_queue import NO_PROCESS
from ext_recorder.record.proxy import ProxyStream, StdioProxy, leave_open
from ext_recorder.record.recorder import finish_like, spawn_in
from ext_sdk.core.stdio import claim_standard_files

from .address import Address, shut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ext_recorder.posix.child import Child
    from ext_recorder.record.config import RecordingConfig
    from ext_recorder.record.note_queue import NoteQueue
    from ext_recorder.record.recorder import TrafficRecorder

    from .address import Listener

# Maximum time until a server that was started here listens, in seconds.
SERVER_START_S = 30.0
# Time between attempts to connect, in milliseconds.
_RETRY_MS = 20
# Signals that end a relay that has not started a server.
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def record(session: RecordingConfig, http: Callable[[RecordingConfig], TrafficRecorder] | None = None) -> int:
    """Relay clients to a server until it ends, and record their sessions. This process exits as a started server does.

    Args:
        session: its `listen` and `connect` are addresses; `command` starts the server, if it is not empty.
        http: see `ext_recorder.record.recorder`, for a server that is started.

    Returns:
        The exit code, if no server was started.

    Raises:
        UsageError: an address is not valid, or it is not possible to listen at it.
        CommandError: the command cannot be started; nothing is recorded.
    """
    claim_standard_files()
    with relaying(session.listen, session.connect) as make_relay:
        layer = http(session) if http else None
        signals = Signals()
        signals.catch()
        child = spawn_in(layer, session.command) if session.command else None
        signals.catch_ignored()
        stderr = host_outlet(2)
        queue = writer_process.start(session, child.pid if child else NO_PROCESS)
        relay = make_relay(child, signals, queue, stderr)
        status = relay.run()
        relay.linger()
    report = queue.finish()
    write_message(stderr, report.text)
    if child:
        finish_like(layer, relay, status, stderr, whole=report.ok)
    return 0 if report.ok else 1


@contextmanager
def relaying(listen: str, connect: str) -> Iterator[Callable[[Child | None, Signals, NoteQueue, OutputSink], Relay]]:
    """Listen during the `with` block, and yield a function that creates the relay.

    Raises:
        UsageError: an address is not valid, or it is not possible to listen at it.
    """
    target = Address.parse(connect, "--connect")
    listener = Address.parse(listen, "--listen").listen()
    try:
        yield partial(Relay, listener=listener, target=target)
    finally:
        listener.close()


class Relay(StdioProxy):
    """Recording proxy of a socket server.

    Args:
        child: the server; None if it was not started by this process.
        signals, queue, stderr: see StdioProxy.
    """

    def __init__(
        self,
        child: Child | None,
        signals: Signals,
        queue: NoteQueue,
        stderr: OutputSink,
        *,
        listener: Listener,
        target: Address,
    ) -> None:
        self._listener = listener
        self._target = target
        self._connections = 0
        self._pending: list[tuple[float, socket.socket]] = []  # clients that wait for a starting server
        self._server = child
        super().__init__(child, signals, queue, stderr)  # type: ignore[arg-type]  # None: no method of this class uses it

    def run(self) -> int:
        """Relay until the server exits, or until a signal arrives if the server was not started by this process."""
        write_message(self._stderr, f"listening on {self._listener.address}, for {self._target}")
        return super().run()

    def linger(self) -> None:
        """Forward the remaining output of a server that has exited to its clients."""
        self._wire.unwatch(self._listener.fd)
        self._listener.close()
        for _, client in self._pending:
            client.close()
        if self._server is not None:
            super().linger()

    def open_streams(self, child: Child | None) -> None:
        self._wire.watch(self._listener.fd, POLLIN, self._on_client)
        if child is None:
            return
        into, out = pipe_outlet(child.stdin), host_outlet(1)
        self._wire.open(ProxyStream(_own("in"), 0, release, into, into.close))
        self._wire.open(ProxyStream(_own("out"), child.stdout, os.close, out, out.close))
        self._wire.open(ProxyStream(_own("err"), child.stderr, os.close, self._stderr, leave_open))

    def _note(self, kind: str, what: int | str) -> None:
        if self._server is None and kind == "exit":
            kind, what = END, 0
        super()._note(_own(kind), what)

    # --- Connections --------------------------------------------------------------------------------------------------

    def _on_client(self, _event: int) -> None:
        client = self._listener.accept()
        if client is not None:
            self._pending.append((monotonic(), client))
            self._connect()

    def _connect(self) -> None:
        """Connect the waiting clients in their order."""
        while self._pending:
            came, client = self._pending[0]
            try:
                server = self._target.connect()
            except OSError as error:
                if self._server is not None and monotonic() - came < SERVER_START_S:
                    self._patience = _RETRY_MS
                    return
                write_message(
                    self._stderr, f"cannot connect to {self._target}: {error.strerror or error}; the client is closed"
                )
                client.close()
            else:
                self._connections += 1
                number = self._connections
                super()._note(f"open:{number}", "in")
                self._wire.open(_stream(f"in:{number}", client, server))
                self._wire.open(_stream(f"out:{number}", server, client))
                client.close()  # the streams have descriptors of their own
                server.close()
            del self._pending[0]
        self._patience = self._signals.patience

    def hand_over(self, weight: int) -> int:
        if self._pending:
            self._connect()
        return super().hand_over(weight)

    # --- The end ------------------------------------------------------------------------------------------------------

    def on_signals(self, event: int) -> None:
        if self._server is not None:
            super().on_signals(event)
            return
        for number, _ in self._signals.take():
            if number in _ENDING:
                self._note("signal", signal_name(number))
                self._running, self._status = False, 0


def _own(kind: str) -> str:
    """Return the name of an event that belongs to no connection."""
    return f"{kind}:{OWN_FILES}"


def _stream(name: str, source: socket.socket, sink: socket.socket) -> ProxyStream:
    """Return one direction of a connection, with own descriptors: one is polled for reading, the other for writing."""
    reading, writing = os.dup(source.fileno()), socket.socket(fileno=os.dup(sink.fileno()))

    def end() -> None:
        shut(writing)
        writing.close()

    outlet = OutputSink(writing.fileno(), writing.send, end)
    return ProxyStream(name, reading, os.close, outlet, outlet.close)
