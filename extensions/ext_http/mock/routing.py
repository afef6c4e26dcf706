"""Routes of a mock: the requests they match, and the response of each."""

from __future__ import annotations

import re
import threading
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_http.response.expectations import Body, check_body
from ext_http.response.header_check import CheckContext, Header, Headers, check_headers, check_values
from ext_sdk.core.regex import problem
from ext_sdk.expect import Check, Found, Searcher, SearchFailed
from ext_sdk.expect.check import failures, quoted
from ext_sdk.expect.documents import FORMAT_NAMES, Format, NotDocument, parse_document
from ext_sdk.files import Workdir, os_errors
from ext_sdk.references import ADVICE
from ext_sdk.server.validation import validate

from .request import Call, Miss, PathTemplate
from .response import (
    MAX_FILE_BYTES,
    Answer,
    Answers,
    MockResponse,
    Reply,
    TemplateError,
    answer_for,
    plain_response,
    prepare_answer,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from .request import Journal, ReceivedRequest
    from .upstream import Forwarder


Part = Annotated[str, Meta(min_length=1)]
UPSTREAM = "upstream"  # in place of the label of a route
OTHERWISE = "otherwise"  # the argument
_METHOD = "^[A-Z][A-Z0-9_-]{0,31}$"

# Not as `pattern`, for the reason given at response.expectations.StatusRange.
Method = Annotated[str, Meta(extra_json_schema={"pattern": _METHOD, "examples": ["GET", "POST"]})]
_MEMBERS = ("method", "path", "pathMatches", "query", "headers", "form", "body")


class RequestExpectation(ext_sdk.Args):
    """Expected request; all members given must hold."""

    method: Annotated[
        Method | Annotated[list[Method], Meta(min_length=1)] | UnsetType,
        Meta(description="Method or list of methods; any by default. GET includes HEAD"),
    ] = UNSET
    path: Annotated[
        str | UnsetType,
        Meta(description="Complete path without query; {NAME} matches one segment: /cities/{city}"),
    ] = UNSET
    path_matches: Annotated[
        Part | UnsetType,
        Meta(description="Regular expression (Python's re) to find in the decoded path; anchor it with ^ and $"),
    ] = UNSET
    query: Annotated[
        Annotated[dict[Part, Header], Meta(min_length=1)] | UnsetType,
        Meta(description="Query parameters, in the same form as headers; other parameters are accepted"),
    ] = UNSET
    headers: Annotated[Headers | UnsetType, Meta(description="Headers, as in `expect` of `request`")] = UNSET
    form: Annotated[
        Annotated[dict[Part, Header], Meta(min_length=1)] | UnsetType,
        Meta(description="Fields of a web form (urlencoded or multipart), in the same form as headers"),
    ] = UNSET
    body: Annotated[Body | UnsetType, Meta(description="Body, as in `expect` of `request`")] = UNSET

    def __post_init__(self) -> None:
        for method in self.methods():
            if not re.fullmatch(_METHOD, method):
                raise ValueError(f"method: expected one in capitals, such as GET, found {method!r:.40}")
        if self.path is not UNSET:
            if self.path_matches is not UNSET:
                raise ValueError("expected one of path and pathMatches")
            PathTemplate(self.path)  # raises ValueError
        if isinstance(self.path_matches, str) and (wrong := problem(self.path_matches)):
            raise ValueError(f"pathMatches: {wrong}")

    def methods(self) -> list[str]:
        """Return the accepted methods; empty if all are."""
        if isinstance(self.method, UnsetType):
            return []
        return self.method if isinstance(self.method, list) else [self.method]

    def given(self) -> list[str]:
        """Return the names, as users write them, of the members that restrict requests."""
        pairs = zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True)
        return [name for field, name in pairs if name in _MEMBERS and getattr(self, field) is not UNSET]

    def describe(self) -> str:
        """Return method and path: `GET /cities/{city}`."""
        method = "|".join(self.methods()) or "any method"
        path = self.path if isinstance(self.path, str) else ""
        return f"{method} {path or (f'/{self.path_matches}/' if isinstance(self.path_matches, str) else 'any path')}"

    def evaluate_path(self, request: ReceivedRequest, context: CheckContext) -> tuple[list[Check], dict[str, str]]:
        """Return checks of the path of a request, and its path parameters."""
        parameters: dict[str, str] | None = {}
        if isinstance(self.path, str):
            what, expected = "to be", self.path
            parameters = PathTemplate(self.path).match(request.segments)
        elif isinstance(self.path_matches, str):
            what, expected = "to match", self.path_matches
            try:
                match = context.searcher.search(expected, request.path)
            except SearchFailed as error:
                return [Check.failed(f"to match {quoted(expected)}", f"an error: {error}", where="path")], {}
            named = match.named if match else {}
            parameters = {name: value for name, value in named.items() if value is not None} if match else None
        else:
            return [], {}
        found = quoted(request.path, context.redact)
        return [Check(parameters is not None, what, quoted(expected), found, where="path")], parameters or {}


