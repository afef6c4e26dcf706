"""`record`: a transparent stand-in for a command, which leaves a cassette.

host  <-- stdio -->  tap (this process)  <-- pipes -->  child
                      |  notes
                      v
                    scribe (forked)  -->  cassette
"""

from __future__ import annotations

import os

from . import scribe
from .child import exit_like, spawn
from .outlets import claim_standard_files, host_outlet, open_files, tell
from .signals import Signals
from .tap import Tap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from .child import Child
    from .http.layer import Layer
    from .outlets import Outlet
    from .session import Session

EXIT_INCOMPLETE = 3  # the command ended well, but not all of its HTTP traffic could be recorded


def record(session: Session, http: Callable[[Session], Layer] | None = None) -> NoReturn:
    """Run the command on this process' standard files, record it, and end as it ends.

    Failures to record are told on standard error, and change nothing for the host.

    Args:
        session: what is recorded.
        http: starts the layer that records the child's HTTP traffic; None: it is not recorded.

    Raises:
        CommandError: it can't be started; nothing was recorded.
    """
    claim_standard_files()
    further = _further_files()
    layer = http(session) if http else None
    signals = Signals()
    signals.catch()
    try:
        child = spawn_in(layer, session.command)
    finally:
        for fd in further:
            os.close(fd)
    signals.catch_ignored()
    stderr = host_outlet(2)
    notes = scribe.start(session, child.pid)
    tap = Tap(child, signals, notes, stderr)
    status = tap.run()
    tap.linger()
    report = notes.finish()
    tell(stderr, report.warning)
    if not report.ok or os.isatty(2):
        tell(stderr, report.text)
    finish_like(layer, tap, status, stderr, whole=report.ok)


def spawn_in(layer: Layer | None, command: Sequence[str]) -> Child:
    """Start a command that finds the HTTP layer, where there is one; it ends when the command can't be started.

    Raises:
        CommandError: from `spawn`.
    """
    if layer is None:
        return spawn(command)
    os.environ.update(layer.variables)
    try:
        return spawn(command)
    except BaseException:
        layer.close()
        raise


def finish_like(layer: Layer | None, tap: Tap, status: int, stderr: Outlet, *, whole: bool) -> NoReturn:
    """End as the command ended, but for one that ended well while its HTTP traffic was not all recorded.

    Args:
        layer: has recorded it; None where that was not asked for.
        tap: has recorded the rest.
        status: the wait status of the command.
        stderr: where it is told.
        whole: the cassette is complete; if it is not, neither is the file of its HTTP traffic.
    """
    if layer:
        traffic = layer.finish(tap.started, whole=whole)
        told = traffic.text if not traffic.ok or os.isatty(2) else ""
        for line in [*traffic.warning.splitlines(), *told.splitlines()]:
            tell(stderr, line)
        if whole and not traffic.ok and status == 0:
            os._exit(EXIT_INCOMPLETE)
    exit_like(status)


def _further_files() -> set[int]:
    """What the host gives its child beyond the standard files. In our hands it would outlast the child's closing it."""
    return {fd for fd in open_files() if os.get_inheritable(fd)}
