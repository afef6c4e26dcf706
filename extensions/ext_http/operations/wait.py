"""Operation `wait`: repeat a request until the response is as expected, cannot become so, or time is up."""

from __future__ import annotations

import base64
import os
import time
from datetime import UTC
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import UNSET, Meta

import ext_sdk
from ext_http.client.errors import ExchangeFailed
from ext_http.client.response import status_line
from ext_http.request.send import PreparedRequest, Upgrade, is_websocket, websocket_headers
from ext_http.response.outcome import RequestExpect, check_failure
from ext_http.result import (
    NO_FAILURE,
    CheckedRequestArgs,
    CheckedResponse,
    failure_result,
    notes_of,
    request_spec,
    rounded,
)
from ext_sdk.core.text import counted
from ext_sdk.expect import Searcher, summary
from ext_sdk.expect.check import failures
from ext_sdk.polling import attempts_until, exponential

from . import OUTCOME

if TYPE_CHECKING:
    from collections.abc import Callable

PermanentFailure = (
    Annotated[int, Meta(ge=100, le=599)] | Literal["certificate", "tls", "protocol", "unknown-host", "connection"]
)

# Time does not change these: the request is refused, the resource has moved, or the server can't be trusted.
DEFAULT_GIVE_UP_ON: tuple[PermanentFailure, ...] = (
    301,
    308,
    400,
    401,
    403,
    405,
    407,
    410,
    414,
    415,
    431,
    501,
    505,
    "certificate",
    "tls",
)

ALWAYS_PERMANENT = frozenset({"address", "redirect", "stopped"})
MAX_OUTCOMES = 6  # listed in an error
RESERVE_SHARE = 0.2  # of all the time, at most, is reserved for the last attempt
MIN_RESERVE = 0.25  # seconds; a busy machine may need that for a response that takes a millisecond
MAX_RESERVE = 1.0  # seconds
MAX_RETRY_AFTER_DIGITS = 9  # more is over thirty years


class Wait(CheckedRequestArgs):
    """Arguments of `wait`."""

    interval: Annotated[
        ext_sdk.Duration, Meta(description="Pause before the second attempt; later pauses grow by half, with jitter")
    ] = ext_sdk.Duration.parse("100ms")
    max_interval: Annotated[ext_sdk.Duration, Meta(description="Maximum pause between attempts")] = (
        ext_sdk.Duration.parse("2s")
    )
    attempt_timeout: Annotated[
        ext_sdk.Duration, Meta(description="Maximum time of one attempt; `timeout` limits all attempts together")
    ] = ext_sdk.Duration.parse("5s")
    successes: Annotated[
        int, Meta(ge=1, le=1000, description="Number of consecutive responses that must be as expected")
    ] = 1
    on_timeout: ext_sdk.OnTimeout = "fail"
    give_up_on: Annotated[
        tuple[PermanentFailure, ...],
        Meta(
            description="Statuses, unless `expect.status` accepts them, and kinds of failure that end the wait at "
            "once. An unknown host is retried unless unknown-host is listed"
        ),
    ] = DEFAULT_GIVE_UP_ON

    def __post_init__(self) -> None:
        super().__post_init__()
        given = "method" if self.method not in {UNSET, "GET"} else "body" if self.body is not UNSET else ""
        given = given or ("httpVersion" if self.http_version != "1.1" else "")
        if given and is_websocket(self.url):
            raise ValueError(f"{given}: a WebSocket is opened by GET over HTTP/1.1, without a body")
        for name, value in (("interval", self.interval), ("attemptTimeout", self.attempt_timeout)):
            if value.seconds <= 0:
                raise ValueError(f"{name}: expected a duration over 0, found {value}")