class Route(RequestExpectation):
    """Requests that a route matches, and its response."""

    name: Annotated[
        Part | UnsetType, Meta(description="Name for mock-verify and messages; method and path by default")
    ] = UNSET
    in_state: Annotated[
        Part | Annotated[list[Part], Meta(min_length=1)] | UnsetType,
        Meta(description="State of the mock, or list of states, in which the route applies; any by default"),
    ] = UNSET
    then_state: Annotated[Part | UnsetType, Meta(description="State of the mock after a request of the route")] = UNSET
    answer: Annotated[
        Answers, Meta(description="Response, or a list: each request gets the next one, and the last one repeats")
    ]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.parameters  # noqa: B018 - raises ValueError

    @property
    def parameters(self) -> frozenset[str] | None:
        """Return the names of the path parameters; None if a regular expression sets them."""
        if self.path_matches is not UNSET:
            return None
        names = PathTemplate(self.path).names if isinstance(self.path, str) else ()
        return frozenset(filter(None, names))

    def states(self) -> list[str]:
        """Return the states in which the route applies; empty for all."""
        if isinstance(self.in_state, UnsetType):
            return []
        return self.in_state if isinstance(self.in_state, list) else [self.in_state]

    def prepare(
        self, field: str, context: ext_sdk.Context, *, verbatim: bool
    ) -> tuple[list[Reply], list[tuple[str, str]]]:
        """Return the replies, and the problems of their references to requests, each with its argument.

        Raises what `prepare_answer` does.
        """
        several = isinstance(self.answer, list)
        answers = self.answer if isinstance(self.answer, list) else [self.answer]
        names = [f"{field}.answer[{at}]" if several else f"{field}.answer" for at in range(len(answers))]
        pairs = zip(answers, names, strict=True)
        replies = [prepare_answer(answer, name, context, verbatim=verbatim) for answer, name in pairs]
        found = [
            (name, problem)
            for reply, name in zip(replies, names, strict=True)
            for problem in reply.problems(self.parameters)
        ]
        return replies, found

    @property
    def label(self) -> str:
        """Return the name, by default method and path."""
        return self.name if isinstance(self.name, str) else self.describe()


def check_labels(routes: Sequence[Route]) -> None:
    """Raise ValueError if two routes have the same label."""
    labels = [route.label for route in routes]
    if duplicates := sorted({label for label in labels if labels.count(label) > 1}):
        raise ValueError(f"routes: {duplicates[0]!r:.100} occurs twice; set a different `name` for each")


