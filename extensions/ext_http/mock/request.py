"""Requests received by a mock, with path and query parsed, and the limits of a mock."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated
from urllib.parse import parse_qsl, unquote

from msgspec import Meta

import ext_sdk
from ext_http.client.response import decode_text, values_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ext_http.client.response import NotText


HEAD_BYTES = 64 * 1024  # of a request line and its headers
HANDSHAKE_SECONDS = 10.0  # for TLS
IDLE_SECONDS = 60.0  # that a connection may wait for its next request
SEND_SECONDS = 30.0  # that a client may take to read a part of a response
LINGER_SECONDS = 1.0  # in which a client that still sends can read a refusal
LINGER_BYTES = 1024 * 1024  # that are read and dropped meanwhile


class Limits(ext_sdk.Args):
    """Resource limits of a mock."""

    body: Annotated[
        int, Meta(ge=0, le=64 * 1024 * 1024, description="Maximum bytes of a request body; 413 for more")
    ] = 1024 * 1024
    connections: Annotated[int, Meta(ge=1, le=1000, description="Maximum open connections; 503 for more")] = 200
    calls: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="Maximum requests kept for mock-verify, with 64 MiB of bodies; mock-verify fails after more",
        ),
    ] = 10_000
    request_time: Annotated[
        ext_sdk.Duration, Meta(description="Maximum time from the first to the last byte of a request; 408 after that")
    ] = ext_sdk.Duration.parse("10s")

    def __post_init__(self) -> None:
        if self.request_time.seconds <= 0:
            raise ValueError(f"requestTime: expected a duration over 0, found {self.request_time}")


_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_SCHEME = re.compile(r"https?://[^/?#]*", re.IGNORECASE)


class ReceivedRequest:
    """Request that was read completely.

    Args:
        method: case-sensitive (RFC 9110, 9.1).
        target: of the request line (RFC 9112, 3.2): `/path?query`, `http://host/path`, `*`.
        headers: (name, value) in the order received, repeated headers repeated.
        body: after transfer decoding; a content coding is not decoded.

    Attributes:
        path: decoded, without query.
        segments: of the path, decoded.
        query: decoded (name, value) pairs, in order. Invalid escapes stay unchanged, `+` is a space.
        parameters: path parameters of the matching route.
        truncated: the body was not kept completely.
        count: number of requests that the route has matched, including this one.
    """

    __slots__ = ("body", "count", "headers", "method", "parameters", "path", "query", "segments", "target", "truncated")

    def __init__(self, method: str, target: str, headers: Sequence[tuple[str, str]] = (), body: bytes = b"") -> None:
        path, _, query = _SCHEME.sub("", target, count=1).partition("?")
        pairs = [pair.replace("+", " ").partition("=") for pair in query.split("&") if pair]
        self.method = method
        self.target = target
        self.headers = tuple(headers)
        self.body = body
        self.path = unquote(path) or "/"
        self.segments = _segments(path or "/")
        self.query = tuple((unquote(name), unquote(value)) for name, _, value in pairs)
        self.parameters: Mapping[str, str] = {}
        self.truncated = False
        self.count = 0

    @property
    def form(self) -> Sequence[tuple[str, str]] | None:
        """Return the fields of a web form, decoded, of files their content; None if the body is not a form."""
        header = next(iter(values_of("content-type", self.headers)), "")
        kind = header.partition(";")[0].strip().lower()
        if kind == "application/x-www-form-urlencoded":
            return parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True)
        if kind != "multipart/form-data":
            return None
        from email.parser import BytesParser

        head = f"Content-Type: {header}\r\n\r\n".encode("utf-8", "replace")
        fields = []
        for part in BytesParser().parsebytes(head + self.body).walk():
            name, content = part.get_param("name", header="content-disposition"), part.get_payload(decode=True)
            if isinstance(name, str) and isinstance(content, bytes):
                fields.append((name, content.decode("utf-8", "replace")))
        return fields

    @property
    def decoded(self) -> str | NotText:
        """Return the body as text, or the reason why it is not text."""
        return decode_text(self.body, values_of("content-type", self.headers))


def _segments(path: str) -> tuple[str, ...]:
    return tuple(map(unquote, path.split("/")))


class PathTemplate:
    """Path with `{name}` in place of complete segments.

    Raises:
        ValueError: the text does not begin with `/`, or a name is not valid or occurs twice.
    """

    def __init__(self, text: str) -> None:
        if not text.startswith("/"):
            raise ValueError(f"path: expected one that begins with /, found {text!r:.100}")
        if "?" in text:
            raise ValueError(f"path: expected a path without query, found {text!r:.100}; set `query` instead")
        self._segments = _segments(text)
        self.names: list[str] = []  # of the segments; "" for a literal segment
        for segment in text.split("/"):
            is_parameter = segment.startswith("{") and segment.endswith("}")
            if not is_parameter and set("{}") & set(segment):
                problem = "a parameter is a complete segment, as in /cities/{city}"
                raise ValueError(f"path: {problem}, found {segment!r:.100}")
            if is_parameter and not _PARAMETER.fullmatch(segment[1:-1]):
                raise ValueError(f"path: expected a name of letters, digits, - and _ in braces, found {segment!r:.100}")
            self.names.append(segment[1:-1] if is_parameter else "")
        names = [name for name in self.names if name]
        if len(set(names)) < len(names):
            raise ValueError(f"path: expected each name once, found {text!r:.100}")

    def match(self, segments: Sequence[str]) -> dict[str, str] | None:
        """Return the parameters of a path that matches, else None. A parameter has at least one character."""
        if len(segments) != len(self._segments):
            return None
        parameters: dict[str, str] = {}
        for name, expected, segment in zip(self.names, self._segments, segments, strict=True):
            if name and segment:
                parameters[name] = segment
            elif name or expected != segment:
                return None
        return parameters
