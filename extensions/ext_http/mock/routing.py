"""Routes of a mock: which requests they match, and which response each gives."""

from __future__ import annotations

import re
import threading
from collections import Counter
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_http.response.body_check import Body, check_body
from ext_http.response.check_context import CheckContext
from ext_http.response.header_check import Header, Headers, check_headers, check_values
from ext_sdk.expect import Check, Found, Searcher, SearchFailed
from ext_sdk.expect.check import failures
from ext_sdk.expect.format import quoted
from ext_sdk.expect.regex import problem

from .journal import Call, Miss
from .request import PathTemplate
from .response import (
    Answer,
    Answers,
    Response,
    answer_for,
    plain,
)
from .template import Unfilled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .journal import Journal
    from .request import Request
    from .response import Bodies


Part = Annotated[str, Meta(min_length=1)]
_METHOD = "^[A-Z][A-Z0-9_-]{0,31}$"

# Not as `pattern`, for the reason that checks.status has.
Method = Annotated[str, Meta(extra_json_schema={"pattern": _METHOD, "examples": ["GET", "POST"]})]
_OF_REQUESTS = ("method", "path", "pathMatches", "query", "headers", "body")


class RequestExpectation(ext_sdk.Args):
    """What a request must be; all that is given must hold."""

    method: Annotated[
        Method | Annotated[list[Method], Meta(min_length=1)] | UnsetType,
        Meta(description="One, or a list; any if left out. GET takes HEAD too"),
    ] = UNSET
    path: Annotated[
        str | UnsetType, Meta(description="The whole path, without query; {NAME} stands for a part: /cities/{city}")
    ] = UNSET
    path_matches: Annotated[
        Part | UnsetType,
        Meta(description="Regular expression (Python's re), found in the decoded path; ^ and $ for all of it"),
    ] = UNSET
    query: Annotated[
        Annotated[dict[Part, Header], Meta(min_length=1)] | UnsetType,
        Meta(description="Parameters of the query, as headers are told; there may be others"),
    ] = UNSET
    headers: Annotated[Headers | UnsetType, Meta(description="As in `expect` of `request`")] = UNSET
    body: Annotated[Body | UnsetType, Meta(description="As in `expect` of `request`")] = UNSET

    def __post_init__(self) -> None:
        for method in self.methods():
            if not re.fullmatch(_METHOD, method):
                raise ValueError(f"method: expected one in capitals, such as GET, found {method!r:.40}")
        if self.path is not UNSET:
            if self.path_matches is not UNSET:
                raise ValueError("expected one of path and pathMatches")
            PathTemplate(self.path)
        if isinstance(self.path_matches, str) and (wrong := problem(self.path_matches)):
            raise ValueError(f"pathMatches: {wrong}")

    def methods(self) -> list[str]:
        """Those that it may have; none where any may be."""
        if isinstance(self.method, UnsetType):
            return []
        return self.method if isinstance(self.method, list) else [self.method]

    def given(self) -> list[str]:
        """The names, as users write them, of what is asked of requests."""
        pairs = zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True)
        return [name for field, name in pairs if name in _OF_REQUESTS and getattr(self, field) is not UNSET]

    def described(self) -> str:
        """Method and path: `GET /cities/{city}`."""
        method = "|".join(self.methods()) or "any method"
        path = self.path if isinstance(self.path, str) else ""
        return f"{method} {path or (f'/{self.path_matches}/' if isinstance(self.path_matches, str) else 'any path')}"


