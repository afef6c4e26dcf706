"""Results of operations: checked response, captures, outputs and message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_http.client.response import excerpt, show, status_line, whole
from ext_http.request.args import RequestArgs
from ext_http.request.body import pairs
from ext_http.request.send import RequestSpec
from ext_http.response.events import MEDIA_TYPE, events_json
from ext_http.response.expectations import DEFAULT_STATUS, Expect
from ext_http.response.header_check import cookies_of
from ext_http.response.outcome import OutcomeExpect, RequestExpect, check_failure, check_outcome
from ext_sdk.capture import CaptureArgs, Captured, NotFound, capture_all, check_names, find_in_text
from ext_sdk.core.text import counted
from ext_sdk.expect import failure_text, summary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ext_http.client.errors import ExchangeFailed
    from ext_http.client.response import Response
    from ext_http.request.args import TlsArgs
    from ext_http.request.send import PreparedRequest
    from ext_sdk.expect import Check, Searcher


JsonType = Literal["null", "boolean", "integer", "number", "string", "array", "object"]

NOTHING_CAPTURED = Captured()  # never changed
# Names of the other outputs of operations with captures.
RESERVED = frozenset({"status", "body", "bodyFile", "duration", "url", "attempts", "failure", "done"})


class Capture(CaptureArgs):
    """Part of a response to capture as an output. Strings stay unchanged ("007" is not 7), integers are exact."""

    from_: Annotated[
        Literal["body", "events", "header", "cookie", "status", "url"],
        Meta(description="Part of the response to search"),
    ] = field(default="body", name="from")
    header: Annotated[
        Annotated[str, Meta(min_length=1)] | UnsetType,
        Meta(description="Name of the header; the first value counts if it is repeated"),
    ] = UNSET
    cookie: Annotated[
        Annotated[str, Meta(min_length=1)] | UnsetType, Meta(description="Name of a cookie that the response sets")
    ] = UNSET
    type: Annotated[JsonType | UnsetType, Meta(description="Required type of the value at `json`")] = UNSET

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("header", self.header), ("cookie", self.cookie)):
            if (value is UNSET) == (self.from_ == name):
                raise ValueError(f"{name} and `from: {name}` require each other")
        if self.json is not UNSET and (self.from_ not in {"body", "events"} or self.regex is not UNSET):
            raise ValueError("json applies to the body or the events and excludes regex")
        if self.type is not UNSET and self.json is UNSET:
            raise ValueError("type requires json")


def capture_response(
    captures: Mapping[str, Capture], response: Response, secrets: ext_sdk.Secrets, searcher: Searcher
) -> Captured:
    """Return the captured values. Secret values are redacted from here on."""
    if not captures:
        return NOTHING_CAPTURED

    def find(capture: Capture) -> str:
        text = {"status": str(response.status), "url": response.url}.get(capture.from_, "")
        if capture.from_ == "header":
            values = response.values(str(capture.header))
            if not values:
                raise NotFound(f"no header {capture.header}")
            text = values[0]
        elif capture.from_ == "cookie":
            cookies = cookies_of(response.headers)
            if capture.cookie not in cookies:
                raise NotFound(f"no cookie {capture.cookie}; the response sets {', '.join(cookies) or 'none'}")
            text = cookies[str(capture.cookie)].value
        elif capture.from_ == "events":
            text = events_json(response.body)
        elif capture.from_ == "body":
            if response.truncated:
                raise NotFound("only a part of the body: it is larger than maxBody")
            text = response.text
        return find_in_text(capture, text, searcher, kind="" if capture.type is UNSET else capture.type)

    sources = {"body", *(capture.from_ for capture in captures.values() if capture.from_ == "events")}
    return capture_all(captures, find, dict.fromkeys(sources, response.text), secrets, searcher)


DEFAULT = Expect(status=DEFAULT_STATUS)


NO_FAILURE = RequestExpect(status=DEFAULT_STATUS)


class CheckedRequestArgs(RequestArgs):
    """Request, expected response, and parts of the response to capture."""

    expect: Annotated[
        RequestExpect, Meta(description="Expected response; `status` is 200 to 299 unless it is given here")
    ] = NO_FAILURE
    capture: Annotated[
        dict[str, Capture], Meta(description="Parts of the response to capture as outputs, by output name")
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if str(self.method).upper() == "HEAD" and self.expect.body is not UNSET:
            raise ValueError("expect.body: a response to HEAD has no body, so nothing would be checked")
        if self.capture and self.expect.failures:
            raise ValueError("capture: `expect.failure` expects no response, so nothing can be captured")


class HasTls(Protocol):
    """Arguments with TLS settings."""

    @property
    def tls(self) -> TlsArgs: ...


class OutcomeArgs(HasTls, Protocol):
    """Arguments of an operation that may expect a failure."""

    @property
    def expect(self) -> OutcomeExpect: ...


class ResponseArgs(HasTls, Protocol):
    """Arguments of an operation that checks a response."""

    @property
    def expect(self) -> Expect: ...
    @property
    def capture(self) -> dict[str, Capture]: ...
    @property
    def redirects(self) -> int: ...


class CheckedResponse:
    """Response with its captures and the checks made of it.

    Args:
        expect: expectation, if it is not that of the arguments.
    """

    def __init__(
        self,
        args: ResponseArgs,
        response: Response,
        context: ext_sdk.Context,
        searcher: Searcher,
        *,
        expect: Expect | None = None,
        checks: list[Check] | None = None,
    ) -> None:
        self.response = response
        self._args = args
        self._context = context
        self.captured = capture_response(args.capture, response, context.secrets, searcher)
        expected = check_outcome(expect or args.expect, response, context, searcher)
        self.checks = [*expected, *(checks or []), *self.captured.failures]
        self.ok = all(check.ok for check in self.checks)

    def failure(self) -> str:
        """Return the failed checks and a description of the response, for the error."""
        response = self.response
        parts = [failure_text(self.checks), f"response: {status_line(response)}"]
        if self.captured.withheld:
            parts.append("its body is not shown: it may contain a secret that can't be redacted")
        else:
            body = excerpt(response, self._context.secrets)
            parts.append(f"body: {body}" if body else "empty body")
        if response.status // 100 == 3 and not self._args.redirects and (locations := response.values("location")):
            parts.append(f"it redirects to {locations[0]:.300}; set `redirects` to follow redirects")
        return "\n".join(filter(None, parts))

    def outputs(self, attempts: int, seconds: float) -> dict[str, str | int | bool]:
        """Return the outputs. A long body is written to a file."""
        outputs: dict[str, str | int | bool] = {"status": self.response.status}
        if self.captured.withheld:
            outputs["body"] = "[withheld: a captured secret can't be redacted in this body]"
        else:
            outputs["body"], path = show(self.response, self._context)
            outputs |= {"bodyFile": path} if path else {}
        outputs |= {"duration": rounded(seconds), "url": self.response.url, "attempts": attempts}
        return outputs | self.captured.values

    def whole(self) -> dict[str, str | ext_sdk.NotKept]:
        """Return the complete values of outputs that are shown shortened or redacted."""
        if self.captured.withheld:
            return {"body": ext_sdk.NotKept("a secret that can't be redacted may be in the body")}
        return {"body": whole(self.response)}

    def result(self, where: str) -> ext_sdk.Result:
        """Return the result of an operation that sends one request."""
        outputs = self.outputs(1, self.response.elapsed)
        notes = notes_of(self._args, self.response)
        message = f"{where}: status {self.response.status} after {outputs['duration']}, {summary(self.checks)}{notes}"
        return ext_sdk.Result(
            success=self.ok,
            message=message,
            error="" if self.ok else f"{self.failure()}\nrequest: {where}{notes}",
            outputs=outputs,
            secret_outputs=self.captured.secrets,
            whole=self.whole(),
        )


def request_spec(args: CheckedRequestArgs) -> RequestSpec:
    """Return the request of the arguments. Raises InvalidArgs if a capture's name is not a valid output name."""
    if args.capture:
        check_names(args.capture, RESERVED)
    return RequestSpec(
        method="" if args.method is UNSET else args.method,
        query=tuple(pairs(args.query)) if args.query else (),
        body=None if args.body is UNSET else args.body,
        max_body=args.max_body,
        accept="*/*" if args.expect.events is UNSET else MEDIA_TYPE,
        path_as_is=args.path_as_is,
        events=0 if isinstance(args.expect.events, UnsetType) else len(args.expect.events),
        fresh=bool(args.expect.failures),
    )


