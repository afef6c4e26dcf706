"""`ext-recorder run`: record the HTTP traffic of a command, or replay it, and end as the command does."""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from select import poll
from typing import TYPE_CHECKING, NamedTuple

from ext_recorder.cassette.recording import RunHeader
from ext_recorder.errors import UsageError
from ext_recorder.http.controller import HttpControllerError, WorkerProcess
from ext_recorder.http.inject.ext_recorder_agent.channel import SOCKET
from ext_recorder.http.proxy.service import BUNDLE_FILE, CA_FILE, ProxyOptions, open_listener
from ext_recorder.http.reader import end_values
from ext_recorder.http.traffic_counts import Traffic
from ext_recorder.http.worker_context import KUBECONFIG, Origin
from ext_recorder.messages.redaction import Redaction
from ext_recorder.posix.child import CommandError, exit_like
from ext_recorder.posix.signals import Signals, signal_name
from ext_sdk.core import __version__

from .children import ChildOptions, Children
from .environment import base_urls, open_ports, user_bundles, variables
from .folder import RecordingFolder, same_command, traffic_of
from .kubeconfig import Kubeconfig, of_environment
from .offline import isolate
from .wrap import Wrapping

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn, TypeVar

    from ext_recorder.http.request_matching import RequestRules
    from ext_recorder.http.worker_context import WorkerContext, WorkerOutcome

    Result = TypeVar("Result")

EXIT_DIFFERS = 3  # the traffic differed from the recorded one
EXIT_NOT_FOUND, EXIT_NOT_EXECUTABLE = 127, 126
SHOWN = 12  # endpoints in the summary


class RunOptions(NamedTuple):
    """Options of a run.

    Attributes:
        mode: once, none or all.
        bind: `--bind`, name to live value.
        matching: the user's rules for equal requests.
        children: on stdio.
    """

    mode: str = "once"
    bind: Mapping[str, str] = {}
    redact: Redaction | None = None
    matching: RequestRules | None = None
    children: ChildOptions = ChildOptions()


def run(path: str, command: Sequence[str], options: RunOptions) -> NoReturn:
    """Record or replay a command, and exit as it does; with 3 if its traffic differed from the recorded one.

    Raises:
        RecorderError: the folder or the command can't be used.
    """
    folder = RecordingFolder(path)
    exists = folder.exists
    if options.mode == "none" and not exists:
        raise UsageError(f"{path}: there is no recording, and `--mode none` makes none; record it: --mode once")
    if exists and options.mode != "all":
        _replay(folder, command, options)
    _record(folder, command, options)


