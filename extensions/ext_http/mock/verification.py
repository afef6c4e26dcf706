"""Checks of the requests that a mock received: count, order and content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_sdk.expect import Check
from ext_sdk.expect.check import failures

from .routing import Part, RequestExpectation, judge

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ext_http.response.check_context import CheckContext

    from .journal import Call, Journal
    from .routing import Judged, Route


MOST_SHOWN = 5  # calls, in the text of a failure
Count = Annotated[int, Meta(ge=0)]


class CallExpectation(RequestExpectation):
    """Which calls are counted, and how many there must be: at least one where no number is given."""

    route: Annotated[Part | UnsetType, Meta(description="Name of the route that took it; or its method and path")] = (
        UNSET
    )
    exactly: Count | UnsetType = UNSET
    at_least: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    at_most: Count | UnsetType = UNSET
    never: Annotated[bool, Meta(description="The same as exactly: 0")] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        counts = [name for name in ("exactly", "at_least", "at_most") if getattr(self, name) is not UNSET]
        if not counts and not self.never and not self.given() and self.route is UNSET:
            raise ValueError(
                "this checks nothing; give at least one of route, method, path, pathMatches, query, headers, body, "
                "exactly, atLeast, atMost, never"
            )
        if (self.never or "exactly" in counts) and len(counts) + self.never > 1:
            raise ValueError("exactly and never stand alone; atLeast and atMost go together")
        least, most = self.bounds()
        if most is not None and least > most:
            raise ValueError(f"expected atLeast not over atMost, found {least} and {most}")

    def bounds(self) -> tuple[int, int | None]:
        """The least and the most calls; None: as many as there are."""
        if self.never:
            return 0, 0
        if isinstance(self.exactly, int):
            return self.exactly, self.exactly
        most = self.at_most if isinstance(self.at_most, int) else None
        return self.at_least if isinstance(self.at_least, int) else int(most is None), most

    def wanted(self) -> tuple[str, str]:
        """How many, in words that follow "expected"."""
        least, most = self.bounds()
        if least == most:
            return ("exactly", str(most)) if most else ("none", "")
        if most is None:
            return "at least", str(least)
        return ("at most", str(most)) if not least else ("between", f"{least} and {most}")

    @property
    def label(self) -> str:
        """Which calls, for messages."""
        names = [f"route {self.route}"] if isinstance(self.route, str) else []
        if self.method is not UNSET or self.path is not UNSET or self.path_matches is not UNSET:
            names.append(self.described())
        others = [name for name in self.given() if name in {"query", "headers", "body"}]
        names += [f"this {' and '.join(others)}"] if others else []
        return " with ".join(names) or "any kind"


class Verification:
    """Calls, held against what is expected of them; what was found of a call is not looked for again.

    Args:
        expectations: one after the other.
        routes: of the mock.
        journal: of the mock.
        means: what checks are made with.
    """

    def __init__(
        self, expectations: Sequence[CallExpectation], routes: Sequence[Route], journal: Journal, means: CheckContext
    ) -> None:
        self._expectations = expectations
        self._routes = {route.label: route for route in routes}
        self._journal = journal
        self._means = means
        self._judged: dict[tuple[int, int], Judged] = {}
        self._calls: Sequence[Call] = ()
        self._fitting: list[list[Call]] = []

    def look(self, *, in_order: bool) -> list[Check]:
        """Look at the calls so far. Raises what `judge` does."""
        self._calls = self._journal.calls
        self._fitting = [
            [call for call in self._calls if self._fits(index, call)] for index in range(len(self._expectations))
        ]
        checks = [self._count(index) for index in range(len(self._expectations))]
        if in_order:
            checks.append(self._order())
        if not self._journal.whole:
            found = f"{self._journal.count:,} calls, of which the first {len(self._calls):,} were kept"
            found += "; raise `limits.calls` of mock-start, or verify and start the mock again before so many"
            checks.append(Check.failed("to be kept whole", found, where="journal"))
        return checks

    @property
    def hopeless(self) -> bool:
        """Whether there are already more calls than there may be, so that waiting does not help."""
        mosts = [one.bounds()[1] for one in self._expectations]
        return any(most is not None and len(found) > most for most, found in zip(mosts, self._fitting, strict=True))

    @property
    def absent(self) -> list[str]:
        """Calls that may be none, and were: what holds without a single call may not be what was meant."""
        pairs = zip(self._expectations, self._fitting, strict=True)
        return [one.label for one, found in pairs if not found and one.bounds()[0] == 0 != one.bounds()[1]]

    def _judge(self, index: int, call: Call) -> Judged:
        key = (index, call.number)
        if key not in self._judged:
            expectation = self._expectations[index]
            judged = judge(expectation, call.request, self._means)
            if isinstance(expectation.route, str) and call.route != expectation.route:
                judged.checks = [*self._refusal(expectation.route, call), *judged.checks]
            self._judged[key] = judged
        return self._judged[key]

    def _refusal(self, route: str, call: Call) -> list[Check]:
        """Return the checks that show why a route did not take a call, one of which at least failed."""
        try:
            checks = judge(self._routes[route], call.request, self._means).checks
        except ext_sdk.OperationFailed as error:
            return [Check.failed("to be checked", f"an error: {error.error}", where="route")]
        failed = [check for check in checks if not check.ok]
        return failed or [Check.failed(f"to be {route}", f"{call.route}, which stands before it", where="route")]

    def _fits(self, index: int, call: Call) -> bool:
        return self._judge(index, call).ok

    def _count(self, index: int) -> Check:
        expectation, found = self._expectations[index], self._fitting[index]
        least, most = expectation.bounds()
        ok = least <= len(found) and (most is None or len(found) <= most)
        text = "" if ok else f"{len(found)}{self._shown(index)}"
        return Check(ok, *expectation.wanted(), text, where=f"calls of {expectation.label}")

    def _shown(self, index: int) -> str:
        """Return the calls that match if there are too many, else the nearest of the others with their differences."""
        found = self._fitting[index]
        most = self._expectations[index].bounds()[1]
        if most is not None and len(found) > most:
            return f":{listed(map(self._journal.paragraph, found[:MOST_SHOWN]), len(found))}"
        others = [call for call in self._calls if not self._fits(index, call)]
        nearest = sorted(others, key=lambda call: self._judge(index, call).distance)[:MOST_SHOWN]
        if not nearest:
            return "" if self._calls else ": it was not asked at all"
        told = (self._journal.paragraph(call, self._differences(index, call)) for call in nearest)
        return f"; the nearest:{listed(told, len(others))}"

    def _differences(self, index: int, call: Call) -> list[str]:
        return failures(list({str(check): check for check in self._judge(index, call).checks}.values()))

    def _order(self) -> Check:
        """Whether the calls that are expected come one after the other; others may come between."""
        last = 0
        for index, expectation in enumerate(self._expectations):
            least, _ = expectation.bounds()
            for _ in range(least):
                later = next((call for call in self._fitting[index] if call.number > last), None)
                if later is None:
                    found = f"no {expectation.label} after #{last}: {self._sequence()}"
                    return Check(False, "to come in this order", "", found, where="calls")  # noqa: FBT003
                last = later.number
        return Check(ok=True, what="to come in this order", where="calls")

    def _sequence(self) -> str:
        """What came, by number, under the names of what was expected."""
        named = {
            call.number: expectation.label
            for expectation, found in zip(self._expectations, self._fitting, strict=True)
            for call in found
        }
        told = [f"#{number} {label}" for number, label in sorted(named.items())]
        return ", ".join(told[:10]) + _more(len(told) - 10) if told else "none of them came"


def listed(paragraphs: Iterable[str], count: int) -> str:
    """Return paragraphs for a failure's text, on lines of their own.

    Args:
        paragraphs: of the calls that are shown.
        count: of all calls that could be shown.
    """
    lines = list(paragraphs)
    more = count - len(lines)
    return "".join(f"\n{line}" for line in [*lines, *([f"  and {more} more"] if more > 0 else [])])


def _more(number: int) -> str:
    return f", and {number} more" if number > 0 else ""
