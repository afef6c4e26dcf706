"""`record --http` and `replay --http`: the real child, on this process' own standard files."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from ext_recorder.cassette.paths import beside
from ext_recorder.http.controller import recording, replaying
from ext_recorder.messages.redaction import Redaction
from ext_recorder.posix.child import exit_like, way_of_ending
from ext_recorder.posix.output import claim_standard_files, host_outlet, write_message
from ext_recorder.posix.signals import Signals
from ext_recorder.record.event_queue import EventQueue, Journal, Report
from ext_recorder.record.proxy import StdioProxy
from ext_recorder.record.recorder import spawn_in
from ext_recorder.replay.report import Report as ReportFile
from ext_sdk.core.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import NoReturn

    from ext_recorder.http.controller import HttpController
    from ext_recorder.http.request_matching import RequestRules
    from ext_recorder.posix.child import Child
    from ext_recorder.record.config import RecordingConfig

EXIT_DIFFERS = 3  # the session was not the recorded one


class NoNotes(EventQueue):
    """Nothing is kept of what is said on stdio."""

    def __init__(self) -> None:
        self._held = os.pipe()  # an end that nobody closes: no scribe ever speaks
        super().__init__(0, os.dup(self._held[1]), self._held[0], "", Journal())
        self.on = False
        self.journal.close()

    def finish(self) -> Report:
        return Report(ok=True, text="")


def recording_of(session: RecordingConfig, kinds: Sequence[str] = ()) -> HttpController:
    """Return the layer that records a session's HTTP traffic, in the file beside its cassette. Raises RecorderError.

    Args:
        session: the session.
        kinds: values of the child that are kept as well.
    """
    path = Path(beside(session.name))
    cassette = Path(session.cassette)
    return recording(
        path,
        bind=session.bind,
        redaction=session.redact or Redaction(),
        version=__version__,
        cassette=cassette,
        kinds=kinds,
    )


def run(
    path: str,
    command: Sequence[str],
    *,
    bind: Mapping[str, str],
    redact: Redaction | None = None,
    matching: RequestRules | None = None,
    listen: str = "",
    connect: str = "",
    report: str = "",
) -> NoReturn:
    """Run a command with its HTTP traffic answered, and end as it ends.

    Args:
        path: the file.
        command: what to run.
        bind: --bind.
        redact: what is redacted.
        matching: the user's rules for which requests are the same.
        listen: where clients of a socket server come; "": to the command itself, or it is on stdio.
        connect: where the command listens then.
        report: a file that gets a line of JSON about how it went; "" for none.

    Raises:
        RecorderError: the file can't be played, the command not be run.
    """
    claim_standard_files()
    redaction = redact or Redaction()
    redaction.require()
    written = ReportFile(report, path) if report else None
    if written:
        written.begin()
    with ExitStack() as stack:
        make_tap = stack.enter_context(_relaying(listen, connect)) if listen else StdioProxy
        misses = written.prefixed(f"{path}: ") if written else None
        layer = stack.enter_context(
            replaying(Path(path), bind=bind, redaction=redaction, matching=matching, misses=misses)
        )
        signals = Signals()
        signals.catch()
        child = spawn_in(layer, command)
        signals.catch_ignored()
        stderr = host_outlet(2)
        try:
            layer.wait_loaded(lambda: _is_over(child))
        except BaseException:
            child.send(signal.SIGKILL)  # it has not heard anything yet
            os.waitpid(child.pid, 0)
            raise
        proxy = make_tap(child, signals, NoNotes(), stderr)
        status = proxy.run()
        proxy.linger()
        traffic = layer.finish()
        for line in [*traffic.warning.splitlines(), *traffic.text.splitlines()]:
            write_message(stderr, line)
    if written:
        code = way_of_ending(status) if traffic.ok else EXIT_DIFFERS
        written.end(code, [] if traffic.ok else traffic.text.splitlines())
    if not traffic.ok:
        os._exit(EXIT_DIFFERS)
    exit_like(status)


def _is_over(child: Child) -> bool:
    """Whether the child has ended; its status stays to be asked for."""
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _relaying(listen: str, connect: str) -> AbstractContextManager[Callable[..., StdioProxy]]:
    from ext_recorder.sockets.relay import relaying

    return relaying(listen, connect)
