"""Search for secrets by their names: members of JSON, lines of YAML, headers, variables, query parameters.

The data of a Kubernetes Secret is secret whatever its keys are called: in a message with an object of that kind, all
members of every ``data`` and ``stringData`` are redacted. In a list of mixed kinds that is more than needed, and never
less.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .escapes import undone
from .patterns import (
    PLACEHOLDER,
    SCHEME,
    SPACE,
    TELLING,
    before_placeholder,
    beside_placeholder,
    credential_rule,
    is_harmless,
)
from .secret_names import LONGEST
from .spans import MARK, Finding, in_view, rule_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .escapes import View
    from .patterns import Names

_BACKSLASHES: Final = frozenset((0, 1, 3, 7))  # before a quote: up to three levels of nesting
_BEFORE_NAME: Final = re.compile(rb"(\\*+\")(?:name|key)\1%b:%b\Z" % (SPACE, SPACE))
_BEFORE_VALUE: Final = re.compile(rb"(\\*+\")value\1%b:%b" % (SPACE, SPACE))
_NEXT: Final = re.compile(rb"%b,%b" % (SPACE, SPACE))
_QUOTE: Final = re.compile(rb"(?<!\\)(\\*)\"")
_LIST: Final = re.compile(rb"\[%b" % SPACE)
_MEMBER_WORD: Final = re.compile(rb"[a-z0-9+.-]+", re.IGNORECASE)

# A token of text, as language models report it with its probability.
_PROBABILITY: Final = re.compile(rb"(\\*+\")(?:(?!\1).){0,256}?\1%b,%b\1(?:logprob|prob)" % (SPACE, SPACE))
_NAME_MEMBER: Final = 48  # bytes before a name that are searched for `"name": `


def find_members(message: bytes, lowered: bytes, names: Names = TELLING) -> Iterator[Finding]:
    """Yield the values of members with secret names, or with other given ones.

    Strings and long numbers are findings, those in lists one by one; the members of objects decide for themselves. Also
    found are ``{"name": "PASSWORD", "value": …}`` and ``["--password", …]``.
    """
    at = 0
    while match := names.member.search(lowered, at):
        at = match.end()
        key, opening = _key(message, match)
        value = _value_position(lowered, match, opening) if key and names.tells(key) else -1
        if value >= 0 and not (key == "token" and _PROBABILITY.match(lowered, value)):
            rule = f"key.{rule_name(key.lstrip('-'))}"
            following = _LIST.match(message, value)  # the values of a list are findings one by one
            while True:
                value, found = _member_value(message, following.end() if following else value, match[1], rule, names)
                for finding in found:
                    yield finding
                    at = max(at, finding.end)
                following = _NEXT.match(message, value) if following else None
                if not following:
                    break


def _key(message: bytes, match: re.Match[bytes]) -> tuple[str, int]:
    """Return the key that ends with this match, and the position of its opening quote; "" if it is not a key."""
    backslashes = len(match[1]) - 1
    quote = message.rfind(b'"', max(0, match.start() - 6 * LONGEST), match.start())
    opening = quote - backslashes
    if quote < 0 or backslashes not in _BACKSLASHES:
        return "", -1
    start = max(0, quote - max(_BACKSLASHES) - 1)
    if quote - start - len(message[start:quote].rstrip(b"\\")) != backslashes:
        return "", -1
    key = undone(message[quote + 1 : match.start(1)]).decode("utf-8", "replace")
    return "" if MARK in key else key, opening


def _value_position(lowered: bytes, match: re.Match[bytes], opening: int) -> int:
    """Return the position of the value that belongs to the key, or -1."""
    after = match.end()
    if match[2] == b":" or lowered.startswith(b"-", opening + len(match[1])):
        return after
    if _BEFORE_NAME.search(lowered, max(0, opening - _NAME_MEMBER), opening):
        value = _BEFORE_VALUE.match(lowered, after)
        return value.end() if value else -1
    return -1


def _member_value(message: bytes, at: int, quote: bytes, rule: str, names: Names) -> tuple[int, Iterable[Finding]]:
    """Return the end of a string, number or word, and the secrets in it."""
    if message.startswith(quote, at):
        start = at + len(quote)
        end = value_end(message, start, len(quote) - 1)
        value = undone(message[start:end])
        if scheme := SCHEME.match(value):
            start += len(scheme[0]) * message.startswith(scheme[0], start)  # unless an escape is in the scheme
            rule, value = credential_rule(scheme[1]), value[scheme.end() :]
        elif is_harmless(rule, value):
            return end + len(quote), ()
        return end + len(quote), [Finding(start, end, rule, value)]
    word = _MEMBER_WORD.match(message, at)
    if word and names.number.fullmatch(word[0]):
        return word.end(), [Finding(at, word.end(), rule, word[0], quote=quote)]
    return word.end() if word else len(message), ()


def value_end(message: bytes, start: int, backslashes: int) -> int:
    """Return the end of a string whose quotes have that many backslashes; a broken one ends with its line."""
    for match in _QUOTE.finditer(message, start):
        run = len(match[1])
        if run < backslashes:
            return match.start()  # the end of an enclosing string
        if run % (2 * backslashes + 2) == backslashes:
            return match.end() - 1 - backslashes
    end = message.find(b"\n", start)
    return end if end >= 0 else len(message)


_NAME: Final = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_.-")
_BULLETS: Final = b" \t>*<-#+|'"
_LINE_PREFIX: Final = 32  # bytes before a name that are searched for the start of its line
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

_PROSE: Final = 256  # bytes of a word in a sentence that are searched for a digit
_DIGIT_IN_WORD: Final = re.compile(rb"['\"]?[^\s\0\"'`;&<>0-9]*[0-9]")
_BLOCK: Final = re.compile(rb"[|>][1-9+-]{0,2}[ \t]{0,16}\r?\n")  # a YAML block scalar begins
_LINE: Final = re.compile(rb"([ ]*)([^\0\r\n]*)(?:\r?\n)?")


def find_assignments(view: View, names: Names = TELLING, *, quoted: bool = False) -> Iterator[Finding]:
    """Yield the values of names that look secret.

    Args:
        names: the names that count.
        quoted: names may be in double quotes, of JSON that is not found as such: in a URL.
    """
    at = 0
    candidate = names.quoted if quoted else names.assignment
    while match := candidate.search(view.lowered, at):
        at = match.end()
        start = match.start()
        first = max(0, start - LONGEST)
        while start > first and view.lowered[start - 1] in _NAME:
            start -= 1
        end = match.start(1) if match[3] is None else match.start(3)
        name = view.text[start:end].decode("utf-8", "replace")
        if names.tells(name) and not beside_placeholder(view.text, start, end):
            first, last = _value(view, match, start)
            for rule, stretch in _secret_part(view.text, first, last, f"key.{rule_name(name.lstrip('-'))}"):
                yield in_view(view, *stretch, rule)
                at = max(at, stretch[1])


def _secret_part(text: bytes, start: int, end: int, rule: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the part of a value to be redacted: without the scheme of a header, and up to the first placeholder."""
    value = text[start:end].rstrip()
    if scheme := SCHEME.match(value):
        start, rule = start + scheme.end(), credential_rule(scheme[1])
        value = value[scheme.end() :]
    stop = before_placeholder(text, start, start + len(value))
    if start < stop and not is_harmless(rule, value):
        yield rule, (start, stop)


