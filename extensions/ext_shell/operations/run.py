"""Operation `run`: run a command to its end, again if asked to."""

from __future__ import annotations

import time
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_sdk.capture import check_names
from ext_sdk.expect import Searcher, SearchFailed
from ext_sdk.expect.regex import problem
from ext_sdk.polling import attempts_until, exponential
from ext_sdk.process import Spawner
from ext_shell.args import Codes, OutputArgs, Part, codes_of
from ext_shell.capture import RESERVED, Capture, capture_streams
from ext_shell.command import Prepared
from ext_shell.expectations import DEFAULT, RunExpectation, check_attempt, redact_streams
from ext_shell.result import RunResult
from ext_shell.runner import CommandRun, run_command

LONG_WORK = "for longer work use `start`, and then `wait` with allowRunning as often as it takes"


class Retry(ext_sdk.Args):
    """Run again until all that is expected holds, the time is up, or it can't come true any more."""

    attempts: Annotated[
        Annotated[int, Meta(ge=1)] | UnsetType, Meta(description="At most so many; as the time allows if left out")
    ] = UNSET
    interval: Annotated[ext_sdk.Duration, Meta(description="Between the end of one and the start of the next")] = (
        ext_sdk.Duration.parse("1s")
    )
    backoff: Annotated[float, Meta(ge=1, le=10, description="Multiplies the interval after each attempt")] = 1.0
    max_interval: Annotated[ext_sdk.Duration, Meta(description="The interval grows no longer")] = (
        ext_sdk.Duration.parse("10s")
    )
    attempt_timeout: Annotated[
        ext_sdk.Duration | UnsetType, Meta(description="For each attempt; `timeout` is for all together")
    ] = UNSET
    fatal_exit_code: Annotated[
        Codes | UnsetType,
        Meta(description="An attempt with this exit code, or one of these, is the last one"),
    ] = UNSET
    fatal_output: Annotated[
        Part | UnsetType,
        Meta(description="So is one with this in stdout or stderr: a regular expression (Python's re)"),
    ] = UNSET

    def __post_init__(self) -> None:
        for name, value in (("interval", self.interval), ("maxInterval", self.max_interval)):
            if value.seconds < 0:
                raise ValueError(f"{name}: expected a duration of 0s or more, found {value}")
        if self.fatal_output is not UNSET and (wrong := problem(self.fatal_output)):
            raise ValueError(f"fatalOutput: {self.fatal_output!r} is {wrong}")
        if isinstance(self.attempt_timeout, ext_sdk.Duration) and self.attempt_timeout.seconds <= 0:
            raise ValueError(f"attemptTimeout: expected a duration over 0, found {self.attempt_timeout}")


class Run(OutputArgs):
    """What to run, what to expect of it, and what to keep."""

    timeout: Annotated[
        ext_sdk.Duration,
        Meta(
            description="For all attempts; then the command and all that it started get SIGTERM, then SIGKILL. "
            "Hosts give some 30 s: for longer work use `start` and `wait`"
        ),
    ] = ext_sdk.Duration.parse("5m")
    expect: Annotated[
        RunExpectation, Meta(description="What must hold; exit code 0 unless `exitCode` or `signal` is given")
    ] = DEFAULT
    retry: Annotated[Retry | UnsetType, Meta(description="Run again until what is expected holds")] = UNSET
    capture: Annotated[dict[str, Capture], Meta(description="Parts of the output that become outputs, by name")] = (
        field(default_factory=dict)
    )


def run(args: Run, context: ext_sdk.Context) -> ext_sdk.Result:
    """Run a command, or a script, to its end and check what it did.

    Expects exit code 0 unless `expect` says otherwise. Whatever the command leaves running is stopped; `start` is for
    processes that go on, and for work that takes longer than the host's time for a call (some 30 s).
    """
    check_names(args.capture, RESERVED)
    prepared = Prepared(args, context)
    with Searcher(deadline=context.deadline) as searcher:
        return _Runs(args, context, prepared, searcher).until_good().result()


