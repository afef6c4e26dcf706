"""HTTP/1.1 connections of a mock, by h11: reads requests within limits, writes responses in pieces or with a fault."""

from __future__ import annotations

import socket
import struct
import time
from typing import TYPE_CHECKING

import h11

import ext_sdk

from .request import HEAD_BYTES, IDLE_SECONDS, LINGER_BYTES, LINGER_SECONDS, SEND_SECONDS, Request
from .response import reason_phrase

if TYPE_CHECKING:
    import threading

    from .request import Limits
    from .response import Response


READ_BYTES = 16 * 1024  # read at once
VERSIONS = (b"1.0", b"1.1")


class InvalidRequest(Exception):
    """Received bytes are not a request that a route can respond to.

    Args:
        status: of the response.
        reason: for the journal and the response.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class RequestReader:
    """Reads the requests of one connection."""

    def __init__(self, connection: socket.socket, state: h11.Connection, limits: Limits) -> None:
        self._connection = connection
        self._h11 = state
        self._limits = limits
        self._until = 0.0
        self._begun = False

    def read(self) -> Request | None:
        """Return the next request; None if the client closed the connection between requests.

        Raises:
            InvalidRequest: the request is not valid, too large, or too slow.
            OSError: the connection failed.
        """
        self._begun = bool(self._h11.trailing_data[0])
        self._until = time.monotonic() + (self._limits.request_time.seconds if self._begun else IDLE_SECONDS)
        try:
            head = self._next_event()
            if not isinstance(head, h11.Request):
                return None
            self._check(head)
            body = bytearray()
            while isinstance(event := self._next_event(), h11.Data):
                body += event.data
                self._check_length(len(body))
        except h11.RemoteProtocolError as error:
            raise InvalidRequest(error.error_status_hint, f"not HTTP/1.1: {error}") from error
        except TimeoutError:
            if not self._begun:
                return None
            raise InvalidRequest(408, f"the request did not end within {self._limits.request_time}") from None
        headers = [(_text(name), _text(value)) for name, value in head.headers.raw_items()]
        return Request(_text(head.method), _text(head.target), headers, bytes(body))

    def _check(self, head: h11.Request) -> None:
        """Check the head of a request, and ask the client to send the body if it waits for that."""
        if head.http_version not in VERSIONS:
            raise InvalidRequest(505, f"HTTP/{_text(head.http_version)}, expected 1.1 or 1.0")
        names = [name for name, _ in head.headers]
        # h11 limits an incomplete head; one that arrives at once may be larger.
        if len(head.target) + sum(len(name) + len(value) for name, value in head.headers) > HEAD_BYTES:
            raise InvalidRequest(431, f"request line and headers of more than {HEAD_BYTES:,} bytes")
        if b"content-length" in names and b"transfer-encoding" in names:
            # RFC 9112, 6.1: readers that prefer one or the other would see different requests after this one.
            raise InvalidRequest(400, "both Content-Length and Transfer-Encoding")
        self._check_length(int(dict(head.headers).get(b"content-length", b"0")))
        if self._h11.they_are_waiting_for_100_continue:
            response = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
            self._connection.sendall(self._h11.send(response))

    def _check_length(self, length: int) -> None:
        if length > self._limits.body:
            raise InvalidRequest(413, f"a body of more than {self._limits.body:,} bytes (limits.body)")

    def _next_event(self) -> object:
        while (event := self._h11.next_event()) is h11.NEED_DATA:
            left = self._until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._connection.settimeout(left)
            data = self._connection.recv(READ_BYTES)
            if data and not self._begun:
                self._begun = True
                self._until = time.monotonic() + self._limits.request_time.seconds
            self._h11.receive_data(data)
        return event


def _text(data: bytes) -> str:
    """Decode a part of a head; h11 accepts only visible characters and bytes over 127."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


MAX_PIECES = 100  # of a body that is sent slowly
MALFORMED = b"HTTP/1.1 OK two hundred\r\nContent-Length: many\r\n\r\n\x00\xff<html"


class ResponseWriter:
    """Writes the responses of one connection.

    Args:
        closing: set when the mock is stopped, which ends delays.
    """

    def __init__(self, connection: socket.socket, state: h11.Connection, closing: threading.Event) -> None:
        self._connection = connection
        self._h11 = state
        self._closing = closing

    def write(self, response: Response, *, head: bool = False) -> bool:
        """Write a response, or the fault instead of it.

        Args:
            response: to write.
            head: the request was HEAD, so the body is left out.

        Returns:
            True if the connection can be used again.

        Raises:
            OSError: the client closed the connection or does not read.
            h11.LocalProtocolError: the response is not valid HTTP, such as a header with a line feed.
        """
        answer = response.answer
        if answer is not None and isinstance(answer.delay, ext_sdk.Duration):
            self._closing.wait(answer.delay.seconds)
        if self._closing.is_set():
            return False
        self._connection.settimeout(SEND_SECONDS)
        body = b"" if head else response.body or b""
        if answer is not None and isinstance(answer.fault, str):
            self._write_fault(answer.fault, response, head=head)
            return False
        if answer is not None and isinstance(answer.drip, ext_sdk.Duration) and answer.drip.seconds:
            self._connection.sendall(self._encode_head(response))
            pieces = self._encode_body(body, MAX_PIECES)
            pause = answer.drip.seconds / max(1, len(pieces) - 1)  # the last one ends the message, usually empty
            for piece in filter(None, pieces):
                if self._closing.wait(pause):
                    return False
                self._connection.sendall(piece)
        else:
            self._connection.sendall(self._encode_head(response) + b"".join(self._encode_body(body, 1)))
        return self._h11.our_state is h11.DONE and not self._closing.is_set()

    def refuse(self, response: Response) -> None:
        """Write a response to an invalid request, and give a client that still sends time to read it."""
        self._connection.settimeout(SEND_SECONDS)
        body = response.body or b""
        lines = [f"HTTP/1.1 {response.status} {reason_phrase(response.status)}", "Connection: close"]
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

    def _encode_head(self, response: Response) -> bytes:
        headers = list(response.headers)
        chunked = response.answer is not None and response.answer.chunked
        if response.body is not None and not chunked:
            headers.append(("Content-Length", str(len(response.body))))
        encoded = [(name.encode("ascii"), value.encode("utf-8", "replace")) for name, value in headers]
        reason = reason_phrase(response.status).encode()
        return self._h11.send(h11.Response(status_code=response.status, headers=encoded, reason=reason))

    def _encode_body(self, body: bytes, max_pieces: int) -> list[bytes]:
        size = max(1, -(-len(body) // max_pieces))
        pieces = [self._h11.send(h11.Data(data=body[at : at + size])) for at in range(0, len(body), size)]
        return [*pieces, self._h11.send(h11.EndOfMessage())]

    def _write_fault(self, fault: str, response: Response, *, head: bool) -> None:
        if fault == "reset":
            # Without lingering, closing sends RST.
            self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._connection.close()
        elif fault == "malformed":
            self._connection.sendall(MALFORMED)
        elif fault == "truncate":
            begin = self._encode_head(response)
            body = b"" if head else b"".join(self._encode_body(response.body or b"", 1))
            self._connection.sendall(begin + body[: len(body) // 2] if body else begin[: len(begin) // 2])
