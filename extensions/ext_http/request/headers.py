"""Headers of a request: from several sources, without anything that would end one and begin another."""

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
OF_A_BODY = frozenset({"content-type", "content-encoding", "content-language", "content-location"})
CREDENTIALS = frozenset({"authorization", "proxy-authorization", "cookie", "cookie2"})
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|apikey) +")


class Headers:
    """Names and values in order; a name may repeat. What is set replaces what was there, in any case of letters."""

    def __init__(self) -> None:
        self._items: list[tuple[str, str]] = []
        self._secret: set[str] = set()

    def set(self, name: str, values: str | list[str], field: str, *, secret: bool = False) -> None:
        """Set a header.

        Args:
            name: in any case.
            values: one, or several.
            field: path of the argument, for errors.
            secret: whether it must not go to another origin.

        Raises:
            InvalidArgs: a name or a value can't be sent, or is none of the user's business.
        """
        lower = name.lower()
        if not _NAME.fullmatch(name):
            raise ext_sdk.InvalidArgs(field, f"expected the name of a header, found {name!r:.100}")
        if lower in COMPUTED:
            raise ext_sdk.InvalidArgs(f"{field}.{name}", "this header follows from the request, and can't be set")
        self._items = [(known, value) for known, value in self._items if known.lower() != lower]
        for value in [values] if isinstance(values, str) else values:
            if wrong := header_value_problem(value):
                raise ext_sdk.InvalidArgs(f"{field}.{name}", wrong)
            self._items.append((name, value.strip(" \t")))
        if secret or lower in CREDENTIALS or looks_secret(name):
            self._secret.add(lower)

    def has(self, name: str) -> bool:
        """Whether there is a header of this name, in lower case."""
        return any(known.lower() == name for known, _ in self._items)

    def secrets(self) -> Iterable[tuple[str, str]]:
        """Name and value of those that must not be seen; of `Bearer TOKEN` the token."""
        for name, value in self._items:
            if name.lower() in self._secret:
                yield f"header.{name.lower()}", _SCHEME.sub("", value, count=1)

    def items(self, *, elsewhere: bool = False, body: bool = True) -> list[tuple[str, str]]:
        """All of them.

        Args:
            elsewhere: for another origin: without those that are secret, and without Host.
            body: whether there is one; its headers are left out otherwise.
        """
        left_out = (self._secret | {"host"} if elsewhere else set()) | (set() if body else OF_A_BODY)
        return [(name, value) for name, value in self._items if name.lower() not in left_out]