class Route(RequestExpectation):
    """Which requests it takes, and what it answers."""

    name: Annotated[Part | UnsetType, Meta(description="For mock-verify and messages; method and path if left out")] = (
        UNSET
    )
    answer: Annotated[
        Answers, Meta(description="One, or a list: the first call gets the first, and so on; the last repeats")
    ]

    def __post_init__(self) -> None:
        super().__post_init__()
        parameters = None if self.path_matches is not UNSET else self.parameters()
        for answer in self.answer if isinstance(self.answer, list) else [self.answer]:
            if wrong := answer.problem(parameters):
                raise ValueError(wrong)

    def parameters(self) -> frozenset[str]:
        """The names of the parameters in its path."""
        names = PathTemplate(self.path).names if isinstance(self.path, str) else ()
        return frozenset(filter(None, names))

    @property
    def label(self) -> str:
        """Its name, or else method and path."""
        return self.name if isinstance(self.name, str) else self.described()


class Judged:
    """A request, held against what one must be.

    Attributes:
        checks: one for each comparison.
        parameters: what was found in the path.
    """

    __slots__ = ("checks", "parameters")

    def __init__(self, checks: list[Check], parameters: dict[str, str]) -> None:
        self.checks = checks
        self.parameters = parameters

    @property
    def ok(self) -> bool:
        """Whether all holds; where nothing is asked, everything does."""
        return all(check.ok for check in self.checks)

    @property
    def distance(self) -> tuple[int, ...]:
        """How far it is from what it must be: the path counts most, then the method, then how much else."""
        failed = [check.where for check in self.checks if not check.ok]
        return ("path" in failed, "method" in failed, len(failed))


def judge(wanted: RequestExpectation, request: Request, means: CheckContext, *, quick: bool = False) -> Judged:
    """Hold a request against what one must be.

    Args:
        wanted: what it must be.
        request: that came.
        means: what checks are made with.
        quick: stop where a part does not hold: whether all holds is what matters.

    Raises:
        OperationFailed: a schema that can't be used, or a file that can't be read.
    """
    judged = Judged([], {})
    for part in _PARTS:
        judged.checks += part(wanted, request, means, judged)
        if quick and not judged.ok:
            break
    return judged


def _method(wanted: RequestExpectation, request: Request, means: CheckContext, judged: Judged) -> list[Check]:
    del means, judged
    several = wanted.methods()
    if not several:
        return []
    ok = request.method in several or (request.method == "HEAD" and "GET" in several)
    return [Check(ok, "to be", " or ".join(several), f"{request.method:.40}", where="method")]


def _path(wanted: RequestExpectation, request: Request, means: CheckContext, judged: Judged) -> list[Check]:
    if isinstance(wanted.path, str):
        found = PathTemplate(wanted.path).match(request.where)
        judged.parameters = found or {}
        return [_of_path(found is not None, "to be", wanted.path, request, means)]
    if isinstance(wanted.path_matches, str):
        try:
            match = means.searcher.search(wanted.path_matches, request.path)
        except SearchFailed as error:
            return [Check.failed(f"to match {quoted(wanted.path_matches)}", f"an error: {error}", where="path")]
        if match:
            judged.parameters = {name: value for name, value in match.named.items() if value is not None}
        return [_of_path(match is not None, "to match", wanted.path_matches, request, means)]
    return []


def _of_path(ok: bool, what: str, expected: str, request: Request, means: CheckContext) -> Check:
    return Check(ok, what, quoted(expected), quoted(request.path, means.redact), where="path")


def _query(wanted: RequestExpectation, request: Request, means: CheckContext, judged: Judged) -> list[Check]:
    del judged
    if isinstance(wanted.query, UnsetType):
        return []
    checks: list[Check] = []
    for name, expectation in wanted.query.items():
        values = [value for one, value in request.query if one == name]
        checks += check_values(expectation, values, f"query {name}", means.beside(name))
    return checks


def _headers(wanted: RequestExpectation, request: Request, means: CheckContext, judged: Judged) -> list[Check]:
    del judged
    return [] if isinstance(wanted.headers, UnsetType) else check_headers(wanted.headers, request.headers, means)


def _body(wanted: RequestExpectation, request: Request, means: CheckContext, judged: Judged) -> list[Check]:
    del judged
    if isinstance(wanted.body, UnsetType):
        return []
    return check_body(wanted.body, request.body, request.headers, means, truncated=request.truncated)


