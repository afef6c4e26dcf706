"""Comparison of HTTP requests: what known APIs send differently each time, and users' rules, do not count.

A request is compared as a JSON value: {"method", "scheme", "host", "port", "path", "query", "headers", "body"}. So a
rule (`--ignore`, `--match-on`) is a pointer into it, as for a message: /query/nonce, /body/id, 'POST /v1/chat/*
/body/metadata'.
"""

from __future__ import annotations

import json
import re
from copy import deepcopy
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from ext_recorder.errors import UsageError
from ext_recorder.messages.comparison_rules import LimitedPatterns, Mask
from ext_recorder.messages.json_values import differences, join, without
from ext_recorder.messages.path_bindings import Substitution
from ext_sdk.core.text import cut
from ext_sdk.core.wire.json_pointer import MISSING, parts, resolve

from .interaction import ENCODINGS, decoded
from .known_apis import Parts, known_apis

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .interaction import Body, Interaction

    Value = dict[str, object]

URI = ("scheme", "host", "port", "path", "query")
PARTS = ("method", *URI, "headers", "body")

# The parts that a word of --match-on names: words of vcrpy, and `params`, everything but the method.
WORDS = {**{part: (part,) for part in PARTS}, "raw_body": ("body",), "uri": URI, "params": (*URI, "body")}
MATCH_ON = ("method", "params")


class RequestRules:
    """Parts of requests that are compared.

    Args:
        ignore: values of `--ignore`: [METHOD [PATH]] POINTER. PATH may have `*` in it.
        mask: values of `--mask`.
        path: further masks: paths, which responses contain as the program has sent them.
        match_on: values of `--match-on`: words and pointers; () for method, URI and body.
        strict: refuse pointers that are not about requests; else leave them out: they are about messages.
        exact: compare what known APIs send differently each time, too.

    Attributes:
        any_server: the host or the port of a server does not count.
        are_custom: the user has changed something.
        path, exact: as given.
        with_headers: all headers are compared.

    Raises:
        UsageError: a value is not of its form.
    """

    def __init__(
        self,
        ignore: Iterable[str] = (),
        mask: Iterable[str] = (),
        match_on: Iterable[str] = (),
        *,
        path: Iterable[str] = (),
        strict: bool = False,
        exact: bool = False,
    ) -> None:
        self.path = tuple(path)
        ignore, mask, match_on = tuple(ignore), (*mask, *self.path), tuple(match_on)
        self.are_custom = bool(ignore or mask) or match_on not in {(), MATCH_ON}
        self.exact = exact
        self._ignored: list[tuple[str, str, str]] = []
        for entry in ignore:
            topic, slash, rest = entry.rpartition(" /")
            pointer = f"/{rest}" if slash else entry
            if _is_of_request("ignore", entry, pointer, strict=strict):
                method, _, path = topic.strip().partition(" ")
                self._ignored.append((method, path.strip(), _lowered(pointer)))
        self._mask = Mask.of(mask)
        self._words: set[str] = set()
        self._places: list[str] = []
        for word in match_on or MATCH_ON:
            if word in WORDS:
                self._words.update(WORDS[word])
            elif not word.startswith("/"):
                known = ", ".join(WORDS)
                raise UsageError(f"--match-on {word}: expected one of {known}, or a pointer such as /headers/x-tenant")
            elif _is_of_request("match-on", word, word, strict=strict):
                self._places.append(_lowered(word))
        everywhere = {pointer for method, path, pointer in self._ignored if not method and not path}
        self.any_server = bool(everywhere & {"/host", "/port"}) or not self._words >= {"host", "port"}
        self.with_headers = "headers" in self._words

    def counted(self, request: Value, path: str) -> Value:
        """Return the parts of a request that are compared.

        Args:
            path: of the request, for rules that apply to some paths.
        """
        left = self._left(request, path)
        return {name: value for name, value in left.items() if name in self._words}

    def places(self, request: Value, path: str) -> dict[str, object]:
        """Return the values at the pointers of `--match-on`; arguments as of `counted`."""
        if not self._places:
            return {}
        left = self._left(request, path)
        found = {place: resolve(left, place) for place in self._places}
        return {place: None if value is MISSING else deepcopy(value) for place, value in found.items()}

    def _left(self, request: Value, path: str) -> Value:
        pointers = [
            pointer
            for topic, pattern, pointer in self._ignored
            if topic in {"", request["method"]} and (not pattern or fnmatchcase(path, pattern))
        ]
        left = without(request, pointers) if pointers else request
        assert isinstance(left, dict)
        return {name: self._masked(name, value) for name, value in left.items()} if self._mask else left

    def _masked(self, name: str, value: object) -> object:
        if self._mask is None or isinstance(value, Digest) or name not in {"path", "query", "headers", "body"}:
            return value
        if isinstance(value, bytes):
            try:
                return self._mask.text(value.decode()).encode()
            except UnicodeDecodeError:
                return value
        return self._mask.value(value)


