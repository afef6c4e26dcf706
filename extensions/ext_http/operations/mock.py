"""Operations `mock-start`, `mock-verify`, `mock-update` and `mock-stop`."""

from __future__ import annotations

import errno
import ipaddress
import json
import math
from pathlib import Path
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_http.config import HttpConfig
from ext_http.mock.registry import Mock, MockAddresses, MockName, Mocks
from ext_http.mock.request import Limits
from ext_http.mock.response import Answer  # noqa: TC001 - msgspec reads it
from ext_http.mock.routing import UPSTREAM, Route, RouteFile, check_labels, prepare_routes
from ext_http.mock.upstream import Upstream
from ext_http.mock.verification import MAX_SHOWN, CallExpectation, Verification, listed
from ext_http.response.header_check import CheckContext
from ext_sdk.capture import Captured, check_names
from ext_sdk.core.text import counted, suggest
from ext_sdk.expect import Check, Integer, Searcher, check_integer, passed, summary
from ext_sdk.expect.check import failures, quoted
from ext_sdk.expect.numbers import largest
from ext_sdk.files import os_errors
from ext_sdk.polling import attempts_until, interruptible

State = Annotated[str, Meta(min_length=1)]


class MockStart(ext_sdk.Args, any_of=("routes", "routes_file", "upstream")):
    """Arguments of `mock-start`."""

    name: MockName = "mock"
    routes: Annotated[list[Route], Meta(description="Routes; the first that matches a request responds to it")] = field(
        default_factory=list
    )
    routes_file: Annotated[
        State | UnsetType,
        Meta(
            description="File of the workdir with `routes` in JSON or YAML, such as one that `upstream.record` wrote; "
            "routes of the same name in `routes` replace them, others precede them"
        ),
    ] = UNSET
    upstream: Annotated[
        Upstream | UnsetType,
        Meta(description="Server that requests are forwarded to if no route matches, and that can be recorded"),
    ] = UNSET
    otherwise: Annotated[
        Answer | UnsetType,
        Meta(
            description="Response if no route matches, by default a plain 404; mock-verify and the journal explain it"
        ),
    ] = UNSET
    hints: Annotated[
        bool,
        Meta(description="Explain errors in the mock's own responses (404, 500), which reveals what is expected"),
    ] = False
    state: Annotated[State, Meta(description="First state; routes with `inState` apply in some states only")] = "start"
    host: Annotated[
        str,
        Meta(
            description="Address to listen at. 0.0.0.0 or :: listens at all addresses of this machine, so that "
            "containers, and all other machines, reach it"
        ),
    ] = "127.0.0.1"
    host_names: Annotated[
        list[State],
        Meta(description="Further names of the certificate, such as host.docker.internal; requires tls"),
    ] = field(default_factory=list)
    port: Annotated[int, Meta(ge=0, le=65535, description="Port; 0 selects a free one")] = 0
    tls: Annotated[
        bool, Meta(description="Serve https with a certificate for localhost; clients must trust the output caFile")
    ] = False
    limits: Annotated[Limits, Meta(description="Resource limits")] = Limits()

    def __post_init__(self) -> None:
        check_labels(self.routes)
        if isinstance(self.upstream, Upstream):
            if self.otherwise is not UNSET or UPSTREAM in [route.label for route in self.routes]:
                reason = "upstream responds if no route matches"
                raise ValueError(f"{reason}: omit otherwise, and routes named {UPSTREAM!r}")
            if self.upstream.record is not UNSET and self.upstream.record == self.routes_file:
                raise ValueError("routesFile: upstream.record would overwrite this file; name another one")
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            problem = "expected an IP address of this machine, such as 127.0.0.1, ::1, or 0.0.0.0 for all"
            raise ValueError(f"host: {problem}, found {self.host!r:.100}") from None
        if self.host_names and not self.tls:
            raise ValueError("hostNames requires `tls: true`: they are names of the certificate")


