"""Exec and port forward: streams of a pod as channels of a websocket."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

import ext_sdk
from ext_kubernetes.objects.fields import items, text
from ext_sdk.process import Output

from .errors import KubernetesError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .client import Client
    from .discovery import ApiPath


# Version 5 adds a message that closes the input to version 4.
PROTOCOLS = "v5.channel.k8s.io,v4.channel.k8s.io"
CLOSING = "v5.channel.k8s.io"
STDIN, STDOUT, STDERR, STATUS, CLOSE = 0, 1, 2, 3, 255
MOST_BYTES = 4 * 1024 * 1024  # kept of each output
PIECE = 32 * 1024  # bytes in one message
TICK = 0.1  # seconds between two checks of the deadline
OPCODE_CLOSE = 8


class Executed(NamedTuple):
    """Result of a command.

    Attributes:
        code: exit code; None if there is none.
        problem: reason for a missing exit code: the command could not be started, or the connection broke; "" else.
        in_time: the command exited before the deadline.
    """

    code: int | None
    problem: str
    stdout: Output
    stderr: Output
    in_time: bool


class Socket(Protocol):
    """Websocket of the library, as far as it is used here."""

    sock: socket.socket | None

    def settimeout(self, timeout: float | None) -> None: ...
    def getheaders(self) -> Mapping[str, str] | None: ...
    def send_binary(self, payload: bytes) -> int: ...
    def recv_data(self) -> tuple[int, bytes]: ...
    def shutdown(self) -> None: ...


def execute(
    client: Client,
    path: ApiPath,
    query: list[tuple[str, str]],
    stdin: bytes | None,
    deadline: ext_sdk.Deadline,
    *,
    limit: int = MOST_BYTES,
) -> Executed:
    """Run a command in a container, over a websocket.

    Args:
        query: container and command.
        deadline: at which the connection is closed; the command may continue to run.
        limit: maximum number of bytes of each output that are kept.

    Raises:
        KubernetesError: the request failed.
    """
    streams = [("stdout", "true"), ("stderr", "true"), *([] if stdin is None else [("stdin", "true")])]
    opened = cast("Socket", client.websocket(path, [*query, *streams], deadline, PROTOCOLS))
    opened.settimeout(None)  # the guard thread ends it: a timeout within a message would break the connection
    done, over = threading.Event(), threading.Event()
    threads = [threading.Thread(target=_guard, args=(opened, done, over, deadline), daemon=True)]
    if stdin is not None:
        threads.append(threading.Thread(target=_feed, args=(opened, stdin), daemon=True))
    for thread in threads:
        thread.start()
    try:
        channels, problem = _read(opened, limit, over)
    finally:
        done.set()
        if opened.sock is not None:
            cut(opened.sock)
        for thread in threads:
            thread.join()
        opened.shutdown()
    code, reason = _parse_status(channels[STATUS].data)
    return Executed(
        code,
        reason or ("" if code is not None else problem or "the connection was closed without a status of the command"),
        channels[STDOUT],
        channels[STDERR],
        in_time=code is not None or bool(reason) or not deadline.expired,
    )


def _read(opened: Socket, limit: int, over: threading.Event) -> tuple[dict[int, Output], str]:
    """Return the data of each channel until the end or `over`, and the reason if the connection broke."""
    import websocket

    channels = {number: Output(limit) for number in (STDOUT, STDERR, STATUS)}
    try:
        while not over.is_set():
            opcode, data = opened.recv_data()
            if opcode == OPCODE_CLOSE:
                break
            if data and data[0] in channels:
                channels[data[0]].write(data[1:])
    except (websocket.WebSocketException, OSError, ValueError) as error:
        return channels, f"the connection broke: {error}"
    return channels, ""


def _feed(opened: Socket, stdin: bytes) -> None:
    """Write the input and close it. The command may exit without reading it all."""
    import websocket

    closing = {key.lower(): value for key, value in (opened.getheaders() or {}).items()}
    try:
        for start in range(0, len(stdin), PIECE):
            opened.send_binary(bytes([STDIN]) + stdin[start : start + PIECE])
        if closing.get("sec-websocket-protocol") == CLOSING:
            opened.send_binary(bytes([CLOSE, STDIN]))
    except (websocket.WebSocketException, OSError, AttributeError):  # a closed websocket has no socket
        return


def _guard(opened: Socket, done: threading.Event, over: threading.Event, deadline: ext_sdk.Deadline) -> None:
    """Close the connection, and set `over`, at the deadline."""
    while not done.wait(TICK):
        if deadline.expired:
            over.set()
            if opened.sock is not None:
                cut(opened.sock)
            return


def cut(end: socket.socket) -> None:
    """Shut down both directions of a connection, which wakes threads that read or write.

    The method of `ssl.SSLSocket` would also drop the TLS layer, so that a reader would return ciphertext as data.
    """
    with suppress(OSError, ValueError):  # it has ended already
        socket.socket.shutdown(end, socket.SHUT_RDWR)


def _parse_status(data: bytes) -> tuple[int | None, str]:
    """Return the exit code, or the reason for a missing one; neither without a status."""
    try:
        status = json.loads(data) if data else {}
    except ValueError:
        return None, f"expected a status of the command as JSON, found {data[:200]!r}"
    if text(status, "status") == "Success":
        return 0, ""
    for cause in items(status, "details", "causes"):
        code = text(cause, "message")
        if text(cause, "reason") == "ExitCode" and code.isdecimal():
            return int(code), ""
    return None, text(status, "message") or text(status, "reason")


PROTOCOL = "v4.channel.k8s.io"  # channel 0 is data, channel 1 the error; each begins with the port number
DATA, ERROR = 0, 1
HEAD_BYTES = 2  # of the port number
CONNECT_SECONDS = 10.0
HALF_CLOSED_SECONDS = 5.0  # for the response of a pod after the end of the client's input
LOOPBACK = "127.0.0.1"


class Forward:
    """Listener on a local port, until it is closed.

    Args:
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
