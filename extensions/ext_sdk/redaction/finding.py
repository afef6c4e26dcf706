"""What a finder found: a stretch of the message that must not be written."""

from __future__ import annotations

from bisect import bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ext_sdk.redaction.view import View


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
