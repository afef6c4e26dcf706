"""Results of operations: checked response, captures, outputs and message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Protocol

from msgspec import UNSET, Meta, field

import ext_sdk
from ext_http.request.args import RequestArgs
from ext_http.request.body import pairs
from ext_http.request.send import RequestSpec
from ext_http.response.capture import Capture, Captured, capture_all, check_names
from ext_http.response.excerpt import excerpt, show, status_line, whole
from ext_http.response.expectations import DEFAULT_STATUS, Expect, check
from ext_sdk.expect import failure_text, summary

if TYPE_CHECKING:
    from ext_http.client.response import Response
    from ext_http.request.args import TlsArgs
    from ext_sdk.expect import Check, Searcher


DEFAULT = Expect(status=DEFAULT_STATUS)


class CheckedRequestArgs(RequestArgs):
    """What to ask, what to expect of the answer, and what to keep of it."""

    expect: Annotated[
        Expect, Meta(description="Expected response; its `status` is 200 to 299 unless it is given here")
    ] = DEFAULT
    capture: Annotated[dict[str, Capture], Meta(description="Parts of the answer that become outputs, by name")] = (
        field(default_factory=dict)
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if str(self.method).upper() == "HEAD" and self.expect.body is not UNSET:
            raise ValueError("expect.body: a response to HEAD has no body, so nothing would be checked")


class HasTls(Protocol):
    """Arguments that say how far servers are believed."""

    @property
    def tls(self) -> TlsArgs:
        """See TlsArgs."""


class Judgeable(HasTls, Protocol):
    """Arguments of an operation that judges an answer."""

    @property
    def expect(self) -> Expect: ...
    @property
    def capture(self) -> dict[str, Capture]: ...
    @property
    def redirects(self) -> int: ...


class CheckedResponse:
    """An answer, and what came of the checks.

    Args:
        args: of the operation.
        answer: what came.
        context: of the call.
        searcher: for regular expressions.
        expect: what must hold; that of the arguments where left out.
        checks: further ones.
    """

    def __init__(
        self,
        args: Judgeable,
        answer: Response,
        context: ext_sdk.Context,
        searcher: Searcher,
        *,
        expect: Expect | None = None,
        checks: list[Check] | None = None,
    ) -> None:
        self.answer = answer
        self._args = args
        self._context = context
        self.captured: Captured = capture_all(args.capture, answer, context.secrets, searcher)
        made = check(expect or args.expect, answer, context, searcher)
        self.checks = [*made, *(checks or []), *self.captured.failures]

    @property
    def good(self) -> bool:
        """Whether all that was expected holds."""
        return all(check.ok for check in self.checks)

    def told(self) -> str:
        """What does not hold, and what the answer was, for the text of a failure."""
        answer = self.answer
        parts = [failure_text(self.checks), f"answer: {status_line(answer)}"]
        if self.captured.withheld:
            parts.append("its body is not shown, for a secret may be in it that can't be hidden")
        else:
            shown = excerpt(answer, self._context.secrets)
            parts.append(f"body: {shown}" if shown else "without a body")
        if answer.status // 100 == 3 and not self._args.redirects and (where := answer.values("location")):
            parts.append(f"it redirects to {where[0]:.300}, and `redirects` says how many to follow (none)")
        return "; ".join(filter(None, parts))

    def outputs(self, attempts: int, seconds: float) -> dict[str, str | int | bool]:
        """Status, body and the rest. A long body is written to a file now."""
        outputs: dict[str, str | int | bool] = {"status": self.answer.status}
        if self.captured.withheld:
            outputs["body"] = "[withheld: a secret was to be captured from this body, and can't be hidden in it]"
        else:
            outputs["body"], path = show(self.answer, self._context)
            outputs |= {"bodyFile": path} if path else {}
        outputs |= {"duration": rounded(seconds), "url": self.answer.url, "attempts": attempts}
        return outputs | self.captured.values

    def whole(self) -> dict[str, str | ext_sdk.NotKept]:
        """Return the complete values of outputs that are shown shortened or redacted."""
        if self.captured.withheld:
            return {"body": ext_sdk.NotKept("a secret that can't be redacted may be in the body")}
        return {"body": whole(self.answer)}

    def result(self, where: str, *, attempts: int = 1, notes: str = "") -> ext_sdk.Result:
        """The result of an operation that asks once.

        Args:
            where: method and URL.
            attempts: how often it was asked.
            notes: what else is to be said.
        """
        outputs = self.outputs(attempts, self.answer.elapsed)
        message = f"{where}: status {self.answer.status} after {outputs['duration']}, {summary(self.checks)}"
        message += notes_of(self._args, self.answer) + notes
        return ext_sdk.Result(
            success=self.good,
            message=message,
            error="" if self.good else f"{where}: {self.told()}{notes_of(self._args, self.answer)}{notes}",
            outputs=outputs,
            secret_outputs=self.captured.secrets,
            whole=self.whole(),
        )


def request_spec(args: CheckedRequestArgs) -> RequestSpec:
    """What is asked, beside where. Raises InvalidArgs for captures that can't be outputs."""
    check_names(args.capture)
    return RequestSpec(
        method="" if args.method is UNSET else args.method,
        query=tuple(pairs(args.query)),
        body=None if args.body is UNSET else args.body,
        max_body=args.max_body,
    )


def notes_of(args: HasTls, answer: Response | None = None) -> str:
    """What a reader has to know about how it was asked; "" for nothing."""
    found = ["; the server's certificate was not verified (tls.insecure)"] if args.tls.insecure else []
    if answer is not None and answer.hops:
        found.append(f"; redirected {len(answer.hops)} time{'s' if len(answer.hops) > 1 else ''}, to {answer.url}")
    if answer is not None and answer.truncated:
        found.append("; the body is cut: it is larger than maxBody, or grows too much when it is decoded")
    return "".join(found)


def rounded(seconds: float) -> str:
    """A duration in whole milliseconds, at least one."""
    return str(ext_sdk.Duration(max(1, round(seconds * 1000)) * 1_000_000))
