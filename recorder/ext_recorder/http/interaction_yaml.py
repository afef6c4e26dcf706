"""Lines of one interaction in NAME.http.yaml: written and parsed some ten times as fast as by the YAML library.

The emitter returns the lines that vcrpy's serializer writes, the parser the values that the library reads. Both support
the usual forms, and return None for any other, which is left to the library; a single unusual value is passed to the
library alone.
"""

from __future__ import annotations

import re
from base64 import decodebytes, encodebytes
from functools import lru_cache
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .interaction import Body

BINARY = "!!binary |"
SHORT = 200  # characters of a line that is kept: most headers occur in many interactions
_MEMBER = re.compile(r"( *)([A-Za-z][A-Za-z0-9_.-]*):(?: (.+))?")
_ASCII = re.compile(rb"[\n\x20-\x7e]*")
_PLAIN = re.compile(r"[A-Za-z0-9/._(][^\n]*(?<![: ])")
_DIGITS = re.compile(r"0|[1-9][0-9]*")
_FRACTION = re.compile(r"[0-9]+\.[0-9]+")
_LIST = re.compile(r"\[[A-Za-z0-9-]+(?:, [A-Za-z0-9-]+)*\]")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_WORDS: dict[str, object] = {"null": None, "true": True, "false": False}
_SPECIAL = yaml.SafeLoader.yaml_implicit_resolvers  # by first character: forms that are not texts
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

# --- Emitter ---------------------------------------------------------------------------------------------------------

WIDTH = 80  # columns after which the library folds a text at the next space
LONGEST_KEY = 128  # characters of a key in one line
_LINE = re.compile(r"[ -~]*")
_LINES = re.compile(r"[\n -~]*")
_SPACED_BREAK = re.compile(r" \n|\n ")
_UNQUOTED = re.compile(r"(?!---|\.\.\.)(?:[^ #,\[\]{}&*!|>'\"%@`?:-]|[?:-](?![ ]|\Z))[ -~]*(?<![ :])")


def emit_interaction(
    request: tuple[str, str, Mapping[str, str], bytes | None],
    response: tuple[int, str, Mapping[str, Sequence[str]], bytes],
) -> str | None:
    """Return an interaction as vcrpy's serializer writes it: an item of a list, from `- request:` on.

    Args:
        request: method, URI, headers, body.
        response: status, reason, headers, body.

    Returns:
        The lines; None if a part other than a body is not printable ASCII.
    """
    method, uri, sent, body = request
    status, reason, received, content = response
    parts = (
        "null" if body is None else _content(body, 10, 6),
        _headers({name: (value,) for name, value in sent.items()}),
        _text(method, 12, 6),
        _text(uri, 9, 6),
        _content(content, 14, 8),
        _headers(received),
        _text(reason, 15, 8),
    )
    if None in parts:
        return None
    return (
        "- request:\n    body: {}\n    headers:{}\n    method: {}\n    uri: {}\n"
        "  response:\n    body:\n      string: {}\n    headers:{}\n    status:\n      code: {code}\n      message: {}\n"
    ).format(*parts, code=status)


def emit_text(text: str) -> str | None:
    """Return a text as a value on one line, however long; None if it is not printable ASCII."""
    if _LINE.fullmatch(text) is None:
        return None
    if _UNQUOTED.fullmatch(text) and ": " not in text and " #" not in text and not _is_special(text):
        return text
    return "'" + text.replace("'", "''") + "'"


def _headers(headers: Mapping[str, Sequence[str]]) -> str | None:
    blocks = []
    for name in sorted(headers):
        values = tuple(headers[name])
        block = (_known_header if sum(map(len, values)) <= SHORT else _header)(name, values)
        if block is None:
            return None
        blocks.append(block)
    return "".join(blocks) or " {}"


