"""HTTP/1.1 of a mock's connections, by h11: read requests within limits, send responses in pieces or with a fault."""

from __future__ import annotations

import socket
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import h11

import ext_sdk

from .request import HEAD_BYTES, IDLE_SECONDS, LINGER_BYTES, LINGER_SECONDS, SEND_SECONDS, Request
from .response import reason

if TYPE_CHECKING:
    import threading

    from .request import Limits
    from .response import Response


PIECE = 16 * 1024  # bytes read at once
VERSIONS = (b"1.0", b"1.1")


class Refused(Exception):
    """What came is no request that can be answered as such.

    Args:
        status: of the answer; 0 where nobody listens any more.
        reason: what is wrong, for the journal and the answer.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Receiver:
    """One end of a connection: what a client sends.

    Args:
        connection: the socket.
        limits: what is put up with.

    Attributes:
        h11: the state of the connection, for those who answer.
    """

    def __init__(self, connection: socket.socket, limits: Limits) -> None:
        self.h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        self._connection = connection
        self._limits = limits
        self._until = 0.0
        self._begun = False

    def request(self) -> Request | None:
        """The next request, read to its end; None where the client has closed the connection between two.

        Raises:
            Refused: it is none, too large, or too slow.
            OSError: the connection broke.
        """
        self._begun = bool(self.h11.trailing_data[0])
        self._until = time.monotonic() + (self._limits.request_time.seconds if self._begun else IDLE_SECONDS)
        try:
            head = self._event()
            if not isinstance(head, h11.Request):
                return None
            return self._whole(head)
        except h11.RemoteProtocolError as error:
            raise Refused(error.error_status_hint, f"no HTTP/1.1: {error}") from error
        except TimeoutError:
            if not self._begun:
                return None
            raise Refused(408, f"the request did not end within {self._limits.request_time}") from None

    def _whole(self, head: h11.Request) -> Request:
        if head.http_version not in VERSIONS:
            raise Refused(505, f"HTTP/{_text(head.http_version)}, where 1.1 and 1.0 are known")
        names = [name for name, _ in head.headers]
        # h11 bounds what is not yet complete; what came complete in one piece may be larger.
        if len(head.target) + sum(len(name) + len(value) for name, value in head.headers) > HEAD_BYTES:
            raise Refused(431, f"request line and headers of more than {HEAD_BYTES:,} bytes")
        if b"content-length" in names and b"transfer-encoding" in names:
            # RFC 9112, 6.1: who believes the one and who the other would see different requests after this one.
            raise Refused(400, "both Content-Length and Transfer-Encoding")
        self._refuse_too_long(int(dict(head.headers).get(b"content-length", b"0")))
        if self.h11.they_are_waiting_for_100_continue:
            go_on = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
            self._connection.sendall(self.h11.send(go_on))
        body = bytearray()
        while isinstance(event := self._event(), h11.Data):
            body += event.data
            self._refuse_too_long(len(body))
        headers = [(_text(name), _text(value)) for name, value in head.headers.raw_items()]
        return Request(_text(head.method), _text(head.target), headers, bytes(body))

    def _refuse_too_long(self, length: int) -> None:
        if length > self._limits.body:
            raise Refused(413, f"a body of more than {self._limits.body:,} bytes (limits.body)")

    def _event(self) -> object:
        while (event := self.h11.next_event()) is h11.NEED_DATA:
            left = self._until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._connection.settimeout(left)
            data = self._connection.recv(PIECE)
            if data and not self._begun:
                self._begun = True
                self._until = time.monotonic() + self._limits.request_time.seconds
            self.h11.receive_data(data)
        return event


def _text(data: bytes) -> str:
    """Bytes of a head; h11 lets nothing else in than visible characters and bytes over 127."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


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
