"""Captures from the output of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from ext_sdk.capture import CaptureArgs, Captured, NotFound, capture_all, find_in_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    import ext_sdk
    from ext_sdk.expect import Searcher

    from .runner import CommandRun


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
    ]
)


class Capture(CaptureArgs):
    """Part of the output that becomes an output of the operation; all of the stream by default."""

    from_: Annotated[Literal["stdout", "stderr"], Meta(description="Stream to search")] = field(
        default="stdout", name="from"
    )
    line: Annotated[int | UnsetType, Meta(description="Line number: 1 is the first line, -1 the last")] = UNSET
    trim: Annotated[bool, Meta(description="Remove white space and line ends around the value")] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        given = [name for name in ("regex", "json", "line") if getattr(self, name) is not UNSET]
        if len(given) > 1:
            raise ValueError(f"expected one of regex, json and line, found {' and '.join(given)}")
        if self.line == 0:
            raise ValueError("line: expected a number other than 0; 1 is the first line, -1 the last")


def capture_streams(
    captures: Mapping[str, Capture], run: CommandRun, context: ext_sdk.Context, searcher: Searcher
) -> Captured:
    """Capture values from stdout and stderr, and register the secret ones for redaction."""
    if not captures:
        return Captured()
    streams = {"stdout": run.stdout.text, "stderr": run.stderr.text}

    def find(capture: Capture) -> str:
        text = streams[capture.from_]
        if isinstance(capture.line, UnsetType):
            value = find_in_text(capture, text, searcher)
        else:
            lines = text.removesuffix("\n").split("\n") if text else []
            index = capture.line - 1 if capture.line > 0 else capture.line
            if not -len(lines) <= index < len(lines):
                raise NotFound(f"no line {capture.line} in {capture.from_}, which has {len(lines)}")
            value = lines[index].removesuffix("\r")
        return value.strip() if capture.trim else value

    return capture_all(captures, find, streams, context.secrets)