def mock_start(args: MockStart, context: ext_sdk.Context) -> ext_sdk.Result:
    """Start a mock HTTP server on loopback, with fixed or templated responses, delays, faults and a journal.

    It runs until mock-stop or the end of the extension (with `call`: of that call); mock-verify checks the requests it
    received. In texts, JSON and headers of responses, ${request.path.NAME}, ${request.query.NAME},
    ${request.header.NAME}, ${request.json/POINTER}, ${request.body}, ${request.method}, ${request.url} and
    ${request.count} are replaced by parts of the request; ${request.query.NAME|TEXT} is TEXT if that part is missing.
    ${now}, ${unixTime}, ${uuid} and ${random} are new in each response; values of steps are those at the start. $${ is
    a literal ${, and `verbatim: true` replaces nothing. `mock-update` changes routes and state while it runs.
    """
    mock = create_mock(args, context)
    context.state(Mocks).add(mock)
    routes = counted(len(mock.router.labels), "route")
    outputs = mock.outputs() | {"journalFile": str(mock.journal.path)}
    message = f"mock {args.name!r} listens at {mock.url}, {routes}{_state_note(mock)}"
    return ext_sdk.Result.ok(message, outputs=outputs)


def _state_note(mock: Mock) -> str:
    """Return a remark on states that no route sets, which may be a typing error; "" for none."""
    states = ", ".join(mock.router.unreachable)
    return f"; only mock-update leads to state {states}, and no route does" if states else ""


def create_mock(args: MockStart, context: ext_sdk.Context) -> Mock:
    """Return a mock that listens. Raises OperationFailed if a file can't be read, or the port is not available."""
    from ext_http.mock.request import Journal
    from ext_http.mock.routing import Router
    from ext_http.mock.server import Server, server_context
    from ext_http.mock.upstream import Forwarder

    otherwise = None if isinstance(args.otherwise, UnsetType) else args.otherwise
    routes, replies = args.routes, prepare_routes(args.routes, context, otherwise=otherwise)
    if isinstance(args.routes_file, str):
        file = RouteFile.read(args.routes_file, context)
        replies = prepare_routes(file.routes, context, source=args.routes_file, verbatim=file.verbatim) | replies
        routes = [*routes, *(route for route in file.routes if route.label not in {it.label for it in routes})]
        if args.upstream is not UNSET and UPSTREAM in replies:
            raise ext_sdk.InvalidArgs("routesFile", f"expected no route named {UPSTREAM!r} with the argument upstream")
    tls = ca_file = None
    with os_errors("write", "the journal of the mock"):
        journal = Journal(context.artifact(f"mock-{args.name}.ndjson"), context.secrets, args.limits.calls)
        if args.tls:
            ca_file = context.artifact(f"mock-{args.name}-ca.pem")
            try:
                tls = server_context(ca_file, [*args.host_names, args.host])
            except ValueError as error:
                raise ext_sdk.InvalidArgs(
                    "hostNames", f"expected names of hosts, found one that is not: {error}"
                ) from None
    upstream = None
    if isinstance(args.upstream, Upstream):
        config = context.config_as(HttpConfig)
        with os_errors("read", config.ca_file):
            ca = Path(config.ca_file).read_text(encoding="utf-8", errors="replace") if config.ca_file else ""
        allow = (*config.allow_hosts, *context.state(Mocks).addresses)
        upstream = Forwarder(args.upstream, context, ca=ca, allow=allow, redact=journal.redact)
    router = Router(
        args.name,
        routes=routes,
        replies=replies,
        hints=args.hints,
        workdir=context.workdir,
        journal=journal,
        state=args.state,
        upstream=upstream,
    )
    address = ipaddress.ip_address(args.host)
    if address.is_unspecified:  # the URL is for clients on this machine
        host = "127.0.0.1" if address.version == 4 else "[::1]"
    else:
        host = f"[{args.host}]" if ":" in args.host else args.host
    addresses = context.extension_state(MockAddresses)
    try:
        server = Server(
            args.host, args.port, respond=router.respond, journal=journal, limits=args.limits, tls=tls, hints=args.hints
        )
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            text = f"host: expected an address of this machine, or 0.0.0.0 for all of them, found {args.host}"
            raise ext_sdk.OperationFailed(f"can't listen at {args.host}", error=text) from error
        found, remedy = f"found {args.port}: {error.strerror or error}", "0 selects a free one"
        if holder := addresses.holder(f"{host}:{args.port}"):
            found += f", {holder} listens on it"
            remedy = f"stop that mock with mock-stop, or use another port; {remedy}"
        raise ext_sdk.OperationFailed(
            f"can't listen at port {args.port}", error=f"port: expected a free one on {args.host}, {found}; {remedy}"
        ) from error
    mock = Mock(
        args.name,
        place=context.place,
        url=f"{'https' if args.tls else 'http'}://{host}:{server.port}",
        router=router,
        journal=journal,
        server=server,
        ca_file=ca_file,
        private_folder=not context.config_as(HttpConfig).artifacts,
    )
    addresses.add(mock)
    return mock


