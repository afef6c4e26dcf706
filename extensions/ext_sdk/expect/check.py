"""Expectations and the results of their checks: what was expected, what was found, and the error text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from ext_sdk.args import Args
from ext_sdk.result import Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ext_sdk.result import Outputs


# Any JSON value. msgspec knows no recursive alias; what comes out of it is handled as `object`.
Json = Any


class Expectation(Args):
    """The base of expectations. A field that was not given is UNSET: `null` is a value that one may expect.

    `__post_init__` raises ValueError for an expectation that checks nothing or can't hold. The SDK answers
    it as an invalid argument, with its path, before anything runs.
    """

    def given(self, *, besides: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return the names, as users write them, of the fields that were given.

        Args:
            besides: names to leave out, because they only say how to check.
        """
        pairs = zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True)
        return tuple(name for field, name in pairs if getattr(self, field) is not UNSET and name not in besides)

    def refuse_empty(self, *, besides: tuple[str, ...] = ()) -> None:
        """Raise ValueError where nothing is checked: such an expectation would pass whatever happens."""
        if not self.given(besides=besides):
            known = [name for name in self.__struct_encode_fields__ if name not in besides]
            raise ValueError(f"this checks nothing; give at least one of {', '.join(known)}")


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
        """Return a comparison that could not even be made: no JSON, no value at a path, a pattern without end."""
        return cls(ok=False, what=what, found=found, where=where)

    def __str__(self) -> str:
        expected = f"{self.what} {self.expected}".rstrip()
        if self.ok:
            return f"{self.where}: found {expected}"
        return f"{self.where}: expected {expected}, got {self.found}"

    def __repr__(self) -> str:
        return f"Check({self.ok}, {str(self)!r})"


def passed(checks: Sequence[Check]) -> bool:
    """Return True if there are checks and all of them hold: nothing checked is nothing shown."""
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
    """Return the checks that failed, in one text: where, what was expected, what was found."""
    return "; ".join(failures(checks))


def conclude(checks: Sequence[Check], *, done: str, outputs: Outputs | None = None) -> Result:
    """Return the result of an operation that made these checks.

    Args:
        checks: all of them, in the order in which they were made.
        done: what the operation did, to stand in front of the number of checks: `checked report.json`.
        outputs: of the operation, in both cases.
    """
    message = f"{done}: {summary(checks)}"
    if passed(checks):
        return Result.ok(message, outputs=outputs)
    return Result.failed(message, error=failure_text(checks), outputs=outputs)
