"""Answers made of parts of their requests: `Hello, $(query.name|stranger)!`.

    $(method)          GET                        $(path.city)      a parameter of the path
    $(url)             path and query as asked    $(query.units)    the first of this name
    $(body)            the whole body, as text    $(header.X-Id)    the first of this name
    $(json)            the whole body as JSON     $(json/user/0)    a part of it, by JSON Pointer (RFC 6901)
    $(count)           1 for the first call that the route took, and so on
    $(query.units|C)   C where there is none      $$(               stands for $(

A text that is one reference to JSON, and nothing else, becomes that value in its own type when it is within JSON; in
any other place a value that is no string is written as JSON. There is nothing else: no code, no loops, nothing is
looked at twice, so that what a request brings in is never a template.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ext_http.response.header_check import values_of
from ext_sdk.expect.json_equality import MISSING, NotJson, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .request import Request

MOST_BYTES = 16 * 1024 * 1024  # of one text that was filled in
_REFERENCE = re.compile(r"\$\$\(|\$\(([^()|]*)(?:\|([^()]*))?\)")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_PLAIN: Mapping[str, Callable[[Request], str]] = {
    "method": lambda request: request.method,
    "url": lambda request: request.target,
    "body": lambda request: request.body.decode("utf-8", "replace"),
    "count": lambda request: str(request.count),
}
_NAMED = ("path", "query", "header")


class Unfilled(Exception):
    """A reference to what the request does not have, or to too much of it; str() says which."""


def problem(value: object, parameters: frozenset[str] | None) -> str:
    """What is wrong with the references in a text, or in the texts of a JSON value; "" for nothing.

    Args:
        value: text or JSON.
        parameters: the names that the path has; None: whatever a regular expression finds.
    """
    for text in _texts(value):
        for match in _REFERENCE.finditer(text):
            reference = match[1]
            if reference is not None and (wrong := _problem_of(reference, parameters)):
                return f"{match[0]:.100}: {wrong}; write $$( for a literal $("
    return ""


def _texts(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, list):
            waiting.extend(one)
        elif isinstance(one, Mapping):
            waiting.extend(one.values())


def _problem_of(reference: str, parameters: frozenset[str] | None) -> str:
    kind, dot, name = reference.partition(".")
    if reference in _PLAIN or reference == "json" or reference.startswith("json/"):
        return ""
    if not (kind in _NAMED and dot and name):
        return "expected method, url, body, count, json, json/POINTER, path.NAME, query.NAME or header.NAME"
    if kind == "path" and parameters is not None and name not in parameters:
        known = ", ".join(sorted(parameters)) or "none"
        return f"the path has no parameter {name!r:.40}; there are: {known}"
    return ""


class Filler:
    """Fills in the references of one answer; all together may bring in 16 MiB.

    Args:
        request: what they refer to.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._room = MOST_BYTES
        self._document: object = None
        self._parsed = False

    def fill_json(self, value: object) -> object:
        """JSON with the references of its texts filled in; names of members are left alone. Raises Unfilled."""
        if isinstance(value, str):
            whole = _REFERENCE.fullmatch(value)
            if whole and whole[1] is not None and whole[1].partition("/")[0] == "json":
                self._take(len(self._request.body))  # its text, about
                return self._value(whole)
            return self.fill(value)
        if isinstance(value, list):
            return [self.fill_json(item) for item in value]
        if isinstance(value, Mapping):
            return {name: self.fill_json(item) for name, item in value.items()}
        return value

    def fill(self, text: str) -> str:
        """A text with its references filled in. Raises Unfilled."""
        return _REFERENCE.sub(self._text, text)

    def _text(self, match: re.Match[str]) -> str:
        if match[1] is None:
            return "$("
        value = self._value(match)
        filled = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        self._take(len(filled))
        return filled

    def _take(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            raise Unfilled(f"what the references bring in is longer than {MOST_BYTES:,} characters")

    def _value(self, match: re.Match[str]) -> object:
        reference, default = match[1], match[2]
        value = self._found(reference)
        if value is not MISSING:
            return value
        if default is None:
            raise Unfilled(f"the request has nothing for $({reference:.100}); $({reference:.100}|TEXT) says what else")
        return default

    def _found(self, reference: str) -> object:
        kind, _, name = reference.partition(".")
        if reference.startswith("json"):
            return self._pointed(reference.removeprefix("json"))
        if kind == "path":
            return self._request.parameters.get(name, MISSING)
        if kind == "query":
            return next((value for one, value in self._request.query if one == name), MISSING)
        if kind == "header":
            return next(iter(values_of(name, self._request.headers)), MISSING)
        return _PLAIN[reference](self._request)

    def _pointed(self, pointer: str) -> object:
        """The value that a JSON Pointer leads to, MISSING where there is none or the body is no JSON."""
        value = self._json()
        for token in pointer.split("/")[1:]:
            name = token.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict):
                value = value.get(name, MISSING)
            elif isinstance(value, list) and _INDEX.fullmatch(name) and int(name) < len(value):
                value = value[int(name)]
            else:
                return MISSING
        return value

    def _json(self) -> object:
        if not self._parsed:
            self._parsed = True
            try:
                self._document = parse(self._request.body.decode())
            except (NotJson, UnicodeDecodeError):
                self._document = MISSING
        return self._document
