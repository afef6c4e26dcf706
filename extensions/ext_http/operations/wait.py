"""`wait`: ask until the answer is as it should be, until it never will be, or until the time is up."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from msgspec import Meta

import ext_sdk
from ext_http.client.errors import ExchangeFailed
from ext_http.polling import Backoff, retry_after
from ext_http.request.send import PreparedRequest
from ext_http.response.excerpt import status_line
from ext_sdk.expect import Searcher, summary

from .result import CheckedRequestArgs, CheckedResponse, notes_of, request_spec, rounded

Hopeless = (
    Annotated[int, Meta(ge=100, le=599)] | Literal["certificate", "tls", "protocol", "unknown-host", "connection"]
)

# What no time mends: the request itself is refused, or moved for good, or the server is not believed.
DEFAULT_HOPELESS: tuple[Hopeless, ...] = (
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

NEVER_PASSES = frozenset({"address", "redirect", "stopped"})
MOST_TOLD = 6  # kinds of outcomes in the text of a failure


class Wait(CheckedRequestArgs):
    """What to ask until what is expected holds."""

    interval: Annotated[
        ext_sdk.Duration, Meta(description="Before the second attempt; later pauses grow by half, with some jitter")
    ] = ext_sdk.Duration.parse("100ms")
    max_interval: Annotated[ext_sdk.Duration, Meta(description="They grow no longer")] = ext_sdk.Duration.parse("2s")
    attempt_timeout: Annotated[ext_sdk.Duration, Meta(description="For one attempt; `timeout` is for all together")] = (
        ext_sdk.Duration.parse("5s")
    )
    successes: Annotated[int, Meta(ge=1, le=1000, description="How many good answers in a row are wanted")] = 1
    give_up_on: Annotated[
        tuple[Hopeless, ...],
        Meta(
            description="Statuses, unless `expect.status` has them, and faults that end the wait at once, because time "
            "does not mend them. A host that is not known yet may be soon; unknown-host says it may not"
        ),
    ] = DEFAULT_HOPELESS

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("interval", self.interval), ("attemptTimeout", self.attempt_timeout)):
            if value.seconds <= 0:
                raise ValueError(f"{name}: expected a duration over 0, found {value}")


def wait(args: Wait, context: ext_sdk.Context) -> ext_sdk.Result:
    """Ask until the answer is as expected, and fail early when it never will be.

    The first attempt is made at once, the last one shortly before `timeout`. Refused connections, unknown hosts and
    unexpected answers are tried again; see `giveUpOn` for what is not. A failure tells what came of all attempts and
    what the last answer was.
    """
    prepared = PreparedRequest(args, request_spec(args), context)
    with Searcher(deadline=context.deadline) as searcher:
        return _Waiting(args, context, prepared, searcher).until_good()


class _Waiting:
    """The attempts of one call."""

    def __init__(self, args: Wait, context: ext_sdk.Context, prepared: PreparedRequest, searcher: Searcher) -> None:
        self._args = args
        self._context = context
        self._prepared = prepared
        self._searcher = searcher
        self._begun = time.monotonic()
        self._seen = AttemptLog()
        self._good = 0
        self._judged: CheckedResponse | None = None
        self._judged_at = 0.0
        self._failure: ExchangeFailed | None = None

    def until_good(self) -> ext_sdk.Result:
        """Ask as often as it takes."""
        args = self._args
        pauses = Backoff(self._context.deadline, args.interval.seconds, args.max_interval.seconds)
        while True:
            begun = time.monotonic()
            self._attempt()
            if self._good >= args.successes and self._judged:
                return self._succeeded(self._judged)
            if why := self._hopeless():
                return self._failed(f"given up, for {why}")
            if not pauses.again(time.monotonic() - begun, self._asked_to_wait()):
                stopped = self._context.deadline.stopped.is_set()
                return self._failed("the extension was told to end" if stopped else "the time was up")

    def _attempt(self) -> None:
        deadline = self._context.deadline.limit(self._args.attempt_timeout)
        at = time.monotonic() - self._begun
        try:
            answer = self._prepared.send(deadline)
        except ExchangeFailed as failure:
            self._failure, self._good = failure, 0
            outcome = failure.reason
        else:
            self._failure = None
            self._judged, self._judged_at = CheckedResponse(self._args, answer, self._context, self._searcher), at
            self._good = self._good + 1 if self._judged.good else 0
            outcome = f"status {answer.status}" + (" as expected" if self._judged.good else "")
        if self._seen.note(outcome, at):
            self._context.log.info(f"{self._prepared.where}: {outcome}")

    def _hopeless(self) -> str:
        """Why what is expected will not come true; "" where it may."""
        if self._failure is not None:
            kind = self._failure.kind
            if kind in NEVER_PASSES or kind in self._args.give_up_on:
                return f"this does not pass by itself: {self._failure.reason}"
            return ""
        judged = self._judged
        if judged is None or judged.good or judged.answer.status not in self._args.give_up_on:
            return ""
        expected = all(check.ok for check in judged.checks if check.where == "status")
        return (
            "" if expected else f"status {judged.answer.status} does not pass by itself (`giveUpOn` says which do not)"
        )

    def _asked_to_wait(self) -> float:
        """Seconds for which the server asks to be left alone; 0 where it does not."""
        asked = self._judged.answer.values("retry-after") if self._judged and self._failure is None else []
        return retry_after(asked[0], time.time()) if asked else 0.0

    def _succeeded(self, judged: CheckedResponse) -> ext_sdk.Result:
        seconds = time.monotonic() - self._begun
        outputs = judged.outputs(self._seen.attempts, seconds)
        message = f"{self._prepared.where}: status {judged.answer.status}, {summary(judged.checks)}, {self._how_long()}"
        return ext_sdk.Result.ok(
            message + notes_of(self._args, judged.answer),
            outputs=outputs,
            secret_outputs=judged.captured.secrets,
            whole=judged.whole(),
        )

    def _failed(self, why: str) -> ext_sdk.Result:
        judged, failure = self._judged, self._failure
        outputs: dict[str, str | int | bool] = {}
        parts = [f"{self._prepared.where}: not as expected {self._how_long()}, {why}"]
        if failure is not None:
            parts.append("; ".join(filter(None, [f"the last attempt: {failure.reason}", failure.details])))
        if judged is not None:
            outputs = judged.outputs(self._seen.attempts, 0.0)
            earlier = f" (after {rounded(self._judged_at)})" if failure is not None else ""
            parts.append(f"the last answer{earlier}: {judged.told()}")
        if judged is not None and judged.good and failure is None:
            parts.append(f"{self._good} good answers in a row, where {self._args.successes} are wanted")
        if len(self._seen.outcomes) > 1:
            parts.append(f"all attempts: {self._seen}")
        outputs |= {
            "attempts": self._seen.attempts,
            "duration": rounded(time.monotonic() - self._begun),
            "url": outputs.get("url", self._prepared.url),
        }
        last = failure.reason if failure else status_line(judged.answer) if judged else "nothing"
        message = f"{self._prepared.where}: not as expected {self._how_long()}, last: {last}"
        return ext_sdk.Result.failed(message, error="; ".join(parts) + notes_of(self._args), outputs=outputs)

    def _how_long(self) -> str:
        attempts = self._seen.attempts
        return f"after {attempts} attempt{'' if attempts == 1 else 's'} in {rounded(time.monotonic() - self._begun)}"


class AttemptLog:
    """What came of the attempts, in the order in which it was seen first.

    Attributes:
        attempts: how many there were.
        outcomes: by their words: how many, and seconds of the first and the last of them since the beginning.
    """

    def __init__(self) -> None:
        self.attempts = 0
        self.outcomes: dict[str, tuple[int, float, float]] = {}
        self._latest = ""

    def note(self, outcome: str, at: float) -> bool:
        """One more. Returns whether it is another outcome than the one before."""
        self.attempts += 1
        count, first, _ = self.outcomes.get(outcome, (0, at, at))
        self.outcomes[outcome] = (count + 1, first, at)
        changed, self._latest = outcome != self._latest, outcome
        return changed

    def __str__(self) -> str:
        told = [
            f"{count} times {outcome} ({_moment(first)} to {_moment(last)})"
            if count > 1
            else f"once {outcome} ({_moment(first)})"
            for outcome, (count, first, last) in self.outcomes.items()
        ]
        more = len(told) - MOST_TOLD
        return ", ".join(told[:MOST_TOLD]) + (f", and {more} other outcomes" if more > 0 else "")


def _moment(seconds: float) -> str:
    return f"{seconds:.1f} s"


OPERATIONS = (
    ext_sdk.Operation(
        "wait",
        wait,
        {"url": "http://127.0.0.1:8080/healthz", "timeout": "20s", "expect": {"status": 200, "body": "ok"}},
    ),
)
