"""Parts of a message that are secret, and the placeholders that replace them."""

from __future__ import annotations

from bisect import bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Final

    from .escapes import View


class Finding:
    """One stretch to be replaced.

    Attributes:
        start: offset in the message.
        end: offset behind it.
        rule: the name for the placeholder.
        value: the secret with its escapes undone; the same value gets the same number.
        quote: what to put around the placeholder, because a number or the like is replaced by a string.
        replacement: what to write instead of a placeholder; None for a placeholder.
    """

    __slots__ = ("end", "quote", "replacement", "rule", "start", "value")

    def __init__(self, start: int, end: int, rule: str, value: bytes, *, quote: bytes = b"") -> None:
        self.start = start
        self.end = end
        self.rule = rule
        self.value = value
        self.quote = quote
        self.replacement: bytes | None = None

    def at(self, start: int, end: int, value: bytes) -> Finding:
        """Return the same finding with another stretch and value."""
        found = Finding(start, end, self.rule, value, quote=self.quote)
        found.replacement = self.replacement
        return found


def in_view(view: View, start: int, end: int, rule: str) -> Finding:
    """A finding at ``view.text[start:end]``."""
    return Finding(*view.origin(start, end), rule, view.text[start:end])


def below(view: View, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings in the text of a view as findings in the message that the view is of."""
    for each in findings:
        yield each.at(*view.origin(each.start, each.end), each.value)


def without_overlaps(
    message: bytes, findings: Iterable[Finding], protected: list[tuple[int, int]]
) -> Iterator[Finding]:
    """The findings in order, cut so that none touches another or a protected stretch.

    Where several begin together the longest counts, and of equally long ones the first given.
    """
    at = 0
    for each in sorted(findings, key=lambda each: (each.start, -each.end)):
        for start, end in _gaps(protected, max(each.start, at), each.end):
            if (start, end) == (each.start, each.end):
                yield each
            else:
                yield each.at(start, end, message[start:end])
        at = max(at, each.end)


def _gaps(protected: list[tuple[int, int]], start: int, end: int) -> Iterator[tuple[int, int]]:
    index = bisect_right(protected, start, key=lambda stretch: stretch[1])
    while start < end and index < len(protected) and protected[index][0] < end:
        if start < protected[index][0]:
            yield start, protected[index][0]
        start = protected[index][1]
        index += 1
    if start < end:
        yield start, end


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
