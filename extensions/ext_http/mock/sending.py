"""Writing answers to a connection, and what is worse than answers."""

from __future__ import annotations

import socket
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import h11

import ext_sdk

from .limits import LINGER_BYTES, LINGER_SECONDS, SEND_SECONDS
from .response import Response, reason

if TYPE_CHECKING:
    import threading

PIECES = 100  # at most, that a body is dripped in
MALFORMED = b"HTTP/1.1 OK two hundred\r\nContent-Length: many\r\n\r\n\x00\xff<html"


class Sender:
    """One end of a connection: what a client gets.

    Args:
        connection: the socket.
        state: of the connection.
        closing: set when the mock is stopped: nothing is waited for any more.
    """

    def __init__(self, connection: socket.socket, state: h11.Connection, closing: threading.Event) -> None:
        self._connection = connection
        self._h11 = state
        self._closing = closing

    def send(self, response: Response, *, head: bool = False) -> bool:
        """Send an answer, or commit the fault that is in its place.

        Args:
            response: what to send.
            head: the request was HEAD, so that the body stays here.

        Returns:
            whether the connection can be used again.

        Raises:
            OSError: the client has gone, or does not read.
            h11.LocalProtocolError: this is no HTTP: a header with a line feed in it.
        """
        answer = response.answer
        if answer is not None and isinstance(answer.delay, ext_sdk.Duration):
            self._closing.wait(answer.delay.seconds)
        if self._closing.is_set():
            return False
        self._connection.settimeout(SEND_SECONDS)
        if answer is not None and isinstance(answer.fault, str):
            self._fail(answer.fault, response, head=head)
            return False
        over = answer.drip.seconds if answer is not None and isinstance(answer.drip, ext_sdk.Duration) else 0.0
        begin = self._head(response)
        body = b"" if head else response.body or b""
        end = self._pieces(body, PIECES if over else 1)
        if over:
            self._drip([begin, *end], over)
        else:
            self._connection.sendall(begin + b"".join(end))
        return self._h11.our_state is h11.DONE and not self._closing.is_set()

    def refuse(self, response: Response) -> None:
        """Answer what was no request, and give a client that still sends the time to read that."""
        self._connection.settimeout(SEND_SECONDS)
        body = response.body or b""
        lines = [f"HTTP/1.1 {response.status} {reason(response.status)}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in response.headers] + [f"Content-Length: {len(body)}", "", ""]
        self._connection.sendall("\r\n".join(lines).encode() + body)
        self._connection.shutdown(socket.SHUT_WR)
        until, left = time.monotonic() + LINGER_SECONDS, LINGER_BYTES
        while left > 0 and (seconds := until - time.monotonic()) > 0:
            self._connection.settimeout(seconds)
            data = self._connection.recv(LINGER_BYTES)
            if not data:
                return
            left -= len(data)

    def _head(self, response: Response) -> bytes:
        headers = list(response.headers)
        chunked = response.answer is not None and response.answer.chunked
        if response.body is not None and not chunked:
            headers.append(("Content-Length", str(len(response.body))))
        encoded = [(name.encode("ascii"), value.encode("utf-8", "replace")) for name, value in headers]
        return self._h11.send(
            h11.Response(status_code=response.status, headers=encoded, reason=reason(response.status).encode())
        )

    def _pieces(self, body: bytes, most: int) -> list[bytes]:
        size = max(1, -(-len(body) // most))
        pieces = [self._h11.send(h11.Data(data=body[at : at + size])) for at in range(0, len(body), size)]
        return [*pieces, self._h11.send(h11.EndOfMessage())]

    def _drip(self, pieces: list[bytes], seconds: float) -> None:
        """Send the head at once, and each piece after a pause."""
        self._connection.sendall(pieces[0])
        pause = seconds / max(1, len(pieces) - 2)  # the last one ends the message, mostly with no byte
        for piece in pieces[1:]:
            if piece:
                if self._closing.wait(pause):
                    return
                self._connection.sendall(piece)

    def _fail(self, fault: str, response: Response, *, head: bool) -> None:
        if fault == "reset":
            # Closed without lingering, the connection ends with RST.
            self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._connection.close()
        elif fault == "malformed":
            self._connection.sendall(MALFORMED)
        elif fault == "truncate":
            begin, body = self._head(response), b"" if head else b"".join(self._pieces(response.body or b"", 1))
            kept = begin + body[: len(body) // 2] if body else begin[: len(begin) // 2]
            self._connection.sendall(kept)


def cut(end: socket.socket) -> None:
    """Wake whoever reads or writes."""
    with suppress(OSError, ValueError):
        end.shutdown(socket.SHUT_RDWR)
