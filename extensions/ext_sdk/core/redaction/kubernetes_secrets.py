"""Search for the data of Kubernetes secrets, whatever their keys are called.

In a message with an object of kind Secret, all members of every ``data`` and ``stringData`` are redacted: in a list of
mixed kinds that is more than needed, and never less.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .escapes import undone
from .key_values import value_end
from .spans import Finding, in_view

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .escapes import View

_RULE: Final = "kubernetes-secret"
_SPACE: Final = rb"(?:\s|\\++[nrt]){0,64}"
_KIND: Final = re.compile(rb"(?<!\\)(\\*+\")kind\1%b:%b\1secret(?:list)?\1" % (_SPACE, _SPACE))
_DATA: Final = re.compile(rb"(?<!\\)(\\*+\")(?:string)?data\1%b:%b\{%b" % (_SPACE, _SPACE, _SPACE))
_BETWEEN: Final = re.compile(rb"%b:%b" % (_SPACE, _SPACE))
_NEXT: Final = re.compile(rb"%b,%b" % (_SPACE, _SPACE))

_KIND_LINE: Final = re.compile(
    rb"(?:^|[\n\0])[ -]{0,64}kind:[ \t]{0,64}[\"']?secret(?:list)?[\"']?[ \t]{0,64}(?=$|[\r\n\0])"
)
_DATA_LINE: Final = re.compile(rb"(?:^|[\n\0])([ -]{0,64})(?:string)?data:[ \t]{0,64}\r?\n")
_ENTRY: Final = re.compile(rb"([ ]{0,256})([^\0\r\n]*)(?:\r?\n)?")


def find_secret_data(message: bytes, lowered: bytes, view: View) -> Iterator[Finding]:
    """Yield the values in ``data`` and ``stringData`` of Secret objects, in JSON at any depth and in YAML."""
    if _KIND.search(lowered):
        for match in _DATA.finditer(lowered):
            yield from _members(message, match.end(), match[1])
    if _KIND_LINE.search(view.lowered):
        for match in _DATA_LINE.finditer(view.lowered):
            yield from _lines(view, match.end(), len(match[1]))


def _members(message: bytes, at: int, quote: bytes) -> Iterator[Finding]:
    """Yield the strings of a flat object whose first member begins here."""
    depth, width = len(quote) - 1, len(quote)
    while message.startswith(quote, at):
        key_end = value_end(message, at + width, depth)
        between = _BETWEEN.match(message, key_end + width)
        if not between or not message.startswith(quote, between.end()):
            return
        start = between.end() + width
        end = value_end(message, start, depth)
        if end > start:
            yield Finding(start, end, _RULE, undone(message[start:end]))
        following = _NEXT.match(message, end + width)
        at = following.end() if following else len(message)


def _lines(view: View, at: int, indentation: int) -> Iterator[Finding]:
    """Yield the values of ``key: value`` lines that are indented deeper, and the lines of block scalars among them."""
    while entry := _ENTRY.match(view.text, at):
        if entry.end() == at or (entry[2] and len(entry[1]) <= indentation):
            return
        at = entry.end()
        key, colon, value = entry[2].partition(b":")
        if not colon or b" " in key:
            key, value = b"", entry[2]  # a further line of the value above
        value = value.strip()
        if value and not (colon and value in (b"|", b">", b"|-", b">-", b"|+")):
            end = entry.end(2) - (len(entry[2]) - len(entry[2].rstrip()))
            yield in_view(view, end - len(value), end, _RULE)
