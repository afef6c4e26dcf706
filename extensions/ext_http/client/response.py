"""The response of one exchange."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads it

import msgspec

from .charsets import readable


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to the last request of a chain of redirects; most often there was one request.

    Attributes:
        status: such as 200.
        reason: the words of the status line; "" where there are none, as in HTTP/2.
        http_version: "HTTP/1.1" or "HTTP/2".
        headers: name and value of each, in the order of the wire, repeated ones repeated.
        body: decoded (Content-Encoding is undone), and no more of it than was allowed.
        truncated: whether there is more of the body than `body` holds.
        encoded_size: bytes of the body that were read from the wire.
        elapsed: seconds from the first byte that was sent, of the first hop, to the last that was read.
        url: that was asked last.
        hops: the URLs that led there, the first one first; empty where nothing was redirected.
        peer_certificate_expires: until when the server's certificate is valid, in UTC; None without TLS.
        excess: bytes that the server sent beyond the end of the response.
    """

    status: int
    reason: str = ""
    http_version: str = "HTTP/1.1"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    truncated: bool = False
    encoded_size: int = 0
    elapsed: float = 0.0
    url: str = ""
    hops: tuple[str, ...] = ()
    peer_certificate_expires: datetime | None = None
    excess: bytes = b""

    def values(self, header: str) -> list[str]:
        """All values of a header, in order; its name in any case."""
        wanted = header.lower()
        return [value for name, value in self.headers if name.lower() == wanted]

    @property
    def text(self) -> str:
        """The body in the charset that its type names, UTF-8 where it names none; what does not fit is replaced."""
        return readable(self.body, self.values("content-type"))
