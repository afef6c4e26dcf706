"""Request headers, merged from several sources and checked so that no value can start another header."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import ext_sdk
from ext_http.response.header_check import header_value_problem
from ext_sdk.core.redaction.secret_names import looks_secret

if TYPE_CHECKING:
    from collections.abc import Iterable


_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2
COMPUTED = frozenset({"content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"})
BODY_HEADERS = frozenset({"content-type", "content-encoding", "content-language", "content-location"})
CREDENTIALS = frozenset({"authorization", "proxy-authorization", "cookie", "cookie2"})
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|apikey) +")


class Headers:
    """Ordered headers; a name may repeat. Setting a header replaces all values of that name, in any case."""

    def __init__(self) -> None:
        self._headers: dict[str, list[tuple[str, str]]] = {}  # by name in lower case
        self._secret: set[str] = set()

    def set(self, name: str, values: str | list[str], field: str, *, secret: bool = False) -> None:
        """Set a header.

        Args:
            name: in any case.
            values: one, or several for a repeated header.
            field: path of the argument, for errors.
            secret: redact the value, and do not send it to another origin.

        Raises:
            InvalidArgs: the name or a value is not valid, or the header is computed from the request.
        """
        lower = name.lower()
        if not _NAME.fullmatch(name):
            raise ext_sdk.InvalidArgs(field, f"expected the name of a header, found {name!r:.100}")
        if lower in COMPUTED:
            raise ext_sdk.InvalidArgs(f"{field}.{name}", "this header is computed from the request and can't be set")
        values = [values] if isinstance(values, str) else values
        for value in values:
            if problem := header_value_problem(value):
                raise ext_sdk.InvalidArgs(f"{field}.{name}", problem)
        self._headers.pop(lower, None)  # a header that is set again moves to the end
        self._headers[lower] = [(name, value.strip(" \t")) for value in values]
        if secret or lower in CREDENTIALS or looks_secret(name):
            self._secret.add(lower)

    def __contains__(self, lower: str) -> bool:
        """Return True if a header of this name, in lower case, has a value."""
        return bool(self._headers.get(lower))

    def secrets(self) -> Iterable[tuple[str, str]]:
        """Yield name and value of secret headers; of `Bearer TOKEN` only the token."""
        for lower in self._secret:
            for _, value in self._headers[lower]:
                yield f"header.{lower}", _SCHEME.sub("", value, count=1)

    def items(self, *, other_origin: bool = False, body: bool = True) -> list[tuple[str, str]]:
        """Return the headers to send.

        Args:
            other_origin: leave out secret headers and Host.
            body: the request has a body; otherwise leave out headers that describe one.
        """
        omitted = (self._secret | {"host"} if other_origin else set()) | (set() if body else BODY_HEADERS)
        return [header for lower, headers in self._headers.items() if lower not in omitted for header in headers]
