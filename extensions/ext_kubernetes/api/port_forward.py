"""Port forward: a local port for a port of a pod, with a websocket for each connection."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import ext_sdk

from .errors import KubernetesError
from .exec import OPCODE_CLOSE, Socket, cut

if TYPE_CHECKING:
    from .client import Client
    from .discovery import ApiPath


PROTOCOL = "v4.channel.k8s.io"  # channel 0 is data, channel 1 the error; each begins with the port number
DATA, ERROR = 0, 1
HEAD_BYTES = 2  # of the port number
PIECE = 32 * 1024  # bytes in one message
CONNECT_SECONDS = 10.0
HALF_CLOSED_SECONDS = 5.0  # for the response of a pod after the end of the client's input
LOOPBACK = "127.0.0.1"


class Forward:
    """Listener on a local port, until it is closed.

    Args:
        path: of the pod's portforward subresource.
        port: of the pod.
        local: local port; 0 for any free port.

    Attributes:
        local: the local port.
        problem: the last error; "" without one.

    Raises:
        OSError: the local port can't be opened.
    """

    def __init__(self, client: Client, path: ApiPath, port: int, local: int) -> None:
        self._client = client
        self._path = path
        self._port = port
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._closed = False
        self._listener = socket.create_server((LOOPBACK, local))
        self.local = int(self._listener.getsockname()[1])
        self.problem = ""
        threading.Thread(target=self._listen, daemon=True, name=f"port {self.local}").start()

    def close(self) -> None:
        """Stop listening, and close all connections."""
        with self._lock:
            self._closed = True
            ends = [self._listener, *self._open]
        for end in ends:
            cut(end)
        self._listener.close()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                deadline = ext_sdk.Deadline(CONNECT_SECONDS)
                query = [("ports", str(self._port))]
                opened = cast("Socket", self._client.websocket(self._path, query, deadline, PROTOCOL))
            except KubernetesError as error:
                self.problem = error.error
                return
            opened.settimeout(None)
            ends = {connection} | ({opened.sock} if opened.sock is not None else set())
            with self._lock:
                closed = self._closed
                self._open |= ends
            if not closed:
                received = threading.Event()
                sender = threading.Thread(target=_send, args=(connection, opened, received), daemon=True)
                sender.start()
                self._receive(opened, connection)
                received.set()
                cut(connection)
                sender.join()
            with self._lock:
                self._open -= ends
            opened.shutdown()

    def _receive(self, opened: Socket, connection: socket.socket) -> None:
        """Forward data of the pod, until either side closes the connection."""
        import websocket

        begun: set[int] = set()
        with suppress(websocket.WebSocketException, OSError, ValueError):
            while True:
                opcode, data = opened.recv_data()
                if opcode == OPCODE_CLOSE or not data:
                    return
                channel, content = data[0], data[1:]
                if channel not in begun:
                    begun.add(channel)
                    content = content[HEAD_BYTES:]
                if channel == DATA:
                    connection.sendall(content)
                elif channel == ERROR and content:
                    self.problem = content.decode("utf-8", "replace")
                    return


def _send(connection: socket.socket, opened: Socket, received: threading.Event) -> None:
    """Forward data of the client, until its end; then close the connection to the pod.

    The protocol has no half-closed connections. A client that has closed its side may still wait for a response, so
    the pod has HALF_CLOSED_SECONDS for it, or until `received` is set.
    """
    import websocket

    with suppress(websocket.WebSocketException, OSError, AttributeError):
        while data := connection.recv(PIECE):
            opened.send_binary(bytes([DATA]) + data)
        received.wait(HALF_CLOSED_SECONDS)
    if opened.sock is not None:
        cut(opened.sock)
