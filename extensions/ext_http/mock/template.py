"""Templates of responses: `Hello, $(query.name|stranger)!`.

    $(method)          GET                        $(path.city)      path parameter
    $(url)             path and query as sent     $(query.units)    first query parameter of this name
    $(body)            complete body as text      $(header.X-Id)    first header of this name
    $(json)            complete body as JSON      $(json/user/0)    part of it, by JSON Pointer (RFC 6901)
    $(count)           number of requests that the route has matched, including this one
    $(query.units|C)   C if the parameter is missing
    $$(                a literal $(

A string in a JSON body that is a single reference to JSON becomes that value in its own type; elsewhere, a value other
than a string is inserted as JSON. Values from the request are never interpreted as templates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ext_http.client.response import values_of
from ext_sdk.expect.json_equality import MISSING, NotJson, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .request import Request

MAX_INSERTED = 16 * 1024 * 1024  # characters
_REFERENCE = re.compile(r"\$\$\(|\$\(([^()|]*)(?:\|([^()]*))?\)")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_PLAIN: Mapping[str, Callable[[Request], str]] = {
    "method": lambda request: request.method,
    "url": lambda request: request.target,
    "body": lambda request: request.body.decode("utf-8", "replace"),
    "count": lambda request: str(request.count),
}
_NAMED = ("path", "query", "header")


class TemplateError(Exception):
    """A reference to a missing part of the request, or too much inserted text; str() is the reason."""


def template_problem(value: object, parameters: frozenset[str] | None) -> str:
    """Return the first invalid reference in a text, or in the strings of a JSON value; "" if all are valid.

    Args:
        value: text or JSON.
        parameters: names of the path parameters; None if a regular expression sets them.
    """
    for text in _strings(value):
        for match in _REFERENCE.finditer(text):
            reference = match[1]
            if reference is None or reference in {*_PLAIN, "json"} or reference.startswith("json/"):
                continue
            kind, _, name = reference.partition(".")
            if kind not in _NAMED or not name:
                problem = "expected method, url, body, count, json, json/POINTER, path.NAME, query.NAME or header.NAME"
            elif kind == "path" and parameters is not None and name not in parameters:
                known = ", ".join(sorted(parameters)) or "none"
                problem = f"the path has no parameter {name!r:.40}; its parameters: {known}"
            else:
                continue
            return f"{match[0]:.100}: {problem}; write $$( for a literal $("
    return ""


def _strings(value: object) -> Iterator[str]:
    pending = [value]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            pending.extend(value)
        elif isinstance(value, Mapping):
            pending.extend(value.values())


class Template:
    """Fills in the references of one response, with at most 16 MiB of text from its request."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._room = MAX_INSERTED
        self._document: object = None
        self._parsed = False

    def fill_json(self, value: object) -> object:
        """Return a JSON value with the references in its strings filled in, but not in names. Raises TemplateError."""
        if isinstance(value, str):
            reference = _REFERENCE.fullmatch(value)
            if reference and reference[1] is not None and reference[1].partition("/")[0] == "json":
                self._take(len(self._request.body))  # about the length of the value as text
                return self._value(reference)
            return self.fill(value)
        if isinstance(value, list):
            return [self.fill_json(item) for item in value]
        if isinstance(value, Mapping):
            return {name: self.fill_json(item) for name, item in value.items()}
        return value

    def fill(self, text: str) -> str:
        """Return a text with its references filled in. Raises TemplateError."""
        return _REFERENCE.sub(self._replacement, text)

    def _replacement(self, match: re.Match[str]) -> str:
        if match[1] is None:
            return "$("
        value = self._value(match)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        self._take(len(text))
        return text

    def _take(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            raise TemplateError(f"the references insert more than {MAX_INSERTED:,} characters")

    def _value(self, match: re.Match[str]) -> object:
        reference, default = match[1], match[2]
        value = self._resolve(reference)
        if value is not MISSING:
            return value
        if default is None:
            raise TemplateError(
                f"the request has no value for $({reference:.100}); set a default with $({reference:.100}|TEXT)"
            )
        return default

    def _resolve(self, reference: str) -> object:
        kind, _, name = reference.partition(".")
        if reference.startswith("json"):
            return self._resolve_pointer(reference.removeprefix("json"))
        if kind == "path":
            return self._request.parameters.get(name, MISSING)
        if kind == "query":
            return next((value for parameter, value in self._request.query if parameter == name), MISSING)
        if kind == "header":
            return next(iter(values_of(name, self._request.headers)), MISSING)
        return _PLAIN[reference](self._request)

    def _resolve_pointer(self, pointer: str) -> object:
        """Return the value at a JSON Pointer, MISSING if there is none or the body is not JSON."""
        if not self._parsed:
            self._parsed = True
            try:
                self._document = parse(self._request.body.decode())
            except (NotJson, UnicodeDecodeError):
                self._document = MISSING
        value = self._document
        for token in pointer.split("/")[1:]:
            name = token.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict):
                value = value.get(name, MISSING)
            elif isinstance(value, list) and _INDEX.fullmatch(name) and int(name) < len(value):
                value = value[int(name)]
            else:
                return MISSING
        return value