class RouteFile(ext_sdk.Args):
    """File with routes, as a mock records it, or as people write it."""

    routes: Annotated[list[Route], Meta(min_length=1, description="Routes")]
    verbatim: Annotated[bool, Meta(description="Replace no references")] = False

    def __post_init__(self) -> None:
        check_labels(self.routes)

    @classmethod
    def read(cls, path: str, context: ext_sdk.Context) -> RouteFile:
        """Return the routes of a file in JSON, or in YAML if its name ends with .yaml or .yml.

        Raises:
            OperationFailed: the file can't be read, or is outside the workdir.
            InvalidArgs: the file has no valid routes, or a reference has no value.
        """
        with os_errors("read", path):
            text = Workdir(context.workdir).read(path, limit=MAX_FILE_BYTES).decode("utf-8", "replace")
        form: Format = "yaml" if path.endswith((".yaml", ".yml")) else "json"
        try:
            document = parse_document(text, form)
            if not isinstance(document, dict):
                found = "an array" if isinstance(document, list) else "a single value"
                raise ext_sdk.InvalidArgs("", f"expected an object with the member `routes`, found {found}")
            if not document.get("verbatim"):
                document = {"routes": _expanded(document.get("routes"), context)}
            return validate(cls, document)
        except NotDocument as error:
            problem = f"expected {FORMAT_NAMES[form]} with the member `routes` in {path!r:.200}: {error}"
            raise ext_sdk.InvalidArgs("routesFile", problem) from None
        except ext_sdk.InvalidArgs as error:
            raise ext_sdk.InvalidArgs("routesFile", f"{path}: {error}") from None


def _expanded(routes: object, context: ext_sdk.Context) -> object:
    """Return the routes of a file with the values of references, except in answers, which are templates."""
    if not isinstance(routes, list):
        return routes
    return [
        {
            name: value if name == "answer" else context.expand(value, f"routes[{at}].{name}")
            for name, value in route.items()
        }
        if isinstance(route, dict)
        else route
        for at, route in enumerate(routes)
    ]


def prepare_routes(
    routes: Sequence[Route],
    context: ext_sdk.Context,
    *,
    otherwise: Answer | None = None,
    source: str = "",
    verbatim: bool = False,
) -> dict[str, list[Reply]]:
    """Return the replies of routes by label, and that of `otherwise` under OTHERWISE.

    Args:
        source: name of the file of the routes, for errors.
        verbatim: nothing is replaced in these routes.

    Raises:
        InvalidArgs: references to requests are not valid, all of them; or what `prepare_answer` raises.
        OperationFailed: a file can't be read, or is outside the workdir.
    """
    replies: dict[str, list[Reply]] = {}
    problems: list[tuple[str, str]] = []
    for at, route in enumerate(routes):
        field = f"{source}: routes[{at}]" if source else f"routes[{at}]"
        replies[route.label], found = route.prepare(field, context, verbatim=verbatim)
        problems += found
    if otherwise is not None:
        reply = prepare_answer(otherwise, OTHERWISE, context)
        replies[OTHERWISE] = [reply]
        problems += [(OTHERWISE, problem) for problem in reply.problems(frozenset())]
    if len(problems) == 1:
        raise ext_sdk.InvalidArgs(problems[0][0], f"{problems[0][1]}; {ADVICE}")
    if problems:
        lines = [f"\n  {name}: {problem}" for name, problem in problems]
        raise ext_sdk.InvalidArgs("", f"{len(lines)} references are not valid:{''.join(lines)}\n{ADVICE}")
    return replies


class Evaluation(NamedTuple):
    """Result of checking a request against an expectation: checks, and the parameters of the path."""

    checks: list[Check]
    parameters: dict[str, str]

    @property
    def ok(self) -> bool:
        """Return True if all checks passed, also without any checks."""
        return all(check.ok for check in self.checks)

    @property
    def distance(self) -> tuple[int, ...]:
        """Return a sort key of the distance: path first, then method, then the number of failed checks."""
        failed = [check.where for check in self.checks if not check.ok]
        return ("path" in failed, "method" in failed, len(failed))


