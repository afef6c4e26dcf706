"""`record --http` and `replay --http`: the real child, on this process' own standard files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ext_recorder.child import exit_like, spawn
from ext_recorder.notes import Notes, Report
from ext_recorder.outlets import claim_standard_files, host_outlet, tell
from ext_recorder.signals import Signals
from ext_recorder.tap import Tap
from ext_sdk.version import __version__

from .layer import NOT_LOADED, recording, replaying
from .naming import beside

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from ext_recorder.child import Child
    from ext_recorder.outlets import Outlet
    from ext_recorder.session import Session

    from .layer import Layer

EXIT_CANNOT_PLAY = 2  # the child has not loaded the layer: it would have used the network
EXIT_DIFFERS = 3  # the session was not the recorded one


class NoNotes(Notes):
    """Nothing is kept of what is said on stdio."""

    def __init__(self) -> None:
        self._held = os.pipe()  # an end that nobody closes: no scribe ever speaks
        super().__init__(0, os.dup(self._held[1]), self._held[0], "")
        self.on = False

    def finish(self) -> Report:
        return Report(ok=True, text="")


def recording_of(session: Session) -> Layer:
    """The layer that records a session's HTTP traffic, in the file beside its cassette. Raises RecorderError."""
    path = Path(beside(session.cassette))
    cassette = Path(session.cassette)
    return recording(path, bind=session.bind, secrets=session.secrets, version=__version__, cassette=cassette)


def run(path: str, command: Sequence[str], *, bind: Mapping[str, str], redact: Sequence[str] = ()) -> NoReturn:
    """Run a command with its HTTP traffic answered, and end as it ends.

    Args:
        path: the file.
        command: what to run.
        bind: --bind.
        redact: names of further environment variables whose values are secrets.

    Raises:
        RecorderError: the file can't be played, the command not be run.
    """
    claim_standard_files()
    secrets = {f"env.{name}": os.environ[name] for name in redact if name in os.environ}
    with replaying(Path(path), bind=bind, secrets=secrets) as layer:
        os.environ.update(layer.variables)
        signals = Signals()
        signals.catch()
        child = spawn(command)
        signals.catch_ignored()
        stderr = host_outlet(2)
        if not layer.wait_loaded(lambda: _is_over(child)):
            _refuse(child, layer, stderr)
        tap = Tap(child, signals, NoNotes(), stderr)
        status = tap.run()
        tap.linger()
        report = layer.finish()
        for line in [*report.warning.splitlines(), *report.text.splitlines()]:
            tell(stderr, line)
    if not report.ok:
        os._exit(EXIT_DIFFERS)
    exit_like(status)


def _is_over(child: Child) -> bool:
    """Whether the child has ended; its status stays to be asked for."""
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _refuse(child: Child, layer: Layer, stderr: Outlet) -> NoReturn:
    """End a child that would use the network. It has not heard anything yet."""
    child.send(9)
    os.waitpid(child.pid, 0)
    layer.close()
    tell(stderr, f"{NOT_LOADED}; so it was ended, before it could use the network")
    os._exit(EXIT_CANNOT_PLAY)
