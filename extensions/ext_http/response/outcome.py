"""Expected outcome of a request: a response with cookies and events, or a failure instead of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType

from ext_http.client.errors import ExchangeFailed, Failure
from ext_http.client.response import status_line
from ext_sdk.expect import Check

from .events import Events, check_events
from .expectations import Expect, check
from .header_check import CheckContext, Cookies, check_cookies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ext_http.client.response import Response
    from ext_sdk import Context
    from ext_sdk.expect import Searcher


class OutcomeExpect(Expect):
    """Expected response; or the failure that must occur instead of a response."""

    failure: Annotated[
        Failure | Annotated[list[Failure], Meta(min_length=1)] | UnsetType,
        Meta(
            description="Failure that must occur instead of a response, or a list of accepted ones. refused: nothing "
            "accepts connections there. reset: connection reset, or closed before the end of a response. tls: no "
            "TLS handshake, or a certificate is not accepted. dns: unknown host. timeout: no response in time"
        ),
    ] = UNSET

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.failure is not UNSET and (others := self.given(besides=("failure",))):
            raise ValueError(f"`failure` expects no response, so it excludes {', '.join(others)}")

    @property
    def failures(self) -> list[Failure]:
        """Return the accepted failures; empty if a response is expected."""
        if isinstance(self.failure, UnsetType):
            return []
        return self.failure if isinstance(self.failure, list) else [self.failure]


class RequestExpect(OutcomeExpect):
    """Expected response, with cookies and events; or the failure that must occur instead of a response."""

    cookies: Annotated[
        Cookies | UnsetType, Meta(description="Cookies that the response sets, by name: the value, or an object")
    ] = UNSET
    events: Annotated[
        Events | UnsetType,
        Meta(
            description="First events of a stream (text/event-stream), in order: the data of each, or an object. The "
            "response is read up to the last of them"
        ),
    ] = UNSET

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.events is not UNSET and self.body is not UNSET:
            raise ValueError("`events` reads a part of the body only, so it excludes body")


def check_failure(accepted: Sequence[Failure], outcome: Response | ExchangeFailed) -> Check:
    """Check that an exchange failed in one of the accepted ways.

    Args:
        outcome: of the exchange: a response, which is never as expected, or a failure.
    """
    if isinstance(outcome, ExchangeFailed):
        ok, found = outcome.failure in accepted, f"{outcome.failure or outcome.kind}: {outcome.reason}"
    else:
        ok, found = False, f"a response: {status_line(outcome)}"
    return Check(ok, "to be", " or ".join(accepted), found, where="failure")


def check_outcome(expectation: Expect, response: Response, context: Context, searcher: Searcher) -> list[Check]:
    """Check a response against an expectation. Raises what `check` does."""
    if isinstance(expectation, OutcomeExpect) and expectation.failures:
        return [check_failure(expectation.failures, response)]
    checks = check(expectation, response, context, searcher)
    if not isinstance(expectation, RequestExpect):
        return checks
    check_context = CheckContext(context.workdir, searcher, context.secrets.redact)
    if not isinstance(expectation.cookies, UnsetType):
        checks += check_cookies(expectation.cookies, response.headers, check_context)
    if not isinstance(expectation.events, UnsetType):
        checks += check_events(expectation.events, response, check_context)
    return checks
