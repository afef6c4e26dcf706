"""Results of operations on commands: outputs, message and error text."""

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


_WHY_WITHHELD = "a secret was to be captured from this output, and cannot be redacted in it"
WITHHELD = Shown(f"[withheld: {_WHY_WITHHELD}]", whole=ext_sdk.NotKept(_WHY_WITHHELD))


class RunResult:
    """A run of a command with its checks and captures, as a result of an operation.

    Args:
        label: the command in messages.
        run: result of the command.
        checks: made on it.
        captured: values from its output.
        limits: resource limits of the command.
        context: secrets, and the directory of files with long outputs.
        extra: further outputs.
        reason: why the operation failed, whatever the checks are; "" if only they decide.
        running: True if the command is still running.
    """

    def __init__(
        self,
        label: str,
        run: CommandRun,
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
        self._run = run
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
        """Return True if the command ended as it should, and all checks passed."""
        return not self._reason and not self._run.stuck and all(check.ok for check in self._checks)

    @property
    def failures(self) -> str:
        """Return the failed checks as text; "" if all passed."""
        return failure_text(self._checks)

    def note(self, text: str) -> None:
        """Add a sentence to the error text."""
        self._notes.append(text)

    def result(self) -> ext_sdk.Result:
        """Return the result of the operation, and write long outputs to files."""
        run, status = self._run, self._run.status
        shown = {
            name: WITHHELD if name in self._captured.withheld else show(output, name, self._context)
            for name, output in run.outputs.items()
        }
        outputs: dict[str, str | int | bool] = dict(self._extra)
        if status is not None and status.code is not None:
            outputs["exitCode"] = status.code
        if status is not None and status.signal is not None:
            outputs["signal"] = status.signal_name
        for name, output in shown.items():
            outputs[name] = output.text
            if output.path:
                outputs[f"{name}File"] = output.path
        outputs |= {"duration": str(run.duration)} | self._captured.values
        how = "does not end" if run.stuck else "ended with an unknown status"
        message = f"{self._label}: {how if status is None else status} after {run.duration}"
        if status is None and self._running:
            message = f"{self._label}: running for {run.duration}"
        left = ""
        if run.left:
            left = f"; stopped the processes that it left running: {run.left} (use `start` for a background process)"
        if self.good:
            message += (f", {summary(self._checks)}" if self._checks else "") + left
        else:
            message += f": {self._reason or summary(self._checks)}"
        return ext_sdk.Result(
            success=self.good,
            message=message,
            error="" if self.good else self._error(shown) + left,
            outputs=outputs,
            secret_outputs=self._captured.secrets,
            whole={name: output.whole for name, output in shown.items()},
        )

    def _error(self, shown: Mapping[str, Shown]) -> str:
        parts = [self._reason or self.failures, *self._notes, f"command: {self._label}"]
        status = self._run.status
        if status is not None and (limit := explanation(self._limits, status, self._run.outputs)):
            parts.append(limit)
        if self._run.stuck:
            parts.append(f"still running after SIGKILL: {self._run.stuck}")
        ends = [f"{name} ends with: {end}" for name, output in shown.items() if (end := end_of(output))]
        return "; ".join(filter(None, [*parts, *(ends or ["no output"])]))
