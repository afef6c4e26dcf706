"""Results of operations on commands: captures, excerpts of output, message and error text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_sdk.capture import CaptureArgs, Captured, NotFound, capture_all, find_in_text
from ext_sdk.expect import Check, failure_text, section, summary
from ext_sdk.long_outputs import Shown, Sizes, write_excerpt

from .rlimits import explanation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ext_sdk.expect import Searcher
    from ext_sdk.process import CommandRun, Output

    from .rlimits import Limits


SIZES = Sizes(complete=16 * 1024, head=10 * 1024, tail=6 * 1024)  # two outputs and the rest fit the line of a response

# Names of the other outputs of operations with captures.
RESERVED = frozenset(
    [
        "exitCode",
        "signal",
        "stdout",
        "stderr",
        "stdoutFile",
        "stderrFile",
        "duration",
        "attempts",
        "name",
        "pid",
        "port",
        "logFile",
        "running",
        "done",
    ]
)


class LineCapture(CaptureArgs):
    """Part of a text with lines that becomes an output of the operation; the entire text by default."""

    line: Annotated[int | UnsetType, Meta(description="Line number: 1 is the first line, -1 the last")] = UNSET
    trim: Annotated[bool, Meta(description="Remove white space and line ends around the value")] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        given = [name for name in ("regex", "json", "line") if getattr(self, name) is not UNSET]
        if len(given) > 1:
            raise ValueError(f"expected one of regex, json and line, found {' and '.join(given)}")
        if self.line == 0:
            raise ValueError("line: expected a number other than 0; 1 is the first line, -1 the last")


class Capture(LineCapture):
    """Part of the output that becomes an output of the operation; all of the stream by default."""

    from_: Annotated[Literal["stdout", "stderr"], Meta(description="Stream to search")] = field(
        default="stdout", name="from"
    )


def capture_streams(
    captures: Mapping[str, Capture], run: CommandRun, context: ext_sdk.Context, searcher: Searcher
) -> Captured:
    """Capture values from stdout and stderr, and register the secret ones for redaction."""
    if not captures:
        return Captured()
    return capture_texts(captures, {"stdout": run.stdout.text, "stderr": run.stderr.text}, context, searcher)


def capture_texts(
    captures: Mapping[str, LineCapture], texts: Mapping[str, str], context: ext_sdk.Context, searcher: Searcher
) -> Captured:
    """Capture values from texts by name, and register the secret ones for redaction."""

    def find(capture: LineCapture) -> str:
        text = texts[capture.from_]
        if isinstance(capture.line, UnsetType):
            value = find_in_text(capture, text, searcher)
        else:
            lines = text.removesuffix("\n").split("\n") if text else []
            index = capture.line - 1 if capture.line > 0 else capture.line
            if not -len(lines) <= index < len(lines):
                raise NotFound(f"no line {capture.line} in {capture.from_}, which has {len(lines)}")
            value = lines[index].removesuffix("\r")
        return value.strip() if capture.trim else value

    return capture_all(captures, find, texts, context.secrets, searcher)


def end_of(shown: Shown, name: str) -> str:
    """Return the last lines of an output under its name, for the text of a failure; "" without output."""
    text = shown.text.strip()
    return section(f"{name} ends with", text) if text else ""


def show(output: Output, name: str, context: ext_sdk.Context) -> Shown:
    """Return an output as a result has it; if it is long or not UTF-8, write all that was kept to a file.

    Args:
        name: stdout or stderr.
    """
    data = output.data
    whole: str | ext_sdk.NotKept
    try:
        whole = data.decode()
        if not output.lost and len(data) <= SIZES.complete:
            return Shown(context.secrets.redact(whole), whole=whole)
    except UnicodeDecodeError as error:
        whole = ext_sdk.NotKept(
            f"{name} is not UTF-8 (byte 0x{data[error.start]:02x} at offset {error.start:,}); write it to a file, "
            "which a later step reads with `stdinFile`"
        )
    if output.lost:
        whole = ext_sdk.NotKept(
            f"{name} has {output.size:,} bytes, more than `outputLimit` keeps; raise that, or write {name} to a file"
        )
    text, path = write_excerpt(data, name, context, SIZES, file_name=f"{name}.txt", all_kept=not output.lost)
    return Shown(text, path, whole)


_WHY_WITHHELD = "a secret was to be captured from this output, and cannot be redacted in it"
WITHHELD = Shown(f"[withheld: {_WHY_WITHHELD}]", whole=ext_sdk.NotKept(_WHY_WITHHELD))


class RunResult:
    """A run of a command with its checks and captures, as a result of an operation.

    Args:
        label: the command in messages.
        reason: why the operation failed, whatever the checks are; "" if only they decide.
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

    @property
    def brief(self) -> str:
        """Return the reason of the failure, or the failed checks, on one line."""
        return self._reason or failure_text(self._checks, brief=True)

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
        error = ""
        if self.good:
            message += (f", {summary(self._checks)}" if self._checks else "") + left
        else:
            message += f": {self._reason or summary(self._checks)}"
            parts = [self._reason or self.failures, *self._notes]
            if status is not None and (limit := explanation(self._limits, status, run.outputs)):
                parts.append(limit)
            if run.stuck:
                parts.append(f"still running after SIGKILL: {run.stuck}")
            parts += [f"command: {self._label}", left.removeprefix("; ")]
            ends = [end for name, output in shown.items() if (end := end_of(output, name))]
            error = "\n".join(filter(None, [*parts, *(ends or ["no output"])]))
        return ext_sdk.Result(
            success=self.good,
            message=message,
            error=error,
            outputs=outputs,
            secret_outputs=self._captured.secrets,
            whole={name: output.whole for name, output in shown.items()},
        )
