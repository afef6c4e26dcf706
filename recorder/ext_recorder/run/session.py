"""`ext-recorder run`: record the HTTP traffic of a command, or replay it, and end as the command does."""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from ext_recorder.cassette.header import Header
from ext_recorder.cassette.paths import partial_of
from ext_recorder.cassette.recording import CASSETTES, HEADER, Child, RunHeader, with_sessions
from ext_recorder.errors import BY_ANOTHER_PROGRAM, RECORD_AGAIN, RecorderError, UsageError
from ext_recorder.http.interaction_store import DIFFERS
from ext_recorder.http.kubeconfig import Kubeconfig, texts_of
from ext_recorder.http.proxy.service import McpFiles
from ext_recorder.http.proxy.upstream import ParentProxies
from ext_recorder.http.reader import end_values
from ext_recorder.http.traffic_counts import Traffic, endpoint_lines
from ext_recorder.http.worker_context import ADDED, Origin
from ext_recorder.messages.matcher import MATCH_ON
from ext_recorder.messages.path_bindings import IfKnown, RecordBindings, is_bindable, parse_bind
from ext_recorder.messages.provenance import Live, first_difference, neutral_command, same_command, shown
from ext_recorder.messages.redaction import Redaction
from ext_recorder.posix.child import exit_like, exit_status
from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.replay.replay import Options
from ext_sdk.core import __version__

from .children import CLAIMS, HTTP_STARTS, REPORT, ChildOptions, Children
from .command import Access, Ended, run_command
from .environment import isolate, kept_variables, redacted_variables, remark, replay_variables
from .folder import UNKNOWN, RecordingFolder, traffic_of
from .learn import Learner, request_rules, rules_of
from .wrap import Wrapping, is_text, wrappable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path
    from typing import NoReturn

    from ext_recorder.http.request_matching import RequestRules
    from ext_recorder.http.worker_context import WorkerContext, WorkerOutcome

    from .learn import Rule

EXIT_DIFFERS = 3  # the traffic differed from the recorded one
EXIT_INCOMPLETE = 3  # the command ended well, but was not recorded
# A replayed extension or server returns the recorded results, whatever the agent did. ext-host reports this itself.
NOT_CHECKED = "replayed children do not check the work of an agent: their results are the recorded ones"
WORKING = "cwd"  # binding of the working directory in HTTP traffic; that of children is RUN_CWD


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
        raise UsageError(f"{path}: the recording does not exist, and `--mode none` makes none; record it: --mode once")
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
    previous = None
    if folder.exists:
        with suppress(RecorderError):
            previous = folder.header()
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
    wrapped = tuple(file for file in options.children.wrap if not is_text(file))
    header = RunHeader(kept, __version__, recorded, 0.0, UNKNOWN, wrapped, known)._replace(
        pass_through=options.pass_through,
        environment=_environment(redaction),
    )
    partial = _begin(folder, header)
    access = Access(Kubeconfig(texts_of(os.environ)), has_children=bool(wrapping.commands), clients=wrapping.commands)
    access.proxy = access.proxy._replace(
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
            proxy=access.proxy,
        )

    # An agent that runs on replay needs the files of extensions. One that is replayed changes its own workspace only,
    # so those of extensions would not be the recorded ones.
    start = _starter(access, wrapping, children, partial, files=wrapping.agents or wrapping.extensions)

    try:
        ended = run_command(
            start,
            access,
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
        environment=_environment(redaction, partial),
        seconds=round(ended.seconds, 3),
        exit=exit_status(ended.status),
        children=(*found, *children.servers),
        endpoints={endpoint: recorded.entry() for endpoint, (recorded, _, _) in ended.traffic.items()},
    )
    if not options.children.wrap and not found and (files := wrappable(command)):
        lines.append(f"not recorded: the children that {files[0]} names; to record them: --wrap {files[0]}")
    result = f"recorded {folder.path} in {ended.seconds:.1f} s"
    if header.exit != 0:
        result += f"; the command exited with {header.exit}, and a replay will, too"
    if previous and previous.exit == 0 != header.exit:
        result += f"; it replaces a recording of {previous.recorded} that exited with 0"
    _conclude(folder, header, ended, lines, result)