RESERVED = frozenset({"calls", "unmatched", "recorded", "state", "journalFile", "done"})  # outputs of `mock-verify`


class MockUpdate(ext_sdk.Args, any_of=("routes", "remove", "state", "clear_journal")):
    """Arguments of `mock-update`."""

    name: MockName = "mock"
    routes: Annotated[
        list[Route],
        Meta(description="Routes that replace those of the same name; others are added before all routes"),
    ] = field(default_factory=list)
    remove: Annotated[list[State], Meta(description="Names of routes to remove")] = field(default_factory=list)
    state: Annotated[State | UnsetType, Meta(description="State to set")] = UNSET
    clear_journal: Annotated[
        bool, Meta(description="Forget the requests received, so that mock-verify checks later ones only")
    ] = False

    def __post_init__(self) -> None:
        check_labels(self.routes)
        if both := sorted({route.label for route in self.routes} & set(self.remove)):
            raise ValueError(f"remove: {both[0]!r:.100} is also in routes, which replaces it")


def mock_update(args: MockUpdate, context: ext_sdk.Context) -> ext_sdk.Result:
    """Change a mock while it runs: replace, add and remove routes, set its state, clear its journal.

    A route that is replaced starts again with its first response. The file of the journal keeps all requests.
    """
    mock = context.state(Mocks).get(args.name)
    labels = mock.router.labels
    for index, label in enumerate(args.remove):
        if label not in labels:
            text = f"expected a route of the mock, found {label!r:.100}; {suggest(label, labels)}"
            raise ext_sdk.InvalidArgs(f"remove[{index}]", text)
    replies = prepare_routes(args.routes, context)
    mock.router.update(args.routes, replies, args.remove, None if isinstance(args.state, UnsetType) else args.state)
    counts = mock.counts()
    if args.clear_journal:
        mock.journal.clear()
    replaced = len([route for route in args.routes if route.label in labels])
    changes = [
        f"{counted(replaced, 'route')} replaced" if replaced else "",
        f"{counted(len(args.routes) - replaced, 'route')} added" if len(args.routes) > replaced else "",
        f"{counted(len(args.remove), 'route')} removed" if args.remove else "",
        f"state {args.state!r}" if isinstance(args.state, str) else "",
        f"journal of {counted(int(counts['calls']), 'request')} cleared" if args.clear_journal else "",
    ]
    message = f"mock {args.name!r}: {', '.join(filter(None, changes))}{_state_note(mock)}"
    return ext_sdk.Result.ok(message, outputs=counts | {"routes": json.dumps(mock.router.labels, ensure_ascii=False)})


