"""Channel to the recorder: frames over a Unix socket, each a line of JSON about an event, and its bytes."""

from __future__ import annotations

import _socket
import json
import os
import struct
from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Event: TypeAlias = dict[str, object]

SOCKET = "http.sock"  # in the folder of the session
HEAD = struct.Struct("!II")  # lengths of the line and of the bytes
CHUNK = 65_536
HELLO = b"\0"  # replaces a TLS handshake on the way to the recorder and back; a request begins with a letter


def frame(event: Event, data: bytes | bytearray | memoryview = b"") -> bytes:
    """Return an encoded frame."""
    line = json.dumps(event).encode()
    return HEAD.pack(len(line), len(data)) + line + data


def connected(folder: str) -> _socket.socket:
    """Return a connection to the recorder. Raises OSError if the recorder has ended."""
    # A socket of the unpatched base type.
    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        line.connect(os.path.join(folder, SOCKET))  # noqa: PTH118
    except OSError:
        line.close()
        raise
    return line


def receive(line: _socket.socket) -> Event:
    """Return the next frame, which has no bytes. Raises EOFError."""
    length, _ = HEAD.unpack(_exactly(line, HEAD.size))
    response: Event = json.loads(_exactly(line, length))
    return response


def _exactly(line: _socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = line.recv(min(CHUNK, size - len(data)))
        if not piece:
            raise EOFError("the recorder has ended")
        data += piece
    return data


def shown(address: object) -> list[object] | str:
    """Return an address as JSON."""
    if isinstance(address, tuple):
        return [str(address[0]), *address[1:2]]
    return address.decode("utf-8", "surrogateescape") if isinstance(address, bytes) else str(address)


class Channel:
    """Connection of a process to the recorder, shared by its threads and opened at the first use."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._lock = allocate_lock()
        self._line: _socket.socket | None = None
        self._gone = False
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        """Reset the channel in a forked process: the connection belongs to the parent."""
        self._lock = allocate_lock()
        if self._line is not None:
            self._line.close()
            self._line = None

    def send(self, event: Event, data: bytes | bytearray | memoryview = b"") -> None:
        """Send a frame; do nothing if the recorder has ended."""
        with self._lock:
            if self._gone:
                return
            try:
                self._connection().sendall(frame(event, data))
            except OSError:
                self._gone = True

    def ask(self, question: Event) -> Event:
        """Send a frame and return the response.

        Raises:
            ConnectionRefusedError: the recorder has ended.
        """
        with self._lock:
            try:
                line = self._connection()
                line.sendall(frame(question))
                return receive(line)
            except (OSError, EOFError) as error:
                raise ConnectionRefusedError(
                    f"ext-recorder: the recorder with the responses has exited: {error}"
                ) from None

    @property
    def open(self) -> bool:
        """Return True if a frame has been sent."""
        return self._line is not None

    def _connection(self) -> _socket.socket:
        if self._line is None:
            self._line = connected(self._folder)
            self._line.sendall(frame({"k": "hello", "pid": os.getpid()}))
        return self._line
