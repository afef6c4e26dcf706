"""A request as a mock got it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .paths import parse_target

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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
