"""Requests that a mock received, with their target and query parsed, and the limits of what a mock accepts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, NamedTuple
from urllib.parse import unquote

from msgspec import Meta

import ext_sdk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


HEAD_BYTES = 64 * 1024  # of a request line and its headers
HANDSHAKE_SECONDS = 10.0  # for TLS
IDLE_SECONDS = 60.0  # that a connection may wait for its next request
SEND_SECONDS = 30.0  # that a client may take to read a part of an answer
LINGER_SECONDS = 1.0  # in which a client that still sends may read that this is refused
LINGER_BYTES = 1024 * 1024  # that are read and thrown away meanwhile


class Limits(ext_sdk.Args):
    """What a mock puts up with."""

    body: Annotated[int, Meta(ge=0, le=64 * 1024 * 1024, description="Bytes of a request's body; 413 for more")] = (
        1024 * 1024
    )
    connections: Annotated[int, Meta(ge=1, le=1000, description="At once; 503 for more")] = 200
    calls: Annotated[
        int,
        Meta(ge=1, le=1_000_000, description="Calls kept for mock-verify, with 64 MiB of bodies; it fails after more"),
    ] = 10_000
    request_time: Annotated[
        ext_sdk.Duration, Meta(description="For a request, from its first byte to its last; then 408")
    ] = ext_sdk.Duration.parse("10s")

    def __post_init__(self) -> None:
        if self.request_time.seconds <= 0:
            raise ValueError(f"requestTime: expected a duration over 0, found {self.request_time}")


NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_SCHEME = re.compile(r"https?://[^/?#]*", re.IGNORECASE)


class Target(NamedTuple):
    """What a request is about: the parts of its path, decoded, and the parameters of its query."""

    path: str
    parts: tuple[str, ...]
    query: tuple[tuple[str, str], ...]


def parse_target(text: str) -> Target:
    """Read the target of a request line (RFC 9112, 3.2): `/path?query`, `http://host/path`, `*`.

    `+` is a space in a query, as forms have it. Nothing is raised: what is not to be decoded stays as it is.
    """
    path, _, query = _SCHEME.sub("", text, count=1).partition("?")
    pairs = [one.partition("=") for one in query.split("&") if one]
    decoded = tuple((_form(name), _form(value)) for name, _, value in pairs)
    return Target(unquote(path) or "/", _parts(path or "/"), decoded)


def _form(text: str) -> str:
    return unquote(text.replace("+", " "))


def _parts(path: str) -> tuple[str, ...]:
    return tuple(map(unquote, path.split("/")))


class PathTemplate:
    """A path, with `{name}` in place of whole parts.

    Args:
        text: as the user wrote it.

    Raises:
        ValueError: it does not begin with `/`, or a name is none, or is there twice.
    """

    def __init__(self, text: str) -> None:
        if not text.startswith("/"):
            raise ValueError(f"path: expected one that begins with /, found {text!r:.100}")
        if "?" in text:
            raise ValueError(f"path: expected a path without query, found {text!r:.100}; `query` is for that")
        self.text = text
        raw = text.split("/")
        self.names = tuple(_name(part) for part in raw)
        self._parts = _parts(text)
        named = [name for name in self.names if name]
        if len(set(named)) < len(named):
            raise ValueError(f"path: expected each name once, found {text!r:.100}")

    def match(self, target: Target) -> dict[str, str] | None:
        """The parameters of a path that fits, or None. A parameter is at least one character."""
        if len(target.parts) != len(self._parts):
            return None
        found: dict[str, str] = {}
        for name, expected, part in zip(self.names, self._parts, target.parts, strict=True):
            if name and part:
                found[name] = part
            elif name or expected != part:
                return None
        return found


def _name(part: str) -> str:
    """The name of a part that is `{name}`, "" for one that is not."""
    if not (part.startswith("{") and part.endswith("}")):
        if "{" in part or "}" in part:
            raise ValueError(f"path: a parameter is a whole part, as in /cities/{{city}}, found {part!r:.100}")
        return ""
    if not NAME.fullmatch(part[1:-1]):
        raise ValueError(f"path: expected a name of letters, digits, - and _ in braces, found {part!r:.100}")
    return part[1:-1]


class Request:
    """A request that was read to its end.

    Args:
        method: as it came: methods are case-sensitive (RFC 9110, 9.1).
        target: of the request line, as it came.
        headers: name and value of each, in the order of the wire, repeated ones repeated.
        body: decoded from its transfer coding; a content coding is left as it is.

    Attributes:
        path: decoded, without query.
        query: parameters, decoded, in their order.
        parameters: what the route found in the path.
        truncated: whether the body was not kept whole.
        count: how often the route had taken a request, with this one.
    """

    __slots__ = ("body", "count", "headers", "method", "parameters", "target", "truncated", "where")

    def __init__(self, method: str, target: str, headers: Sequence[tuple[str, str]] = (), body: bytes = b"") -> None:
        self.method = method
        self.target = target
        self.headers = tuple(headers)
        self.body = body
        self.where = parse_target(target)
        self.parameters: Mapping[str, str] = {}
        self.truncated = False
        self.count = 0

    @property
    def path(self) -> str:
        """The path, decoded."""
        return self.where.path

    @property
    def query(self) -> Sequence[tuple[str, str]]:
        """The parameters of the query, decoded."""
        return self.where.query