class _Runs:
    """The attempts of one call."""

    def __init__(self, args: Run, context: ext_sdk.Context, prepared: Prepared, searcher: Searcher) -> None:
        self._args = args
        self._context = context
        self._prepared = prepared
        self._searcher = searcher
        self._spawner = context.extension_state(Spawner)
        self._log = args.log and not any(capture.secret for capture in args.capture.values())
        self._begun = time.monotonic()

    def until_good(self) -> RunResult:
        """Run once, or as often as `retry` says; return what came of the last attempt."""
        retry = self._args.retry
        if retry is UNSET:
            return self._outcome(self._attempt(self._context.deadline))
        deadline, number, previous = self._context.deadline, 0, ""

        def pause(seconds: float) -> bool:
            self._context.log.info(f"attempt {number} failed, the next one is in {seconds:g} s")
            deadline.wait(seconds)
            return False

        backoff = exponential(retry.interval.seconds, retry.max_interval.seconds, retry.backoff)
        for attempt in attempts_until(deadline, backoff, reserve=None, wait=pause, jitter=0.0):
            number = attempt.number
            own = _or_none(retry.attempt_timeout)
            of_its_own = own is not None and own.seconds < deadline.remaining()
            command = self._attempt(deadline.limit(own))
            outcome = self._outcome(command, number, of_its_own=of_its_own)
            if outcome.good or command.stopped:
                return outcome
            if command.timed_out and previous:
                outcome.note(f"the previous attempt failed: {previous}")
            previous = outcome.failures
            if number == retry.attempts:
                why = "this is the number of attempts that `retry` allows"
                break
            if why := _why_fatal(retry, command, self._searcher):
                break
        else:
            why = f"no time is left for another one, {time.monotonic() - self._begun:.1f} s have passed"
            if deadline.stopped.is_set():
                why = "the extension is shutting down"
        attempts = "1 attempt" if number == 1 else f"{number} attempts"
        outcome.note(f"gave up after {attempts}: {why}")  # type: ignore[possibly-undefined]  # there is one attempt
        return outcome

    def _attempt(self, deadline: ext_sdk.Deadline) -> CommandRun:
        return run_command(self._prepared, self._spawner, self._context, deadline, log=self._log)

    def _outcome(self, attempt: CommandRun, number: int | None = None, *, of_its_own: bool = False) -> RunResult:
        """Check an attempt. `of_its_own`: it had less time than was left for all attempts."""
        captured = capture_streams(self._args.capture, attempt, self._context, self._searcher)
        checks = check_attempt(self._args.expect, attempt, self._context, self._searcher) + captured.failures
        reason, advice = self._why_stopped(attempt, number, of_its_own=of_its_own)
        outcome = RunResult(
            self._prepared.label,
            attempt,
            redact_streams(checks, captured.withheld),
            captured,
            limits=self._prepared.limits,
            context=self._context,
            extra={} if number is None else {"attempts": number},
            reason=reason,
        )
        if advice:
            outcome.note(advice)
        return outcome

    def _why_stopped(self, attempt: CommandRun, number: int | None, *, of_its_own: bool) -> tuple[str, str]:
        """Return why an attempt was stopped, and what to do; "" for nothing."""
        if attempt.stopped:
            return "stopped because the extension was told to end", ""
        if not attempt.timed_out:
            return "", ""
        retry, timeout = self._args.retry, self._args.timeout
        if of_its_own and retry is not UNSET:
            return f"timed out: it did not end within attemptTimeout ({retry.attempt_timeout}) and was stopped", ""
        seconds = self._context.deadline.seconds
        limit, advice = f"`timeout` ({timeout})", "raise `timeout` if it needs longer"
        if seconds < timeout.seconds:
            limit, advice = f"the time that the host gives a call ({seconds:.1f} s)", LONG_WORK
        which = "it did not end" if number is None else f"attempt {number} did not end"
        over = "" if number is None else " for all attempts"
        return f"timed out: {which} within {limit}{over} and was stopped with all that it started", advice


def _why_fatal(retry: Retry, attempt: CommandRun, searcher: Searcher) -> str:
    """Why what is expected can't come true any more, as far as `retry` says; "" if it can."""
    code = None if attempt.status is None else attempt.status.code
    if code is not None and retry.fatal_exit_code is not UNSET and code in codes_of(retry.fatal_exit_code):
        return f"exit code {code} is fatal, as fatalExitCode says"
    if retry.fatal_output is not UNSET:
        for name, output in attempt.outputs.items():
            try:
                if searcher.search(retry.fatal_output, output.text):
                    return f"{name} matches fatalOutput"
            except SearchFailed as error:
                return f"fatalOutput: {error}"
    return ""


def _or_none(duration: ext_sdk.Duration | UnsetType) -> ext_sdk.Duration | None:
    return None if duration is UNSET else duration
