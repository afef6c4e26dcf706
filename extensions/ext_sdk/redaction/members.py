"""Finding secrets by the key of a JSON member, at any depth of JSON within strings within JSON.

Searched is the message itself, not its view: how many backslashes stand before a quote tells the depth at which it
was written, and with that where the value ends. A quote of depth d has 2**d - 1 backslashes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ext_sdk.redaction.finding import Finding
from ext_sdk.redaction.names import LONGEST
from ext_sdk.redaction.patterns import SCHEME, SPACE, TELLING, credential_rule, is_harmless
from ext_sdk.redaction.placeholder import MARK, rule_name
from ext_sdk.redaction.view import undone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ext_sdk.redaction.patterns import Names

_BACKSLASHES: Final = frozenset((0, 1, 3, 7))  # before a quote; nobody nests deeper
_BEFORE_NAME: Final = re.compile(rb"(\\*+\")(?:name|key)\1%b:%b\Z" % (SPACE, SPACE))
_BEFORE_VALUE: Final = re.compile(rb"(\\*+\")value\1%b:%b" % (SPACE, SPACE))
_NEXT: Final = re.compile(rb"%b,%b" % (SPACE, SPACE))
_QUOTE: Final = re.compile(rb"(?<!\\)(\\*)\"")
_LIST: Final = re.compile(rb"\[%b" % SPACE)
_WORD: Final = re.compile(rb"[a-z0-9+.-]+", re.IGNORECASE)
# A piece of text, as language models report it with its probability.
_PROBABILITY: Final = re.compile(rb"(\\*+\")(?:(?!\1).){0,256}?\1%b,%b\1(?:logprob|prob)" % (SPACE, SPACE))
_NAME_MEMBER: Final = 48  # bytes before a name in which `"name": ` is looked for


def find_members(message: bytes, lowered: bytes, names: Names = TELLING) -> Iterator[Finding]:
    """Yield the values of members whose keys look secret, or have other names.

    Strings and long numbers are, lists of strings one by one; objects are not, their own members decide. Also found
    are ``{"name": "PASSWORD", "value": …}`` and ``["--password", …]``.
    """
    at = 0
    while match := names.member.search(lowered, at):
        at = match.end()
        key, opening = _key(message, match)
        value = _value_position(lowered, match, opening) if key and names.tells(key) else -1
        if value >= 0 and not (key == "token" and _PROBABILITY.match(lowered, value)):
            for finding in _values(message, value, match[1], key, names):
                yield finding
                at = max(at, finding.end)


def _key(message: bytes, match: re.Match[bytes]) -> tuple[str, int]:
    """The key that ends with this match, and where its opening quote begins; "" where it is no key."""
    backslashes = len(match[1]) - 1
    quote = message.rfind(b'"', max(0, match.start() - 6 * LONGEST), match.start())
    opening = quote - backslashes
    if quote < 0 or backslashes not in _BACKSLASHES or _run_before(message, quote) != backslashes:
        return "", -1
    key = undone(message[quote + 1 : match.start(1)]).decode("utf-8", "replace")
    return "" if MARK in key else key, opening


def _run_before(message: bytes, quote: int) -> int:
    start = max(0, quote - max(_BACKSLASHES) - 1)
    return quote - start - len(message[start:quote].rstrip(b"\\"))


def _value_position(lowered: bytes, match: re.Match[bytes], opening: int) -> int:
    """Where the value begins that belongs to the key, or -1."""
    after = match.end()
    if match[2] == b":" or lowered.startswith(b"-", opening + len(match[1])):
        return after
    if _BEFORE_NAME.search(lowered, max(0, opening - _NAME_MEMBER), opening):
        value = _BEFORE_VALUE.match(lowered, after)
        return value.end() if value else -1
    return -1


def _values(message: bytes, at: int, quote: bytes, key: str, names: Names) -> Iterator[Finding]:
    rule = f"key.{rule_name(key.lstrip('-'))}"
    if not message.startswith(b"[", at):
        yield from _value(message, at, quote, rule, names)[1]
        return
    following: re.Match[bytes] | None = _LIST.match(message, at)
    while following:
        end, found = _value(message, following.end(), quote, rule, names)
        yield from found
        following = _NEXT.match(message, end)


def _value(message: bytes, at: int, quote: bytes, rule: str, names: Names) -> tuple[int, Iterable[Finding]]:
    """Where a string, number or word ends, and what is secret in it."""
    if message.startswith(quote, at):
        start = at + len(quote)
        end = value_end(message, start, len(quote) - 1)
        return end + len(quote), _string(message, start, end, rule)
    word = _WORD.match(message, at)
    if word and names.number.fullmatch(word[0]):
        return word.end(), [Finding(at, word.end(), rule, word[0], quote=quote)]
    return word.end() if word else len(message), ()


def _string(message: bytes, start: int, end: int, rule: str) -> Iterator[Finding]:
    value = undone(message[start:end])
    if scheme := SCHEME.match(value):
        # The scheme is spelt without escapes, or it is none.
        plain = message.startswith(scheme[0], start)
        yield Finding(start + len(scheme[0]) * plain, end, credential_rule(scheme[1]), value[scheme.end() :])
    elif not is_harmless(rule, value):
        yield Finding(start, end, rule, value)


def value_end(message: bytes, start: int, backslashes: int) -> int:
    """Where a string ends whose quotes have that many backslashes; a broken one ends with its line."""
    for match in _QUOTE.finditer(message, start):
        run = len(match[1])
        if run < backslashes:
            return match.start()  # the end of a string around it
        if run % (2 * backslashes + 2) == backslashes:
            return match.end() - 1 - backslashes
    end = message.find(b"\n", start)
    return end if end >= 0 else len(message)
