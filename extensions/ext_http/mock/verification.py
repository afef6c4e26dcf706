"""Checks of the requests that a mock received: count, order and content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_http.client.response import values_of
from ext_sdk.capture import CaptureArgs, NotFound, capture_all, find_in_text
from ext_sdk.core.text import counted
from ext_sdk.expect import Check
from ext_sdk.expect.check import failures

from .routing import Part, RequestExpectation, evaluate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ext_http.response.header_check import CheckContext
    from ext_sdk import Secrets
    from ext_sdk.capture import Captured

    from .request import Call, Journal
    from .routing import Evaluation, Route


MAX_SHOWN = 5  # calls in an error
MAX_SEQUENCE = 10  # calls in the description of an order
Count = Annotated[int, Meta(ge=0)]


class RequestCapture(CaptureArgs):
    """Part of a received request to capture as an output."""

    from_: Annotated[
        Literal["body", "header", "query", "path", "method", "url"],
        Meta(description="Part of the request to search; url is path and query as received"),
    ] = field(default="body", name="from")
    header: Annotated[Part | UnsetType, Meta(description="Name of the header")] = UNSET
    query: Annotated[Part | UnsetType, Meta(description="Name of the query parameter")] = UNSET
    path: Annotated[
        Part | UnsetType, Meta(description="Name of a path parameter of the route; the complete path by default")
    ] = UNSET
    call: Annotated[
        int, Meta(ge=-1_000_000, le=1_000_000, description="Which of the requests: 1 is the first, -1 the last")
    ] = -1

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("header", self.header), ("query", self.query)):
            if (value is UNSET) == (self.from_ == name):
                raise ValueError(f"{name} and `from: {name}` require each other")
        if self.path is not UNSET and self.from_ != "path":
            raise ValueError("path requires `from: path`")
        if self.json is not UNSET and (self.from_ != "body" or self.regex is not UNSET):
            raise ValueError("json applies to the body and excludes regex")
        if not self.call:
            raise ValueError("call: expected 1 for the first request, or -1 for the last, found 0")


class CallExpectation(RequestExpectation):
    """Requests to count, and their expected number: at least one if no number is given."""

    route: Annotated[Part | UnsetType, Meta(description="Name of the route that matched; or its method and path")] = (
        UNSET
    )
    exactly: Annotated[Count | UnsetType, Meta(description="Exact number of requests")] = UNSET
    at_least: Annotated[Annotated[int, Meta(ge=1)] | UnsetType, Meta(description="Minimum number of requests")] = UNSET
    at_most: Annotated[Count | UnsetType, Meta(description="Maximum number of requests")] = UNSET
    never: Annotated[bool, Meta(description="Same as exactly: 0")] = False
    capture: Annotated[
        dict[str, RequestCapture], Meta(description="Parts of a matching request to capture as outputs, by output name")
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        counts = [name for name in ("exactly", "at_least", "at_most") if getattr(self, name) is not UNSET]
        if not counts and not self.never and not self.given() and self.route is UNSET:
            raise ValueError(
                "this checks nothing; give at least one of route, method, path, pathMatches, query, headers, form, "
                "body, exactly, atLeast, atMost, never"
            )
        if (self.never or "exactly" in counts) and len(counts) + self.never > 1:
            raise ValueError("exactly and never exclude other numbers; atLeast and atMost may be combined")
        least, most = self.bounds()
        if most == 0 and self.capture:
            raise ValueError("capture: no request is expected, so nothing can be captured")
        if most is not None and least > most:
            raise ValueError(f"expected atLeast not over atMost, found {least} and {most}")

    def bounds(self) -> tuple[int, int | None]:
        """Return the minimum and maximum number of calls; None for no maximum."""
        if self.never:
            return 0, 0
        if isinstance(self.exactly, int):
            return self.exactly, self.exactly
        most = self.at_most if isinstance(self.at_most, int) else None
        return self.at_least if isinstance(self.at_least, int) else int(most is None), most

    def bounds_text(self) -> tuple[str, str]:
        """Return the expected number as text, in two parts for a Check."""
        least, most = self.bounds()
        if least == most:
            return ("exactly", str(most)) if most else ("none", "")
        if most is None:
            return "at least", str(least)
        return ("at most", str(most)) if not least else ("between", f"{least} and {most}")

    @property
    def label(self) -> str:
        """Return a description of the calls for messages."""
        names = [f"route {self.route}"] if isinstance(self.route, str) else []
        if self.method is not UNSET or self.path is not UNSET or self.path_matches is not UNSET:
            names.append(self.describe())
        others = [name for name in self.given() if name in {"query", "headers", "form", "body"}]
        names += [f"the given {' and '.join(others)}"] if others else []
        return " with ".join(names) or "any kind"


class Verification:
    """Checks the calls of a journal against expectations. Each call is evaluated once for each expectation."""

    def __init__(
        self,
        expectations: Sequence[CallExpectation],
        routes: Mapping[str, Route],
        journal: Journal,
        context: CheckContext,
    ) -> None:
        self._expectations = expectations
        self._routes = routes
        self._journal = journal
        self._context = context
        self._evaluations: dict[tuple[int, int], Evaluation] = {}
        self._calls: Sequence[Call] = ()
        self._matching: list[list[Call]] = []  # calls for each expectation

    def check(self, *, in_order: bool) -> list[Check]:
        """Return the checks of the calls received so far. Raises what `evaluate` does."""
        self._calls = self._journal.calls
        self._matching = [
            [call for call in self._calls if self._evaluate(index, call).ok] for index in range(len(self._expectations))
        ]
        checks = []
        for index, expectation in enumerate(self._expectations):
            count = len(self._matching[index])
            least, most = expectation.bounds()
            ok = least <= count and (most is None or count <= most)
            found = "" if ok else f"{count}{self._examples(index)}"
            checks.append(Check(ok, *expectation.bounds_text(), found, where=f"calls of {expectation.label}"))
        if in_order:
            checks.append(self._check_order())
        if not self._journal.complete:
            found = f"{self._journal.count:,} calls, of which the first {len(self._calls):,} were kept"
            found += "; raise `limits.calls` of mock-start, or verify and restart the mock after fewer calls"
            checks.append(Check.failed("to be complete", found, where="journal"))
        return checks

    @property
    def exceeded(self) -> bool:
        """Return True if there are more calls than a maximum permits, so that waiting does not help."""
        maxima = [expectation.bounds()[1] for expectation in self._expectations]
        pairs = zip(maxima, self._matching, strict=True)
        return any(most is not None and len(calls) > most for most, calls in pairs)

    @property
    def absent(self) -> list[str]:
        """Return the labels of optional calls that did not occur: a check that passes without them may be a mistake."""
        pairs = zip(self._expectations, self._matching, strict=True)
        return [
            expectation.label
            for expectation, calls in pairs
            if not calls and expectation.bounds()[0] == 0 != expectation.bounds()[1]
        ]

    def capture(self, secrets: Secrets) -> Captured:
        """Return captured parts of the matching requests, after `check`. Secret values are redacted from here on."""
        captures = {name: capture for wanted in self._expectations for name, capture in wanted.capture.items()}
        calls = {name: self._matching[at] for at, wanted in enumerate(self._expectations) for name in wanted.capture}
        names = {id(capture): name for name, capture in captures.items()}
        secret = any(capture.secret for capture in captures.values())  # a body may have it in another form

        def find(capture: RequestCapture) -> str:
            matching = calls[names[id(capture)]]
            position = capture.call - 1 if capture.call > 0 else capture.call
            if not -len(matching) <= position < len(matching):
                raise NotFound(f"{counted(len(matching), 'matching request')}, where number {capture.call} is needed")
            call = matching[position]
            try:
                return self._find(capture, call)
            except NotFound as error:
                where = f" in #{call.number}" if secret else f", in:\n{self._journal.describe(call)}"
                raise NotFound(f"{error}{where}") from None

        return capture_all(captures, find, {}, secrets, self._context.searcher)

    def _find(self, capture: RequestCapture, call: Call) -> str:
        """Return the captured part of a call. Raises NotFound."""
        request = call.request
        text = {"method": request.method, "path": request.path, "url": request.target}.get(capture.from_, "")
        named: list[str] | None = None
        name = ""
        if not isinstance(capture.header, UnsetType):
            named, name = values_of(capture.header, request.headers), f"header {capture.header}"
        elif not isinstance(capture.query, UnsetType):
            named, name = [value for key, value in request.query if key == capture.query], f"query {capture.query}"
        elif not isinstance(capture.path, UnsetType):
            value = request.parameters.get(capture.path)
            named, name = [] if value is None else [value], f"path parameter {capture.path}"
        elif capture.from_ == "body":
            if request.truncated:
                raise NotFound("the body: it was not kept, because of the limits of the journal")
            if not isinstance(request.decoded, str):
                raise NotFound(f"text in the body, which is {request.decoded}")
            text = request.decoded
        if named is not None:
            if not named:
                raise NotFound(f"no {name}")
            text = named[0]
        return find_in_text(capture, text, self._context.searcher)

    def _evaluate(self, index: int, call: Call) -> Evaluation:
        key = (index, call.number)
        if key not in self._evaluations:
            expectation = self._expectations[index]
            evaluation = evaluate(expectation, call.request, self._context)
            if isinstance(expectation.route, str) and call.route != expectation.route:
                route = expectation.route
                failed = [
                    Check.failed(
                        f"to be {route}",
                        f"{call.route or 'no route'}, which precedes it"
                        if route in self._routes
                        else call.route or "no route",
                        where="route",
                    )
                ]
                try:
                    if route in self._routes:  # the upstream server has no expectations
                        checks = evaluate(self._routes[route], call.request, self._context).checks
                        failed = [check for check in checks if not check.ok] or failed
                except ext_sdk.OperationFailed as error:
                    failed = [Check.failed("to be checked", f"an error: {error.error}", where="route")]
                evaluation.checks[:0] = failed
            self._evaluations[key] = evaluation
        return self._evaluations[key]

    def _examples(self, index: int) -> str:
        """Return the matching calls if there are too many, else the nearest other calls with their differences."""
        matching = self._matching[index]
        most = self._expectations[index].bounds()[1]
        if most is not None and len(matching) > most:
            return f":{listed(map(self._journal.describe, matching[:MAX_SHOWN]), len(matching))}"
        others = [call for call in self._calls if not self._evaluate(index, call).ok]
        nearest = sorted(others, key=lambda call: self._evaluate(index, call).distance)[:MAX_SHOWN]
        if not nearest:
            return "" if self._calls else ": no requests were received"
        descriptions = []
        for call in nearest:
            checks = {check.brief: check for check in self._evaluate(index, call).checks}  # without duplicates
            descriptions.append(self._journal.describe(call, failures(list(checks.values()), brief=True)))
        return f"; the nearest:{listed(descriptions, len(others))}"

    def _check_order(self) -> Check:
        """Check that the expected calls follow each other; other calls may come between."""
        last = 0
        for index, expectation in enumerate(self._expectations):
            least, _ = expectation.bounds()
            for _ in range(least):
                following = next((call for call in self._matching[index] if call.number > last), None)
                if following is None:
                    pairs = zip(self._expectations, self._matching, strict=True)
                    labels = {call.number: wanted.label for wanted, calls in pairs for call in calls}
                    texts = [f"#{number} {label}" for number, label in sorted(labels.items())]
                    more = len(texts) - MAX_SEQUENCE
                    sequence = ", ".join(texts[:MAX_SEQUENCE]) + (f", and {more} more" if more > 0 else "")
                    found = f"no {expectation.label} after #{last}: {sequence or 'none of them occurred'}"
                    return Check.failed("to come in this order", found, where="calls")
                last = following.number
        return Check(ok=True, what="to come in this order", where="calls")


def listed(descriptions: Iterable[str], count: int) -> str:
    """Return descriptions of calls for an error, each on lines of its own.

    Args:
        descriptions: of the calls that are shown.
        count: of all calls that could be shown.
    """
    lines = list(descriptions)
    more = count - len(lines)
    return "".join(f"\n{line}" for line in [*lines, *([f"  and {more} more"] if more > 0 else [])])