# In this order, so that the costly ones come last.
_PARTS = (_method, _path, _query, _headers, _body)


class SharedSearcher(Searcher):
    """A Searcher for several threads, one search after the other."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = threading.Lock()
        self._ended = False

    def search(self, pattern: str, text: str, *, ignore_case: bool = False) -> Found | None:
        """As Searcher has it."""
        try:
            with self._turn:
                return super().search(pattern, text, ignore_case=ignore_case)
        finally:
            if self._ended:
                self.end()

    def end(self) -> None:
        """End the child process: now, or when a search that runs is over. Does not wait."""
        self._ended = True
        if self._turn.acquire(blocking=False):
            try:
                self.close()
            finally:
                self._turn.release()


class Router:
    """The routes of one mock. For any thread.

    Args:
        name: of the mock.
        routes: the first one that fits takes a request.
        otherwise: what a request gets that none takes; None: a plain 404.
        hints: say in an answer of the mock's own what is wrong with the request.
        bodies: that stand still.
        workdir: where files are that bodies are compared with.
        journal: where every request is noted.
    """

    def __init__(
        self,
        name: str,
        *,
        routes: Sequence[Route],
        otherwise: Answer | None,
        hints: bool,
        bodies: Bodies,
        workdir: Path,
        journal: Journal,
    ) -> None:
        self._name = name
        self._routes = routes
        self._otherwise = otherwise
        self._hints = hints
        self._bodies = bodies
        self._journal = journal
        self._searcher = SharedSearcher()
        self._means = CheckContext(workdir, self._searcher, journal.redact)
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()

    def close(self) -> None:
        """End the process that runs regular expressions."""
        self._searcher.end()

    def answer(self, request: Request) -> Response:
        """The answer to a request, which is noted in the journal with it."""
        label, problem, miss = "", "", None
        try:
            route = self._route(request)
            if route is None:
                miss = self._miss(request)
                response = self._unmatched(request, miss)
            else:
                label = route.label
                response = self._bodies.respond(answer_for(request.count, route.answer), request)
        except (Unfilled, ext_sdk.OperationFailed) as error:
            problem = error.error if isinstance(error, ext_sdk.OperationFailed) else str(error)
            response = self._own(500, f"{label or 'search for a route'}: {problem}")
        self._journal.add(Call(request, label, told(response), problem=problem, miss=miss))
        return response

    def _own(self, status: int, text: str) -> Response:
        return plain(status, f"mock {self._name!r}: {text}" if self._hints else "")

    def _route(self, request: Request) -> Route | None:
        for route in self._routes:
            judged = judge(route, request, self._means, quick=True)
            if judged.ok:
                with self._lock:
                    self.counts[route.label] += 1
                    request.count = self.counts[route.label]
                request.parameters = judged.parameters
                return route
        return None

    def _unmatched(self, request: Request, miss: Miss) -> Response:
        if self._otherwise is not None:
            return self._bodies.respond(self._otherwise, request)
        return self._own(404, f"no route takes {request.method} {request.target}; {miss}")

    def _miss(self, request: Request) -> Miss:
        judged: list[tuple[Judged, Route]] = []
        problem = ""
        for route in self._routes:
            try:
                judged.append((judge(route, request, self._means), route))
            except ext_sdk.OperationFailed as error:  # of a part that did not matter: another part does not hold
                problem = error.error
        if not judged:
            return Miss(self._routes[0].label, [problem])
        nearest, route = min(judged, key=lambda one: one[0].distance)
        return Miss(route.label, failures(nearest.checks))


def told(response: Response) -> str:
    """What a request got, in the journal: a status, or the fault in its place."""
    fault = response.answer.fault if response.answer is not None else None
    return f"fault {fault}" if isinstance(fault, str) else str(response.status)
