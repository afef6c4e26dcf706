"""What stands in the place of a secret: ``[redacted:RULE#N]``, without a quote or a backslash in it.

N counts the different values that one rule found, in the order in which they were first seen. It says which values
are the same, and nothing about them: there is no hash to guess from.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

MARK: Final = "[redacted:"
_SAFE: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
_LONGEST_RULE: Final = 96  # characters


def rule_name(text: str) -> str:
    """A name in the form that placeholders carry: any other character becomes ``_``."""
    return "".join(each if each in _SAFE else "_" for each in text[:_LONGEST_RULE]) or "secret"


class Numbers:
    """Which number each value has within its rule. Keeps no value, only its hash in this process."""

    __slots__ = ("_counts", "_numbers")

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, int], int] = {}
        self._counts: dict[str, int] = {}

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that found something, sorted."""
        return tuple(sorted({rule for rule, _ in self._numbers}))

    def placeholder(self, rule: str, value: bytes) -> bytes:
        """What stands for this value from now on."""
        key = (rule, hash(value))
        number = self._numbers.get(key)
        if number is None:
            number = self._counts[rule] = self._counts.get(rule, 0) + 1
            self._numbers[key] = number
        return f"{MARK}{rule}#{number}]".encode()

    def replaced(self, rule: str) -> None:
        """Note that a rule replaced something by a text of its own."""
        self._numbers.setdefault((rule, 0), 0)

    def reserve(self, rule: str, number: int) -> None:
        """Leave out the numbers up to this one: a placeholder that came in from outside has it."""
        self._counts[rule] = max(number, self._counts.get(rule, 0))


def same_but_for_numbers(one: str, other: str) -> bool:
    """Whether two redacted texts are the same request.

    Placeholders stand for each other if they do so throughout: where one text has the same value twice, so has the
    other. Their numbers may differ, because these depend on what was seen before; so may their rules, because a value
    that was known by its variable on one machine is recognised by its key on another.
    """
    if one == other:
        return True
    if MARK not in one or MARK not in other:
        return False
    from ext_sdk.redaction.patterns import PLACEHOLDER_TEXT

    here, there = PLACEHOLDER_TEXT.split(one), PLACEHOLDER_TEXT.split(other)
    if here[::2] != there[::2]:
        return False
    pairs = set(zip(here[1::2], there[1::2], strict=True))
    return len({each for each, _ in pairs}) == len({each for _, each in pairs}) == len(pairs)
