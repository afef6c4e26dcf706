"""Credential plugins, which the package runs: one that does not end, for it waits for somebody to log in, is ended.

The package waits for them without end, and lets them read what the host says to this extension.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

from ext_sdk import Deadline

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 20.0  # for a plugin, where the call that needs it has more
SLICE = 0.2  # seconds between two looks at whether it has to end
_DEADLINE: ContextVar[Deadline] = ContextVar("deadline of plugins")


class Plugin(subprocess.Popen[str]):
    """A plugin that runs: what the package makes of `subprocess.Popen`. A person at a terminal has all the time."""

    def __init__(self, args: list[str], **options: object) -> None:
        self._interactive = options.get("stdin") is not None
        bounds = {} if self._interactive else {"stdin": subprocess.DEVNULL, "start_new_session": True}
        super().__init__(args, **(options | bounds))  # type: ignore[call-overload]  # as the package has them

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        """What it writes, to its end. Raises TimeoutError where that does not come; the package tells it."""
        if self._interactive:
            return super().communicate(input, timeout)
        deadline = _DEADLINE.get(Deadline()).limit(SECONDS)
        while True:
            with suppress(subprocess.TimeoutExpired):
                return super().communicate(input, min(SLICE, deadline.remaining()))
            if deadline.expired:
                self._end()
                raise TimeoutError("it did not end in time, and was ended; does it wait for somebody to log in?")

    def _end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.wait()
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()


class Programs:
    """Stands for the module `subprocess` in the package's module that runs plugins."""

    Popen = Plugin
    PIPE = subprocess.PIPE


@contextmanager
def bounded(deadline: Deadline) -> Iterator[None]:
    """Plugins that are run within the block end by then."""
    from kubernetes.config import exec_provider

    vars(exec_provider)["subprocess"] = Programs
    token = _DEADLINE.set(deadline)
    try:
        yield
    finally:
        _DEADLINE.reset(token)