def _is_of_request(option: str, entry: str, pointer: str, *, strict: bool) -> bool:
    """Return True if a pointer leads into a request. Raises UsageError if it has to, and does not."""
    try:
        tokens = parts(pointer)
    except ValueError:
        tokens = []
    if tokens and tokens[0] in PARTS:
        return True
    if not strict:
        return False
    known = ", ".join(f"/{part}" for part in PARTS)
    raise UsageError(f"--{option} {entry}: expected a pointer into HTTP requests, in {known}, such as /query/nonce")


def _lowered(pointer: str) -> str:
    """Return a pointer with the name of a header as it is compared."""
    return pointer.lower() if pointer.startswith("/headers/") else pointer


class PathPairs:
    """Paths that differ from run to run: those of the recording, with those of this run, as far as requests have them.

    Args:
        patterns: as of masks.
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self._patterns = LimitedPatterns(patterns)
        self._live: dict[str, str] = {}
        self._table = Substitution({}, json=False)

    def add(self, pattern: str) -> None:
        """Add a pattern."""
        self._patterns = LimitedPatterns((*self._patterns.entries, pattern))

    def observe(self, recorded: Interaction, live: Interaction) -> None:
        """Compare a request with the recorded one that it matches. Raises PatternTooSlow."""
        if not self._patterns.entries:
            return
        before = dict(self._live)
        self._patterns.limit(self._observe, zip(_texts(recorded), _texts(live), strict=False))
        if self._live != before:
            self._table = Substitution(self._live, json=False)

    def _observe(self, texts: Iterable[tuple[str, str]]) -> None:
        found = [(self._patterns.found(one), self._patterns.found(other)) for one, other in texts]
        for number in range(len(self._patterns.entries)):
            for one, other in found:
                left, right = one[number], other[number]
                if len(left) == len(right):
                    self._live.update((old, new) for old, new in zip(left, right, strict=True) if old != new)

    def to_live(self, data: bytes) -> bytes:
        """Return recorded data with the paths of this run."""
        return self._table.apply(data)


def _texts(request: Interaction) -> Iterator[str]:
    """Yield the texts of a request, in an order that does not depend on that of its members."""
    yield unquote(request.uri)
    todo = [_content(request)]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            todo += [value[name] for name in sorted(value)]
        elif isinstance(value, list):
            todo += value


PLACEHOLDER = re.compile(r"\[redacted:[^\]\s]*\]|%5Bredacted%3A[^\]\s]*?%5D", re.IGNORECASE)
HIDDEN = "[redacted]"
DEFAULT_PORTS = {"http": ":80", "https": ":443"}
MOST_DECODED = 64 * 1024 * 1024  # bytes of content
SHOWN = 60  # characters of a value
CONTEXT = 20  # characters before the first difference of two texts
LONG = 4 * 1024 * 1024  # bytes of a body that is compared as a digest, unless it is a value
WINDOW = 1024 * 1024
MOST_HIDDEN = 1024  # bytes of a placeholder, or of a boundary


class Subject:
    """A request as it is compared.

    Attributes:
        method: GET and so on.
        address: scheme, host and port.
        path: decoded path.
        query: names and values, sorted.
        content: the value of a JSON body or the fields of a form; the bytes of another one.
        more: further values that are compared, by pointer.
        repeats: the number of such requests varies from run to run.
    """

    __slots__ = ("_method", "address", "content", "method", "more", "path", "query", "repeats")

    def __init__(self, request: Interaction, matching: RequestRules | None = None) -> None:
        url = urlsplit(PLACEHOLDER.sub(HIDDEN.replace("[", "").replace("]", ""), request.uri))
        self.method = self._method = request.method
        host = url.netloc.rpartition("@")[2].lower().removesuffix(DEFAULT_PORTS.get(url.scheme, "?"))
        self.address = f"{url.scheme}://{host}" + (f" {request.socket}" if request.socket else "")
        self.path = unquote(url.path) or "/"
        self.query = sorted(parse_qsl(url.query, keep_blank_values=True))
        self.content = _content(request)
        self.more: Mapping[str, object] = {}
        self.repeats = False
        if matching is None:
            return
        path, headers = self.path, [(name.lower(), value) for name, value in request.request_headers]
        if matching.are_custom:
            headers = [(name, PLACEHOLDER.sub(HIDDEN, value)) for name, value in headers]
            self.more = matching.places(self._parts(headers), path)
        if not matching.exact:
            form = isinstance(self.content, _Fields)
            parts = Parts(host.partition(":")[0], path, self.query, headers, self.content, form)
            parts, self.repeats = known_apis().reduced(parts, headers=matching.with_headers)
            self.path, self.query, headers, self.content = parts.path, parts.query, parts.headers, parts.body
        if matching.are_custom:
            self._keep(matching.counted(self._parts(headers), path))

    def _parts(self, headers: Sequence[tuple[str, str]]) -> Value:
        """Return the request as a JSON value."""
        scheme, _, server = self.address.partition("://")
        host, _, rest = server.partition(" ")
        name, colon, port = host.rpartition(":")
        if not colon or "]" in port:
            name, port = host, DEFAULT_PORTS.get(scheme, "").removeprefix(":")
        form = self.content if isinstance(self.content, _Fields) else None
        return {
            "method": self.method, "scheme": scheme, "host": f"{name} {rest}".strip(), "port": port,
            "path": self.path, "query": _named(self.query), "headers": _named(headers),
            "body": _named(form) if form is not None else self.content,
        }  # fmt: skip

    def _keep(self, counted: Value) -> None:
        """Keep only the parts that are compared."""
        self._method = str(counted.get("method", ""))
        place = [str(counted[part]) if part in counted else "*" for part in ("scheme", "host", "port")]
        self.address = f"{place[0]}://{place[1]}:{place[2]}"
        self.path = str(counted.get("path", "*"))
        query = counted.get("query")
        self.query = sorted(
            (name, str(value))
            for name, values in (query.items() if isinstance(query, dict) else ())
            for value in (values if isinstance(values, list) else [values])
        )
        if "headers" in counted:
            self.more = {**self.more, "/headers": counted["headers"]}
        self.content = counted.get("body", b"")

    def key(self) -> bytes:
        """Return a key that equal requests have in common."""
        content = [self._method, self.address, self.path, self.query, _spelled(self.content)]
        spelled = json.dumps([*content, self.more] if self.more else content, sort_keys=True, default=_spelled)
        return sha256(spelled.encode("utf-8", "surrogatepass")).digest()

    def __str__(self) -> str:
        query = "?" + "&".join(f"{name}={value}" for name, value in self.query) if self.query else ""
        return f"{self.method} {self.address}{self.path}{query}"


class _Fields(list[Any]):
    """The fields of a form, as names and values."""


def _named(pairs: Iterable[Sequence[str]]) -> dict[str, object]:
    """Return values by name; a list for a name that occurs several times."""
    values: dict[str, object] = {}
    for name, value in pairs:
        before = values.get(name)
        many = [*before, value] if isinstance(before, list) else [before, value]
        values[name] = many if name in values else value
    return values


class Digest(bytes):
    """SHA-256 of a body that is too long for memory, as `_hidden` returns it.

    Attributes:
        size: of the body.
    """

    size = 0


def _spelled(content: object) -> object:
    if isinstance(content, Digest):
        return ["bytes", content.hex()]
    if content is MISSING:  # the gap of an ignored item
        return ["ignored"]
    return ["bytes", sha256(content).hexdigest()] if isinstance(content, bytes) else ["value", content]


def _content(request: Interaction) -> object:
    """Return the body without its Content-Encoding: a JSON value, the fields of a form, or bytes.

    A long body that is neither a value nor a form is returned as its digest, to which masks do not apply.
    """
    body = request.request_body
    if body is None or not body.size:
        return b""
    headers = {name.lower(): value for name, value in request.request_headers}
    encoding = headers.get("content-encoding", "").lower()
    kind, _, parameters = headers.get("content-type", "").partition(";")
    boundary = b""
    if kind.strip().lower() == "multipart/form-data":
        boundary = parameters.partition("boundary=")[2].partition(";")[0].strip('" ').encode()
    if body.size > LONG and encoding not in ENCODINGS and not _may_be_value(kind, body):
        return _digest(body, boundary)
    data = _decoded(body, encoding) if encoding in ENCODINGS else body.whole()
    if kind.strip().lower() == "multipart/form-data":
        return _hidden(data.replace(boundary, b"boundary") if boundary else data)
    if kind.strip().lower() == "application/x-www-form-urlencoded" and data[:1] not in {b"{", b"["}:  # JSON of curl
        fields = parse_qsl(_hidden(data).decode("utf-8", "replace"), keep_blank_values=True)
        return _Fields(list(field) for field in sorted(fields))
    try:
        return json.loads(_hidden(data))
    except (ValueError, RecursionError):
        return _hidden(data)


def _decoded(body: Body, encoding: str) -> bytes:
    """Return the decoded body; unchanged if it is too large, or not valid."""
    content = bytearray()
    try:
        for piece in decoded(body.pieces(), encoding):
            content += piece
            if len(content) > MOST_DECODED:
                return body.whole()
    except ValueError:
        return body.whole()
    return bytes(content)


def _may_be_value(kind: str, body: Body) -> bool:
    """Return True if a body may be a JSON value or the fields of a form, which are compared as such."""
    if kind.strip().lower() == "application/x-www-form-urlencoded":
        return True
    if kind.strip().lower() == "multipart/form-data":
        return False
    first = next(body.pieces()).replace(b"\0", b"")  # of UTF-16 and UTF-32
    for mark in (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"):
        first = first.removeprefix(mark)
    return first.lstrip(b" \t\r\n")[:1] in {b"{", b"[", b'"', b""}  # JSON of this length


def _digest(body: Body, boundary: bytes) -> Digest:
    """Return the digest of a body, read in pieces, without its boundary and the numbers of its placeholders."""
    form = PLACEHOLDER.pattern.encode() + (b"|" + re.escape(boundary) if boundary else b"")
    removed = re.compile(form, re.IGNORECASE)
    counted, held = sha256(), bytearray()

    def count(data: bytes) -> None:
        counted.update(_hidden(data.replace(boundary, b"boundary") if boundary else data))

    for piece in body.pieces():
        held += piece
        if len(held) > WINDOW:
            cut = len(held) - MOST_HIDDEN
            for match in removed.finditer(held, cut - MOST_HIDDEN):
                if match.start() < cut < match.end():
                    cut = match.start()
            count(bytes(held[:cut]))
            del held[:cut]
    count(bytes(held))
    digest = Digest(counted.digest())
    digest.size = body.size
    return digest


def _hidden(data: bytes) -> bytes:
    if b"edacted" not in data:
        return data
    text = data.decode("utf-8", "surrogateescape")
    return PLACEHOLDER.sub(HIDDEN, text).encode("utf-8", "surrogateescape")


class Difference(NamedTuple):
    """One difference between a recorded request and a live one.

    Attributes:
        pointer: as for `--ignore`.
        text: for users.
        recorded, live: values; MISSING if there is none, None if they are not known.
    """

    pointer: str
    text: str
    recorded: object = None
    live: object = None


def different(recorded: Subject, live: Subject) -> list[Difference]:
    """Return the differences of two requests with one method."""
    result = []
    if recorded.address != live.address:
        result.append(Difference("/host", f"address: recorded {recorded.address}, now {live.address}"))
    if recorded.path != live.path:
        result.append(_difference("/path", recorded.path, live.path))
    before, now = dict(recorded.query), dict(live.query)
    result += [
        _difference(join("/query", name), before.get(name, MISSING), now.get(name, MISSING))
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]
    if recorded.query != live.query and before == now:
        result.append(Difference("/query", "/query: names that occur several times"))
    one, other = recorded.content, live.content
    if isinstance(one, bytes) or isinstance(other, bytes):
        if one != other:
            result.append(_difference("/body", _text(one), _text(other)))
    else:
        result += _differences("/body", one, other)
    for place, value in recorded.more.items():
        result += _differences(place, value, live.more[place])
    return result


def _differences(place: str, recorded: object, live: object) -> list[Difference]:
    return [
        _difference(f"{place}{pointer}", resolve(recorded, pointer), resolve(live, pointer))
        for pointer in differences(recorded, live)
    ]


def _difference(pointer: str, recorded: object, live: object) -> Difference:
    one, other = _shown(recorded), _shown(live)
    if (
        isinstance(recorded, str)
        and isinstance(live, str)
        and ("\n" in recorded or max(len(recorded), len(live)) > SHOWN)
    ):
        same = next((at for at, (a, b) in enumerate(zip(recorded, live, strict=False)) if a != b), 0)
        start = max(0, same - CONTEXT, recorded.rfind("\n", 0, same) + 1)
        one, other = (f"{'…' if start else ''}{_shown(text[start:].split(chr(10))[0])}" for text in (recorded, live))
    return Difference(pointer, f"{pointer}: recorded {one}, now {other}", recorded, live)


def distance_of_texts(difference: Difference) -> int:
    """Return the number of characters of both texts between their common start and their common end; 0 for others."""
    one, other = difference.recorded, difference.live
    if not isinstance(one, str) or not isinstance(other, str):
        return 0
    start = _common(one, other)
    return len(one) + len(other) - 2 * (start + _common(one[start:][::-1], other[start:][::-1]))


def _common(one: str, other: str) -> int:
    """Return the length of the common start, without a loop over the characters of long texts."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _shown(value: object) -> str:
    if value is None or value is MISSING:
        return "nothing"
    if isinstance(value, bytes):
        return f"{value.size if isinstance(value, Digest) else len(value)} bytes"
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return cut(text, SHOWN)


def _text(content: object) -> object:
    """Return a body as text if it is one, to show where it differs."""
    if not isinstance(content, bytes) or isinstance(content, Digest) or len(content) > WINDOW:
        return content
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content
