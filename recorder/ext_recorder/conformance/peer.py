"""Child under test: its standard files, or connections to the server at an address, and the messages on them.

All processes of a child that is started here are stopped at the end.
"""

from __future__ import annotations

import os
import socket
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ext_recorder.cassette.events import Data
from ext_recorder.errors import RecorderError
from ext_recorder.messages.open_calls import CallTracker
from ext_recorder.posix.channel import ByteChannel, wait
from ext_recorder.posix.supervised_child import SupervisedChild
from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.sockets.address import shut
from ext_recorder.sockets.relay import SERVER_START_S
from ext_sdk.core.process.spawner import Spawner
from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.json_codec import dumps, loads
from ext_sdk.core.wire.json_pointer import MISSING

from .raw_host import STDERR_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Self

    from ext_recorder.cassette.events import Event
    from ext_recorder.protocols.dialect import ClassifiedMessage
    from ext_recorder.sockets.address import Address
    from ext_sdk.core.wire.frames import Junk
    from ext_sdk.core.wire.framing import Decoder


DYING_SECONDS = 0.5  # a server that closes a connection may be about to exit, and still accept another one
RETRY_SECONDS = 0.02  # between two attempts to connect to a server that is starting
SHOWN_CHARS = 2_000


class SessionEndpoint(NamedTuple):
    """Endpoint of one session.

    Attributes:
        connect: returns a channel to the child, for each client a new one if that is possible.
        ended: returns True if the child exits within the given seconds after it has closed its channel.
    """

    connect: Callable[[], ByteChannel]
    ended: Callable[[float], bool]


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
        self._server: SupervisedChild | None = None
        self._has_served = False  # since it was started
        self._channels: list[ByteChannel] = []  # to it, in the current session
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stderr = self._stack.enter_context(tempfile.TemporaryFile())  # a file: the child cannot block on it
        self._stack.callback(self._spawner.close)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._server:
            self._server.close()
        self._stack.close()

    @contextmanager
    def session(self) -> Iterator[SessionEndpoint]:
        """Open the endpoint of one session, and close it at the end.

        Raises:
            RecorderError: the command cannot be started, or no server listens at the address.
        """
        with ExitStack() as stack:
            if self._address:
                # The server itself keeps running after a session.
                yield SessionEndpoint(partial(self._connect, self._address, stack), lambda _: True)
            else:
                child = stack.enter_context(self._start())
                yield SessionEndpoint(lambda: child.channel, child.process.wait_for_exit)

    def _start(self, stdout: int | None = None) -> SupervisedChild:
        stderr = self._stderr.fileno()
        return SupervisedChild(self._spawner, self._command, os.environ, self._folder, stdout=stdout, stderr=stderr)

    def _connect(self, address: Address, stack: ExitStack) -> ByteChannel:
        """Connect to the server, which is started first if that is needed, and retry while it is starting."""
        if self._command and self._server is None:
            self._server = self._start(self._stderr.fileno())  # its input stays open: it may exit at the end
        if self._server and any(channel.was_left for channel in self._channels):
            self._server.process.wait_for_exit(DYING_SECONDS)
        self._channels.clear()
        until = monotonic() + SERVER_START_S
        while True:
            try:
                connection = stack.enter_context(address.connect())
            except OSError as error:
                if self._server is None or monotonic() >= until:
                    raise RecorderError(f"no connection to {address}: {error.strerror or error}") from None
                if self._server.has_exited():
                    self._server = self._restart(self._server, address)
            else:
                self._has_served = True
                self._channels.append(ByteChannel(connection.fileno(), connection.fileno(), partial(shut, connection)))
                return self._channels[-1]
            sleep(RETRY_SECONDS)

    def _restart(self, server: SupervisedChild, address: Address) -> SupervisedChild:
        """Restart a server that exited after a session. Raises RecorderError if it exited before the first one."""
        if not self._has_served:
            words = self.last_words()
            reason = f"the server has exited ({server.process.status})"
            reason += f"; its output on stderr:\n{words}" if words else ""
            raise RecorderError(f"no connection to {address}: {reason}")
        self._has_served, self._server = False, None
        server.close()
        if address.family == socket.AF_UNIX:
            Path(str(address.place)).unlink(missing_ok=True)  # a server that was killed could not remove it
        return self._start(self._stderr.fileno())

    def last_words(self) -> str:
        """Return the end of the output on stderr."""
        size = os.fstat(self._stderr.fileno()).st_size
        words = os.pread(self._stderr.fileno(), STDERR_BYTES, max(0, size - STDERR_BYTES)).decode(errors="replace")
        return words.strip()[-SHOWN_CHARS:]


