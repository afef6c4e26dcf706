"""Operations `mock-start`, `mock-verify` and `mock-stop`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_http.response.check_context import CheckContext
from ext_sdk.core.text import suggest
from ext_sdk.expect import Check, Integer, Searcher, check_integer, passed, summary
from ext_sdk.expect.check import failures
from ext_sdk.files import os_errors

from .registry import Addresses, Mock, MockName, Mocks, not_found
from .request import Limits
from .response import Answer
from .routing import Route  # noqa: TC001 - msgspec reads it
from .verification import MOST_SHOWN, CallExpectation, Verification, listed

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    from .journal import Call


class MockStart(ext_sdk.Args):
    """What to listen for, and what to answer."""

    name: MockName = "mock"
    routes: Annotated[
        list[Route], Meta(min_length=1, description="The first that fits takes a request; put the special ones first")
    ]
    otherwise: Annotated[
        Answer | UnsetType,
        Meta(description="For what no route takes; a plain 404 if left out. mock-verify and the journal say why"),
    ] = UNSET
    hints: Annotated[
        bool, Meta(description="Say in 404, 500 and the like what is wrong. The client sees what is expected")
    ] = False
    host: Annotated[Literal["127.0.0.1", "::1"], Meta(description="Loopback, by IPv4 or IPv6")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="0: one that is free")] = 0
    tls: Annotated[
        bool, Meta(description="https, with a certificate for localhost; caFile is the authority to trust")
    ] = False
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        labels = [route.label for route in self.routes]
        if twice := sorted({one for one in labels if labels.count(one) > 1}):
            raise ValueError(f"routes: {twice[0]!r:.100} is there twice; give each a `name` of its own")
        if isinstance(self.otherwise, Answer) and (wrong := self.otherwise.problem(frozenset())):
            raise ValueError(f"otherwise: {wrong}")

    def answers(self) -> list[Answer]:
        """All that may be answered."""
        several = [
            one for route in self.routes for one in (route.answer if isinstance(route.answer, list) else [route.answer])
        ]
        return several if isinstance(self.otherwise, UnsetType) else [*several, self.otherwise]


def mock_start(args: MockStart, context: ext_sdk.Context) -> ext_sdk.Result:
    """Start a stub HTTP server on loopback, with canned or templated answers, delays and faults, and a journal.

    It runs until mock-stop or the end of the extension (with `call`: of that call), and mock-verify checks what it was
    asked. In texts, JSON and headers of answers, $(path.NAME), $(query.NAME), $(header.NAME), $(json/POINTER), $(body),
    $(method), $(url) and $(count) become parts of the request; $(query.NAME|TEXT) is TEXT if that part is missing, $$(
    a literal $(.
    """
    mock = started(args, context)
    context.state(Mocks).add(mock)
    routes = f"{len(args.routes)} route{'' if len(args.routes) == 1 else 's'}"
    outputs = mock.outputs() | {"journalFile": str(mock.journal.path)}
    return ext_sdk.Result.ok(f"mock {args.name!r} listens at {mock.url}, {routes}", outputs=outputs)


def started(args: MockStart, context: ext_sdk.Context) -> Mock:
    """A mock that listens.

    Raises:
        OperationFailed: a file can't be read, or the port is not to be had.
    """
    from .journal import Journal
    from .response import Bodies
    from .routing import Router
    from .server import Server

    bodies = Bodies(args.answers(), context.workdir)
    with os_errors("write", "the journal of the mock"):
        journal = Journal(context.artifact(f"mock-{args.name}.ndjson"), context.secrets, args.limits.calls)
        tls, ca_file = _tls(context, args.name) if args.tls else (None, None)
    otherwise = None if isinstance(args.otherwise, UnsetType) else args.otherwise
    router = Router(
        args.name,
        routes=args.routes,
        otherwise=otherwise,
        hints=args.hints,
        bodies=bodies,
        workdir=context.workdir,
        journal=journal,
    )
    host = f"[{args.host}]" if ":" in args.host else args.host
    try:
        server = Server(
            args.host, args.port, answer=router.answer, journal=journal, limits=args.limits, tls=tls, hints=args.hints
        )
    except OSError as error:
        raise _not_free(args, error, context.extension_state(Addresses).holder(f"{host}:{args.port}")) from error
    url = f"{'https' if args.tls else 'http'}://{host}:{server.port}"
    mock = Mock(
        args.name,
        place=context.place,
        url=url,
        routes=args.routes,
        router=router,
        journal=journal,
        server=server,
        ca_file=ca_file,
    )
    context.extension_state(Addresses).add(mock)
    return mock


def _not_free(args: MockStart, error: OSError, holder: Mock | None) -> ext_sdk.OperationFailed:
    found = f"found {args.port}: {error.strerror or error}"
    remedy = "0 takes one that is free"
    if holder is not None:
        found += f", {holder.described} listens on it"
        remedy = f"stop that mock with mock-stop, or use another port; {remedy}"
    return ext_sdk.OperationFailed(
        f"can't listen at port {args.port}",
        error=f"port: expected one that is free on {args.host}, {found}; {remedy}",
    )


def _tls(context: ext_sdk.Context, name: str) -> tuple[ssl.SSLContext, Path]:
    from .server import server_context

    path = context.artifact(f"mock-{name}-ca.pem")
    return server_context(path), path


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
        means = CheckContext(context.workdir, searcher, mock.journal.redact)
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
            text = f"expected a route of the mock, found {one.route!r:.100}; {suggest(one.route, labels)}"
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


class MockStop(ext_sdk.Args):
    """What to stop."""

    name: MockName = "mock"
    ignore_missing: Annotated[bool, Meta(description="A success if there is no such mock")] = False


def mock_stop(args: MockStop, context: ext_sdk.Context) -> ext_sdk.Result:
    """Stop a mock; outputs say how often it was asked. All that stand are stopped when the extension ends."""
    mocks = context.state(Mocks)
    mock = mocks.remove(args.name)
    if mock is None:
        if args.ignore_missing:
            return ext_sdk.Result.ok(f"there is no mock {args.name!r} to stop")
        raise not_found(args.name, mocks.names())
    mock.close()
    routes = {route.label: mock.router.counts[route.label] for route in mock.routes}
    outputs = mock.counts() | {"routes": json.dumps(routes, ensure_ascii=False)}
    count = mock.journal.count
    message = f"stopped mock {args.name!r}, which was asked {count} time{'' if count == 1 else 's'}"
    return ext_sdk.Result.ok(message, outputs=outputs)


OPERATIONS = (
    ext_sdk.Operation(
        "mock-start",
        mock_start,
        {
            "name": "weather",
            "routes": [
                {
                    "name": "forecast",
                    "method": "GET",
                    "path": "/v1/cities/{city}/forecast",
                    "query": {"units": {"matches": "^(metric|imperial)$"}},
                    "answer": {"json": {"city": "$(path.city)", "units": "$(query.units)", "celsius": 21}},
                },
                {
                    "name": "report",
                    "method": "POST",
                    "path": "/v1/reports",
                    "answer": [{"status": 503, "times": 2}, {"status": 201, "json": {"id": "$(count)"}}],
                },
            ],
        },
    ),
    ext_sdk.Operation(
        "mock-verify",
        mock_verify,
        {"name": "weather", "calls": [{"route": "forecast", "atMost": 5}], "unmatched": 0},
    ),
    ext_sdk.Operation("mock-stop", mock_stop, {"name": "weather"}),
)
