"""Operation `run`: run a command to its end, and repeat it on request."""

from __future__ import annotations

import time
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_sdk.capture import check_names
from ext_sdk.core.regex import problem
from ext_sdk.core.text import counted
from ext_sdk.expect import Searcher, SearchFailed
from ext_sdk.polling import attempts_until, exponential
from ext_sdk.process import CommandRun, Spawner
from ext_shell.args import Codes, OutputArgs, Part, codes_of
from ext_shell.command import PreparedCommand, run_command
from ext_shell.expectations import DEFAULT, RunExpectation, check_run, withhold_streams
from ext_shell.result import RESERVED, Capture, RunResult, capture_streams

LONG_WORK = "for longer work use `start`, and then `wait` with `onTimeout: ok` as often as needed"


class Retry(ext_sdk.Args):
    """Repetition of a command until all expectations hold, the time is up, or an attempt fails permanently."""

    attempts: Annotated[
        Annotated[int, Meta(ge=1)] | UnsetType,
        Meta(description="Maximum number of attempts; if omitted, only `timeout` limits them"),
    ] = UNSET
    interval: Annotated[
        ext_sdk.Duration, Meta(description="Pause between the end of an attempt and the start of the next")
    ] = ext_sdk.Duration.parse("1s")
    backoff: Annotated[float, Meta(ge=1, le=10, description="Factor by which the pause grows after each attempt")] = 1.0
    max_interval: Annotated[ext_sdk.Duration, Meta(description="Longest pause")] = ext_sdk.Duration.parse("10s")
    attempt_timeout: Annotated[
        ext_sdk.Duration | UnsetType,
        Meta(description="Time limit of each attempt; `timeout` is that of all attempts together"),
    ] = UNSET
    fatal_exit_code: Annotated[
        Codes | UnsetType, Meta(description="Exit code, or list of exit codes, after which no attempt follows")
    ] = UNSET
    fatal_output: Annotated[
        Part | UnsetType,
        Meta(description="Regular expression (Python's re); no attempt follows one with a match in stdout or stderr"),
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
    """Arguments of `run`."""

    timeout: Annotated[
        ext_sdk.Duration,
        Meta(
            description="Time limit of all attempts together; then the command and all processes that it started get "
            "SIGTERM, and then SIGKILL. Hosts limit a call to about 30 s: for longer work use `start` and `wait`"
        ),
    ] = ext_sdk.Duration.parse("5m")
    expect: Annotated[
        RunExpectation, Meta(description="Expected result; exit code 0 unless `exitCode` or `signal` is given")
    ] = DEFAULT
    retry: Annotated[
        Retry | UnsetType, Meta(description="Repetition until the expectations hold; `onTimeout` requires it")
    ] = UNSET
    on_timeout: ext_sdk.OnTimeout = "fail"
    capture: Annotated[dict[str, Capture], Meta(description="Parts of the output that become outputs, by name")] = (
        field(default_factory=dict)
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.on_timeout == "ok" and self.retry is UNSET:
            raise ValueError(f"`onTimeout` requires `retry`; {LONG_WORK}")


def run(args: Run, context: ext_sdk.Context) -> ext_sdk.Result:
    """Run a command or a script to its end, and check its result.

    Exit code 0 is expected unless `expect` says otherwise. Processes that the command leaves running are stopped. Use
    `start` for background processes, and for work that takes longer than the host's time limit for a call (about 30 s).
    """
    check_names(args.capture, RESERVED)
    command = PreparedCommand(args, context)
    with Searcher(deadline=context.deadline) as searcher:
        attempts = _Attempts(args, context, command, searcher)
        if args.retry is UNSET:
            return attempts.once(context.deadline).result()
        last = attempts.until_good(args.retry)
        return ext_sdk.conclude_wait(
            last.result(), args.on_timeout, timed_out=attempts.timed_out, last_seen=attempts.last_seen
        )


class _Attempts:
    """Attempts of one call.

    Attributes:
        timed_out: True if the time was over before the attempts had another end.
        last_seen: the failed checks of the latest attempt that ended by itself, on one line.
    """

    def __init__(self, args: Run, context: ext_sdk.Context, command: PreparedCommand, searcher: Searcher) -> None:
        self._args = args
        self._context = context
        self._command = command
        self._searcher = searcher
        self._log = args.log and not any(capture.secret for capture in args.capture.values())
        self._began = time.monotonic()
        self._run: CommandRun
        self.timed_out = False
        self.last_seen = ""

    def once(self, deadline: ext_sdk.Deadline, number: int | None = None, time_limit: str = "") -> RunResult:
        """Run the command and check it.

        Args:
            number: of this attempt; None if there is only one.
            time_limit: name of the limit that sets the deadline, if that is not the one of all attempts.
        """
        context, command = self._context, self._command
        self._run = run_command(command, context.extension_state(Spawner), context, deadline, log=self._log)
        captured = capture_streams(self._args.capture, self._run, context, self._searcher)
        checks = check_run(self._args.expect, self._run, context, self._searcher) + captured.failures
        reason = advice = ""
        if self._run.stopped:
            reason = "stopped because the extension is shutting down"
        elif self._run.timed_out and time_limit:
            reason = f"timed out: it did not end within {time_limit} and was stopped"
        elif self._run.timed_out:
            timeout, seconds = self._args.timeout, context.deadline.seconds
            limit, advice = f"`timeout` ({timeout})", "raise `timeout` if it needs longer"
            if seconds < timeout.seconds:
                limit, advice = f"the host's time limit for a call ({seconds:.1f} s)", LONG_WORK
            which = "it did not end" if number is None else f"attempt {number} did not end"
            over = "" if number is None else " for all attempts"
            reason = f"timed out: {which} within {limit}{over} and was stopped with all processes that it started"
        result = RunResult(
            command.label,
            self._run,
            withhold_streams(checks, captured.withheld),
            captured,
            limits=command.limits,
            context=context,
            extra={} if number is None else {"attempts": number},
            reason=reason,
        )
        for text in filter(None, (advice, command.advice)):
            result.note(text)
        return result

    def until_good(self, retry: Retry) -> RunResult:
        """Run the command until all expectations hold; return the result of the last attempt."""
        deadline, number, previous = self._context.deadline, 0, ""

        def pause(seconds: float) -> bool:
            self._context.log.info(f"attempt {number} failed, the next one is in {seconds:g} s")
            deadline.wait(seconds)
            return False

        backoff = exponential(retry.interval.seconds, retry.max_interval.seconds, retry.backoff)
        for attempt in attempts_until(deadline, backoff, reserve=None, wait=pause, jitter=0.0):
            number, limit, time_limit = attempt.number, deadline, ""
            if retry.attempt_timeout is not UNSET and retry.attempt_timeout.seconds < deadline.remaining():
                limit, time_limit = deadline.limit(retry.attempt_timeout), f"attemptTimeout ({retry.attempt_timeout})"
            result = self.once(limit, number, time_limit)
            if result.good or self._run.stopped:
                return result
            if self._run.timed_out and previous:
                result.note(f"the previous attempt failed: {previous}")
            previous = result.failures
            cut = self.timed_out = self._run.timed_out and not time_limit and not self._run.stuck
            self.last_seen = self.last_seen if cut else result.brief
            if number == retry.attempts:
                why = "this is the number of attempts that `retry` allows"
                break
            if why := self._fatal(retry):
                self.timed_out = False
                break
        else:
            why = f"no time is left for another attempt, {time.monotonic() - self._began:.1f} s have passed"
            self.timed_out = not deadline.stopped.is_set() and not self._run.stuck
            if deadline.stopped.is_set():
                why = "the extension is shutting down"
        result.note(f"gave up after {counted(number, 'attempt')}: {why}")  # type: ignore[possibly-undefined]  # there is one attempt
        return result

    def _fatal(self, retry: Retry) -> str:
        """Return the reason why no further attempt can succeed, according to `retry`; "" if one may."""
        code = None if self._run.status is None else self._run.status.code
        if code is not None and retry.fatal_exit_code is not UNSET and code in codes_of(retry.fatal_exit_code):
            return f"exit code {code} is fatal (fatalExitCode)"
        if retry.fatal_output is not UNSET:
            for name, output in self._run.outputs.items():
                try:
                    if self._searcher.search(retry.fatal_output, output.text):
                        return f"{name} matches fatalOutput"
                except SearchFailed as error:
                    return f"fatalOutput: {error}"
        return ""
