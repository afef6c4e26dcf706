"""Reports of a run: text for people."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from .runner import Event

VERDICTS = {"passed": "ok", "failed": "FAILED", "error": "ERROR", "cancelled": "STOPPED", "skipped": "skipped"}
_INDENT = " " * 17


class TextReport:
    """Text of a run: a line for each step, agent and task, followed by the reason of a failure.

    Args:
        out: receives the lines.
    """

    def __init__(self, out: IO[str]) -> None:
        self._out = out

    def on_event(self, event: Event) -> None:
        """Print an event."""
        if event.kind == "step" and event.step:
            step = event.step
            name = "" if event.phase == "agent" else f"{step.name:28} "
            self._line(event.phase, VERDICTS[event.status or "error"], f"{name}{step.message.strip()}")
            if not step.success and step.error != step.message:
                self._more(step.error)
        elif event.kind == "task_complete":
            self._line("task", "passed" if event.status == "passed" else event.status.upper(), event.task)
            if event.status != "passed":
                self._more(event.message)

    def _line(self, what: str, verdict: str, text: str) -> None:
        first, *rest = text.splitlines() or [""]
        self._out.write(f"{what:8} {verdict:7} {first}".rstrip() + "\n")
        self._more("\n".join(rest))
        self._out.flush()

    def _more(self, text: str) -> None:
        for line in text.strip().splitlines():
            self._out.write(f"{_INDENT}{line}\n")
