"""Ways to a child: its standard files, or connections to the server that listens at an address.

Bytes only; `conversing` knows what they mean. Nothing of a child that was started here is left behind.
"""

from __future__ import annotations

import os
import signal
import socket
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from ext_recorder.errors import RecorderError
from ext_recorder.sockets.relay import SERVER_START_S
from ext_sdk.core.process.errors import ProcessError
from ext_sdk.core.process.spawner import Command, Spawner

from .host import READ_BYTES, STDERR_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Self

    from ext_recorder.sockets.address import Address
    from ext_sdk.core.process.child import Child

STOP_GRACE_SECONDS = 1.0  # between SIGTERM and SIGKILL
GONE_SECONDS = 10.0  # how long the end of a killed tree is waited for
DYING_SECONDS = 0.5  # a server that closes a connection may be about to die, and still take another one
RETRY_SECONDS = 0.02  # between two attempts to connect to a server that is starting
SHOWN_CHARS = 2_000


class Link:
    """Bytes from and to a child, without waiting.

    Args:
        source: what to read from.
        sink: what to write to; both non-blocking.
        end: tells the child that no more will come.

    Attributes:
        was_left: the child has ended it, unasked.
    """

    def __init__(self, source: int, sink: int, end: Callable[[], None]) -> None:
        self.source = source
        self.sink = sink
        self.was_left = False
        self._end = end
        self._is_ended = False

    def read(self) -> bytes:
        """What has come; b"" at its end. Raises BlockingIOError where nothing has."""
        try:
            data = os.read(self.source, READ_BYTES)
        except ConnectionError:
            data = b""
        self.was_left = not data and not self._is_ended
        return data

    def write(self, data: memoryview) -> int:
        """Write what there is room for. Raises BlockingIOError; OSError where nobody listens any more."""
        return os.write(self.sink, data)

    def end(self) -> None:
        """No more will be written."""
        self._is_ended = True
        self._end()


class Place:
    """Where one session is held. `link` gives a way to the child: for another client, where there can be one."""

    def __init__(self, link: Callable[[], Link], ended: Callable[[float], bool]) -> None:
        self.link = link
        self.ended = ended  # whether the child ends within so many seconds, after it has closed its link


class Peer:
    """What is asked: a command, or a server at an address. A context manager, which ends what it has started.

    Args:
        command: argv; for a server () where it runs already.
        folder: the working directory of what is started.
        address: where the server listens; None for a child on its standard files, which is started for each session.
    """

    def __init__(self, command: Sequence[str], folder: Path, address: Address | None = None) -> None:
        self._command = tuple(command)
        self._folder = folder
        self._address = address
        self._spawner = Spawner()
        self._server: Child | None = None
        self._has_served = False  # since it was started
        self._links: list[Link] = []  # to it
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stderr = self._stack.enter_context(tempfile.TemporaryFile())  # a file: nobody can block on it
        return self

    def __exit__(self, *exception: object) -> None:
        if self._server:
            _stop(self._server)
        self._spawner.close()
        self._stack.close()

    @contextmanager
    def session(self) -> Iterator[Place]:
        """A place for one session, closed at the end.

        Raises:
            RecorderError: the command can't be started, or there is no server at the address.
        """
        with ExitStack() as stack:
            yield self._served(self._address, stack) if self._address else self._started(stack)

    def _started(self, stack: ExitStack) -> Place:
        """A child on pipes of its own."""
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
        link = Link(source, sink, input.close)
        return Place(lambda: link, child.wait_for_exit)

    def _served(self, address: Address, stack: ExitStack) -> Place:
        """Connections to a server."""

        def link() -> Link:
            connection = stack.enter_context(self._connected(address))
            self._links.append(Link(connection.fileno(), connection.fileno(), lambda: _end(connection)))
            return self._links[-1]

        return Place(link, lambda _: True)  # the server itself goes on

    def _start_server(self) -> Child:
        stdin, ours = os.pipe()  # it stays open: its end would tell the server to end
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
        """A connection; a server that is started may take its time until it listens."""
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
        """The server that has died of what was said to it. Raises RecorderError where that was nothing."""
        if not self._has_served:
            words = self.last_words()
            why = f"the server has ended ({server.status})" + (f"; it said:\n{words}" if words else "")
            raise RecorderError(f"no connection to {address}: {why}")
        self._has_served, self._server = False, None
        _stop(server)
        if address.family == socket.AF_UNIX:
            Path(str(address.place)).unlink(missing_ok=True)  # it could not
        return self._start_server()

    def last_words(self) -> str:
        """What was said on stderr at the end."""
        size = os.fstat(self._stderr.fileno()).st_size
        words = os.pread(self._stderr.fileno(), STDERR_BYTES, max(0, size - STDERR_BYTES)).decode(errors="replace")
        return words.strip()[-SHOWN_CHARS:]


def _has_ended(child: Child) -> bool:
    child.update()
    return child.status is not None


def _stop(child: Child) -> None:
    """End it, with all that it has started."""
    if not child.wait(0):
        child.stop(signal.SIGTERM, STOP_GRACE_SECONDS)
        child.wait(GONE_SECONDS)
    child.close()


def _end(connection: socket.socket) -> None:
    with suppress(OSError):  # it has gone already
        connection.shutdown(socket.SHUT_WR)