def _header(name: str, values: tuple[str, ...]) -> str | None:
    key = emit_text(name) if 0 < len(name) <= LONGEST_KEY else None
    items = [_text(value, 8, 8) for value in values]
    return None if key is None or None in items else f"\n      {key}:" + "".join(f"\n      - {item}" for item in items)


_known_header = lru_cache(4096)(_header)


def _text(text: str, column: int, indent: int) -> str | None:
    """Return a text without line feeds as a value; None if it is not printable ASCII.

    Args:
        column: of its first character.
        indent: of its further lines.
    """
    line = emit_text(text)
    if line is None or column + len(line) <= WIDTH:
        return line
    return _fold(line, column, indent, is_quoted=line[0] == "'")


def _fold(line: str, column: int, indent: int, *, is_quoted: bool = True) -> str:
    """Break a line after its width at each single space, except one before the last quotation mark."""
    parts, begin = [], 0
    at = line.find(" ", WIDTH + 1 - column)
    while at >= 0:
        if line[at - 1] != " " and line[at + 1] != " " and not (is_quoted and line[at + 1 :] == "'"):
            parts.append(line[begin:at])
            begin = at + 1
            at = line.find(" ", begin + WIDTH + 1 - indent)
        else:
            at = line.find(" ", at + 1)
    return ("\n" + " " * indent).join([*parts, line[begin:]])


