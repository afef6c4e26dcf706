"""Finding secrets by name outside of JSON: YAML lines, headers, ``NAME=value``, ``?token=…``, ``--password …``.

Searched is the view, so a YAML document or a header within a JSON string is one of lines like any other.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ext_sdk.redaction.finding import in_view
from ext_sdk.redaction.names import LONGEST
from ext_sdk.redaction.patterns import (
    PLACEHOLDER,
    SCHEME,
    TELLING,
    before_placeholder,
    beside_placeholder,
    credential_rule,
    is_harmless,
)
from ext_sdk.redaction.placeholder import rule_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_sdk.redaction.finding import Finding
    from ext_sdk.redaction.patterns import Names
    from ext_sdk.redaction.view import View

_NAME: Final = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_.-")
_BULLETS: Final = b" \t>*<-#+|'"
_LINE_PREFIX: Final = 32  # bytes before a name in which its line may begin
_BEFORE_VARIABLE: Final = frozenset((b"", b"export", b"set", b"env"))
_BEFORE_MEMBER: Final = frozenset((b"{", b",", b"(", b"[", b"&", b"?", b";"))

_REST_OF_LINE: Final = re.compile(rb"[^\0\r\n]*")
_WORD: Final = re.compile(rb"[^\s\0\"'`;&<>]*")
_MEMBER: Final = re.compile(rb"[^\s\0\"'`;&<>,}]*")
_QUOTED: Final = {b"'": re.compile(rb"'([^'\0\r\n]*)"), b'"': re.compile(rb'"([^"\0\r\n]*)')}
_QUOTED_LINE: Final = {
    b"'": re.compile(rb"'([^\0\r\n]*)'[\s,;)}\]]*\Z"),
    b'"': re.compile(rb'"([^\0\r\n]*)"[\s,;)}\]]*\Z'),
}
_PROSE: Final = 256  # bytes of a word in a sentence in which a digit is looked for
_DIGIT_IN_WORD: Final = re.compile(rb"['\"]?[^\s\0\"'`;&<>0-9]*[0-9]")
_BLOCK: Final = re.compile(rb"[|>][1-9+-]{0,2}[ \t]{0,16}\r?\n")  # a YAML block scalar begins
_LINE: Final = re.compile(rb"([ ]*)([^\0\r\n]*)(?:\r?\n)?")


def find_assignments(view: View, names: Names = TELLING, *, quoted: bool = False) -> Iterator[Finding]:
    """Yield the values of names that look secret.

    Args:
        view: the text.
        names: what the names are.
        quoted: names may be in double quotes, of JSON that is not found as such: in a URL.
    """
    at = 0
    candidate = names.quoted if quoted else names.assignment
    while match := candidate.search(view.lowered, at):
        at = match.end()
        start = _name_start(view.lowered, match.start())
        end = match.start(1) if match[3] is None else match.start(3)
        name = view.text[start:end].decode("utf-8", "replace")
        if names.tells(name) and not beside_placeholder(view.text, start, end):
            first, last = _value(view, match, start)
            for rule, stretch in _secret_part(view.text, first, last, f"key.{rule_name(name.lstrip('-'))}"):
                yield in_view(view, *stretch, rule)
                at = max(at, stretch[1])


def _name_start(lowered: bytes, at: int) -> int:
    first = max(0, at - LONGEST)
    while at > first and lowered[at - 1] in _NAME:
        at -= 1
    return at


def _secret_part(text: bytes, start: int, end: int, rule: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """The part of a value that is to be hidden, if any: without the scheme of a header, before a placeholder."""
    value = text[start:end].rstrip()
    if scheme := SCHEME.match(value):
        start, rule = start + scheme.end(), credential_rule(scheme[1])
        value = value[scheme.end() :]
    stop = before_placeholder(text, start, start + len(value))
    if start < stop and not is_harmless(rule, value):
        yield rule, (start, stop)


def _value(view: View, match: re.Match[bytes], start: int) -> tuple[int, int]:
    """Where the value is that belongs to the name at ``start``; an empty stretch where there is none."""
    text, at = view.text, match.end()
    if text.startswith(b"--", start):
        return (at, at) if text.startswith(b"-", at) else _simple(text, at, _WORD)
    if match[3] is not None:
        return at, at
    before = text[max(0, start - _LINE_PREFIX) : start]
    line = before[max(before.rfind(b"\n"), before.rfind(b"\0")) + 1 :]
    if len(line) < _LINE_PREFIX and line.strip(_BULLETS).lower() in _BEFORE_VARIABLE:
        return _rest_of_line(text, at, indentation=len(line) - len(line.lstrip(b" ")))
    if match[2] == b"=":
        return _simple(text, at, _WORD)
    if match[1] or before.rstrip()[-1:] in _BEFORE_MEMBER:
        return _simple(text, at, _MEMBER)
    # In the middle of a sentence ("unexpected token: end of file") only what has a digit counts.
    beginning = PLACEHOLDER.sub(b"", text[at : at + _PROSE])
    return _simple(text, at, _WORD) if _DIGIT_IN_WORD.match(beginning) else (at, at)


def _simple(text: bytes, at: int, pattern: re.Pattern[bytes]) -> tuple[int, int]:
    """A value in quotes, or as far as the pattern goes."""
    quoted = _QUOTED.get(text[at : at + 1])
    found = quoted.match(text, at) if quoted else pattern.match(text, at)
    return found.span(1 if quoted else 0) if found else (at, at)


def _rest_of_line(text: bytes, at: int, *, indentation: int) -> tuple[int, int]:
    block = _BLOCK.match(text, at)
    if block:
        return _block(text, block.end(), indentation)
    found = _REST_OF_LINE.match(text, at)
    end = found.end() if found else at
    quoted = _QUOTED_LINE.get(text[at : at + 1])
    inner = quoted.match(text, at, end) if quoted else None
    return inner.span(1) if inner else (at, end)


def _block(text: bytes, at: int, indentation: int) -> tuple[int, int]:
    """The lines of a block scalar: those further to the right than its key."""
    first = last = at
    while line := _LINE.match(text, at):
        if line[2] and len(line[1]) <= indentation:
            break
        if line[2]:
            first = line.start(2) if first == last else first
            last = line.end(2)
        if line.end() == at:
            break
        at = line.end()
    return first, last