def _value(view: View, match: re.Match[bytes], start: int) -> tuple[int, int]:
    """Return the span of the value that belongs to the name at ``start``; an empty span if there is none."""
    text, at = view.text, match.end()
    if text.startswith(b"--", start):
        return (at, at) if text.startswith(b"-", at) else _simple(text, at, _WORD)
    if match[3] is not None:
        return at, at
    before = text[max(0, start - _LINE_PREFIX) : start]
    line = before[max(before.rfind(b"\n"), before.rfind(b"\0")) + 1 :]
    if len(line) < _LINE_PREFIX and line.strip(_BULLETS).lower() in _BEFORE_VARIABLE:
        if block := _BLOCK.match(text, at):
            return _block(text, block.end(), len(line) - len(line.lstrip(b" ")))
        found = _REST_OF_LINE.match(text, at)
        end = found.end() if found else at
        quoted = _QUOTED_LINE.get(text[at : at + 1])
        inner = quoted.match(text, at, end) if quoted else None
        return inner.span(1) if inner else (at, end)
    if match[2] == b"=":
        return _simple(text, at, _WORD)
    if match[1] or before.rstrip()[-1:] in _BEFORE_MEMBER:
        return _simple(text, at, _MEMBER)
    # In the middle of a sentence ("unexpected token: end of file") only what has a digit counts.
    beginning = PLACEHOLDER.sub(b"", text[at : at + _PROSE])
    return _simple(text, at, _WORD) if _DIGIT_IN_WORD.match(beginning) else (at, at)


def _simple(text: bytes, at: int, pattern: re.Pattern[bytes]) -> tuple[int, int]:
    """Return the span of a value in quotes, or of the match of the pattern."""
    quoted = _QUOTED.get(text[at : at + 1])
    found = quoted.match(text, at) if quoted else pattern.match(text, at)
    return found.span(1 if quoted else 0) if found else (at, at)


def _block(text: bytes, at: int, indentation: int) -> tuple[int, int]:
    """Return the span of the lines of a block scalar: those that are indented deeper than its key."""
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


_SPACES: Final = rb"(?:\s|\\++[nrt]){0,64}"
_KIND: Final = re.compile(rb"(?<!\\)(\\*+\")kind\1%b:%b\1secret(?:list)?\1" % (_SPACES, _SPACES))
_DATA: Final = re.compile(rb"(?<!\\)(\\*+\")(?:string)?data\1%b:%b\{%b" % (_SPACES, _SPACES, _SPACES))
_BETWEEN: Final = re.compile(rb"%b:%b" % (_SPACES, _SPACES))
_NEXT_ENTRY: Final = re.compile(rb"%b,%b" % (_SPACES, _SPACES))

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
            yield Finding(start, end, "kubernetes-secret", undone(message[start:end]))
        following = _NEXT_ENTRY.match(message, end + width)
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
            yield in_view(view, end - len(value), end, "kubernetes-secret")
