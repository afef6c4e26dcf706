"""Parts of a message that are secret, and the placeholders that replace them."""

from __future__ import annotations

from bisect import bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Final, Protocol

    from .escapes import View
else:
    Protocol = object


class Finding:
    """Span of a message to be replaced.

    Attributes:
        start: offset in the message.
        end: offset after the span.
        rule: name of the rule, for the placeholder.
        value: the secret with its escapes decoded; equal values get equal numbers.
        quote: quotes for the placeholder, needed where a string replaces a number or the like.
        replacement: text to write instead of a placeholder; None for a placeholder.
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
        """Return a copy with another span and value."""
        copy = Finding(start, end, self.rule, value, quote=self.quote)
        copy.replacement = self.replacement
        return copy


class CustomRules(Protocol):
    """Rules and exceptions of users."""

    def may_find(self, lowered: str) -> bool:
        """Return True if a rule may find something in a text in lower case, as Latin-1."""

    def find(self, message: bytes, seen: View, *, json: bool) -> Iterable[Finding]:
        """Yield the findings of the rules in a message; `json`: it is valid JSON."""

    def spares(self, finding: Finding) -> bool:
        """Return True if a finding is not to be replaced."""

    def spared(self, message: bytes, *, json: bool) -> list[tuple[int, int]]:
        """Return the parts of a message that stay as they are."""


def in_view(view: View, start: int, end: int, rule: str) -> Finding:
    """Return a finding at ``view.text[start:end]``."""
    return Finding(*view.origin(start, end), rule, view.text[start:end])


def below(view: View, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings in the text of a view as findings in the message under it."""
    for finding in findings:
        yield finding.at(*view.origin(finding.start, finding.end), finding.value)


def without_overlaps(
    message: bytes, findings: Iterable[Finding], protected: list[tuple[int, int]]
) -> Iterator[Finding]:
    """Yield the findings in order, cut so that none overlaps another or a protected span.

    Of findings with the same start the longest counts, and of equally long ones the first given.
    """
    at = 0
    for finding in sorted(findings, key=lambda finding: (finding.start, -finding.end)):
        for start, end in _gaps(protected, max(finding.start, at), finding.end):
            if (start, end) == (finding.start, finding.end):
                yield finding
            else:
                yield finding.at(start, end, message[start:end])
        at = max(at, finding.end)


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
    """Return a name in the form that placeholders have: any other character becomes ``_``."""
    return "".join(each if each in _SAFE else "_" for each in text[:_LONGEST_RULE]) or "secret"


class Numbers:
    """Number of each value within its rule. Keeps no value, only its hash in this process."""

    __slots__ = ("_counts", "_numbers")

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, int], int] = {}
        self._counts: dict[str, int] = {}

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that found something, sorted."""
        return tuple(sorted({rule for rule, _ in self._numbers}))

    def placeholder(self, rule: str, value: bytes) -> bytes:
        """Return the placeholder of a value: always the same for the same value."""
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
        """Skip the numbers up to this one: a placeholder of the input has it."""
        self._counts[rule] = max(number, self._counts.get(rule, 0))
