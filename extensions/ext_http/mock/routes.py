"""Which requests a route takes: by method, path, query, headers and body, with the matchers of expectations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_http.checks.body import Body, check_body
from ext_http.checks.headers import Header, Headers, check_headers, check_values
from ext_sdk.expect import Check, SearchFailed
from ext_sdk.expect.excerpt import quoted
from ext_sdk.expect.pattern import problem

from .answers import Answers  # noqa: TC001 - msgspec reads it
from .paths import PathTemplate

if TYPE_CHECKING:
    from ext_http.checks.means import Means

    from .request import Request

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


def judge(wanted: RequestExpectation, request: Request, means: Means, *, quick: bool = False) -> Judged:
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


def _method(wanted: RequestExpectation, request: Request, means: Means, judged: Judged) -> list[Check]:
    del means, judged
    several = wanted.methods()
    if not several:
        return []
    ok = request.method in several or (request.method == "HEAD" and "GET" in several)
    return [Check(ok, "to be", " or ".join(several), f"{request.method:.40}", where="method")]


def _path(wanted: RequestExpectation, request: Request, means: Means, judged: Judged) -> list[Check]:
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


def _of_path(ok: bool, what: str, expected: str, request: Request, means: Means) -> Check:
    return Check(ok, what, quoted(expected), quoted(request.path, means.redact), where="path")


def _query(wanted: RequestExpectation, request: Request, means: Means, judged: Judged) -> list[Check]:
    del judged
    if isinstance(wanted.query, UnsetType):
        return []
    checks: list[Check] = []
    for name, expectation in wanted.query.items():
        values = [value for one, value in request.query if one == name]
        checks += check_values(expectation, values, f"query {name}", means.beside(name))
    return checks


def _headers(wanted: RequestExpectation, request: Request, means: Means, judged: Judged) -> list[Check]:
    del judged
    return [] if isinstance(wanted.headers, UnsetType) else check_headers(wanted.headers, request.headers, means)


def _body(wanted: RequestExpectation, request: Request, means: Means, judged: Judged) -> list[Check]:
    del judged
    if isinstance(wanted.body, UnsetType):
        return []
    return check_body(wanted.body, request.body, request.headers, means, truncated=request.truncated)


# In this order, so that the costly ones come last.
_PARTS = (_method, _path, _query, _headers, _body)
