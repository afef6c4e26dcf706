"""`ext-recorder run`: record the HTTP traffic of a command, or replay it, and end as the command does."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from select import poll
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from ext_recorder.cassette.header import Header
from ext_recorder.cassette.paths import partial_of
from ext_recorder.cassette.recording import CASSETTES, HEADER, Child, RunHeader, with_sessions
from ext_recorder.errors import RecorderError, UsageError
from ext_recorder.http.controller import WorkerProcess
from ext_recorder.http.inject.ext_recorder_agent.channel import SOCKET
from ext_recorder.http.interaction_store import DIFFERS
from ext_recorder.http.kubeconfig import Kubeconfig, texts_of
from ext_recorder.http.proxy.client import Entry
from ext_recorder.http.proxy.service import BUNDLE_FILE, CA_FILE, JAVA_FILE, McpFiles, ProxyOptions, open_listener
from ext_recorder.http.proxy.upstream import ParentProxies
from ext_recorder.http.reader import end_values
from ext_recorder.http.traffic_counts import Traffic
from ext_recorder.http.worker_context import KUBECONFIG, Origin
from ext_recorder.messages.matcher import MATCH_ON
from ext_recorder.messages.path_bindings import IfKnown, RecordBindings, is_bindable
from ext_recorder.messages.provenance import Live, neutral_command, same_command, shown
from ext_recorder.messages.redaction import Redaction
from ext_recorder.posix.child import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, CommandError, exit_like, exit_status
from ext_recorder.posix.signals import Signals, signal_name
from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.replay.replay import Options
from ext_sdk.core import __version__

from .children import CLAIMS, HTTP_STARTS, REPORT, ChildOptions, Children
from .environment import base_urls, isolate, kept_variables, open_ports, remark, user_bundles, variables
from .folder import UNKNOWN, RecordingFolder, traffic_of
from .learn import Learner, request_rules, rules_of
from .wrap import Wrapping

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import NoReturn

    from ext_recorder.http.kubeconfig import Route
    from ext_recorder.http.proxy.service import Listener
    from ext_recorder.http.request_matching import RequestRules
    from ext_recorder.http.worker_context import WorkerContext, WorkerOutcome

    from .environment import BaseUrl
    from .learn import Rule

Result = TypeVar("Result")

EXIT_DIFFERS = 3  # the traffic differed from the recorded one
EXIT_INCOMPLETE = 3  # the command ended well, but was not recorded
WORKING = "cwd"  # binding of the working directory
SHOWN = 12  # endpoints in the summary
# Signals by which users, terminals and CI systems interrupt a command.
INTERRUPTING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL})
PDEATHSIG = 1  # PR_SET_PDEATHSIG of prctl(2)


class RunOptions(NamedTuple):
    """Options of a run.

    Attributes:
        mode: once, none, new_episodes or all.
        bind: `--bind`, name to live value.
        ignore, mask, match_on, exact: rules for equal requests, in addition to those of the recording.
        learn: replay, and propose rules for requests that differ.
        children: on stdio.
        pass_through: servers whose traffic is forwarded unrecorded.
    """

    mode: str = "once"
    bind: Mapping[str, str] = {}
    redact: Redaction | None = None
    ignore: tuple[str, ...] = ()
    mask: tuple[str, ...] = ()
    match_on: tuple[str, ...] = ()
    exact: bool = False
    learn: bool = False
    children: ChildOptions = ChildOptions()
    pass_through: tuple[str, ...] = ()

    @property
    def bindings(self) -> dict[str, str]:
        """Return the paths that are replaced in recordings: those of `--bind`, and the working directory."""
        folder = os.getcwd()  # noqa: PTH109
        is_bound = folder.count("/") > 1 and is_bindable(folder) and folder != os.environ.get("HOME")
        return {**({WORKING: IfKnown(folder)} if is_bound else {}), **self.bind}

    def matching(self, rules: Sequence[Rule] = ()) -> RequestRules:
        """Return the rules for equal requests, with those of a recording. Raises UsageError."""
        return request_rules(rules, self.ignore, self.mask, self.match_on, exact=self.exact)


def run(path: str, command: Sequence[str], options: RunOptions) -> NoReturn:
    """Record or replay a command, and exit as it does; with 3 if its traffic differed from the recorded one.

    Raises:
        RecorderError: the folder or the command can't be used.
    """
    folder = RecordingFolder(path)
    exists = folder.exists
    if options.mode == "none" and not exists:
        raise UsageError(f"{path}: there is no recording, and `--mode none` makes none; record it: --mode once")
    options.matching()  # check the values
    if options.learn and (not exists or options.mode == "all"):
        what = "--mode all makes a new one" if exists else "there is none"
        raise UsageError(f"{path}: --learn compares with a recording, and {what}; record without --learn")
    if exists and options.mode == "new_episodes" and not options.learn:
        _extend(folder, command, options)
    if exists and options.mode != "all":
        _replay(folder, command, options)
    _record(folder, command, options)


def _paths(options: RunOptions) -> RecordBindings:
    """Return the paths of this machine, with their placeholders."""
    return RecordBindings(DIALECTS["raw"], options.bindings, os.environ.get("HOME", ""))


def _record(folder: RecordingFolder, command: Sequence[str], options: RunOptions) -> NoReturn:
    children = Children(options.children, None)
    wrapping = Wrapping(options.children.wrap, command)
    if options.children.wrap:
        options.children.check(wrapping.commands)
    redaction = options.redact or Redaction()
    redactor, paths = redaction.redactor(), _paths(options)
    kept = neutral_command(command, lambda data: paths.clean(redactor.redact(data)))
    started, recorded = time.monotonic(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    parents = ParentProxies(os.environ)
    parents.check()
    known = tuple(Child(name) for name in wrapping.commands if children.is_wanted(name))
    header = RunHeader(kept, __version__, recorded, 0.0, UNKNOWN, options.children.wrap, known)._replace(
        pass_through=options.pass_through,
        environment=kept_variables(os.environ, lambda text: redactor.redact(text.encode()).decode()),
    )
    partial = _begin(folder, header)
    session = Session(Kubeconfig(texts_of(os.environ)), has_children=bool(wrapping.commands), clients=wrapping.commands)
    session.proxy = session.proxy._replace(
        parents=parents,
        pass_through=options.pass_through,
        mcp=sessions_of(options, f"{partial}/{CASSETTES}", {}),
    )

    def work(context: WorkerContext) -> WorkerOutcome:
        from ext_recorder.http.worker import record

        return record(
            context,
            traffic_of(partial),
            options.bindings,
            redaction,
            Origin(__version__, started, None),
            proxy=session.proxy,
        )

    def start(temporary: Path, variables: dict[str, str]) -> Sequence[str]:
        own = {name: session.variables(temporary, name) for name in wrapping.commands}
        # An agent that runs on replay needs the files of extensions. One that is replayed changes its own workspace
        # only, so those of extensions would not be the recorded ones.
        files = wrapping.agents or wrapping.extensions
        children.write(str(temporary), str(partial), wrapping.commands, variables, files=files, own=own)
        return wrapping.write(str(temporary))

    try:
        ended = _run(
            start,
            session,
            work,
            started,
            lambda: children.recorded(wrapping.commands, started),
            afterwards=lambda: children.read_servers(started),
        )
    except RecorderError:
        folder.discard_empty()
        raise
    found, lines = ended.result
    lines = [
        *ended.lines,
        *wrapping.remarks,
        *lines,
        *children.server_lines,
        *endpoint_lines(ended.traffic, replayed=False),
    ]
    header = header._replace(
        seconds=round(ended.seconds, 3),
        exit=exit_status(ended.status),
        children=(*found, *children.servers),
        endpoints={endpoint: recorded.entry() for endpoint, (recorded, _, _) in ended.traffic.items()},
    )
    _conclude(folder, header, ended, lines, f"recorded {folder.path} in {ended.seconds:.1f} s")


def _begin(folder: RecordingFolder, header: RunHeader) -> Path:
    """Begin a recording, and report an interrupted one that was found. Return the folder to record in."""
    partial = folder.begin(header)
    if left := folder.left_behind:
        _report(
            [f"{left}: an earlier recording was interrupted; to make a recording of it: ext-recorder recover {left}"]
        )
    return partial


def _conclude(
    folder: RecordingFolder, header: RunHeader, ended: Ended[Result], lines: Sequence[str], result: str
) -> NoReturn:
    """Complete a recording, unless the command or the worker was interrupted, and exit as the command did."""
    if traffic_of(folder.partial).exists() and not ended.interrupted:
        folder.finish(header)
        _report([*lines, result])
        exit_like(ended.status)
    what = "not changed" if folder.exists else "not made"
    reason = f"the command was interrupted by {ended.interrupted}" if ended.interrupted else "see above"
    folder.leave(header)
    if folder.discard_empty():
        _report([*lines, f"{folder.path}: {what}, {reason}; nothing was recorded"])
    else:
        other = " -o NAME" if folder.path.exists() else ""
        remedy = f"to make a recording of what was recorded until then: ext-recorder recover {folder.partial}{other}"
        _report([*lines, f"{folder.path}: {what}, {reason}; {remedy}"])
    if ended.status == 0:
        os._exit(EXIT_INCOMPLETE)
    exit_like(ended.status)


def _header(folder: RecordingFolder, command: Sequence[str], options: RunOptions) -> RunHeader:
    """Return the header of a recording. Raises UsageError if it is of another command."""
    header = folder.header()
    redaction = options.redact or Redaction()
    known = Header("", "", command=header.command, bindings=_paths(options).neutral())
    if header.command and not same_command(known, Live(command, bind=options.bindings, redact=redaction)):
        raise UsageError(
            f"{folder.path}: recorded with another command: {shown(header.command)}; use another folder, or record "
            "it again with --mode all"
        )
    return header


def _extend(folder: RecordingFolder, command: Sequence[str], options: RunOptions) -> NoReturn:
    """Replay a recording, and record in a copy what it does not have; the copy replaces it at the end."""
    redaction = options.redact or Redaction()
    header = _header(folder, command, options)
    rules = rules_of(header.rules, folder.path / HEADER)
    matching = options.matching(rules)
    options = options._replace(children=options.children.with_rules(rules))
    children = Children(options.children, header.children)
    wrapping = Wrapping(options.children.wrap or header.wrap, command)
    options.children.check({*wrapping.commands, *(child.name for child in header.children)})
    parents = ParentProxies(os.environ)
    parents.check()
    started = time.monotonic()
    recorded = (str(end_values(traffic_of(folder.path)).get("kubeconfig") or ""), folder.path)
    served = {endpoint.partition("://")[2] for endpoint in header.endpoints}
    session = Session(
        Kubeconfig([*texts_of(os.environ), recorded]),
        has_children=bool(wrapping.commands),
        recorded=header.environment,
        served=served,
        clients=wrapping.commands,
    )
    pass_through = tuple(dict.fromkeys((*header.pass_through, *options.pass_through)))
    mcp = sessions_of(options, "", children.http_endpoints(str(folder.path)))
    session.proxy = session.proxy._replace(parents=parents, pass_through=pass_through, mcp=mcp)
    remarks = [f"{folder.path} was recovered from an interrupted run; {header.recovered}"] if header.recovered else []
    partial = _begin(folder, header._replace(exit=UNKNOWN))
    if (folder.path / CASSETTES).is_dir():
        shutil.copytree(folder.path / CASSETTES, partial / CASSETTES)

    def work(context: WorkerContext) -> WorkerOutcome:
        from ext_recorder.http.worker import extend

        paths = traffic_of(folder.path), traffic_of(partial)
        return extend(context, *paths, options.bindings, redaction, matching=matching, proxy=session.proxy)

    def start(temporary: Path, variables: dict[str, str]) -> Sequence[str]:
        own = {name: session.variables(temporary, name) for name in wrapping.commands}
        children.write(
            str(temporary),
            str(folder.path),
            wrapping.commands,
            variables,
            files=wrapping.agents or wrapping.extensions,
            own=own,
            extended=str(partial),
        )
        return wrapping.write(str(temporary))

    try:
        ended = _run(
            start,
            session,
            work,
            started,
            lambda: (children.replayed(completely=False), children.recorded((), started)[0]),
        )
    except RecorderError:
        shutil.rmtree(partial)
        raise
    (same, told), new = ended.result
    lines = [*ended.lines, *told, *wrapping.remarks, *remarks]
    lines += endpoint_lines(ended.traffic, replayed=True)
    if not ended.interrupted and not traffic_of(partial).exists() and not partial_of(traffic_of(partial)).exists():
        if not new:
            shutil.rmtree(partial)
            _report([*lines, f"replayed {folder.path}, which has nothing new"])
            os._exit(EXIT_DIFFERS) if not (ended.ok and same) else exit_like(ended.status)
        shutil.copy(traffic_of(folder.path), traffic_of(partial))
    header = header._replace(
        children=with_sessions(header.children, new),
        pass_through=pass_through,
        endpoints={endpoint: counts.recorded.entry() for endpoint, counts in ended.traffic.items()},
    )
    if not same:
        _report([*lines, f"{folder.path}: not changed, because children differed from the recording"])
        shutil.rmtree(partial)
        os._exit(EXIT_DIFFERS)
    sessions = sum(len(child.cassettes) for child in new)
    added = f", with {sessions} new session{'' if sessions == 1 else 's'} of children" if sessions else ""
    _conclude(folder, header, ended, lines, f"extended {folder.path} in {time.monotonic() - started:.1f} s{added}")


def _replay(folder: RecordingFolder, command: Sequence[str], options: RunOptions) -> NoReturn:
    redaction = options.redact or Redaction()
    header = _header(folder, command, options)
    rules = rules_of(header.rules, folder.path / HEADER)
    matching = options.matching(rules)
    learner = Learner(folder.path / HEADER, rules) if options.learn else None
    options = options._replace(children=options.children.with_rules(rules))
    children = Children(options.children, header.children)
    wrapping = Wrapping(options.children.wrap or header.wrap, command)
    options.children.check({*wrapping.commands, *(child.name for child in header.children)})
    started = time.monotonic()
    running = [name for name in wrapping.commands if not children.is_wanted(name)]
    remarks = [f"run, not replayed: {', '.join(running)}"] if running else []
    if options.mode == "none":
        remarks.append(remark(isolate()))
    kubeconfig = Kubeconfig([(str(end_values(traffic_of(folder.path)).get("kubeconfig") or ""), folder.path)])
    served = {endpoint.partition("://")[2] for endpoint in header.endpoints}
    session = Session(kubeconfig, recorded=header.environment, served=served, clients=wrapping.commands)
    mcp = sessions_of(options, "", children.http_endpoints(str(folder.path)))
    session.proxy = session.proxy._replace(mcp=mcp)
    pass_through = tuple(dict.fromkeys((*header.pass_through, *options.pass_through)))
    if options.mode != "none":
        session.proxy = session.proxy._replace(parents=ParentProxies(os.environ), pass_through=pass_through)
        pass_through = ()
    remarks += _remarks(folder, header, pass_through)
    misses: list[str] = []

    def work(context: WorkerContext) -> WorkerOutcome:
        from ext_recorder.http.worker import replay

        path = traffic_of(folder.path)
        outcome = replay(
            context,
            path,
            options.bindings,
            redaction,
            matching=matching,
            misses=misses,
            proxy=session.proxy,
            absent=children.absent(wrapping.commands),
            learner=learner,
        )
        learned = learner.save() if learner is not None else []
        return outcome._replace(ok=outcome.ok and not learned, lines=[*outcome.lines, *learned])

    def start(temporary: Path, variables: dict[str, str]) -> Sequence[str]:
        own = {name: session.variables(temporary, name) for name in wrapping.commands}
        children.write(str(temporary), str(folder.path), wrapping.commands, variables, own=own)
        return wrapping.write(str(temporary))

    ended = _run(start, session, work, started, children.replayed)
    same, told = ended.result
    result = f"replayed {folder.path} in {ended.seconds:.1f} s instead of {header.seconds:.1f} s"
    if unpaid := sum((played + absent for _, played, absent in ended.traffic.values()), Traffic()).model:
        result += f"; not paid: {unpaid}"
    if not options.learn and any(DIFFERS in line for line in ended.lines):
        remarks.append("to propose rules for what differs in each run, such as dates and paths: run --learn")
    _report([*ended.lines, *told, *remarks, *endpoint_lines(ended.traffic, replayed=True), result])
    if not ended.ok or not same:
        os._exit(EXIT_DIFFERS)
    exit_like(ended.status)


def _remarks(folder: RecordingFolder, header: RunHeader, missing: Sequence[str]) -> list[str]:
    """Return remarks on a recording that is replayed.

    Args:
        missing: servers that were passed through, and cannot be reached now.
    """
    remarks = []
    if missing:
        remarks.append(f"not reachable without network: {', '.join(missing)}, passed through in the recording")
    if header.recovered:
        remarks.append(f"{folder.path} was recovered from an interrupted run; {header.recovered}")
    if folder.partial.exists():
        remarks.append(
            f"{folder.partial} is a later recording that was interrupted: remove it, or recover it with -o NAME"
        )
    return remarks


class Session:
    """Listeners of one run, and the environment of its command.

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


