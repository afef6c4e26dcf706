"""Reading requests from a connection, by h11: nothing of HTTP's syntax is decided here but what is refused."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import h11

from .limits import HEAD_BYTES, IDLE_SECONDS
from .request import Request

if TYPE_CHECKING:
    import socket

    from .limits import Limits

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