def failure_result(
    args: OutcomeArgs, failure: ExchangeFailed, prepared: PreparedRequest, *, attempts: int, seconds: float
) -> ext_sdk.Result:
    """Return the result of an exchange that failed although a failure was expected: success if it is that one.

    Raises:
        ExchangeFailed: the same, if a response was expected.
    """
    if not args.expect.failures:
        raise failure
    check = check_failure(args.expect.failures, failure)
    outputs: dict[str, str | int | bool] = {
        "failure": failure.failure or failure.kind,
        "duration": rounded(seconds),
        "url": prepared.url,
        "attempts": attempts,
    }
    after = f"after {outputs['duration']}"
    if check.ok:
        message = f"{prepared.where}: {failure.failure} as expected {after}: {failure.reason}{notes_of(args)}"
        return ext_sdk.Result.ok(message, outputs=outputs)
    error = "; ".join(filter(None, [f"{prepared.where}: {check.brief}", failure.details]))
    message = f"{prepared.where}: {failure.reason} {after}, {summary([check])}"
    return ext_sdk.Result.failed(message, error=error, outputs=outputs)


def notes_of(args: HasTls, response: Response | None = None) -> str:
    """Return remarks for the message: unverified certificate, redirects, cut body; "" for none."""
    notes = "; the server's certificate was not verified (tls.insecure)" if args.tls.insecure else ""
    if response is not None and response.hops:
        notes += f"; redirected {counted(len(response.hops), 'time')}, to {response.url}"
    if response is not None and response.truncated:
        notes += "; the body is cut: it exceeds maxBody, or expands too much when decoded"
    return notes


def rounded(seconds: float) -> str:
    """Return a duration in whole milliseconds, at least one."""
    return str(ext_sdk.Duration(max(1, round(seconds * 1000)) * 1_000_000))
