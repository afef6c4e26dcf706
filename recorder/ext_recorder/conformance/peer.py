"""Child under test: its standard files, or connections to the server at an address, and the messages on them.

All processes of a child that is started here are stopped at the end.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, TypeAlias

from ext_recorder.cassette.events import Data
from ext_recorder.errors import RecorderError
from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.sockets.relay import SERVER_START_S
from ext_sdk.core.process.errors import ProcessError
from ext_sdk.core.process.spawner import Command, Spawner
from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.json_codec import dumps, loads
from ext_sdk.core.wire.json_pointer import MISSING

from .raw_host import READ_BYTES, STDERR_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Self

    from ext_recorder.cassette.events import Event
    from ext_recorder.protocols.dialect import ClassifiedMessage
    from ext_recorder.sockets.address import Address
    from ext_sdk.core.process.child import Child
    from ext_sdk.core.wire.framing import Decoder


STOP_GRACE_SECONDS = 1.0  # between SIGTERM and SIGKILL
GONE_SECONDS = 10.0  # maximum wait for the end of killed processes
DYING_SECONDS = 0.5  # a server that closes a connection may be about to exit, and still accept another one
RETRY_SECONDS = 0.02  # between two attempts to connect to a server that is starting
SHOWN_CHARS = 2_000


class ByteChannel:
    """Non-blocking byte stream from and to a child.

    Args:
        source: descriptor to read from.
        sink: descriptor to write to.
        end: ends the stream to the child.

    Attributes:
        was_left: True if the child ended the stream first.
    """

    def __init__(self, source: int, sink: int, end: Callable[[], None]) -> None:
        self.source = source
        self.sink = sink
        self.was_left = False
        self._end = end
        self._is_ended = False

    def read(self) -> bytes:
        """Return the available bytes; b"" at the end. Raises BlockingIOError if none are available."""
        try:
            data = os.read(self.source, READ_BYTES)
        except ConnectionError:
            data = b""
        self.was_left = not data and not self._is_ended
        return data

    def write(self, data: memoryview) -> int:
        """Write as much as fits. Raises BlockingIOError if nothing fits, OSError if the child has closed the stream."""
        return os.write(self.sink, data)

    def end(self) -> None:
        """End the stream to the child."""
        self._is_ended = True
        self._end()


class SessionEndpoint:
    """Endpoint of one session. `link` returns a channel to the child, for each client a new one if that is possible."""

    def __init__(self, link: Callable[[], ByteChannel], ended: Callable[[float], bool]) -> None:
        self.link = link
        self.ended = ended  # returns True if the child exits within the given seconds after it has closed its channel


class ChildUnderTest:
    """Child to check: a command, or a server at an address. A context manager, which stops the processes it started.

    Args:
        command: program and arguments; () for a server that is already running.
        folder: working directory of the command.
        address: of the server; None for a child on its standard files, which is started for each session.
    """

    def __init__(self, command: Sequence[str], folder: Path, address: Address | None = None) -> None:
        self._command = tuple(command)
        self._folder = folder
        self._address = address
        self._spawner = Spawner()
        self._server: Child | None = None
        self._has_served = False  # since it was started
        self._links: list[ByteChannel] = []  # to it
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stderr = self._stack.enter_context(tempfile.TemporaryFile())  # a file: the child cannot block on it
        return self

    def __exit__(self, *exception: object) -> None:
        if self._server:
            _stop(self._server)
        self._spawner.close()
        self._stack.close()

    @contextmanager
    def session(self) -> Iterator[SessionEndpoint]:
        """Open the endpoint of one session, and close it at the end.

        Raises:
            RecorderError: the command cannot be started, or no server listens at the address.
        """
        with ExitStack() as stack:
            yield self._served(self._address, stack) if self._address else self._started(stack)

    def _started(self, stack: ExitStack) -> SessionEndpoint:
        """Start a child on pipes."""
        (theirs_in, sink), (source, theirs_out) = os.pipe(), os.pipe()
        try:
            child = self._spawn(theirs_in, theirs_out)
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
            stack.callback(os.close, source)
            input = stack.enter_context(os.fdopen(sink, "wb", buffering=0))
        stack.callback(_stop, child)
        os.set_blocking(source, False)
        os.set_blocking(sink, False)
        link = ByteChannel(source, sink, input.close)
        return SessionEndpoint(lambda: link, child.wait_for_exit)

    def _served(self, address: Address, stack: ExitStack) -> SessionEndpoint:
        """Return an endpoint that connects to the server."""

        def link() -> ByteChannel:
            connection = stack.enter_context(self._connected(address))
            self._links.append(ByteChannel(connection.fileno(), connection.fileno(), lambda: _end(connection)))
            return self._links[-1]

        return SessionEndpoint(link, lambda _: True)  # the server itself keeps running

    def _start_server(self) -> Child:
        stdin, ours = os.pipe()  # it stays open: a server may exit at its end
        self._stack.callback(os.close, ours)
        try:
            return self._spawn(stdin, self._stderr.fileno())
        finally:
            os.close(stdin)

    def _spawn(self, stdin: int, stdout: int) -> Child:
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        command = Command(self._command, env=os.environ, directory=folder, grace=STOP_GRACE_SECONDS)
        try:
            return self._spawner.spawn(command, stdin=stdin, stdout=stdout, stderr=self._stderr.fileno())
        except (ProcessError, ValueError) as failure:
            raise RecorderError(str(failure)) from failure
        finally:
            os.close(folder)

    def _connected(self, address: Address) -> socket.socket:
        """Connect to the server, which is started first if that is needed, and retry while it is starting."""
        if self._command and self._server is None:
            self._server = self._start_server()
        if self._server and any(link.was_left for link in self._links):
            self._server.wait_for_exit(DYING_SECONDS)
        self._links.clear()
        until = monotonic() + SERVER_START_S
        while True:
            try:
                connection = address.connect()
            except OSError as error:
                if self._server is None or monotonic() >= until:
                    raise RecorderError(f"no connection to {address}: {error.strerror or error}") from None
                if _has_ended(self._server):
                    self._server = self._started_again(self._server, address)
            else:
                self._has_served = True
                return connection
            sleep(RETRY_SECONDS)

    def _started_again(self, server: Child, address: Address) -> Child:
        """Restart a server that exited after a session. Raises RecorderError if it exited before the first one."""
        if not self._has_served:
            words = self.last_words()
            why = f"the server has exited ({server.status})" + (f"; its output on stderr:\n{words}" if words else "")
            raise RecorderError(f"no connection to {address}: {why}")
        self._has_served, self._server = False, None
        _stop(server)
        if address.family == socket.AF_UNIX:
            Path(str(address.place)).unlink(missing_ok=True)  # it could not
        return self._start_server()

    def last_words(self) -> str:
        """Return the end of the output on stderr."""
        size = os.fstat(self._stderr.fileno()).st_size
        words = os.pread(self._stderr.fileno(), STDERR_BYTES, max(0, size - STDERR_BYTES)).decode(errors="replace")
        return words.strip()[-SHOWN_CHARS:]


def _has_ended(child: Child) -> bool:
    child.update()
    return child.status is not None


def _stop(child: Child) -> None:
    """Stop a child with all processes that it started."""
    if not child.wait(0):
        child.stop(signal.SIGTERM, STOP_GRACE_SECONDS)
        child.wait(GONE_SECONDS)
    child.close()


def _end(connection: socket.socket) -> None:
    with suppress(OSError):  # it is already closed
        connection.shutdown(socket.SHUT_WR)


Call: TypeAlias = tuple[int, bytes | None]  # a request: the number of its client, and the key of its id
_HEAD_BYTES = 40  # of a frame that a message shows


@dataclass
class Client:
    """Client of the child, with a channel of its own.

    Args:
        number: from 1.
        link: its channel.
        decoder: of the output of the child.
        is_open: False after the end of the output.
    """

    number: int
    link: ByteChannel
    decoder: Decoder
    is_open: bool = True


@dataclass(frozen=True)
class ReceivedMessage:
    """Message of the child: its client, its classification, and its JSON value."""

    client: int
    message: ClassifiedMessage
    value: object

    @property
    def call(self) -> Call | None:
        """Return the request of this response; None if it is not a response."""
        return (self.client, self.message.key) if self.message.kind == "response" else None


class Exchange:
    """Messages of one session.

    Args:
        place: endpoint of the session.
        protocol: name of the protocol.

    Attributes:
        events: messages in both directions.
        received: messages of the child.
        sent: requests of the host by their ids.
        open: requests without their last response; `failed`: requests whose response is a failure.
        unframed: beginnings of frames with invalid ends of header lines.
    """

    def __init__(self, place: SessionEndpoint, protocol: str) -> None:
        self.events: list[Event] = []
        self.received: list[ReceivedMessage] = []
        self.sent: dict[object, Call] = {}
        self.open: set[Call] = set()
        self.failed: set[Call] = set()
        self.unframed: list[bytes] = []
        self.dialect = DIALECTS[protocol]
        self._place = place
        self._framing = FRAMINGS[self.dialect.framing]
        self._clients: list[Client] = []
        self._started = monotonic()

    def client(self, number: int) -> Client:
        """Return a client; on standard files the same for all numbers. Raises RecorderError if it cannot connect."""
        while len(self._clients) < number:
            link = self._place.link()
            if self._clients and link is self._clients[0].link:
                return self._clients[0]
            self._clients.append(Client(len(self._clients) + 1, link, self._framing.decoder()))
        return self._clients[number - 1]

    # --- Sending ------------------------------------------------------------------------------------------------------

    def say(self, client: Client, message: object, patience: float) -> Call | None:
        """Send a JSON value; see `send`."""
        return self.send(client, dumps(message).encode(), patience)

    def send(self, client: Client, payload: bytes, patience: float) -> Call | None:
        """Send one frame; the rest that the child does not read within the given seconds is dropped.

        Returns:
            The request; None if the frame is not one.
        """
        message = self.dialect.classify(payload)
        call = None
        if message.kind == "request" and message.key is not None:
            call = (client.number, message.key)
            self.sent[loads(message.id)] = call
            self.open.add(call)
        self.events.append(Data("in", monotonic() - self._started, payload, conn=client.number))
        rest = memoryview(self._framing.encode(payload))
        until = monotonic() + patience
        while rest and monotonic() < until:
            try:
                rest = rest[client.link.write(rest) :]
            except BlockingIOError:
                self.receive(until - monotonic(), writing=client)
            except OSError:  # it has closed its input; its output is still read
                break
        return call

    def end_input(self) -> None:
        """Close the input of the child: the host sends nothing more."""
        for client in self._clients:
            client.link.end()

    # --- Receiving ----------------------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Return True if more output of the child may come."""
        return any(client.is_open for client in self._clients)

    def receive(self, seconds: float, writing: Client | None = None) -> bool:
        """Read output. Return True if there was any, or if writing to that client is possible."""
        listening = {client.link.source: client for client in self._clients if client.is_open}
        if seconds <= 0 or not (listening or writing):
            return False
        poll = select.poll()
        for source in listening:
            poll.register(source, select.POLLIN)
        if writing:
            both = select.POLLIN if writing.link.sink in listening else 0
            poll.register(writing.link.sink, select.POLLOUT | both)
        ready = poll.poll(seconds * 1_000 + 1)
        for fd, event in ready:
            if fd in listening and event != select.POLLOUT:
                self._read(listening[fd])
        return bool(ready)

    def _read(self, client: Client) -> None:
        with suppress(BlockingIOError):
            data = client.link.read()
            client.decoder.receive_data(data)
            if not data:
                client.is_open = False
                client.decoder.receive_eof()
        while item := client.decoder.next_event():
            is_frame = isinstance(item, Frame)
            data = item.payload if isinstance(item, Frame) else item.wire
            self.events.append(Data("out", monotonic() - self._started, data, raw=not is_frame, conn=client.number))
            if isinstance(item, Frame):
                self._take(client, item)

    def _take(self, client: Client, frame: Frame) -> None:
        if frame.wire != self._framing.encode(frame.payload, frame.head):
            self.unframed.append(frame.wire[:_HEAD_BYTES])
        message = self.dialect.classify(frame.payload)
        try:
            heard = ReceivedMessage(client.number, message, loads(message.text))
        except MessageError:
            return  # the rules report the error in it
        self.received.append(heard)
        if heard.call and self.dialect.is_last(message):
            self.open.discard(heard.call)
            if self.dialect.has_failed(message) or message.at("/error") is not MISSING:
                self.failed.add(heard.call)
