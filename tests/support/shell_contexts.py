"""Contexts of calls of ext-shell, without a host."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ext_sdk import Context, Deadline, Log, Secrets
from ext_sdk.context import Artifacts, States
from ext_sdk.core.redaction.redactor import Redactor
from ext_shell.config import ShellConfig

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class ShellCall:
    """Context of one call, and what it logged."""

    def __init__(self, workdir: Path, config: ShellConfig | None = None, *, seconds: float = 60.0) -> None:
        self.messages: list[str] = []
        self.states = States()
        self.context: Context = Context(
            workdir=workdir,
            deadline=Deadline(seconds, latest=seconds + 10),
            log=Log(lambda level, message, data: self.messages.append(message)),
            config=config or ShellConfig(),
            secrets=Secrets(Redactor({"TOKEN": "opensesame-77"})),
            states=self.states,
            artifacts=Artifacts(str(workdir.parent / "artifacts"), "shell"),
        )


@contextmanager
def shell_call(workdir: Path, config: ShellConfig | None = None, *, seconds: float = 60.0) -> Iterator[ShellCall]:
    """A call whose processes are stopped at the end."""
    call = ShellCall(workdir, config, seconds=seconds)
    try:
        yield call
    finally:
        for state in call.states.close():
            state.close()
