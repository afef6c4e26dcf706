"""`record`: runs a command for a host, forwards all bytes unchanged, and writes a cassette.

host  <-- stdio -->  proxy (this process)  <-- pipes -->  child
                      |  notes
                      v
                    writer process (forked)  -->  cassette
"""

from __future__ import annotations

import os

from ext_recorder.messages.path_bindings import OF_RUNS
from ext_recorder.posix.child import exit_like, spawn
from ext_recorder.posix.output import host_outlet, open_files, write_message
from ext_recorder.posix.signals import Signals
from ext_recorder.record import writer_process
from ext_sdk.core.stdio import claim_standard_files

from .proxy import StdioProxy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn, Protocol

    from ext_recorder.posix.child import Child
    from ext_recorder.posix.output import OutputSink

    from .config import RecordingConfig
    from .note_queue import Report

    class TrafficRecorder(Protocol):
        """Recorder of the child's HTTP traffic: `http.controller.HttpController`, which this layer does not import."""

        variables: dict[str, str]

        def finish(self, started: float = 0.0, *, whole: bool = True) -> Report: ...

        def close(self) -> None: ...


EXIT_INCOMPLETE = 3  # the command ended well, but not all of its HTTP traffic could be recorded


def record(session: RecordingConfig, http: Callable[[RecordingConfig], TrafficRecorder] | None = None) -> NoReturn:
    """Run a command on the standard files of this process, record it, and exit as it does.

    Failures to record are reported on standard error, and change nothing for the host.

    Args:
        session: configuration of the recording.
        http: starts the recorder of the child's HTTP traffic; None if that is not recorded.

    Raises:
        CommandError: the command cannot be started; nothing is recorded.
    """
    claim_standard_files()
    further = {fd for fd in open_files() if os.get_inheritable(fd)}  # further files that the host passes to its child
    layer = http(session) if http else None
    signals = Signals()
    signals.catch()
    workspaces = None
    if session.files:
        from ext_recorder.replay.workspace import tracker_of

        folders = [folder for name, folder in session.bind.items() if name not in OF_RUNS]
        workspaces = tracker_of(session.files, session.cassette, folders)
    try:
        child = spawn_in(layer, session.command)
    finally:
        for fd in further:
            os.close(fd)
    signals.catch_ignored()
    stderr = host_outlet(2)
    queue = writer_process.start(session, child.pid)
    proxy = StdioProxy(child, signals, queue, stderr, workspaces)
    if session.on_start:
        session.on_start(proxy.started)
    status = proxy.run()
    proxy.linger()
    report = queue.finish()
    write_message(stderr, report.warning)
    if not report.ok or os.isatty(2):
        write_message(stderr, report.text)
    finish_like(layer, proxy, status, stderr, whole=report.ok)


def spawn_in(layer: TrafficRecorder | None, command: Sequence[str]) -> Child:
    """Start a command, with the environment of the HTTP traffic recorder if there is one.

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


def finish_like(
    layer: TrafficRecorder | None, proxy: StdioProxy, status: int, stderr: OutputSink, *, whole: bool
) -> NoReturn:
    """Exit as the command did, unless its HTTP traffic was not recorded completely.

    Args:
        layer: the recorder of the HTTP traffic; None if it is not recorded.
        proxy: the proxy that recorded the rest.
        status: wait status of the command.
        stderr: file for messages.
        whole: the cassette is complete; if it is not, neither is the file of its HTTP traffic.
    """
    if layer:
        traffic = layer.finish(proxy.started, whole=whole)
        text = traffic.text if not traffic.ok or os.isatty(2) else ""
        for line in [*traffic.warning.splitlines(), *text.splitlines()]:
            write_message(stderr, line)
        if whole and not traffic.ok and status == 0:
            os._exit(EXIT_INCOMPLETE)
    exit_like(status)