def wait(args: Wait, context: ext_sdk.Context) -> ext_sdk.Result:
    """Repeat a request until the response is as expected; fail early if it cannot become so.

    The first attempt is made at once, the last one shortly before `timeout`. Refused connections, unknown hosts and
    unexpected responses are retried; `giveUpOn` lists what is not. A failure reports the outcomes of all attempts and
    the last response. With a ws:// or wss:// URL, it waits until a WebSocket is opened, and closes it.
    """
    spec, expect = request_spec(args), args.expect
    if is_websocket(args.url):
        key = base64.b64encode(os.urandom(16)).decode()
        spec = spec._replace(upgrade=Upgrade(websocket_headers(key), lambda _connection, _headers: None))
        if not expect.failures and (expect is NO_FAILURE or expect.status is UNSET):
            expect = msgspec.structs.replace(expect, status=101)
    prepared = PreparedRequest(args, spec, context)
    with Searcher(deadline=context.deadline) as searcher:
        loop = _WaitLoop(args, context, prepared, searcher, expect)
        result = loop.run()
        return ext_sdk.conclude_wait(result, args.on_timeout, timed_out=loop.timed_out, last_seen=loop.mismatch)


class _WaitLoop:
    """Attempts of one call."""

    def __init__(
        self,
        args: Wait,
        context: ext_sdk.Context,
        prepared: PreparedRequest,
        searcher: Searcher,
        expect: RequestExpect,
    ) -> None:
        self._args = args
        self._expect = expect
        self._context = context
        self._prepared = prepared
        self._searcher = searcher
        self._begun = time.monotonic()
        self._attempts = AttemptLog()
        self._successes = 0
        self._checked: CheckedResponse | None = None
        self._checked_at = 0.0
        self._failure: ExchangeFailed | None = None
        self.timed_out = False

    @property
    def mismatch(self) -> str:
        """Return the first check that the last response failed; "" if the last attempt had no response."""
        failed = failures(self._checked.checks, brief=True) if self._checked and self._failure is None else []
        return failed[0] if failed else ""

    def run(self) -> ext_sdk.Result:
        args = self._args
        deadline = self._context.deadline
        backoff = exponential(args.interval.seconds, args.max_interval.seconds)
        for attempt in attempts_until(deadline, backoff, reserve=last_attempt_reserve(deadline.remaining())):
            at = time.monotonic() - self._begun
            try:
                response = self._prepared.send(deadline.limit(args.attempt_timeout))
            except ExchangeFailed as failure:
                # A last attempt that the end of the wait cut short shows no timeout.
                cut = failure.kind == "timeout" and deadline.expired and attempt.number > 1
                ok = failure.failure in args.expect.failures and not cut
                self._failure, self._checked = failure, None if ok else self._checked
                self._successes = self._successes + 1 if ok else 0
                outcome = failure.reason + (" as expected" if ok else "")
            else:
                self._failure, self._checked_at = None, at
                self._checked = CheckedResponse(args, response, self._context, self._searcher, expect=self._expect)
                self._successes = self._successes + 1 if self._checked.ok else 0
                outcome = f"status {response.status}" + (" as expected" if self._checked.ok else "")
            if self._attempts.record(outcome, at):
                self._context.log.info(f"{self._prepared.where}: {outcome}")
            checked = self._checked
            if self._failure and self._successes >= args.successes:
                seconds = time.monotonic() - self._begun
                count = self._attempts.count
                return failure_result(args, self._failure, self._prepared, attempts=count, seconds=seconds)
            if checked and self._successes >= args.successes:
                outputs = checked.outputs(self._attempts.count, time.monotonic() - self._begun)
                message = f"{self._prepared.where}: status {checked.response.status}, {summary(checked.checks)}"
                return ext_sdk.Result.ok(
                    f"{message}, {self._effort()}{notes_of(args, checked.response)}",
                    outputs=outputs,
                    secret_outputs=checked.captured.secrets,
                    whole=checked.whole(),
                )
            if reason := self._permanent_failure():
                return self._failed(f"gave up early: {reason}")
            header = checked.response.values("retry-after") if checked and self._failure is None else []
            attempt.at_least = retry_after(header[0], time.time()) if header else 0.0
        self.timed_out = not deadline.stopped.is_set()
        return self._failed("timed out" if self.timed_out else "the extension is shutting down")

    def _permanent_failure(self) -> str:
        """Return the reason why further attempts would fail too; "" if they may succeed."""
        give_up_on = self._args.give_up_on
        if self._failure is not None:
            if self._successes:
                return ""
            permanent = self._failure.kind in ALWAYS_PERMANENT or self._failure.kind in give_up_on
            return f"{self._failure.reason}, which does not pass by itself" if permanent else ""
        checked = self._checked
        if checked is None or checked.ok or checked.response.status not in give_up_on:
            return ""
        if all(check.ok for check in checked.checks if check.where == "status"):
            return ""
        return f"status {checked.response.status} is in `giveUpOn`"

    def _failed(self, reason: str) -> ext_sdk.Result:
        checked, failure, count = self._checked, self._failure, self._attempts.count
        outputs: dict[str, str | int | bool] = {}
        parts = [f"{self._prepared.where}: not as expected {self._effort()}, {reason}"]
        if failure is not None:
            parts.append("; ".join(filter(None, [f"last attempt: {failure.reason}", failure.details])))
            if accepted := self._args.expect.failures:
                parts.append(check_failure(accepted, failure).brief)
        if checked is not None:
            outputs = checked.outputs(count, 0.0)
            at = f" (after {rounded(self._checked_at)})" if failure is not None else ""
            parts.append(f"last response{at}:\n{checked.failure()}")
            if checked.ok and failure is None:
                parts.append(f"{self._successes} of {self._args.successes} consecutive responses as expected")
        if len(self._attempts.outcomes) > 1:
            parts.append(f"all attempts: {self._attempts}")
        outputs |= {
            "attempts": count,
            "duration": rounded(time.monotonic() - self._begun),
            "url": outputs.get("url", self._prepared.url),
        }
        last = failure.reason if failure else status_line(checked.response) if checked else "nothing"
        message = f"{self._prepared.where}: not as expected {self._effort()}, last: {last}"
        return ext_sdk.Result.failed(message, error="\n".join(parts) + notes_of(self._args), outputs=outputs)

    def _effort(self) -> str:
        return f"after {counted(self._attempts.count, 'attempt')} in {rounded(time.monotonic() - self._begun)}"