class MockVerify(ext_sdk.Args, any_of=("calls", "unmatched", "state")):
    """Arguments of `mock-verify`."""

    name: MockName = "mock"
    calls: Annotated[list[CallExpectation], Meta(description="Expected requests, and the number of each")] = field(
        default_factory=list
    )
    in_order: Annotated[
        bool, Meta(description="The `calls` must follow each other; other requests may come between")
    ] = False
    unmatched: Annotated[
        Integer | UnsetType, Meta(description="Number of requests that no route matched; 0 permits none")
    ] = UNSET
    state: Annotated[State | UnsetType, Meta(description="State that the mock must be in")] = UNSET
    timeout: Annotated[
        ext_sdk.Duration | UnsetType, Meta(description="Maximum wait until all checks pass; checks once by default")
    ] = UNSET
    on_timeout: ext_sdk.OnTimeout = "fail"

    def __post_init__(self) -> None:
        if self.in_order and len(self.calls) < 2:
            raise ValueError("inOrder: expected two or more calls")
        names = [name for expectation in self.calls for name in expectation.capture]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"calls: capture {twice[0]!r:.100} occurs twice; use different names")


def mock_verify(args: MockVerify, context: ext_sdk.Context) -> ext_sdk.Result:
    """Check the requests that a mock received: number, order, query, headers and body.

    A failure shows the nearest requests with their differences. With `timeout`, it waits until all checks pass, or
    until there is a request too many. `capture` in `calls` outputs parts of what the agent sent.
    """
    mock = context.state(Mocks).get(args.name)
    labels = [*mock.router.known, *([UPSTREAM] if mock.router.upstream else [])]
    for index, expectation in enumerate(args.calls):
        route = expectation.route
        if isinstance(route, str) and route not in labels:
            text = f"expected a route of the mock, found {route!r:.100}; {suggest(route, labels)}"
            raise ext_sdk.InvalidArgs(f"calls[{index}].route", text)
        check_names(expectation.capture, RESERVED)
    with Searcher() as searcher:
        check_context = CheckContext(context.workdir, searcher, mock.journal.redact)
        verification = Verification(args.calls, mock.router.known, mock.journal, check_context)
        checks, hopeless = _verify(args, context.deadline, mock, verification)
        captured = verification.capture(context.secrets) if passed(checks) else Captured()
        checks += captured.failures
        if captured.secrets:
            mock.journal.redact_file()
    message = f"mock {args.name!r}: {summary(checks)}"
    if verification.absent:
        message += f"; no call of {', '.join(verification.absent)}: atMost permits that, atLeast: 1 would not"
    failed = [call for call in mock.journal.calls if call.problem]
    if failed:  # the client got a plain 500, which does not contain the reason
        responses = counted(len(failed), "response")
        message += f"; {responses} failed, first #{failed[0].number}: {mock.journal.redact(failed[0].problem)}"
    if passed(checks):
        outputs = mock.counts() | {"done": True} | captured.values
        return ext_sdk.Result.ok(message, outputs=outputs, secret_outputs=captured.secrets)
    received = counted(mock.journal.count, "request")
    lines = [*failures(checks), f"mock {mock.name!r} received {received}, see {mock.journal.path}"]
    if problems := mock.journal.problems:
        lines.append(f"received bytes that were not valid requests: {'; '.join(problems[-MAX_SHOWN:])}")
    result = ext_sdk.Result.failed(message, error="\n".join(lines), outputs=mock.counts())
    timed_out = not hopeless and not captured.failures and not context.deadline.stopped.is_set()
    return ext_sdk.conclude_wait(result, args.on_timeout, timed_out=timed_out, last_seen=received)


def _verify(
    args: MockVerify, deadline: ext_sdk.Deadline, mock: Mock, verification: Verification
) -> tuple[list[Check], bool]:
    """Return the first checks that pass, or those at the deadline; and True if waiting for more requests can't help."""
    journal, count, hopeless = mock.journal, 0, False
    checks: list[Check] = []
    if isinstance(args.timeout, UnsetType):
        deadline = deadline.limit(0)
    new_call = interruptible(lambda seconds: journal.wait(count, seconds), deadline)
    for _ in attempts_until(deadline, lambda _: math.inf, wait=new_call, jitter=0.0):
        count = journal.count
        checks = verification.check(in_order=args.in_order)
        if not isinstance(args.unmatched, UnsetType):
            unmatched = check_integer(args.unmatched, journal.unmatched, where="number of calls that no route matched")
            calls = [call for call in journal.calls if not call.route]
            if calls and not passed(unmatched):
                described = [journal.describe(call, call.miss_reasons) for call in calls[-MAX_SHOWN:]]
                shown = listed(described, len(calls))
                for check in unmatched:
                    check.found += f":{shown}"
            checks += unmatched
        if isinstance(args.state, str):
            found = mock.router.state
            checks.append(Check(found == args.state, "to be", quoted(args.state), quoted(found), where="state"))
        hopeless = verification.exceeded or not journal.complete
        if not isinstance(args.unmatched, UnsetType) and (most := largest(args.unmatched)) is not None:
            hopeless = hopeless or journal.unmatched > most  # this number only grows
        if passed(checks) or hopeless:
            break
    return checks, hopeless


