"""One exchange of HTTP, or what came instead of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .body import Body

Headers = list[tuple[str, str]]
Call = int | str | float | None  # the id of a request of the host; None: none was at work

CONNECT = "CONNECT"  # the method of an interaction that tells of a connection which was not to be had
HEAD_LIMIT = 1024 * 1024  # bytes of the lines before a body
TEXT_LIMIT = 256 * 1024  # bytes of a body that is written as text; longer ones are streamed


def call_id(value: object) -> Call:
    """A value as the id of a request, where it can be one."""
    return value if isinstance(value, (int, str, float)) else None


@dataclass(slots=True)
class Interaction:
    """A request and what became of it.

    Attributes:
        method, uri, request_headers, request_body: the request.
        status, reason, headers, body: the answer; status 0: there was none.
        chunks: sizes of the pieces in which the body came, where it was chunked.
        reads: sizes of the pieces in which the child read the answer, head included, where there were several.
        call: whom it served.
        time: seconds since the start, when the request began.
        elapsed: seconds until the answer had come to its end.
        http_version: of the answer.
        error: the exception that ended it: type, errno, message.
        cut: the child did not read the body to its end.
        peer: the address that it was sent to.
        tls: version, alpn and certificate of the connection.
        socket: path of the unix socket, where it went over one.
    """

    method: str = ""
    uri: str = ""
    request_headers: Headers = field(default_factory=list)
    request_body: Body | None = None
    status: int = 0
    reason: str = ""
    headers: Headers = field(default_factory=list)
    body: Body | None = None
    chunks: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    call: Call = None
    time: float = 0.0
    elapsed: float = 0.0
    http_version: str = "1.1"
    error: dict[str, object] | None = None
    cut: bool = False
    peer: str = ""
    tls: dict[str, str] = field(default_factory=dict)
    socket: str = ""
