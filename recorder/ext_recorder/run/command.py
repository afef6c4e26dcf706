"""Process of the recorded command: its access to the proxy, its worker, its signals and its end."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from select import poll
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from ext_recorder.http.controller import WorkerProcess, open_session
from ext_recorder.http.proxy.client import Entry
from ext_recorder.http.proxy.service import BUNDLE_FILE, CA_FILE, JAVA_FILE, ProxyOptions, open_listener
from ext_recorder.http.traffic_counts import Traffic, Traffics
from ext_recorder.http.worker_context import KUBECONFIG
from ext_recorder.posix.child import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, CommandError
from ext_recorder.posix.signals import Signals, signal_name

from .environment import base_urls, open_ports, user_bundles, variables

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from ext_recorder.http.kubeconfig import Kubeconfig, Route
    from ext_recorder.http.proxy.service import Listener
    from ext_recorder.http.worker_context import WorkerContext, WorkerOutcome

    from .environment import BaseUrl

Result = TypeVar("Result")

# Signals by which users, terminals and CI systems interrupt a command.
INTERRUPTING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL})
PDEATHSIG = 1  # PR_SET_PDEATHSIG of prctl(2)


class Entrances(NamedTuple):
    """Listeners of one client: of the proxy, of each cluster and of each model API."""

    proxy: Listener
    routes: list[Route]
    bases: list[BaseUrl]

    def listeners(self) -> list[Listener]:
        """Return all of them, each once: several base URLs may share one."""
        shared = {id(base.listener): base.listener for base in self.bases}
        return [self.proxy, *(route.listener for route in self.routes), *shared.values()]


class Access:
    """Access of a command and its children to the network: listeners of the proxy, and the variables that lead there.

    Args:
        kubeconfig: of the command.
        has_children: children are recorded that are not there on replay, nor are the servers that they run: these are
            recorded, too. A server of the command itself, on another port each time, is passed on replay.
        recorded: variables of the recorded command, for those that are not set any more.
        served: hosts and ports in the recording; None when recording.
        clients: children with shims: each has listeners of its own, so that the recording names it.
    """

    def __init__(
        self,
        kubeconfig: Kubeconfig,
        *,
        has_children: bool = False,
        recorded: Mapping[str, str] | None = None,
        served: Collection[str] | None = None,
        clients: Iterable[str] = (),
    ) -> None:
        ports = open_ports()  # before our own
        outside = None if has_children else ports
        self._environ = dict(recorded or {}) | os.environ
        self._kubeconfig = kubeconfig
        served = {f"127.0.0.1:{port}" for port in ports or ()} if served is None else served
        self._entrances = {
            client: Entrances(
                open_listener(Entry(client=client)),
                kubeconfig.routes(client),
                base_urls(self._environ, served, client),
            )
            for client in ("", *clients)
        }
        listeners = [listener for entrances in self._entrances.values() for listener in entrances.listeners()]
        self.proxy = ProxyOptions(listeners, user_bundles(os.environ), outside)

    def variables(self, folder: Path, client: str = "") -> dict[str, str]:
        """Return the variables that the command, or one of its children, has in addition to ours.

        Args:
            folder: of the session, with the certificates; gets the kubeconfig.
            client: the child.
        """
        main, routes, bases = self._entrances[client]
        bundle, java = str(folder / BUNDLE_FILE), str(folder / JAVA_FILE)
        added = variables(self._environ, main.port, bundle, java, bases)
        added = {name: value for name, value in self._environ.items() if name not in os.environ} | added
        if routes:
            file = folder / (f"{KUBECONFIG}-{client}" if client else KUBECONFIG)
            file.write_text(self._kubeconfig.rewritten(routes, (folder / CA_FILE).read_bytes()))
            added["KUBECONFIG"] = str(file)
            # Of kubectl and helm: what they have found out about an address that another run had must not be used.
            added["KUBECACHEDIR"] = str(folder / "kube-cache")
        return added


class Ended(NamedTuple, Generic[Result]):
    """End of a command.

    Attributes:
        status: wait status.
        seconds: from the start to its end. The worker may need longer, to write what was recorded.
        interrupted: name of the signal that has interrupted it, or "".
        ok: the worker has recorded or replayed everything.
        lines: of the worker.
        traffic: with each endpoint.
        result: of the function that was called at the end.
    """

    status: int
    seconds: float
    interrupted: str
    ok: bool
    lines: list[str]
    traffic: Mapping[str, Traffics]
    result: Result


def run_command(
    start: Callable[[Path, dict[str, str]], Sequence[str]],
    access: Access,
    work: Callable[[WorkerContext], WorkerOutcome],
    started: float,
    end: Callable[[], Result],
    *,
    afterwards: Callable[[], None] = lambda: None,
) -> Ended[Result]:
    """Run the command with the worker.

    Args:
        start: prepares the folder of the session, adds variables, and returns the command.
        end: is called when the command has ended, while the proxy still runs: children may still write.
        afterwards: is called when the proxy has ended.

    Raises:
        RecorderError: the worker or the command can't start.
    """
    folder, agents = open_session()
    with WorkerProcess(agents, folder, work, [listener.socket for listener in access.proxy.listeners]) as worker:
        signals = Signals()
        signals.catch()
        variables = access.variables(Path(folder))
        command = start(Path(folder), variables)
        pid = _spawn(command, os.environ | variables)
        signals.catch_ignored()
        status, received = _wait(pid, signals)
        seconds = time.monotonic() - started
        number = -os.waitstatus_to_exitcode(status)
        # A command that ends with exit code 0 after a signal, as servers do, is not interrupted.
        signaled = number if number in INTERRUPTING else min(INTERRUPTING & received, default=0) if status else 0
        interrupted = signal_name(signaled) if signaled else ""
        result = end()
        outcome = worker.outcome(started, whole=not interrupted, close=False)
        afterwards()
    kind, lines = outcome or ("error", ["the worker process of the proxy was killed"])
    traffic = {place: Traffics(*(Traffic(*each) for each in counts)) for place, counts in worker.traffic.items()}
    return Ended(status, seconds, interrupted, kind == "ok", [line for line in lines if line], traffic, result)


def _spawn(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Start the command with the files and the terminal of this process. Raises CommandError.

    If this process is killed, the command gets SIGTERM, because its proxy has ended, too (Linux only).
    """
    recorder = os.getpid()
    failed, failure = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            with suppress(AttributeError, OSError):
                ctypes.CDLL(None).prctl(PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
            if os.getppid() == recorder:
                os.execvpe(command[0], tuple(command), environ)  # noqa: S606 - the command of the user
        except OSError as error:
            os.write(failure, str(error.errno).encode())
        finally:
            os._exit(EXIT_NOT_EXECUTABLE)
    os.close(failure)
    number = int(os.read(failed, 16) or 0)
    os.close(failed)
    if number:
        os.waitpid(pid, 0)
        code = EXIT_NOT_FOUND if number == errno.ENOENT else EXIT_NOT_EXECUTABLE
        raise CommandError(f"{command[0]}: {os.strerror(number)}", code)
    return pid


def _wait(pid: int, signals: Signals) -> tuple[int, set[int]]:
    """Wait for the command; pass signals on to it, except those that a terminal has sent to both.

    Returns:
        The wait status, and the signals that were received.
    """
    waiting = poll()
    waiting.register(signals.fd)
    received: set[int] = set()
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            received |= {number for number, _ in signals.take()}
            signals.close()
            return status, received
        waiting.poll(signals.patience)
        for number, is_from_terminal in signals.take():
            received.add(number)
            if number != signal.SIGCHLD and not is_from_terminal:
                os.kill(pid, number)