class MockStop(ext_sdk.Args):
    """Arguments of `mock-stop`."""

    name: MockName = "mock"
    ignore_missing: Annotated[bool, Meta(description="Succeed if the mock is not running")] = False


def mock_stop(args: MockStop, context: ext_sdk.Context) -> ext_sdk.Result:
    """Stop a mock and output the number of requests it received. Running mocks stop when the extension ends."""
    mocks = context.state(Mocks)
    mock = mocks.remove(args.name)
    if mock is None:
        if not args.ignore_missing:
            mocks.get(args.name)  # raises OperationFailed with the names of running mocks
        return ext_sdk.Result.ok(f"mock {args.name!r} is not running, nothing to stop")
    mock.server.close()
    if mock.router.upstream:
        mock.router.upstream.write()
    mock.close()
    routes = {label: mock.router.counts[label] for label in mock.router.known}
    outputs = mock.counts() | {"routes": json.dumps(routes, ensure_ascii=False)}
    message = f"stopped mock {args.name!r} after {counted(mock.journal.count, 'request')}"
    if mock.router.upstream and mock.router.upstream.note:
        message += f"; {mock.router.upstream.note}"
    return ext_sdk.Result.ok(message, outputs=outputs)


MOCK = {
    "calls": "number of calls",
    "unmatched": "number of calls that matched no route",
    "recorded?": "number of responses recorded, if `upstream` is given",
    "state": "state of the mock; the first one is `start` unless it is given",
    "journalFile": "path of a file with one line of JSON per call, without secrets",
}

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
                    "answer": {
                        "json": {"city": "${request.path.city}", "units": "${request.query.units}", "celsius": 21}
                    },
                },
                {
                    "name": "report",
                    "method": "POST",
                    "path": "/v1/reports",
                    "answer": [{"status": 503, "times": 2}, {"status": 201, "json": {"id": "${request.count}"}}],
                },
            ],
        },
        outputs={
            "name": "name of the mock",
            "url": "root URL, such as `http://127.0.0.1:40711`",
            "port": "port number",
            "caFile?": "path of the certificate authority to trust, if `tls` is given",
            "journalFile": MOCK["journalFile"],
        },
        title="Start mock server",
        destructive=False,
    ),
    ext_sdk.Operation(
        "mock-verify",
        mock_verify,
        {"name": "weather", "calls": [{"route": "forecast", "atMost": 5}], "unmatched": 0},
        outputs=(
            MOCK
            | {
                "done": "`true` if all checks passed, `false` if the time was up",
                "NAME?": "captured part of a request, if a `capture` in `calls` has this name",
            }
        ),
        title="Check calls of mock server",
        read_only=True,
        open_world=False,
        needs="mock-start",
    ),
    ext_sdk.Operation(
        "mock-update",
        mock_update,
        {"name": "weather", "remove": ["report"], "clearJournal": True},
        outputs=MOCK | {"routes": "names of the routes in their order, as JSON; `calls` are those before this step"},
        title="Change mock server",
        destructive=False,
        idempotent=True,
        open_world=False,
        needs="mock-start",
    ),
    ext_sdk.Operation(
        "mock-stop",
        mock_stop,
        {"name": "weather"},
        outputs=MOCK | {"routes": "number of calls of each route, as JSON"},
        title="Stop mock server",
        destructive=False,
        open_world=False,
        needs="mock-start",
    ),
)