def _content(body: bytes, column: int, indent: int) -> str:
    """Return a body as a value."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        lines = encodebytes(body).decode("ascii").splitlines()
        return ("\n" + " " * indent).join([BINARY, *lines])
    line = _text(text, column, indent)
    if line is not None:
        return line
    if _LINES.fullmatch(text) is None or _SPACED_BREAK.search(text):  # the library writes it with escapes
        nested: object = {"x" * (column - indent): text}
        for _ in range(indent // 2 - 1):
            nested = {"x": nested}
        written: str = yaml.dump(nested, Dumper=DUMPER)
        return written.partition("x: ")[2].removesuffix("\n")
    first, *more = re.split(r"(\n+)", "'" + text.replace("'", "''") + "'")
    parts = [_fold(first, column, indent)]
    for breaks, line in zip(more[::2], more[1::2], strict=True):  # an additional line feed: one alone is a space
        parts += [breaks, "\n", " " * indent, _fold(line, indent, indent)]
    return "".join(parts)


# --- Parser ----------------------------------------------------------------------------------------------------------


class _Unsupported(Exception):
    """A form that `writer` does not write."""


def parse_interaction(text: bytes, bodies: Sequence[Body] = ()) -> dict[str, object] | None:
    """Return an interaction as data; None for a form that `writer` does not write.

    Args:
        text: its lines, the first of which is `- request:`.
        bodies: that were removed from the text, in its order.
    """
    if not text.startswith(b"- request:\n") or not text.endswith(b"\n") or not _ASCII.fullmatch(text):
        return None
    lines = text.decode().split("\n")
    lines.pop()
    lines[0] = "  request:"
    parser = _Parser(lines, bodies)
    try:
        item = parser.mapping(2)
    except _Unsupported:
        return None
    return item if parser.is_at_end else None


class _Parser:
    """Recursive-descent parser of block mappings and sequences."""

    def __init__(self, lines: list[str], bodies: Iterable[Body]) -> None:
        self._lines = [*lines, "."]  # no member, and not indented
        self._at = 0
        self._bodies = iter(bodies)

    @property
    def is_at_end(self) -> bool:
        """Return True if all lines and bodies have been used."""
        return self._at == len(self._lines) - 1 and next(self._bodies, None) is None

    def mapping(self, indent: int) -> dict[str, object]:
        """Return the mapping that begins at the current line."""
        members: dict[str, object] = {}
        deeper, dash = " " * (indent + 1), " " * indent + "- "
        while True:
            line = self._lines[self._at]
            found, name, text = _known_member(line) if len(line) <= SHORT else _member(line)
            if found < indent:
                break
            if found > indent:
                raise _Unsupported
            self._at += 1
            if text is not None:
                members[name] = self._value(text, deeper)
            elif self._lines[self._at].startswith(dash):
                items: list[object] = []
                while (line := self._lines[self._at]).startswith(dash):
                    self._at += 1
                    items.append(self._value(line[len(dash) :], deeper))
                members[name] = items
            else:
                members[name] = self.mapping(indent + 2)
        if not members:
            raise _Unsupported
        return members

    def _value(self, first: str, deeper: str) -> object:
        """Return the value that begins with a text after `key: ` or `- `, and continues in lines with more indent."""
        more: list[str] = []
        while (line := self._lines[self._at]).startswith(deeper) or not line:
            self._at += 1
            more.append(line)
        if first[:1] == "'":
            return _quoted(first, more)
        if more or first == BINARY:
            return self._block(first, more, len(deeper) - 1)
        if first[:1] == "[" and _LIST.fullmatch(first):
            return [_known_plain(item) for item in first[1:-1].split(", ")]
        if first in {"{}", "[]"}:
            return {} if first == "{}" else []
        return _known_plain(first) if len(first) <= SHORT else _plain(first)

    def _block(self, first: str, more: list[str], indent: int) -> object:
        if first != BINARY:
            return _by_library(first, [line[indent:] for line in more])
        data = "".join([line.strip(" ") for line in more])
        if not data:
            body = next(self._bodies, None)
            if body is None:
                raise _Unsupported
            return body
        if not _BASE64.fullmatch(data) or len(data) % 4:
            raise _Unsupported
        return decodebytes(data.encode())


def _member(line: str) -> tuple[int, str, str | None]:
    """Return the indent of a member of a mapping, its name, and its value on this line; indent -1 for another line."""
    match = _MEMBER.fullmatch(line)
    return (-1, "", None) if match is None or _is_special(match[2]) else (len(match[1]), match[2], match[3])


_known_member = lru_cache(4096)(_member)


def _plain(text: str) -> object:
    """Return the value of a text without quotation marks on one line. It is immutable."""
    if text in _WORDS:
        return _WORDS[text]
    if _PLAIN.fullmatch(text) and ": " not in text and " #" not in text:
        if not _is_special(text):
            return text
        if _DIGITS.fullmatch(text):
            return int(text)
        if _FRACTION.fullmatch(text):
            return float(text)
    return _by_library(text, [])


_known_plain = lru_cache(4096)(_plain)


def _is_special(text: str) -> bool:
    """Return True if YAML reads a plain text as another type."""
    return any(form.match(text) for _, form in _SPECIAL.get(text[0], ()))


def _by_library(first: str, more: list[str]) -> object:
    try:
        content = yaml.load("\n".join([f"x: {first}", *more, ""]), Loader=LOADER)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError):
        raise _Unsupported from None
    if not isinstance(content, dict) or content.keys() != {"x"}:
        raise _Unsupported
    return content["x"]


def _quoted(first: str, more: list[str]) -> str:
    """Return the text between single quotation marks, of one line or several."""
    if more:
        lines = [first[1:].rstrip(" "), *(line.strip(" ") for line in more[:-1]), more[-1].lstrip(" ")]
        if not lines[-1].endswith("'"):
            raise _Unsupported
        lines[-1] = lines[-1][:-1]
        text = _folded(lines)
    elif len(first) > 1 and first[-1] == "'":
        text = first[1:-1]
    else:
        raise _Unsupported
    if "'" in text:
        if "'" in text.replace("''", ""):
            raise _Unsupported
        text = text.replace("''", "'")
    return text


def _folded(lines: list[str]) -> str:
    """Join lines: a line break is a space, and each empty line is a line feed."""
    parts, breaks = [lines[0]], 0
    for number, line in enumerate(lines[1:], 2):
        if line or number == len(lines):
            parts += ["\n" * breaks or " ", line]
            breaks = 0
        else:
            breaks += 1
    return "".join(parts)