class AttemptLog:
    """Outcomes of the attempts, in the order in which each was first observed.

    Attributes:
        outcomes: by text: number, and seconds from the start of the wait to the first and the last of them.
    """

    def __init__(self) -> None:
        self.count = 0
        self.outcomes: dict[str, tuple[int, float, float]] = {}
        self._latest = ""

    def record(self, outcome: str, at: float) -> bool:
        """Add an attempt. Returns True if its outcome differs from the previous one."""
        self.count += 1
        count, first, _ = self.outcomes.get(outcome, (0, at, at))
        self.outcomes[outcome] = (count + 1, first, at)
        changed, self._latest = outcome != self._latest, outcome
        return changed

    def __str__(self) -> str:
        texts = [
            f"{count} times {outcome} ({first:.1f} s to {last:.1f} s)"
            if count > 1
            else f"once {outcome} ({first:.1f} s)"
            for outcome, (count, first, last) in self.outcomes.items()
        ]
        more = len(texts) - MAX_OUTCOMES
        return ", ".join(texts[:MAX_OUTCOMES]) + (f", and {more} other outcomes" if more > 0 else "")


def last_attempt_reserve(total: float) -> Callable[[float], float]:
    """Return a function from the seconds of one attempt to those reserved for the last one before the deadline.

    Args:
        total: seconds of all attempts together.
    """
    return lambda seconds: min(max(MIN_RESERVE, 2 * seconds), RESERVE_SHARE * total, MAX_RESERVE)


def retry_after(value: str, now: float) -> float:
    """Return the seconds of a Retry-After header: a number or a date (RFC 9110, 10.2.3); 0 for anything else.

    Args:
        now: seconds since 1970.
    """
    if value.isdecimal():
        return float(value) if len(value) <= MAX_RETRY_AFTER_DIGITS else 0.0
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime(value)
        return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now)
    except (ValueError, OverflowError):
        return 0.0


OPERATIONS = (
    ext_sdk.Operation(
        "wait",
        wait,
        {"url": "http://127.0.0.1:8080/healthz", "timeout": "20s", "expect": {"status": 200, "body": "ok"}},
        outputs=OUTCOME | {"done": "`true` if the response was as expected, `false` if the time was up"},
        title="Wait for HTTP response",
    ),
)
