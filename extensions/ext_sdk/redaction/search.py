"""Redacting one message that may hold a secret. Importing this module imports everything that finders need."""

from __future__ import annotations

from json import loads
from typing import TYPE_CHECKING, Final

from ext_sdk.redaction.assignments import find_assignments
from ext_sdk.redaction.finding import without_overlaps
from ext_sdk.redaction.known import find_known
from ext_sdk.redaction.kubernetes import find_secret_data
from ext_sdk.redaction.members import find_members
from ext_sdk.redaction.patterns import PLACEHOLDER
from ext_sdk.redaction.placeholder import MARK
from ext_sdk.redaction.shapes import find_shapes
from ext_sdk.redaction.spelling import Secret
from ext_sdk.redaction.view import view

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_sdk.redaction.finding import Finding
    from ext_sdk.redaction.placeholder import Numbers
    from ext_sdk.redaction.view import View

_JSON_BEGINS: Final = b'{["-0123456789tfn'
_JSON_ENDS: Final = b'}]"0123456789el'
_LONGEST_PARSED: Final = 4 * 1024 * 1024  # bytes; parsed it takes thirty times as much memory
# A value of this length that a rule found is remembered, and found where it is repeated without a telling key.
_SHORTEST_LEARNED, _LONGEST_LEARNED = 16, 4096  # bytes


class Search:
    """What is secret in one message.

    Attributes:
        learned: values that rules found and that should be known in later messages too.
    """

    __slots__ = ("_findings", "_known", "_message", "_protected", "learned")

    def __init__(self, message: bytes, known: tuple[Secret, ...], *, rules: bool) -> None:
        json = _is_json(message)
        seen = view(message, barriers=json)
        self._message = message
        self._protected = _placeholders(message)
        found = list(_by_rules(message, seen)) if rules else []
        self.learned = _worth_knowing(found, known)
        self._known = (*known, *self.learned)
        self._findings = [*find_known(message, seen, self._known, json=json), *found]

    def redacted(self, numbers: Numbers) -> bytes:
        """The message with a placeholder for each finding."""
        for start, end in self._protected:
            rule, _, number = self._message[start + len(MARK) : end - 1].decode().rpartition("#")
            numbers.reserve(rule, int(number))
        pieces: list[bytes] = []
        copied = 0
        for each in without_overlaps(self._message, self._findings, self._protected):
            placeholder = numbers.placeholder(self._safe(each.rule), each.value)
            pieces += (self._message[copied : each.start], each.quote, placeholder, each.quote)
            copied = each.end
        return b"".join((*pieces, self._message[copied:])) if pieces else self._message

    def _safe(self, rule: str) -> str:
        """A rule is named after its key, and a key may have a secret in it."""
        name = rule.encode()
        return "key" if any(needle in name for each in self._known for needle in each.plain) else rule


def _by_rules(message: bytes, seen: View) -> Iterator[Finding]:
    lowered = message.lower()
    yield from find_members(message, lowered)
    yield from find_assignments(seen)
    yield from find_shapes(seen)
    if b"secret" in lowered and b"kind" in lowered:
        yield from find_secret_data(message, lowered, seen)


def _placeholders(message: bytes) -> list[tuple[int, int]]:
    """Where earlier placeholders stand."""
    return [match.span() for match in PLACEHOLDER.finditer(message)] if MARK.encode() in message else []


def _worth_knowing(findings: list[Finding], known: tuple[Secret, ...]) -> tuple[Secret, ...]:
    values = {each.value for each in known}
    found = {each.value: each.rule for each in reversed(findings) if _is_long_and_mixed(each.value)}
    return tuple(Secret(rule, value) for value, rule in found.items() if value not in values)


def _is_long_and_mixed(value: bytes) -> bool:
    """Whether a text that has this value in it has it for no other reason."""
    if not _SHORTEST_LEARNED <= len(value) <= _LONGEST_LEARNED or value[:1] in b"/~.":
        return False
    digits = sum(byte in b"0123456789" for byte in value)
    return digits >= 2 and len(value.split()) == 1 and value.upper() != value.lower()


def _is_json(message: bytes) -> bool:
    """Whether quotes and numbers are JSON's, so that what is written must be JSON again."""
    text = message.strip()
    if text[:1] not in _JSON_BEGINS or text[-1:] not in _JSON_ENDS:  # most lines on stderr
        return False
    if len(text) > _LONGEST_PARSED:
        return True
    try:
        loads(message.decode("utf-8", "surrogateescape"), parse_int=len, parse_float=len)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True
