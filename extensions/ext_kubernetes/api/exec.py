"""A command in a container: its input, outputs and status, as channels of one websocket."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from ext_kubernetes.objects.fields import items, text
from ext_sdk.process import Output

if TYPE_CHECKING:
    from collections.abc import Mapping

    import ext_sdk

    from .client import Client
    from .paths import ApiPath


# Protocol 5 has what 4 has, and a message that ends the input; 4 can't end it.
PROTOCOLS = "v5.channel.k8s.io,v4.channel.k8s.io"
CLOSING = "v5.channel.k8s.io"
STDIN, STDOUT, STDERR, STATUS, CLOSE = 0, 1, 2, 3, 255
MOST_BYTES = 4 * 1024 * 1024  # of each output that are kept
PIECE = 32 * 1024  # bytes of input in one message
TICK = 0.1  # seconds between two looks at whether the call has to stop
OPCODE_CLOSE = 8


class Executed(NamedTuple):
    """What became of a command.

    Attributes:
        code: its exit code; None where there is none.
        problem: why there is none: it could not be started, or the connection broke; "" where there is one.
        stdout, stderr: what it wrote, as far as it was kept.
        in_time: it ended before the deadline.
    """

    code: int | None
    problem: str
    stdout: Output
    stderr: Output
    in_time: bool


class Socket(Protocol):
    """What is used of the websocket library's client."""

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
    """Run a command in a container, over a websocket of its own.

    Args:
        client: of the server.
        path: of the pod's subresource exec.
        query: container and command.
        stdin: what it reads; None for nothing.
        deadline: when the connection is ended; the command may live on.
        limit: bytes of each output that are kept.

    Raises:
        KubernetesError: the server refuses, or can't be reached.
    """
    streams = [("stdout", "true"), ("stderr", "true"), *([] if stdin is None else [("stdin", "true")])]
    opened = cast("Socket", client.websocket(path, [*query, *streams], deadline, PROTOCOLS))
    opened.settimeout(None)  # the guard ends it: a timeout in the middle of a message would break the connection
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
    code, told = _status(channels[STATUS].data)
    return Executed(
        code,
        told or ("" if code is not None else problem or "the connection ended without a status of the command"),
        channels[STDOUT],
        channels[STDERR],
        in_time=code is not None or bool(told) or not deadline.expired,
    )


def _read(opened: Socket, limit: int, over: threading.Event) -> tuple[dict[int, Output], str]:
    """Return what came on each channel until its end or `over`, and why the connection broke, if it did."""
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
    """Write the input and end it. A command that ends without reading it all is right to do so."""
    import websocket

    closing = {key.lower(): value for key, value in (opened.getheaders() or {}).items()}
    try:
        for start in range(0, len(stdin), PIECE):
            opened.send_binary(bytes([STDIN]) + stdin[start : start + PIECE])
        if closing.get("sec-websocket-protocol") == CLOSING:
            opened.send_binary(bytes([CLOSE, STDIN]))
    except (websocket.WebSocketException, OSError, AttributeError):  # the library has no socket left after its end
        return


def _guard(opened: Socket, done: threading.Event, over: threading.Event, deadline: ext_sdk.Deadline) -> None:
    """End the connection, and set `over`, at the deadline."""
    while not done.wait(TICK):
        if deadline.expired:
            over.set()
            if opened.sock is not None:
                cut(opened.sock)
            return


def cut(end: socket.socket) -> None:
    """Shut down both directions of a connection, which wakes the threads that read or write.

    The method of `ssl.SSLSocket` would also drop the TLS layer: a reader would take ciphertext for data.
    """
    with suppress(OSError, ValueError):  # it has ended in the meantime
        socket.socket.shutdown(end, socket.SHUT_RDWR)


def _status(data: bytes) -> tuple[int | None, str]:
    """The exit code, or why there is none; neither, where there is no status."""
    try:
        told = json.loads(data) if data else {}
    except ValueError:
        return None, f"expected a status of the command as JSON, found {data[:200]!r}"
    if text(told, "status") == "Success":
        return 0, ""
    for cause in items(told, "details", "causes"):
        code = text(cause, "message")
        if text(cause, "reason") == "ExitCode" and code.isdecimal():
            return int(code), ""
    return None, text(told, "message") or text(told, "reason")
