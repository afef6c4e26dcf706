"""Results of commands: outputs and message."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ext_sdk
from ext_sdk.excerpt import Shown
from ext_sdk.expect import Check, failure_text, summary

from .output_excerpt import end_of, show
from .rlimits import explanation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ext_sdk.capture import Captured

    from .rlimits import Limits
    from .runner import CommandRun


_WHY_WITHHELD = "a secret was to be captured from this output, and can't be hidden in it"
WITHHELD = Shown(f"[withheld: {_WHY_WITHHELD}]", whole=ext_sdk.NotKept(_WHY_WITHHELD))


class RunResult:
    """What a command did, and what is to be said of it.

    Args:
        label: of the command.
        attempt: what it did.
        checks: of what was expected.
        captured: from its output.
        limits: that held for it.
        context: of the call.
        extra: further outputs.
        reason: why it was stopped, where it was.
        running: it has not ended.
    """

    def __init__(
        self,
        label: str,
        attempt: CommandRun,
        checks: list[Check],
        captured: Captured,
        *,
        limits: Limits,
        context: ext_sdk.Context,
        extra: Mapping[str, str | int | bool] | None = None,
        reason: str = "",
        running: bool = False,
    ) -> None:
        self._label = label
        self._attempt = attempt
        self._checks = checks
        self._captured = captured
        self._limits = limits
        self._extra = dict(extra or {})
        self._reason = reason
        self._notes: list[str] = []
        self._running = running
        self._context = context

    @property
    def good(self) -> bool:
        """Whether all that was expected holds."""
        return not self._reason and not self._attempt.stuck and all(check.ok for check in self._checks)

    @property
    def failures(self) -> str:
        """The checks that failed, as text; "" if none did."""
        return failure_text(self._checks)

    def note(self, text: str) -> None:
        """Add a sentence to the text of a failure."""
        self._notes.append(text)

    def result(self) -> ext_sdk.Result:
        """The result of the operation. Long outputs are written to files now."""
        shown = {
            name: WITHHELD if name in self._captured.withheld else show(output, name, self._context)
            for name, output in self._attempt.outputs.items()
        }
        outputs = self._outputs(shown)
        whole = {name: each.whole for name, each in shown.items()}
        if self.good:
            checked = f", {summary(self._checks)}" if self._checks else ""
            message = f"{self._end()}{checked}{self._left()}"
            return ext_sdk.Result.ok(message, outputs=outputs, secret_outputs=self._captured.secrets, whole=whole)
        message = f"{self._end()}: {self._reason or summary(self._checks)}"
        return ext_sdk.Result(
            success=False,
            message=message,
            error=self._error(shown),
            outputs=outputs,
            secret_outputs=self._captured.secrets,
            whole=whole,
        )

    def _end(self) -> str:
        status = self._attempt.status
        if status is None and self._running:
            return f"{self._label}: running for {self._attempt.duration}"
        unknown = "does not end" if self._attempt.stuck else "ended in an unknown way"
        how = unknown if status is None else str(status)
        return f"{self._label}: {how} after {self._attempt.duration}"

    def _left(self) -> str:
        left = self._attempt.left
        return f"; stopped what it left running: {left} (use `start` for a process that goes on)" if left else ""

    def _error(self, shown: Mapping[str, Shown]) -> str:
        failed = failure_text(self._checks) if not self._reason else ""
        parts = [self._reason, failed, *self._notes, f"command: {self._label}"]
        status = self._attempt.status
        if status is not None and (why := explanation(self._limits, status, self._attempt.outputs)):
            parts.append(why)
        if self._attempt.stuck:
            parts.append(f"not gone yet in spite of SIGKILL: {self._attempt.stuck}")
        ends = [f"{name} ends with: {end}" for name, each in shown.items() if (end := end_of(each))]
        parts += ends or ["it wrote nothing"]
        return "; ".join(filter(None, parts)) + self._left()

    def _outputs(self, shown: Mapping[str, Shown]) -> dict[str, str | int | bool]:
        status = self._attempt.status
        outputs: dict[str, str | int | bool] = dict(self._extra)
        if status is not None and status.code is not None:
            outputs["exitCode"] = status.code
        if status is not None and status.signal is not None:
            outputs["signal"] = status.signal_name
        for name, each in shown.items():
            outputs[name] = each.text
            if each.path:
                outputs[f"{name}File"] = each.path
        outputs["duration"] = str(self._attempt.duration)
        return outputs | self._captured.values
