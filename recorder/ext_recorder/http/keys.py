"""Which requests are the same, and where two differ.

The same are those with one method, one address, one set of query parameters and one body. Bodies of JSON are compared
as values, forms as their fields, parts without the boundary that was drawn for them, and compressed ones as what is in
them. Headers do not count, but for what they say about the body. A placeholder stands for any other.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from ext_recorder.pointers import differences, resolve

from .body import ENCODINGS, decoded

if TYPE_CHECKING:
    from .interaction import Interaction

PLACEHOLDER = re.compile(r"\[redacted:[^\]\s]*\]|%5Bredacted%3A[^\]\s]*?%5D", re.IGNORECASE)
HIDDEN = "[redacted]"
DEFAULT_PORTS = {"http": ":80", "https": ":443"}
MOST_DECODED = 64 * 1024 * 1024  # bytes of content
SHOWN = 60  # characters of a value


class Subject:
    """A request as it is compared.

    Attributes:
        method: GET and so on.
        address: scheme, host and port.
        path: with escapes undone.
        query: names and values, sorted.
        content: the value of a JSON body or the fields of a form; the bytes of another one.
    """

    __slots__ = ("address", "content", "method", "path", "query")

    def __init__(self, request: Interaction) -> None:
        parts = urlsplit(PLACEHOLDER.sub(HIDDEN.replace("[", "").replace("]", ""), request.uri))
        self.method = request.method
        host = parts.netloc.rpartition("@")[2].lower().removesuffix(DEFAULT_PORTS.get(parts.scheme, "?"))
        self.address = f"{parts.scheme}://{host}" + (f" {request.socket}" if request.socket else "")
        self.path = unquote(parts.path) or "/"
        self.query = sorted(parse_qsl(parts.query, keep_blank_values=True))
        self.content = _content(request)

    def key(self) -> bytes:
        """Equal for the same requests, and for no others."""
        spelled = json.dumps([self.method, self.address, self.path, self.query, _spelled(self.content)], sort_keys=True)
        return sha256(spelled.encode("utf-8", "surrogatepass")).digest()

    def __str__(self) -> str:
        query = "?" + "&".join(f"{name}={value}" for name, value in self.query) if self.query else ""
        return f"{self.method} {self.address}{self.path}{query}"


def _spelled(content: object) -> object:
    return ["bytes", sha256(content).hexdigest()] if isinstance(content, bytes) else ["value", content]


def _content(request: Interaction) -> object:
    if request.request_body is None or not request.request_body.size:
        return b""
    headers = {name.lower(): value for name, value in request.request_headers}
    data = _undone(request, headers.get("content-encoding", "").lower())
    kind, _, parameters = headers.get("content-type", "").partition(";")
    if kind.strip().lower() == "multipart/form-data":
        boundary = parameters.partition("boundary=")[2].partition(";")[0].strip('" ')
        return _hidden(data.replace(boundary.encode(), b"boundary")) if boundary else _hidden(data)
    if kind.strip().lower() == "application/x-www-form-urlencoded":
        fields = parse_qsl(_hidden(data).decode("utf-8", "replace"), keep_blank_values=True)
        return [list(each) for each in sorted(fields)]
    try:
        return json.loads(_hidden(data))
    except (ValueError, RecursionError):
        return _hidden(data)


def _undone(request: Interaction, encoding: str) -> bytes:
    body = request.request_body
    if body is None:
        return b""
    if encoding in ENCODINGS:
        content = bytearray()
        try:
            for piece in decoded(body.pieces(), encoding):
                content += piece
                if len(content) > MOST_DECODED:
                    return body.whole()
            return bytes(content)
        except ValueError:
            return body.whole()
    return body.whole()


def _hidden(data: bytes) -> bytes:
    if b"edacted" not in data:
        return data
    text = data.decode("utf-8", "surrogateescape")
    return PLACEHOLDER.sub(HIDDEN, text).encode("utf-8", "surrogateescape")


def different(recorded: Subject, live: Subject) -> list[str]:
    """Where two requests with one method and path differ, in words."""
    found = []
    if recorded.address != live.address:
        found.append(f"address: recorded {recorded.address}, now {live.address}")
    before, now = dict(recorded.query), dict(live.query)
    found += [
        f"query {name}: recorded {_shown(before.get(name))}, now {_shown(now.get(name))}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]
    if recorded.query != live.query and before == now:
        found.append("query: names that come several times")
    one, other = recorded.content, live.content
    if isinstance(one, bytes) or isinstance(other, bytes):
        if one != other:
            found.append(f"body: recorded {_size(one)}, now {_size(other)}")
    else:
        found += [
            f"body {pointer or '/'}: recorded {_shown(resolve(one, pointer))}, now {_shown(resolve(other, pointer))}"
            for pointer in differences(one, other)
        ]
    return found


def _shown(value: object) -> str:
    if value is None or type(value) is object:
        return "nothing"
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def _size(content: object) -> str:
    return f"{len(content)} bytes" if isinstance(content, bytes) else "JSON"
