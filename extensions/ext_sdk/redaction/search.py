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
    from collections.abc import Iterable

    from ext_sdk.redaction.finding import Finding
    from ext_sdk.redaction.placeholder import Numbers
    from ext_sdk.redaction.view import View

_JSON_BEGINS: Final = b'{["-0123456789'
_JSON_ENDS: Final = b'}]"0123456789'
# A value of this length that a rule found is remembered, and found where it is repeated without a telling key.
_SHORTEST_LEARNED, _LONGEST_LEARNED = 16, 4096  # bytes


class Search:
    """What is secret in one message.

    Attributes:
        learned: values that rules found and that should be known in later messages too.
    """

    __slots__ = ("_findings", "_message", "learned")

    def __init__(
        self, message: bytes, known: tuple[Secret, ...], *, rules: bool
    ) -> None:
        self._message = message
        self.learned: tuple[Secret, ...] = ()
        self._findings = self._find(known, json=_is_json(message), rules=rules)

    def redacted(self, numbers: Numbers) -> bytes:
        """The message with a placeholder for each finding."""
        protected = _placeholders(self._message, numbers)
        pieces: list[bytes] = []
        copied = 0
        for each in without_overlaps(self._message, self._findings, protected):
            placeholder = numbers.placeholder(each.rule, each.value)
            pieces += (
                self._message[copied : each.start],
                each.quote,
                placeholder,
                each.quote,
            )
            copied = each.end
        return b"".join((*pieces, self._message[copied:])) if pieces else self._message

    def _find(
        self, known: tuple[Secret, ...], *, json: bool, rules: bool
    ) -> list[Finding]:
        seen = view(self._message, barriers=json)
        if not rules:
            return list(find_known(seen, known, json=json))
        found = self._by_rules(seen)
        self.learned = _worth_knowing(found, known)
        return [*find_known(seen, (*known, *self.learned), json=json), *found]

    def _by_rules(self, seen: View) -> list[Finding]:
        lowered = self._message.lower()
        found = [
            *find_members(self._message, lowered),
            *find_assignments(seen),
            *find_shapes(seen),
        ]
        if b"secret" in lowered and b"kind" in lowered:
            found += find_secret_data(self._message, lowered, seen)
        return found


def _placeholders(message: bytes, numbers: Numbers) -> list[tuple[int, int]]:
    """Where earlier placeholders stand; their numbers are taken."""
    if MARK.encode() not in message:
        return []
    found = []
    for match in PLACEHOLDER.finditer(message):
        found.append(match.span())
        rule, _, number = match[0][len(MARK) : -1].decode().rpartition("#")
        numbers.reserve(rule, int(number))
    return found


def _worth_knowing(
    findings: Iterable[Finding], known: tuple[Secret, ...]
) -> tuple[Secret, ...]:
    values = {each.value for each in known}
    found: dict[bytes, Secret] = {}
    for each in findings:
        if (
            each.whole
            and each.value not in values
            and each.value not in found
            and _is_long_and_mixed(each.value)
        ):
            found[each.value] = Secret(each.rule, each.value)
    return tuple(found.values())


def _is_long_and_mixed(value: bytes) -> bool:
    """Whether a text that has this value in it has it for no other reason."""
    if not _SHORTEST_LEARNED <= len(value) <= _LONGEST_LEARNED or PLACEHOLDER.search(
        value
    ):
        return False
    digits = sum(byte in b"0123456789" for byte in value)
    return (
        digits >= 2
        and len(value.split()) == 1
        and value.upper() != value.lower()
        and value[:1] not in b"/~."
    )


def _is_json(message: bytes) -> bool:
    """Whether quotes and numbers are JSON's, so that what is written must be JSON again."""
    text = message.strip()
    if (
        text[:1] not in _JSON_BEGINS or text[-1:] not in _JSON_ENDS
    ):  # most lines on stderr
        return False
    try:
        loads(
            message.decode("utf-8", "surrogateescape"), parse_int=len, parse_float=len
        )
    except RecursionError:
        return True
    except ValueError:
        return False
    return True
