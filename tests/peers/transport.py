"""What the reference peers have in common: bytes in, bytes out, on stdio or on a socket.

    python -m tests.peers.waza                        on stdin and stdout
    python -m tests.peers.waza --listen tcp:127.0.0.1:0    one session for each connection; the port is told on stderr
    python -m tests.peers.kaiak --listen unix:/tmp/k.sock

A peer is an object with `receive(data)`, `tick()` and `ended`. `tick` is called whenever nothing is to be read; it does
the next piece of what goes on by itself, and says whether there is more of it.
"""

from __future__ import annotations

import os
import select
import socket
import threading
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    Write = Callable[[bytes], None]

CHUNK_BYTES = 65_536


class Peer(Protocol):
    """One session."""

    ended: bool

    def receive(self, data: bytes) -> None:
        """Bytes of the host; b"" at their end."""

    def tick(self) -> bool:
        """Do one piece of work; True: there is more to do."""


def serve(make: Callable[[Write], Peer], arguments: list[str]) -> int:
    """Run a peer as a program. Returns its exit code."""
    address = arguments[arguments.index("--listen") + 1] if "--listen" in arguments else ""
    if not address:
        session(make(lambda data: write_all(1, data)), 0)
        return 0
    with listening(address) as server:
        write_all(2, f"listening on {spelled(server)}\n".encode())
        while True:
            connection, _ = server.accept()
            threading.Thread(target=_connected, args=(make, connection), daemon=True).start()


def _connected(make: Callable[[Write], Peer], connection: socket.socket) -> None:
    with connection:
        session(make(connection.sendall), connection.fileno())


def session(peer: Peer, source: int) -> None:
    """Feed a peer until its host has ended, and it has nothing more to do, or it ends itself."""
    readable = select.poll()
    readable.register(source, select.POLLIN)
    busy, is_open = True, True
    while not peer.ended and (is_open or busy):
        if is_open and readable.poll(0 if busy else None):
            data = os.read(source, CHUNK_BYTES)
            is_open = bool(data)
            peer.receive(data)
            busy = True
        else:
            busy = peer.tick()


def write_all(fd: int, data: bytes) -> None:
    """Write all of it."""
    while data:
        data = data[os.write(fd, data) :]


def listening(address: str) -> socket.socket:
    """A socket that listens on `tcp:HOST:PORT` or `unix:PATH`."""
    kind, _, place = address.partition(":")
    if kind == "unix":
        server = socket.socket(socket.AF_UNIX)
        server.bind(place)
    else:
        host, _, port = place.rpartition(":")
        server = socket.socket()
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((host, int(port)))
    server.listen()
    return server


def spelled(server: socket.socket) -> str:
    """Where it listens, in the same spelling."""
    name = server.getsockname()
    return f"unix:{name}" if isinstance(name, str) else f"tcp:{name[0]}:{name[1]}"