def evaluate(
    expectation: RequestExpectation, request: ReceivedRequest, context: CheckContext, *, quick: bool = False
) -> Evaluation:
    """Check a request against an expectation; costly checks come last.

    Args:
        quick: stop at the first member that does not hold.

    Raises:
        OperationFailed: a schema or a file is not usable.
    """
    evaluation = Evaluation([], {})
    if methods := expectation.methods():
        ok = request.method in methods or (request.method == "HEAD" and "GET" in methods)
        evaluation.checks.append(Check(ok, "to be", " or ".join(methods), f"{request.method:.40}", where="method"))
    if quick and not evaluation.ok:
        return evaluation
    checks, parameters = expectation.evaluate_path(request, context)
    evaluation.checks.extend(checks)
    evaluation.parameters.update(parameters)
    if quick and not evaluation.ok:
        return evaluation
    if not isinstance(expectation.query, UnsetType):
        evaluation.checks.extend(_check_pairs(expectation.query, request.query, "query", context))
    if not isinstance(expectation.headers, UnsetType):
        evaluation.checks.extend(check_headers(expectation.headers, request.headers, context))
    if not isinstance(expectation.form, UnsetType):
        evaluation.checks.extend(_check_pairs(expectation.form, request.form, "form", context))
    if isinstance(expectation.body, UnsetType) or (quick and not evaluation.ok):
        return evaluation
    evaluation.checks.extend(check_body(expectation.body, request, context))
    return evaluation


def _check_pairs(
    expected: Mapping[str, Header], pairs: Sequence[tuple[str, str]] | None, kind: str, context: CheckContext
) -> Iterator[Check]:
    """Check query parameters or form fields by name; None if the body is not a form."""
    if pairs is None:
        yield Check.failed("to be a web form", "a body with another Content-Type", where="body")
        return
    for name, wanted in expected.items():
        values = [value for key, value in pairs if key == name]
        yield from check_values(wanted, values, f"{kind} {name}", context.redacted_as(name))


