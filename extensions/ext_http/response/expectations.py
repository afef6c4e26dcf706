"""Expectations on a response: status, headers, body, duration, certificate."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType, field

from ext_sdk import Duration
from ext_sdk.expect import Check, DurationExpectation, Expectation, Searcher, check_duration
from ext_sdk.expect.format import quoted

from .body_check import Body, check_body
from .header_check import CheckContext, Headers, check_headers

if TYPE_CHECKING:
    from ext_http.client.response import Response
    from ext_sdk import Context


_STATUS_RANGE = "^([1-5]xx|[1-5][0-9][0-9](-[1-5][0-9][0-9])?)$"

# Not as `pattern`: in a union of a list and a string with a pattern, msgspec 0.22 frees memory that it does not own.
StatusRange = Annotated[str, Meta(extra_json_schema={"pattern": _STATUS_RANGE, "examples": ["2xx", "200-299"]})]
SingleStatus = Annotated[int, Meta(ge=100, le=599)] | StatusRange
StatusList = Annotated[list[SingleStatus], Meta(min_length=1)]


class StatusExpectation(Expectation):
    """Status codes that are not accepted."""

    not_: Annotated[
        SingleStatus | StatusList, Meta(description="None of these: 404, 5xx, 300-399, or a list of such")
    ] = field(name="not")

    def __post_init__(self) -> None:
        check_ranges(self.not_)


# As users write it: 200, "2xx", "200-299", [200, "3xx"], {"not": "5xx"}.
Status = SingleStatus | StatusList | StatusExpectation


def check_ranges(status: SingleStatus | StatusList) -> None:
    """Raise ValueError for a text that is not a code, class or range of codes, or for an empty range."""
    for single in status if isinstance(status, list) else [status]:
        if isinstance(single, str) and not re.fullmatch(_STATUS_RANGE, single):
            raise ValueError(f"status: expected a code, 2xx, or 200-299, found {single!r:.40}")
        lowest, highest = _bounds(single)
        if lowest > highest:
            raise ValueError(f"status: expected a range from low to high, found {single}")


def check_status(expectation: Status, status: int) -> Check:
    """Check a status code against an expectation."""
    excluding = isinstance(expectation, StatusExpectation)
    expected = expectation.not_ if isinstance(expectation, StatusExpectation) else expectation
    ranges = expected if isinstance(expected, list) else [expected]
    included = False
    for single in ranges:
        lowest, highest = _bounds(single)
        included = included or lowest <= status <= highest
    what = "not to be" if excluding else "to be" if len(ranges) == 1 else "to be one of"
    return Check(included != excluding, what, ", ".join(map(str, ranges)), str(status), where="status")


def _bounds(single: int | str) -> tuple[int, int]:
    if isinstance(single, int):
        return single, single
    if single.endswith("xx"):
        return int(single[0]) * 100, int(single[0]) * 100 + 99
    lowest, _, highest = single.partition("-")
    return int(lowest), int(highest or lowest)


DEFAULT_STATUS = "2xx"
MAX_DURATION = timedelta(days=290 * 365)  # a Duration is limited to 292 years; a certificate may be valid until 9999


class Expect(Expectation):
    """Expected response; all members given must hold, and a status of 200 to 299 unless `status` is given."""

    status: Annotated[
        Status | UnsetType,
        Meta(
            description='200, "2xx", "200-299", [200, "3xx"], {"not": "5xx"}; 200 to 299 by default, also if other '
            'members of `expect` are given; "100-599" accepts any'
        ),
    ] = UNSET
    headers: Annotated[
        Headers | UnsetType,
        Meta(
            description="Headers by name: the complete value, the values of a repeated header in order, or an object. "
            "application/json is not application/json; charset=utf-8: use startsWith"
        ),
    ] = UNSET
    body: Annotated[
        Body | UnsetType,
        Meta(
            description="Complete text, apart from one final line ending, or an object. JSON types matter: "
            '"1" is not 1, true is not 1, integers are exact; 1.0 equals 1'
        ),
    ] = UNSET
    duration: Annotated[
        DurationExpectation | UnsetType, Meta(description="Duration of the request, redirects and body included")
    ] = UNSET
    certificate_expiry: Annotated[
        DurationExpectation | UnsetType,
        Meta(description="Time until the server's certificate expires, negative if it has expired; 720h is 30 days"),
    ] = UNSET

    def __post_init__(self) -> None:
        self.refuse_empty()
        if not isinstance(self.status, (UnsetType, StatusExpectation)):
            check_ranges(self.status)


def check(expectation: Expect, response: Response, context: Context, searcher: Searcher) -> list[Check]:
    """Check a response against an expectation. Secrets are redacted in the checks.

    Args:
        expectation: all of its members must hold.
        response: to check.
        context: of the call; files are read from its workdir.
        searcher: runs the regular expressions.

    Raises:
        OperationFailed: a schema or a file is not usable, whatever the response.
    """
    check_context = CheckContext(context.workdir, searcher, context.secrets.redact)
    checks = []
    if response.excess:  # the client would take it for the next response
        excess = quoted(response.excess.decode("utf-8", "replace"), context.secrets.redact)
        found = f"{len(response.excess):,} bytes more: {excess}; the server declares another length than it sends"
        checks.append(Check.failed("to end at its declared length", found, where="response"))
    status = DEFAULT_STATUS if isinstance(expectation.status, UnsetType) else expectation.status
    checks.append(check_status(status, response.status))
    if not isinstance(expectation.headers, UnsetType):
        checks += check_headers(expectation.headers, response.headers, check_context)
    if not isinstance(expectation.body, UnsetType):
        checks += check_body(expectation.body, response, check_context)
    if not isinstance(expectation.duration, UnsetType):
        checks += check_duration(expectation.duration, Duration.from_seconds(response.elapsed), where="duration")
    if not isinstance(expectation.certificate_expiry, UnsetType):
        where, expires = "time until the certificate expires", response.peer_certificate_expires
        if expires is None:
            found = "no certificate: the connection did not use TLS"
            return [*checks, Check.failed("to be known", found, where=where)]
        seconds, longest = expires.timestamp() - time.time(), MAX_DURATION.total_seconds()
        left = Duration.from_seconds(max(-longest, min(seconds, longest)))
        checks += check_duration(expectation.certificate_expiry, left, where=where)
    return checks
