"""`mock-verify`: what a mock was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_http.checks.means import Means
from ext_sdk.expect import Check, Integer, Searcher, check_integer, passed, summary
from ext_sdk.expect.check import failures
from ext_sdk.hints import hint

from .calls import MOST_SHOWN, CallExpectation, Verification, listed
from .mocks import MockName, Mocks, not_found

if TYPE_CHECKING:
    from .journal import Call
    from .mocks import Mock

TICK = 0.1  # seconds between two looks at whether the call has to stop


class MockVerify(ext_sdk.Args, any_of=("calls", "unmatched")):
    """What a mock must have been asked."""

    name: MockName = "mock"
    calls: Annotated[list[CallExpectation], Meta(description="Which calls, and how many of each")] = field(
        default_factory=list
    )
    in_order: Annotated[bool, Meta(description="`calls` come one after the other; others may come between")] = False
    unmatched: Annotated[
        Integer | UnsetType, Meta(description="How many calls no route took; 0 refuses any other call")
    ] = UNSET
    timeout: Annotated[
        ext_sdk.Duration | UnsetType, Meta(description="Wait until all holds, this long; look once if left out")
    ] = UNSET

    def __post_init__(self) -> None:
        if self.in_order and len(self.calls) < 2:
            raise ValueError("inOrder: expected two or more calls to come one after the other")


def mock_verify(args: MockVerify, context: ext_sdk.Context) -> ext_sdk.Result:
    """Check what a mock was asked: how often, in which order, with which query, headers and body.

    A failure shows the nearest calls, and what differs in each. With `timeout` it waits until all holds, and no longer
    than until there is a call too many.
    """
    mocks = context.state(Mocks)
    mock = mocks.get(args.name)
    if mock is None:
        raise not_found(args.name, mocks.names())
    _refuse_unknown_routes(args, mock)
    with Searcher() as searcher:
        means = Means(context.workdir, searcher, mock.journal.redact)
        verification = Verification(args.calls, mock.routes, mock.journal, means)
        checks = _checked(args, context, mock, verification)
    message = f"mock {args.name!r}: {summary(checks)}"
    if verification.absent:
        message += f"; no call of {', '.join(verification.absent)}: atMost allows that, with atLeast: 1 it would fail"
    message += _of_failed_answers(mock)
    if passed(checks):
        return ext_sdk.Result.ok(message, outputs=mock.counts())
    return ext_sdk.Result.failed(message, error=_told(checks, mock), outputs=mock.counts())


def _refuse_unknown_routes(args: MockVerify, mock: Mock) -> None:
    labels = [route.label for route in mock.routes]
    for index, one in enumerate(args.calls):
        if isinstance(one.route, str) and one.route not in labels:
            text = f"expected a route of the mock, found {one.route!r:.100}; {hint(one.route, labels)}"
            raise ext_sdk.InvalidArgs(f"calls[{index}].route", text)


def _checked(args: MockVerify, context: ext_sdk.Context, mock: Mock, verification: Verification) -> list[Check]:
    """The checks of the last look: the first that passes, or the one when the time is over."""
    waiting = not isinstance(args.timeout, UnsetType)
    while True:
        last, known = not waiting or context.deadline.expired, mock.journal.count
        checks = verification.look(in_order=args.in_order)
        if not isinstance(args.unmatched, UnsetType):
            checks += _of_unmatched(args.unmatched, mock)
        if last or passed(checks) or verification.hopeless:
            return checks
        while not mock.journal.wait(known, min(TICK, context.deadline.remaining())):
            if context.deadline.expired:
                break


def _of_unmatched(expectation: Integer, mock: Mock) -> list[Check]:
    checks = check_integer(expectation, mock.journal.unmatched, where="number of calls that no route took")
    if not passed(checks):
        calls = [call for call in mock.journal.calls if not call.route]
        shown = listed((_missed(mock, call) for call in calls[-MOST_SHOWN:]), len(calls))
        for check in checks:
            check.found += f":{shown}" if calls else ""
    return checks


def _missed(mock: Mock, call: Call) -> str:
    reasons = [f"nearest route: {call.miss.nearest}", *call.miss.differences] if call.miss else []
    return mock.journal.paragraph(call, reasons)


def _of_failed_answers(mock: Mock) -> str:
    """Return which answers failed, for the message: the client got a plain 500, which does not say why."""
    failed = [call for call in mock.journal.calls if call.problem]
    if not failed:
        return ""
    times = f"{len(failed)} answers" if len(failed) > 1 else "1 answer"
    return f"; {times} failed, first #{failed[0].number}: {mock.journal.redact(failed[0].problem)}"


def _told(checks: list[Check], mock: Mock) -> str:
    journal = mock.journal
    lines = [*failures(checks), f"mock {mock.name!r} was asked {journal.count} times, all in {journal.path}"]
    if journal.problems:
        lines.append(f"what came and was no request: {'; '.join(journal.problems[-MOST_SHOWN:])}")
    return "\n".join(lines)