def _starter(
    access: Access,
    wrapping: Wrapping,
    children: Children,
    recording: Path,
    *,
    files: Collection[str] = (),
    extended: str = "",
) -> Callable[[Path, dict[str, str]], Sequence[str]]:
    """Return the function that prepares the folder of the session, and returns the command.

    Args:
        recording: its folder; that of the new one if it is being made.
        files: children whose changed files are recorded.
        extended: folder of the copy that gets what is new; "" without one.
    """

    def start(temporary: Path, variables: dict[str, str]) -> Sequence[str]:
        own = {name: access.variables(temporary, name) for name in wrapping.commands}
        names = wrapping.commands
        children.write(str(temporary), str(recording), names, variables, files=files, own=own, extended=extended)
        return wrapping.write(str(temporary))

    return start


def _environment(redaction: Redaction, partial: Path | None = None) -> dict[str, str]:
    """Return the variables that a replay needs, with placeholders of secrets: of those in a complete recording, or all.

    Args:
        partial: the folder in which it was made.
    """
    redactor = redaction.redactor()
    secrets = {rule.removeprefix("env.") for rule in redaction.secrets() if rule.startswith("env.")}
    if partial is not None and traffic_of(partial).exists():
        secrets &= redacted_variables([traffic_of(partial), *(partial / CASSETTES).glob("*.yaml")])
    return kept_variables(os.environ, lambda text: redactor.redact(text.encode()).decode(), secrets)


def _begin(folder: RecordingFolder, header: RunHeader) -> Path:
    """Begin a recording, and report an interrupted one that was found. Return the folder to record in."""
    partial = folder.begin(header)
    if left := folder.left_behind:
        _report(
            [f"{left}: an earlier recording was interrupted; to make a recording of it: ext-recorder recover {left}"]
        )
    return partial