def _record(folder: RecordingFolder, command: Sequence[str], options: RunOptions) -> NoReturn:
    children = Children(options.children, None)
    wrapping = Wrapping(options.children.wrap, command)
    if options.children.wrap:
        options.children.check(wrapping.commands)
    partial = folder.begin()
    redaction = options.redact or Redaction()
    started, recorded = time.monotonic(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    session = Session(of_environment(os.environ), has_children=bool(wrapping.commands))

    def work(context: WorkerContext) -> WorkerOutcome:
        from ext_recorder.http.worker import record

        return record(
            context,
            traffic_of(partial),
            options.bind,
            redaction,
            Origin(__version__, started, None),
            proxy=session.proxy,
        )

    def start(temporary: Path, variables: dict[str, str]) -> Sequence[str]:
        children.write(str(temporary), str(partial), wrapping.commands, variables)
        return wrapping.write(str(temporary))

    status, outcome, traffic, (found, lines) = _run(
        start, session, work, started, lambda: children.recorded(wrapping.commands, started)
    )
    seconds = time.monotonic() - started
    redactor = redaction.redactor()
    kept = tuple(redactor.redact(word.encode()).decode() for word in command)
    code = os.waitstatus_to_exitcode(status)
    ended: int | str = signal_name(-code) if code < 0 else code
    wrap = options.children.wrap
    endpoints = {endpoint: count.entry() for endpoint, (count, _) in traffic.items()}
    folder.finish(RunHeader(kept, __version__, recorded, round(seconds, 3), ended, wrap, tuple(found), endpoints))
    lines += endpoint_lines(traffic, replayed=False)
    _report([*outcome[1], *wrapping.remarks, *lines, f"recorded {folder.path} in {seconds:.1f} s"])
    exit_like(status)


def _replay(folder: RecordingFolder, command: Sequence[str], options: RunOptions) -> NoReturn:
    header = folder.header()
    redaction = options.redact or Redaction()
    redactor = redaction.redactor()
    if not same_command(header.command, [redactor.redact(word.encode()).decode() for word in command]):
        raise UsageError(
            f"{folder.path}: recorded with another command: {' '.join(header.command)}; use another folder, or record "
            "it again with --mode all"
        )
    children = Children(options.children, header.children)
    wrapping = Wrapping(options.children.wrap or header.wrap, command)
    options.children.check({*wrapping.commands, *(child.name for child in header.children)})
    started = time.monotonic()
    running = [name for name in wrapping.commands if not children.is_wanted(name)]
    remarks = [f"run, not replayed: {', '.join(running)}"] if running else []
    if options.mode == "none":
        reason = isolate()
        remarks.append(f"not isolated from the network: {reason}" if reason else "without any network but loopback")
    session = Session(Kubeconfig([(end_values(traffic_of(folder.path)).get("kubeconfig", ""), folder.path)]))
    misses: list[str] = []

    def work(context: WorkerContext) -> WorkerOutcome:
        from ext_recorder.http.worker import replay

        path = traffic_of(folder.path)
        return replay(
            context,
            path,
            options.bind,
            redaction,
            matching=options.matching,
            misses=misses,
            proxy=session.proxy,
            partly=children.any_replayed,
        )

    def start(temporary: Path, variables: dict[str, str]) -> Sequence[str]:
        children.write(str(temporary), str(folder.path), wrapping.commands, variables)
        return wrapping.write(str(temporary))

    status, (kind, lines), traffic, (same, told) = _run(start, session, work, started, children.replayed)
    result = f"replayed {folder.path} in {time.monotonic() - started:.1f} s instead of {header.seconds:.1f} s"
    if unpaid := sum((played for _, played in traffic.values()), Traffic()).model:
        result += f"; not paid: {unpaid}"
    _report([*lines, *told, *remarks, *endpoint_lines(traffic, replayed=True), result])
    if kind != "ok" or not same:
        os._exit(EXIT_DIFFERS)
    exit_like(status)


class Session:
    """Listeners of one run, and the environment of its command.

    Args:
        kubeconfig: of the command.
        has_children: children are recorded that are not there on replay, nor are the servers that they run: these are
            recorded, too. A server of the command itself, on another port each time, is passed on replay.
    """

    def __init__(self, kubeconfig: Kubeconfig, *, has_children: bool = False) -> None:
        outside = None if has_children else open_ports()  # before our own
        self._main = open_listener()
        self._kubeconfig = kubeconfig
        self._routes = kubeconfig.routes()
        self._bases = base_urls(os.environ)
        listeners = [self._main, *(route.listener for route in self._routes)]
        listeners += {id(base.listener): base.listener for base in self._bases}.values()  # several may share one
        self.proxy = ProxyOptions(listeners, user_bundles(os.environ), outside)

    def variables(self, folder: Path) -> dict[str, str]:
        """Return the variables that the command has in addition to ours.

        Args:
            folder: of the session, with the certificates; gets the kubeconfig.
        """
        added = variables(self._main.port, str(folder / CA_FILE), str(folder / BUNDLE_FILE), self._bases)
        if self._routes:
            file = folder / KUBECONFIG
            file.write_text(self._kubeconfig.rewritten(self._routes, (folder / CA_FILE).read_bytes()))
            added["KUBECONFIG"] = str(file)
        return added


def _run(
    start: Callable[[Path, dict[str, str]], Sequence[str]],
    session: Session,
    work: Callable[[WorkerContext], WorkerOutcome],
    started: float,
    end: Callable[[], Result],
) -> tuple[int, tuple[str, list[str]], dict[str, tuple[Traffic, Traffic]], Result]:
    """Run the command with the worker.

    Args:
        start: prepares the folder of the session, adds variables, and returns the command.
        end: is called when the command has ended, while the proxy still runs: children may still write.

    Returns:
        The command's wait status, the outcome of the worker, the recorded and the replayed traffic with each endpoint,
        and the result of `end`.
    """
    folder = tempfile.mkdtemp(prefix="ext-recorder-")
    agents = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    agents.bind(os.path.join(folder, SOCKET))  # noqa: PTH118
    agents.listen()
    with WorkerProcess(agents, folder, work, [listener.socket for listener in session.proxy.listeners]) as worker:
        signals = Signals()
        signals.catch()
        variables = session.variables(Path(folder))
        command = start(Path(folder), variables)
        pid = _spawn(command, os.environ | variables)
        signals.catch_ignored()
        status = _wait(pid, signals)
        result = end()
        outcome = worker.outcome(started, whole=True)
    if outcome is None:
        raise HttpControllerError("the worker process of the proxy exited without reporting a result")
    kind, lines = outcome
    traffic = {place: (Traffic(*one), Traffic(*other)) for place, (one, other) in worker.traffic.items()}
    return status, (kind, [line for line in lines if line]), traffic, result


def _spawn(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Start the command with the files and the terminal of this process. Raises CommandError."""
    reset = [signal.SIGPIPE, signal.SIGXFSZ]
    try:
        return os.posix_spawnp(command[0], tuple(command), environ, setsigdef=reset)
    except FileNotFoundError as error:
        raise CommandError(f"{command[0]}: {error.strerror}", EXIT_NOT_FOUND) from None
    except OSError as error:
        raise CommandError(f"{command[0]}: {error.strerror}", EXIT_NOT_EXECUTABLE) from None


def _wait(pid: int, signals: Signals) -> int:
    """Return the wait status of the command; pass signals on to it, except those that a terminal has sent to both."""
    waiting = poll()
    waiting.register(signals.fd)
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            signals.close()
            return status
        waiting.poll(signals.patience)
        for number, is_from_terminal in signals.take():
            if number != signal.SIGCHLD and not is_from_terminal:
                os.kill(pid, number)


def endpoint_lines(traffic: Mapping[str, tuple[Traffic, Traffic]], *, replayed: bool) -> list[str]:
    """Return a line for each endpoint, first those with the most requests."""
    lines = []
    for endpoint, (recorded, played) in sorted(traffic.items(), key=lambda item: -item[1][0].requests):
        requests = "1 request" if recorded.requests == 1 else f"{recorded.requests:,} requests"
        line = f"{endpoint}: {played.requests:,} of {requests}" if replayed else f"{endpoint}: {requests}"
        model = (played if replayed else recorded).model
        lines.append(f"{line}, {model}" if model else line)
    return lines if len(lines) <= SHOWN else [*lines[:SHOWN], f"and {len(lines) - SHOWN} more endpoints"]


def _report(lines: Sequence[str]) -> None:
    sys.stderr.writelines(f"ext-recorder: {line}\n" for line in lines)
    sys.stderr.flush()