Call: TypeAlias = tuple[str, int, bytes]  # key of a request: "in", the number of its client, the key of its id
_HEAD_BYTES = 40  # of a frame that a message shows


@dataclass
class Client:
    """Client of the child, with a channel of its own."""

    number: int
    channel: ByteChannel
    decoder: Decoder


@dataclass(frozen=True)
class ReceivedMessage:
    """Message of the child: its client, its classification, and its JSON value."""

    client: int
    message: ClassifiedMessage
    value: object

    @property
    def call(self) -> Call | None:
        """Return the request of this response; None if it is not a response."""
        return ("in", self.client, self.message.key or b"") if self.message.kind == "response" else None


class Exchange:
    """Messages of one session.

    Attributes:
        sent: requests of the host by their ids.
        open: requests without their last response.
        failed: requests whose response is a failure.
        unframed: beginnings of frames with invalid ends of header lines.
    """

    def __init__(self, endpoint: SessionEndpoint, protocol: str) -> None:
        self.events: list[Event] = []
        self.received: list[ReceivedMessage] = []
        self.sent: dict[object, Call] = {}
        self.dialect = DIALECTS[protocol]
        self.open: CallTracker[str] = CallTracker(self.dialect)
        self.failed: set[Call] = set()
        self.unframed: list[bytes] = []
        self._endpoint = endpoint
        self._framing = FRAMINGS[self.dialect.framing]
        self._clients: list[Client] = []
        self._started = monotonic()

    def client(self, number: int) -> Client:
        """Return a client; on standard files the same for all numbers. Raises RecorderError if it cannot connect."""
        while len(self._clients) < number:
            channel = self._endpoint.connect()
            if self._clients and channel is self._clients[0].channel:
                return self._clients[0]
            self._clients.append(Client(len(self._clients) + 1, channel, self._framing.decoder()))
        return self._clients[number - 1]

    # --- Sending ------------------------------------------------------------------------------------------------------

    def send_json(self, client: Client, message: object, timeout: float) -> Call | None:
        """Send a JSON value; see `send`."""
        return self.send(client, dumps(message).encode(), timeout)

    def send(self, client: Client, payload: bytes, timeout: float) -> Call | None:
        """Send one frame; the rest that the child does not read within the given seconds is dropped.

        Returns:
            The request; None if the frame is not one.
        """
        message = self.dialect.classify(payload)
        event = Data("in", monotonic() - self._started, payload, conn=client.number)
        self.events.append(event)
        self.open.request(event, message, message.method)
        call = None
        if message.kind == "request" and message.key is not None:
            call = self.sent[loads(message.id)] = ("in", client.number, message.key)
        client.channel.send(self._framing.encode(payload))
        until = monotonic() + timeout
        while client.channel.unsent and self.receive(until - monotonic()):
            pass
        client.channel.unsent = memoryview(b"")
        return call

    def end_input(self) -> None:
        """Close the input of the child: the host sends nothing more."""
        for client in self._clients:
            client.channel.end()

    # --- Receiving ----------------------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Return True if more output of the child may come."""
        return any(client.channel.is_open for client in self._clients)

    def receive(self, seconds: float) -> bool:
        """Read output, and write unsent bytes. Return False after the given seconds, or if the output has ended."""
        channels = [client.channel for client in self._clients]
        if seconds <= 0 or not any(channel.is_open or channel.unsent for channel in channels):
            return False
        unsent = sum(len(channel.unsent) for channel in channels)
        readable = wait(channels, seconds)
        for client in self._clients:
            if client.channel.source in readable and (data := client.channel.read()) is not None:
                client.decoder.receive_data(data)
                if not data:
                    client.decoder.receive_eof()
                while item := client.decoder.next_event():
                    self._add(client, item)
        return bool(readable) or sum(len(channel.unsent) for channel in channels) < unsent

    def _add(self, client: Client, item: Frame | Junk) -> None:
        data, raw = (item.payload, False) if isinstance(item, Frame) else (item.wire, True)
        event = Data("out", monotonic() - self._started, data, raw=raw, conn=client.number)
        self.events.append(event)
        if not isinstance(item, Frame):
            return
        if item.wire != self._framing.encode(item.payload, item.head):
            self.unframed.append(item.wire[:_HEAD_BYTES])
        message = self.dialect.classify(item.payload)
        try:
            received = ReceivedMessage(client.number, message, loads(message.text))
        except MessageError:
            return  # the rules report the error in it
        self.received.append(received)
        self.open.response(event, message)
        has_failed = self.dialect.has_failed(message) or message.at("/error") is not MISSING
        if received.call and has_failed and self.dialect.is_last(message):
            self.failed.add(received.call)
