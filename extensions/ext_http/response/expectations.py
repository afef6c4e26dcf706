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
from .check_context import CheckContext
from .header_check import Headers, check_headers

if TYPE_CHECKING:
    from ext_http.client.response import Response
    from ext_sdk import Context


_CODES = "^([1-5]xx|[1-5][0-9][0-9](-[1-5][0-9][0-9])?)$"

# Not as `pattern`: where a string with one may also be a list, msgspec 0.22 frees memory that it does not own.
Codes = Annotated[str, Meta(extra_json_schema={"pattern": _CODES, "examples": ["2xx", "200-299"]})]
One = Annotated[int, Meta(ge=100, le=599)] | Codes
Several = Annotated[list[One], Meta(min_length=1)]


class StatusExpectation(Expectation):
    """What a status code must not be."""

    not_: Annotated[One | Several, Meta(description="None of these: 404, 5xx, 300-399, or a list of such")] = field(
        name="not"
    )

    def __post_init__(self) -> None:
        refuse_no_codes(self.not_)


# As users write it: 200, "2xx", "200-299", [200, "3xx"], {"not": "5xx"}.
Status = One | Several | StatusExpectation


def refuse_no_codes(status: Status) -> None:
    """Raise ValueError for what is no code, class or range of codes, and for a range that ends before it begins."""
    if isinstance(status, StatusExpectation):
        return
    for one in status if isinstance(status, list) else [status]:
        if isinstance(one, str) and not re.fullmatch(_CODES, one):
            raise ValueError(f"status: expected a code, 2xx, or 200-299, found {one!r:.40}")
        lowest, highest = _bounds(one)
        if lowest > highest:
            raise ValueError(f"status: expected a range from low to high, found {one}")


def check_status(expectation: Status, status: int) -> Check:
    """Hold a status code against an expectation."""
    wanted = expectation.not_ if isinstance(expectation, StatusExpectation) else expectation
    several = wanted if isinstance(wanted, list) else [wanted]
    among = any(lowest <= status <= highest for lowest, highest in map(_bounds, several))
    text = ", ".join(map(str, several))
    if isinstance(expectation, StatusExpectation):
        return Check(not among, "not to be", text, str(status), where="status")
    return Check(among, "to be" if len(several) == 1 else "to be one of", text, str(status), where="status")


def _bounds(one: int | str) -> tuple[int, int]:
    if isinstance(one, int):
        return one, one
    if one.endswith("xx"):
        return int(one[0]) * 100, int(one[0]) * 100 + 99
    lowest, _, highest = one.partition("-")
    return int(lowest), int(highest or lowest)


DEFAULT_STATUS = "2xx"
LONGEST = timedelta(days=290 * 365)  # a Duration has no more than 292 years; a certificate may have 9999


class Expect(Expectation):
    """Expected response; all that is given must hold, and a status of 200 to 299 unless `status` is given."""

    status: Annotated[
        Status | UnsetType,
        Meta(
            description='200, "2xx", "200-299", [200, "3xx"], {"not": "5xx"}; 200 to 299 if left out, also if other '
            'members of `expect` are given; "100-599" accepts any'
        ),
    ] = UNSET
    headers: Annotated[
        Headers | UnsetType,
        Meta(
            description="By name: the complete value, the values of a repeated one in their order, or an object. "
            "application/json is not application/json; charset=utf-8: use startsWith"
        ),
    ] = UNSET
    body: Annotated[
        Body | UnsetType,
        Meta(
            description="A text that it must equal, but for one line ending at the end, or an object. In JSON types "
            'count: "1" is not 1, true is not 1, integers are exact; 1.0 is 1'
        ),
    ] = UNSET
    duration: Annotated[
        DurationExpectation | UnsetType, Meta(description="How long it may have taken, redirects and body included")
    ] = UNSET
    certificate_expiry: Annotated[
        DurationExpectation | UnsetType,
        Meta(
            description="How long the server's certificate is still valid, less than 0s where it is not; 720h: 30 days"
        ),
    ] = UNSET

    def __post_init__(self) -> None:
        self.refuse_empty()
        if not isinstance(self.status, UnsetType):
            refuse_no_codes(self.status)


def check(expectation: Expect, answer: Response, context: Context, searcher: Searcher | None = None) -> list[Check]:
    """Hold an answer against an expectation; secrets are not shown.

    Args:
        expectation: what was expected.
        answer: what came.
        context: of the call: files are in its workdir.
        searcher: runs the regular expressions; one is made and ended where left out.

    Returns:
        One Check for each comparison.

    Raises:
        OperationFailed: what no other answer would mend: a schema that can't be used, a file that can't be read.
    """
    if searcher is None:
        with Searcher(deadline=context.deadline) as own:
            return check(expectation, answer, context, own)
    means = CheckContext.of(context, searcher)
    status = DEFAULT_STATUS if isinstance(expectation.status, UnsetType) else expectation.status
    checks = [*_of_the_end(answer, means), check_status(status, answer.status)]
    if not isinstance(expectation.headers, UnsetType):
        checks += check_headers(expectation.headers, answer.headers, means)
    if not isinstance(expectation.body, UnsetType):
        checks += check_body(expectation.body, answer.body, answer.headers, means, truncated=answer.truncated)
    if not isinstance(expectation.duration, UnsetType):
        checks += check_duration(expectation.duration, Duration.from_seconds(answer.elapsed), where="duration")
    if not isinstance(expectation.certificate_expiry, UnsetType):
        checks += _of_certificate(expectation.certificate_expiry, answer)
    return checks


def _of_the_end(answer: Response, means: CheckContext) -> list[Check]:
    """A failed check where the server sent more than the response: it would be taken for the next one."""
    if not answer.excess:
        return []
    more = quoted(answer.excess.decode("utf-8", "replace"), means.redact)
    found = f"{len(answer.excess):,} bytes more: {more}; the server declares another length than it sends"
    return [Check.failed("to end at its declared length", found, where="response")]


def _of_certificate(expectation: DurationExpectation, answer: Response) -> list[Check]:
    where = "time until the certificate expires"
    expires = answer.peer_certificate_expires
    if expires is None:
        return [Check.failed("to be known", "no certificate: the connection was not by TLS", where=where)]
    left, longest = expires.timestamp() - time.time(), LONGEST.total_seconds()
    return check_duration(expectation, Duration.from_seconds(max(-longest, min(left, longest))), where=where)