class SharedSearcher(Searcher):
    """Searcher for several threads, one search at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = threading.Lock()
        self._ended = False

    def search(self, pattern: str, text: str, *, ignore_case: bool = False) -> Found | None:
        """Search as Searcher does."""
        try:
            with self._turn:
                return super().search(pattern, text, ignore_case=ignore_case)
        finally:
            if self._ended:
                self.end()

    def end(self) -> None:
        """Stop the child process, after a search that is running. Does not wait."""
        self._ended = True
        if self._turn.acquire(blocking=False):
            try:
                self.close()
            finally:
                self._turn.release()


class Router:
    """Selects the route of a request and records the call. Thread-safe.

    Args:
        routes: in order; the first that matches is selected.
        replies: responses of the routes by label; that under OTHERWISE if no route matches, default: a plain 404.
        hints: explain in responses of the mock itself why the request failed.
        workdir: of files that bodies are compared with.
        state: the first state.
        upstream: responds if no route matches, instead of `otherwise`.

    Attributes:
        known: routes by label, also those that were removed, for checks of previous requests.
        state: current state of the mock.
        counts: number of requests by label.
    """

    def __init__(
        self,
        name: str,
        *,
        routes: Sequence[Route],
        replies: Mapping[str, Sequence[Reply]],
        hints: bool,
        workdir: Path,
        journal: Journal,
        state: str,
        upstream: Forwarder | None = None,
    ) -> None:
        self.upstream = upstream
        self._name = name
        self._routes = tuple(routes)
        self.known = {route.label: route for route in routes}
        self.state = state
        self._replies = dict(replies)
        self._hints = hints
        self._journal = journal
        self._searcher = SharedSearcher()
        self._context = CheckContext(workdir, self._searcher, journal.redact)
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()

    def close(self) -> None:
        """Stop the process that runs regular expressions, and the upstream client after its last recording."""
        if self.upstream:
            with suppress(ext_sdk.OperationFailed):  # mock-stop reports it
                self.upstream.write()
            self.upstream.close()
        self._searcher.end()

    @property
    def labels(self) -> list[str]:
        """Return the labels of the routes, in order."""
        return [route.label for route in self._routes]

    @property
    def unreachable(self) -> list[str]:
        """Return the states that routes require, but that no route sets: only mock-update leads to them."""
        reached = {self.state, *(route.then_state for route in self._routes)}
        return sorted({state for route in self._routes for state in route.states()} - reached)

    def update(
        self, routes: Sequence[Route], replies: Mapping[str, Sequence[Reply]], remove: Sequence[str], state: str | None
    ) -> None:
        """Replace routes of the same label, add the others before all routes, remove some, and set the state.

        A route that is replaced counts its requests from 1.

        Args:
            replies: responses of the given routes by label.
        """
        given = {route.label: route for route in routes}
        with self._lock:
            kept = [given.get(route.label, route) for route in self._routes if route.label not in remove]
            added = [route for route in routes if route.label not in self.labels]
            self._routes = (*added, *kept)
            self.known |= given
            self._replies |= replies
            for label in given:
                self.counts[label] = 0
            self.state = self.state if state is None else state

    def _select(self, request: ReceivedRequest) -> tuple[str, Sequence[Reply]] | None:
        """Return label and replies of the first route that matches, and count the request; None if none matches."""
        while True:
            state = self.state
            for route in self._routes:
                if not route.states() or state in route.states():
                    evaluation = evaluate(route, request, self._context, quick=True)
                    if evaluation.ok:
                        break
            else:
                return None
            with self._lock:
                if route.states() and self.state != state:  # another request was faster
                    continue
                if isinstance(route.then_state, str):
                    self.state = route.then_state
                self.counts[route.label] += 1
                request.count = self.counts[route.label]
                replies = self._replies[route.label]
            request.parameters = evaluation.parameters
            return route.label, replies

    def respond(self, request: ReceivedRequest) -> MockResponse:
        """Return the response to a request, and record both in the journal."""
        label, problem, miss = "", "", None
        try:
            if selected := self._select(request):
                label, replies = selected
                response = answer_for(request.count, replies).render(request)
            elif self.upstream:
                label = UPSTREAM
                response, problem = self.upstream.respond(request)
            else:
                miss = self._miss(request)
                if OTHERWISE in self._replies:
                    response = self._replies[OTHERWISE][0].render(request)
                else:
                    response = self._plain(404, f"no route matches {request.method} {request.target}; {miss}")
        except (TemplateError, ext_sdk.OperationFailed) as error:
            problem = error.error if isinstance(error, ext_sdk.OperationFailed) else str(error)
            response = self._plain(500, f"{label or 'route selection'}: {problem}")
        fault = response.answer.fault if response.answer is not None else None
        answer = f"fault {fault}" if isinstance(fault, str) else str(response.status)
        self._journal.add(Call(request, label, answer, problem=problem, miss=miss))
        return response

    def _plain(self, status: int, text: str) -> MockResponse:
        return plain_response(status, f"mock {self._name!r}: {text}" if self._hints else "")

    def _miss(self, request: ReceivedRequest) -> Miss:
        evaluated: list[tuple[Evaluation, Route]] = []
        problem = ""
        for route in self._routes:
            try:
                evaluation = evaluate(route, request, self._context)
                if route.states() and self.state not in route.states():
                    wanted = " or ".join(map(quoted, route.states()))
                    evaluation.checks.append(Check(False, "to be", wanted, quoted(self.state), where="state"))  # noqa: FBT003  # as Check has it
                evaluated.append((evaluation, route))
            except ext_sdk.OperationFailed as error:  # in a member that was skipped before, as another did not hold
                problem = error.error
        if not evaluated:
            return Miss("none", [problem or "the mock has no routes"])
        nearest, route = min(evaluated, key=lambda pair: pair[0].distance)
        return Miss(route.label, failures(nearest.checks, brief=True))
