"""The outcome of one comparison, and the words for many."""

from __future__ import annotations

from ext_sdk.result import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ext_sdk.result import Outputs

MOST_FAILURES_TOLD = 5  # the error text is read on a terminal


class Check:
    """One comparison that was made.

    Attributes:
        ok: whether it holds.
        where: what was looked at: `stdout`, `exitCode`, `report.json at $.items[0]`.
        what: the comparison, as it goes on after "expected": `to contain`.
        expected: what was expected, quoted; "" where `what` says it all.
        found: what was found, quoted and cut.
    """

    __slots__ = ("expected", "found", "ok", "what", "where")

    def __init__(self, ok: bool, what: str, expected: str = "", found: str = "", *, where: str) -> None:
        self.ok = ok
        self.what = what
        self.expected = expected
        self.found = found
        self.where = where

    @classmethod
    def failed(cls, what: str, found: str, *, where: str) -> Check:
        """A comparison that could not even be made: no JSON, no value at a path, a pattern without end."""
        return cls(ok=False, what=what, found=found, where=where)

    def __str__(self) -> str:
        expected = f"{self.what} {self.expected}".rstrip()
        if self.ok:
            return f"{self.where}: found {expected}"
        return f"{self.where}: expected {expected}, got {self.found}"

    def __repr__(self) -> str:
        return f"Check({self.ok}, {str(self)!r})"


def passed(checks: Sequence[Check]) -> bool:
    """Whether there are checks and all of them hold: nothing checked is nothing shown."""
    return bool(checks) and all(check.ok for check in checks)


def summary(checks: Sequence[Check]) -> str:
    """How many checks were made and how many failed: `3 checks passed`, `1 of 3 checks failed`."""
    failed = sum(not check.ok for check in checks)
    noun = "check" if len(checks) == 1 else "checks"
    return f"{failed} of {len(checks)} {noun} failed" if failed else f"{len(checks)} {noun} passed"


def failures(checks: Sequence[Check]) -> list[str]:
    """Return the text of each failed check: where, what was expected, what was found; long lists are cut."""
    failed = [str(check) for check in checks if not check.ok]
    more = len(failed) - MOST_FAILURES_TOLD
    return failed[:MOST_FAILURES_TOLD] + ([f"and {more} more"] if more > 0 else [])


def failure_text(checks: Sequence[Check]) -> str:
    """The checks that failed, in one text: where, what was expected, what was found."""
    return "; ".join(failures(checks))


def conclude(checks: Sequence[Check], *, done: str, outputs: Outputs | None = None) -> Result:
    """The result of an operation that made these checks.

    Args:
        checks: all of them, in the order in which they were made.
        done: what the operation did, to stand in front of the number of checks: `checked report.json`.
        outputs: of the operation, in both cases.
    """
    message = f"{done}: {summary(checks)}"
    if passed(checks):
        return Result.ok(message, outputs=outputs)
    return Result.failed(message, error=failure_text(checks), outputs=outputs)
