"""Known APIs: the parts of their requests that differ between two runs of the same program, from known_apis.yaml.

They are set aside when requests are compared, not when they are recorded. An API is recognized by the form of a request
rather than by its server, because base URLs and proxies are at any address.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ext_sdk.core.wire.json_pointer import MISSING, parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

FILE = "known_apis.yaml"
MASKED = "…"
PATHS = 4096  # whose APIs are kept


class Parts(NamedTuple):
    """Parts of a request.

    Attributes:
        query: names and values.
        headers: names in lower case, and values.
        body: JSON value, fields of a form or bytes. A JSON value is changed in place.
        form: the body has the fields of a form, as names and values.
    """

    host: str
    path: str
    query: list[tuple[str, str]]
    headers: list[tuple[str, str]]
    body: object
    form: bool


class Volatile(NamedTuple):
    """Parts that differ from run to run.

    Attributes:
        at: pointers, as tokens.
        text: only what it matches in texts; None for complete values.
        unless: members of the same object, next to which the value counts.
        path: of the requests; None for all of the API.
        why: reason, for users.
    """

    at: tuple[tuple[str, ...], ...]
    text: re.Pattern[str] | None
    unless: Mapping[str, object]
    path: re.Pattern[str] | None
    why: str


class Api(NamedTuple):
    """One API.

    Attributes:
        name, about, …: as in the file, which describes them.
        of_headers: only headers are volatile.
    """

    name: str
    about: str
    path: re.Pattern[str] | None
    host: re.Pattern[str] | None
    header: Mapping[str, str]
    query: Sequence[str]
    has: Mapping[str, object]
    volatile: tuple[Volatile, ...]
    repeats: bool
    of_headers: bool
    pieces: tuple[tuple[str, ...], ...]

    def at(self, path: str) -> Api:
        """Return this API with the parts that are volatile at a path."""
        return self._replace(volatile=tuple(each for each in self.volatile if not each.path or each.path.search(path)))

    def has_request(self, request: Parts) -> bool:
        """Return True if a request whose path and host match belongs to this API."""
        body = request.body
        for names, value in self.has.items():
            if not isinstance(body, dict):
                return False
            if not any(name in body and (value is None or body[name] == value) for name in names.split("|")):
                return False
        if not {name for name, _ in request.query}.issuperset(self.query):
            return False
        headers = dict(request.headers) if self.header else {}
        return all(headers.get(name, "\0").startswith(prefix) for name, prefix in self.header.items())


class KnownApis:
    """APIs of a file.

    Most requests belong to none. So an API is only examined if it has the path or the host, which are kept, or a
    member, parameter or header that is typical of it.

    Args:
        entries: content of the file.

    Attributes:
        apis: in the order of the file.
        pieces: pointers to texts in events of streams, of all APIs.
    """

    def __init__(self, entries: Iterable[Mapping[str, Any]]) -> None:
        self.apis: list[Api] = []
        for entry in entries:  # a test checks their form
            volatile = [
                Volatile(
                    tuple(tuple(parts(pointer)) for pointer in item["at"]),
                    _pattern(item, "text"),
                    item.get("unless", {}),
                    _pattern(item, "path"),
                    item["why"],
                )
                for item in entry["volatile"]
            ]
            self.apis.append(
                Api(
                    entry["api"],
                    entry["about"],
                    _pattern(entry, "path"),
                    _pattern(entry, "host"),
                    entry.get("header", {}),
                    entry.get("query", ()),
                    entry.get("has", {}),
                    tuple(volatile),
                    bool(entry.get("repeats")),
                    all(tokens[0] == "headers" for item in volatile for tokens in item.at),
                    tuple(tuple(parts(pointer)) for pointer in entry.get("pieces", ())),
                )
            )
        anywhere = [api for api in self.apis if api.path is None and api.host is None]
        self.pieces = tuple(dict.fromkeys(tokens for api in self.apis for tokens in api.pieces))
        self._of_headers = [api for api in anywhere if api.of_headers]
        self._by_member = [api for api in anywhere if api.has]
        self._members = frozenset(name for api in self._by_member for names in api.has for name in names.split("|"))
        self._by_query = [api for api in anywhere if api.query]
        self._by_header = [api for api in anywhere if api.header]
        self._names = frozenset(name for api in self._by_header for name in api.header)
        self._placed = lru_cache(PATHS)(self._find)

    def _find(self, host: str, path: str) -> list[Api]:
        """Return the APIs with a host or path that match, with the parts that are volatile at this path."""
        found = []
        for api in self.apis:
            if api.path is None and api.host is None:
                continue
            if all(form is None or form.search(text) for form, text in ((api.path, path), (api.host, host))):
                found.append(api.at(path))
        return found

    def reduced(self, request: Parts, *, headers: bool = False) -> tuple[Parts, bool]:
        """Return the parts of a request that are compared, and True if the number of such requests varies.

        Args:
            headers: they are compared, too.
        """
        apis = self._placed(request.host, request.path)
        if isinstance(request.body, dict) and not self._members.isdisjoint(request.body):
            apis = [*apis, *self._by_member]
        if request.query:
            apis = [*apis, *self._by_query]
        if not self._names.isdisjoint([name for name, _ in request.headers]):
            apis = [*apis, *self._by_header]
        repeats = False
        for api in [*apis, *self._of_headers] if headers else apis:
            if api.has_request(request):
                repeats = repeats or api.repeats
                for volatile in api.volatile:
                    for tokens in volatile.at:
                        request = _without(request, tokens, volatile)
        return request, repeats


@cache
def known_apis() -> KnownApis:
    """Return the known APIs. They are read when the first request is compared."""
    import yaml

    text = Path(__file__).with_name(FILE).read_text(encoding="utf-8")
    return KnownApis(yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))  # noqa: S506 - both are safe


def _pattern(entry: Mapping[str, Any], name: str) -> re.Pattern[str] | None:
    return re.compile(entry[name]) if name in entry else None


def _without(request: Parts, tokens: tuple[str, ...], volatile: Volatile) -> Parts:
    """Return a request without one volatile part."""
    part, *rest = tokens
    if part == "headers":
        name = re.compile(re.escape(rest[0]).replace(r"\*", ".*")) if "*" in rest[0] else None
        return request._replace(
            headers=[pair for pair in request.headers if not (name.fullmatch(pair[0]) if name else pair[0] == rest[0])]
        )
    if part == "query":
        kept = [pair for pair in request.query if rest and pair[0] != rest[0]]
        return request._replace(query=kept)
    if part == "path":
        return request._replace(path=volatile.text.sub(MASKED, request.path) if volatile.text else MASKED)
    if not rest:
        return request._replace(body=b"")
    if request.form and isinstance(request.body, list):
        return request._replace(body=type(request.body)(field for field in request.body if field[0] != rest[0]))
    _remove(request.body, rest, volatile)
    return request


def _remove(holder: object, tokens: Sequence[str], volatile: Volatile) -> None:
    """Remove a volatile part of a JSON value, in place; an item becomes a gap."""
    name, *rest = tokens
    keys: Iterable[str | int]
    if isinstance(holder, dict):
        keys = list(holder) if name == "*" else [name] if name in holder else []
    elif isinstance(holder, list) and name == "*":
        keys = range(len(holder))
    else:
        return
    for key in keys:
        value = holder[key]  # type: ignore[index]  # a key of the dict, or an index of the list
        if rest:
            _remove(value, rest, volatile)
        elif isinstance(holder, dict) and any(holder.get(member) == other for member, other in volatile.unless.items()):
            continue
        elif volatile.text is not None:
            holder[key] = _masked(value, volatile.text)  # type: ignore[index]
        elif isinstance(holder, dict):
            del holder[key]
        else:
            holder[key] = MISSING  # type: ignore[index]


def _masked(value: object, text: re.Pattern[str]) -> object:
    if isinstance(value, str):
        return text.sub(MASKED, value)
    if isinstance(value, list):
        return [_masked(item, text) for item in value]
    if isinstance(value, dict):
        return {key: _masked(item, text) for key, item in value.items()}
    return value