def _conclude(
    folder: RecordingFolder, header: RunHeader, ended: Ended[Any], lines: Sequence[str], result: str
) -> NoReturn:
    """Complete a recording, and exit as the command did.

    It is not completed if nothing was recorded, or if the command or the worker was interrupted.
    """
    is_complete = traffic_of(folder.partial).exists() and not ended.interrupted
    if is_complete and (header.pass_through or folder.has_content()):
        folder.finish(header)
        _report([*lines, result])
        exit_like(ended.status)
    what = "not changed" if folder.exists else "not made"
    reason = f"the command was interrupted by {ended.interrupted}" if ended.interrupted else "see above"
    if is_complete:
        status = f"exited with {header.exit}" if header.exit != 0 else "ended"
        reason = f"the command {status} without an HTTP request and without a session of a child"
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
        redactor, paths = redaction.redactor(), _paths(options)
        words = neutral_command(command, lambda data: paths.clean(redactor.redact(data)))
        one, other = first_difference(header.command, words)
        raise UsageError(
            f"{folder.path}: recorded with another command: {shown(header.command)}; first difference: recorded "
            f"{one}, now {other}; use another folder, or record "
            f"it again with {RECORD_AGAIN}"
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
    # Servers that the command itself starts are passed, as in a replay: their ports are others each time.
    environ, refused = replay_variables(header.environment, redaction)
    access = Access(
        Kubeconfig([*texts_of(os.environ), recorded]),
        recorded=environ,
        served=served,
        clients=wrapping.commands,
    )
    pass_through = tuple(dict.fromkeys((*header.pass_through, *options.pass_through)))
    mcp = sessions_of(options, "", children.http_endpoints(str(folder.path)))
    access.proxy = access.proxy._replace(parents=parents, pass_through=pass_through, mcp=mcp)
    recovered = [f"{folder.path} was recovered from an interrupted run; {header.recovered}"] if header.recovered else []
    partial = _begin(folder, header._replace(exit=UNKNOWN))
    if (folder.path / CASSETTES).is_dir():
        shutil.copytree(folder.path / CASSETTES, partial / CASSETTES)

    def work(context: WorkerContext) -> WorkerOutcome:
        from ext_recorder.http.worker import extend

        paths = traffic_of(folder.path), traffic_of(partial)
        return extend(context, *paths, options.bindings, redaction, matching=matching, proxy=access.proxy)

    files = wrapping.agents or wrapping.extensions
    start = _starter(access, wrapping, children, folder.path, files=files, extended=str(partial))

    try:
        ended = run_command(
            start,
            access,
            work,
            started,
            lambda: (children.replayed(completely=False), children.recorded((), started)[0]),
        )
    except RecorderError:
        shutil.rmtree(partial)
        raise
    (same, told), new = ended.result
    sessions = sum(len(child.cassettes) for child in new)
    lines = [*ended.lines, *told, *wrapping.remarks, *recovered, *refused]
    lines += endpoint_lines(ended.traffic, replayed=True)
    if not ended.interrupted and not traffic_of(partial).exists() and not partial_of(traffic_of(partial)).exists():
        if not new:
            shutil.rmtree(partial)
            _report([*lines, f"replayed {folder.path}, which has nothing new"])
            os._exit(EXIT_DIFFERS) if not (ended.ok and same) else exit_like(ended.status)
        shutil.copy(traffic_of(folder.path), traffic_of(partial))
    header = header._replace(
        environment={**_environment(redaction, partial), **environ},
        children=with_sessions(header.children, new),
        pass_through=pass_through,
        endpoints={endpoint: counts.recorded.entry() for endpoint, counts in ended.traffic.items()},
    )
    if not same:
        _report(_unchanged(folder, lines, sessions))
        shutil.rmtree(partial)
        os._exit(EXIT_DIFFERS)
    added = f", with {_counted(sessions)}" if sessions else ""
    _conclude(folder, header, ended, lines, f"extended {folder.path} in {time.monotonic() - started:.1f} s{added}")


def _unchanged(folder: RecordingFolder, lines: Sequence[str], sessions: int) -> list[str]:
    """Return the summary of a run whose children differed from the recording, so that nothing new is kept."""
    lost = [line.removeprefix(ADDED) for line in lines if line.startswith(ADDED)]
    lost += [_counted(sessions)] if sessions else []
    result = f"{folder.path}: not changed, because children differed from the recording"
    if lost:
        result += f"; not kept: {' and '.join(lost)}"
    remedy = "to record it again, for example after a change of a prompt: --mode all"
    return [*(line for line in lines if not line.startswith(ADDED)), f"{result}; {remedy}"]


def _counted(sessions: int) -> str:
    return f"{sessions} new session{'' if sessions == 1 else 's'} of children"


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
    environ, refused = replay_variables(header.environment, redaction)
    access = Access(kubeconfig, recorded=environ, served=served, clients=wrapping.commands)
    mcp = sessions_of(options, "", children.http_endpoints(str(folder.path)))
    access.proxy = access.proxy._replace(mcp=mcp)
    pass_through = tuple(dict.fromkeys((*header.pass_through, *options.pass_through)))
    if options.mode != "none":
        access.proxy = access.proxy._replace(parents=ParentProxies(os.environ), pass_through=pass_through)
        pass_through = ()
    remarks += [*_remarks(folder, header, pass_through), *refused]

    def work(context: WorkerContext) -> WorkerOutcome:
        from ext_recorder.http.worker import replay

        path = traffic_of(folder.path)
        outcome = replay(
            context,
            path,
            options.bindings,
            redaction,
            matching=matching,
            proxy=access.proxy,
            absent=children.absent(wrapping.commands),
            learner=learner,
        )
        learned = learner.save() if learner is not None else []
        return outcome._replace(ok=outcome.ok and not learned, lines=[*outcome.lines, *learned])

    start = _starter(access, wrapping, children, folder.path)

    # On replay, an agent does not start the servers that the host names in its requests.
    agents = any(children.is_wanted(agent) for agent in wrapping.agents)
    servers = wrapping.commands.keys() - wrapping.agents - wrapping.extensions if agents else ()
    ended = run_command(start, access, work, started, lambda: children.replayed(servers))
    same, told = ended.result
    names = {child.name for child in header.children if child.cassettes and children.is_wanted(child.name)}
    if names and not names & wrapping.agents and not BY_ANOTHER_PROGRAM:
        remarks.append(f"{NOT_CHECKED}; to run one of {', '.join(sorted(names))}: --real NAME")
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


def sessions_of(options: RunOptions, cassettes: str, recorded: Mapping[str, Sequence[str]]) -> McpFiles:
    """Return the files of MCP sessions over HTTP, and the options of children for them.

    Args:
        cassettes: folder for new cassettes.
        recorded: cassettes by the URL of their endpoint.
    """
    values = options.children.values
    bind = parse_bind(values.get("bind", ()))
    playing = Options(
        order=values.get("order", ("any",))[-1],
        ignore=values.get("ignore", ()),
        mask=values.get("mask", ()),
        match_on=values.get("match-on", ()) or MATCH_ON,
        repeat=values.get("repeat", ()),
        bind=bind,
        redact=options.redact,
        quiet=True,
    )
    return McpFiles(cassettes, recorded, HTTP_STARTS, CLAIMS, REPORT, bind, playing)


def _report(lines: Sequence[str]) -> None:
    sys.stderr.writelines(f"ext-recorder: {line}\n" for line in lines)
    sys.stderr.flush()
