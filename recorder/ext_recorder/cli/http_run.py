"""`record --http` and `replay --http`: run the real child with its HTTP traffic recorded or answered."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from ext_recorder.cassette.paths import beside
from ext_recorder.http.controller import recording, replaying
from ext_recorder.messages.redaction import Redaction
from ext_recorder.posix.child import exit_like, exit_status, has_exited
from ext_recorder.posix.output import host_outlet, write_message
from ext_recorder.posix.signals import Signals
from ext_recorder.record.note_queue import Journal, NoteQueue, Report
from ext_recorder.record.proxy import StdioProxy
from ext_recorder.record.recorder import spawn_in
from ext_recorder.replay.report import Report as ReportFile
from ext_sdk.core import __version__
from ext_sdk.core.stdio import claim_standard_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn

    from ext_recorder.http.controller import HttpController
    from ext_recorder.http.request_matching import RequestRules
    from ext_recorder.record.config import RecordingConfig

EXIT_DIFFERS = 3  # the session differed from the recorded one


class NullEventQueue(NoteQueue):
    """Event queue that drops all events: the messages on stdio are not recorded."""

    def __init__(self) -> None:
        self._held = os.pipe()  # both ends stay open: no writer process reads them
        super().__init__(0, os.dup(self._held[1]), self._held[0], "", Journal())
        self.on = False
        self.journal.close()

    def finish(self) -> Report:
        return Report(ok=True, text="")


def recording_of(session: RecordingConfig, kinds: Sequence[str] = ()) -> HttpController:
    """Return the controller that records a session's HTTP traffic next to its cassette. Raises RecorderError.

    Args:
        kinds: values of the child to record, too (`--deterministic`).
    """
    return recording(
        Path(beside(session.name)),
        bind=session.bind,
        redaction=session.redact or Redaction(),
        version=__version__,
        cassette=Path(session.cassette),
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
    """Run a command whose HTTP requests are answered from a file, and exit as it does.

    Args:
        path: the file of HTTP traffic.
        matching: rules for which requests are equal.
        listen: address for clients of a socket server; "": they connect to the command itself, or it is on stdio.
        connect: address of the command, if `listen` is given.
        report: file that gets a line of JSON with the result; "" for none.

    Raises:
        RecorderError: the file cannot be replayed, or the command cannot be run.
    """
    claim_standard_files()
    redaction = redact or Redaction()
    redaction.require()
    report_file = ReportFile(report, path) if report else None
    if report_file:
        report_file.begin()
    with ExitStack() as stack:
        proxy_for: Callable[..., StdioProxy] = StdioProxy
        if listen:
            from ext_recorder.sockets.relay import relaying

            proxy_for = stack.enter_context(relaying(listen, connect))
        misses = report_file.prefixed(f"{path}: ") if report_file else None
        layer = stack.enter_context(
            replaying(Path(path), bind=bind, redaction=redaction, matching=matching, misses=misses)
        )
        signals = Signals()
        signals.catch()
        child = spawn_in(layer, command)
        signals.catch_ignored()
        stderr = host_outlet(2)
        try:
            layer.wait_loaded(lambda: has_exited(child.pid))
        except BaseException:
            child.send(signal.SIGKILL)  # it has not received any input yet
            os.waitpid(child.pid, 0)
            raise
        proxy = proxy_for(child, signals, NullEventQueue(), stderr)
        status = proxy.run()
        proxy.linger()
        traffic = layer.finish()
        for line in [*traffic.warning.splitlines(), *traffic.text.splitlines()]:
            write_message(stderr, line)
    if report_file:
        code = exit_status(status) if traffic.ok else EXIT_DIFFERS
        report_file.end(code, [] if traffic.ok else traffic.text.splitlines())
    if not traffic.ok:
        os._exit(EXIT_DIFFERS)
    exit_like(status)