def sessions_of(options: RunOptions, cassettes: str, recorded: Mapping[str, Sequence[str]]) -> McpFiles:
    """Return the files of MCP sessions over HTTP, and the options of children for them.

    Args:
        cassettes: folder for new cassettes.
        recorded: cassettes by the URL of their endpoint.
    """
    values = options.children.values
    playing = Options(
        order=values.get("order", ("any",))[-1],
        ignore=values.get("ignore", ()),
        mask=values.get("mask", ()),
        match_on=values.get("match-on", ()) or MATCH_ON,
        repeat=values.get("repeat", ()),
        bind=options.bind,
        redact=options.redact,
        quiet=True,
    )
    return McpFiles(cassettes, recorded, HTTP_STARTS, CLAIMS, REPORT, options.bind, playing)


class Entrances(NamedTuple):
    """Listeners of one client: of the proxy, of each cluster and of each model API."""

    proxy: Listener
    routes: list[Route]
    bases: list[BaseUrl]

    def listeners(self) -> list[Listener]:
        """Return all of them, each once: several base URLs may share one."""
        shared = {id(base.listener): base.listener for base in self.bases}
        return [self.proxy, *(route.listener for route in self.routes), *shared.values()]


class Traffics(NamedTuple):
    """Traffic with one endpoint: all that is recorded, what was replayed, and that of replayed children."""

    recorded: Traffic
    played: Traffic = Traffic()
    absent: Traffic = Traffic()


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


def _run(
    start: Callable[[Path, dict[str, str]], Sequence[str]],
    session: Session,
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


def endpoint_lines(traffic: Mapping[str, Traffics], *, replayed: bool) -> list[str]:
    """Return a line for each endpoint, first those with the most requests."""
    lines = []
    for endpoint, (recorded, played, absent) in sorted(traffic.items(), key=lambda item: -item[1][0].requests):
        parts = []
        if not replayed:
            parts = [_requests(recorded.requests), recorded.model]
        elif recorded.requests > absent.requests:
            parts = [f"{played.requests:,} of {_requests(recorded.requests - absent.requests)}", played.model]
        if absent.requests:
            parts.append(f"{_requests(absent.requests)} by replayed children")
        lines.append(f"{endpoint}: {', '.join(filter(None, parts))}")
    return lines if len(lines) <= SHOWN else [*lines[:SHOWN], f"and {len(lines) - SHOWN} more endpoints"]


def _requests(count: int) -> str:
    return "1 request" if count == 1 else f"{count:,} requests"


def _report(lines: Sequence[str]) -> None:
    sys.stderr.writelines(f"ext-recorder: {line}\n" for line in lines)
    sys.stderr.flush()
