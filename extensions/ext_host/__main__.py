"""Command line of ext-host: `run`, and the commands of other modules, which are imported when they are used."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ext_sdk.core import __version__, own_name, own_program, unsupported_system
from ext_sdk.core.stdio import run_program

from .files import FileError, HostError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ext_sdk.duration import Duration

    from .files import EvalFile
    from .reports import Replay
    from .runner import EvalResult, EvalRun

EXIT_FAILED = 1  # a task did not pass
EXIT_WRONG = 2  # a wrong command line or file, or a part of a task that ext-host does not support
EXIT_INTERNAL = 70  # a defect of ext-host; EX_SOFTWARE of sysexits.h
EXIT_INTERRUPTED = 130  # 128 + SIGINT

_AGENT = "acp-agent"  # name of the agent among the programs of a recording
_REPLAY = "EXT_HOST_REPLAY"  # variable with the recording and the real children of a replay, in JSON
_RULES = ("bind", "ignore", "mask")  # options of `ext-recorder run` that its messages propose
_RECORDING = ("record", "replay", "real", "programs", *_RULES)  # parameters that are not those of the recorded run

# Commands of other modules: the module, which has a click command of the name `command`, and its line in the help.
COMMANDS: dict[str, tuple[str, str]] = {
    "serve": ("ext_host.waza_server", "Serve evals to an editor: waza's JSON-RPC protocol."),
    "agent": ("ext_host.kaiak_server", "Serve an agent, which is a command, over the protocol of another host."),
    "lint": ("ext_host.lint", "Check task and eval files without running anything."),
    "schema": ("ext_host.schema", "Write a JSON Schema of task and eval files, for editors."),
}
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Group(click.Group):
    """Group whose other commands are imported at their first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        command: click.Command = import_module(COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, command.get_short_help_str(80)) for name, command in self.commands.items()]
        rows += [(name, summary) for name, (_, summary) in COMMANDS.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(cls=_Group, context_settings=_SETTINGS)
@click.version_option(__version__, prog_name="ext-host")
def group() -> None:
    """Run eval tasks in mcpchecker's format, without another host.

    \b
      ext-host run task.yaml --agent 'claude -p'    run a task with a command as its agent
      ext-host run eval.yaml                        run the tasks of an eval with its agent
      ext-host run task.yaml --agent none           run setup, verify and cleanup only
    """


class DurationType(click.ParamType["Duration"]):
    """Value of an option that is a duration, such as 30s or 1h30m."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Duration:
        from ext_sdk.duration import Duration

        if isinstance(value, Duration):
            return value
        try:
            duration = Duration.parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if duration.nanoseconds <= 0:
            self.fail(f"expected a duration over 0, found {value}", param, ctx)
        return duration


AGENT_HELP = (
    "Agent, in place of that of the eval: a shell command, which gets the prompt as $1 and as its input; file:PATH for "
    "an agent file; acp:COMMAND for an agent with the Agent Client Protocol; kaiak:COMMAND or kaiak:unix:SOCKET for "
    "one with Kaiak's API; none to run without an agent."
)
DURATION = DurationType()


@group.command("run")
@click.argument("files", nargs=-1, required=True, metavar="TASK|EVAL...", type=click.Path())
@click.option("--agent", "agent_text", metavar="AGENT", help=AGENT_HELP)
@click.option(
    "--permissions",
    type=click.Choice(["allow", "deny", "mcp"]),
    help="Response to requests for permission of agents over ACP or Kaiak's API. mcp: only tools that `alwaysAllow` or "
    "`enableAllTools` of the eval's MCP servers allow. Default: mcp for ACP if there are MCP servers, as in "
    "mcpchecker; else allow.",
)
@click.option(
    "--workspace",
    default="",
    metavar="FOLDER",
    help="Folder that agents work in, relative to that of the task. Default: an empty temporary folder.",
)
@click.option(
    "--extension",
    "extensions",
    multiple=True,
    metavar="NAME=COMMAND",
    help="Program of an extension, in place of its package. Default for tasks without an eval: ext-NAME in PATH.",
)
@click.option("-r", "--run", "pattern", default="", metavar="REGEX", help="Tasks whose names contain a match.")
@click.option(
    "-l",
    "--labels",
    default="",
    metavar="KEY=VALUE,...",
    help="Tasks with these labels; values of one key are alternatives.",
)
@click.option(
    "-p",
    "--parallel",
    default=1,
    show_default=True,
    type=click.IntRange(1, 256),
    help="Number of tasks that run at the same time, of those with `parallel: true`.",
)
@click.option("-n", "--runs", type=click.IntRange(1, 10_000), help="Runs of each task. Default: metadata.runs, or 1.")
@click.option("--task-timeout", type=DURATION, help="Limit of setup, agent and verify, in place of all others.")
@click.option("--default-task-timeout", type=DURATION, help="The same for tasks without a limit of their own.")
@click.option("--cleanup-timeout", type=DURATION, help="Limit of cleanup, in place of all others.")
@click.option("--default-cleanup-timeout", type=DURATION, help="The same for tasks without a limit of their own.")
@click.option(
    "--skip-unsupported",
    is_flag=True,
    help="Skip tasks with steps that ext-host does not support, such as llmJudge, and assertions of task sets.",
)
@click.option("--record", metavar="FOLDER", help="Record the run with ext-recorder in a folder; see above.")
@click.option(
    "--replay", metavar="FOLDER", help="Run with the extensions, ACP agent and HTTP responses of a recording."
)
@click.option(
    "--real",
    multiple=True,
    metavar="NAME",
    help="With --replay: extension that runs, with the recorded HTTP responses; acp-agent for the agent. Repeatable.",
)
@click.option("--ignore", multiple=True, metavar="POINTER", help="With --replay: part of requests that may differ.")
@click.option("--mask", multiple=True, metavar="REGEX", help="With --replay: texts in requests that may differ.")
@click.option("--bind", multiple=True, metavar="NAME=VALUE", help="Path that differs, for --record and --replay.")
@click.option("--programs", hidden=True, help="File with the programs of extensions and agent, in a recorded run.")
@click.option("--junit", metavar="FILE", default="", envvar="EXT_HOST_JUNIT", help="Report in JUnit XML.")
@click.option(
    "--json",
    "json_file",
    metavar="FILE",
    default="",
    envvar="EXT_HOST_JSON",
    help="Report in JSON; - for standard output.",
)
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    envvar="EXT_HOST_VERBOSE",
    help="Also print the output of agents and the logs of extensions.",
)
@click.option(
    "-q",
    "--quiet",
    is_flag=True,
    envvar="EXT_HOST_QUIET",
    help="Print only tasks that did not pass, and the summary.",
)
def run_command(
    *,
    files: Sequence[str],
    agent_text: str | None,
    extensions: Sequence[str],
    runs: int | None,
    junit: str,
    json_file: str,
    verbose: bool,
    quiet: bool,
    record: str | None,
    replay: str | None,
    real: Sequence[str],
    programs: str | None,
    permissions: str | None,
    **options: Any,
) -> int:
    """Run tasks, and report which passed.

    A task without an eval uses the programs ext-NAME in PATH as its extensions. Parts that are not supported are
    reported before the first task starts.

    --record runs the same command line by `ext-recorder run`, which records the sessions of extensions, MCP servers and
    ACP agents, the HTTP traffic of all programs, and changed files. --replay runs it without them and without network:
    their steps are not performed, so it does not check what an agent achieved. A recording is replaced when the new one
    is complete, also if tasks failed.

    Exit codes: 0 if all tasks passed, except for those that --skip-unsupported skips, 1 if not or if all were skipped,
    2 for a wrong command line or file, 3 if a replay differs from its recording, 70 for a defect of ext-host, 130 if
    interrupted.
    """
    import shlex

    from .agents import agent_of
    from .commands import redactor_of
    from .reports import TextReport, as_json, prepare_files, write_file
    from .reports import junit as as_junit
    from .runner import EvalRun, RunOptions

    rules = [f"--{name}={value}" for name in _RULES for value in options.pop(name)]
    commands = _programs(extensions, programs)
    agent_command = commands.pop(_AGENT, "")
    prepare_files(junit, json_file)
    replayed = os.environ.pop(_REPLAY, "")
    out = sys.stderr if json_file == "-" else sys.stdout
    terminal = out.isatty() and os.environ.get("TERM") != "dumb"
    colour = terminal and not os.environ.get("NO_COLOR")
    redact = redactor_of(os.environ).redact_text
    report = TextReport(out, verbose=verbose, quiet=quiet, terminal=terminal, colour=colour, redact=redact)
    found = []
    for spec in evals_of(files):
        agent = None
        if agent_text is not None:
            servers = spec.mcp_servers() if agent_text.partition(":")[0] in {"file", "acp"} else ()
            agent = agent_of(agent_text, servers, permissions or "")
        if agent_command:
            from .acp_agent import AcpAgent

            if isinstance(agent, AcpAgent):
                agent.command = shlex.split(agent_command)
        own = RunOptions(agent=agent, programs=commands, runs=runs or 0, permissions=permissions or "", **options)
        found.append(EvalRun(spec, own, report.on_event))
    _check_names(found, extensions)
    if record or replay or real or rules:
        _run_recorder(found, record or "", replay or "", [*(f"--real={name}" for name in real), *rules])
    results, code = perform(found)
    source = replay_of(found[0], replayed) if replayed else None
    report.summary(results, source)
    if junit:
        write_file(junit, as_junit(results, source), os.environ)
    if json_file:
        write_file(json_file, as_json(results, source), os.environ)
    if report.failure:
        raise report.failure
    return code


def replay_of(run: EvalRun, text: str) -> Replay:
    """Return what a run has from a recording.

    Args:
        text: the recording and the children that ran nevertheless, as a JSON list.
    """
    import json

    from .acp_agent import AcpAgent
    from .reports import Replay

    recording, *real = json.loads(text)
    agent = run.agent()
    is_replayed = isinstance(agent, AcpAgent) and not {_AGENT, "agent", agent.name} & set(real)
    return Replay(recording, tuple(real), is_replayed)


def evals_of(files: Sequence[str]) -> list[EvalFile]:
    """Return the evals of a command line; all tasks among the files are one eval. Raises FileError."""
    from pathlib import Path

    from .files import AgentFile, EvalFile, Problem, TaskFile, read_file

    problems: list[Problem] = []
    evals: list[EvalFile] = []
    tasks: list[Path] = []
    for name in files:
        if Path(name).is_dir():
            file = Path(name, "eval.yaml")
            remedy = f"; run {file}" if file.is_file() else ""
            problems.append(Problem(Path(name), 0, 0, f"expected a file of a Task or an Eval, found a folder{remedy}"))
            continue
        try:
            found = read_file(Path(name))
        except FileError as error:
            problems += error.problems
            continue
        if isinstance(found, AgentFile):
            problems.append(Problem(found.path, 0, 0, f"expected a Task or an Eval; use `--agent file:{name}`"))
        elif isinstance(found, TaskFile):
            tasks.append(Path(name))
        else:
            evals.append(found)
    if problems:
        raise FileError(problems)
    return [*evals, *([EvalFile.of_tasks(tasks)] if tasks else [])]


def _programs(extensions: Sequence[str], file: str | None) -> dict[str, str]:
    """Return the commands of extensions by name, as the options have them. Raises HostError."""
    import json
    import shlex

    commands = {}
    for text in extensions:
        name, equals, program = text.partition("=")
        if not (name and equals and program):
            raise HostError(f"--extension: expected NAME=COMMAND, found {text!r}")
        with suppress(ValueError):  # a quotation mark without its end; the start reports it
            words = shlex.split(program)
            if own_name(words, name) != own_name(words):  # the executable of all programs
                program = f"{program} {name}"
        commands[name] = program
    if file:
        with open(file, encoding="utf-8") as source:  # noqa: PTH123 - pathlib is not imported here
            servers = json.load(source)["servers"]
        commands |= {name: shlex.join([server["command"], *server["args"]]) for name, server in servers.items()}
    return commands


def _check_names(runs: Sequence[EvalRun], extensions: Sequence[str]) -> None:
    """Raise HostError for an option --extension whose name neither an eval nor a task has, selected or not."""
    from ext_sdk.core.text import suggest

    from .files import select

    names = [text.partition("=")[0] for text in extensions]
    known = {name for run in runs for name in run.spec.extensions}
    if not known.issuperset(names):
        tasks = [selected.task for run in runs for selected in select(run.spec)]
        known |= {each.name for task in tasks for each in task.requires if each.kind == "extension"}
    for name in names:
        if name not in known:
            hint = suggest(name, sorted(known), none="no task requires an extension")
            raise HostError(f"--extension: neither a task nor an eval has an extension {name!r}; {hint}")


def _run_recorder(runs: Sequence[EvalRun], record: str, replay: str, given: Sequence[str]) -> NoReturn:
    """Replace this process by `ext-recorder run` with the same command line. Raises HostError.

    Evals and the agent files that they name are read by the recorder. The other programs are in the command line, in
    the form of a list of servers, which it knows; the recorded process gets a file.

    Args:
        given: options `--real` and `--ignore`, `--mask` and `--bind`, which are those of the recorder.
    """
    import json

    from .acp_agent import AcpAgent
    from .kaiak_agent import KaiakAgent

    if record and replay:
        raise HostError("expected one of --record and --replay, found both")
    real = [option.removeprefix("--real=") for option in given if option.startswith("--real=")]
    if not (record or replay) and not real:
        raise HostError(f"{given[0]}: expected --replay FOLDER or --record FOLDER with it")
    if real and not replay:
        raise HostError("--real: expected --replay FOLDER with it; without a replay, all extensions run")
    if replay and not os.path.isdir(replay):  # noqa: PTH112
        raise HostError(f"{replay}: no recording; make one with --record {replay}")
    if record and (problems := [problem for run in runs for problem in run.check()]):
        raise FileError(problems)  # a replay does not require the programs
    programs = {name: argv for run in runs for name, argv in run.own_programs().items()}
    agent = runs[0].options.agent
    if isinstance(agent, AcpAgent):
        programs[_AGENT] = agent.command
    elif isinstance(agent, KaiakAgent):
        _report(f"not recorded: the agent {agent.name}, which must be there on replay, too")
    words = [*own_program("ext_host"), *_words(click.get_current_context())]
    options = [f"--wrap={run.spec.path}" for run in runs if run.spec.document and run.starts_programs()]
    if programs:
        servers = {name: {"command": argv[0], "args": argv[1:]} for name, argv in programs.items()}
        text = json.dumps({"servers": servers})
        words.append(f"--programs={text}")
        options += [f"--wrap={text}", *(f"--files={name}" for name in programs)]
    options += given
    if replay:
        os.environ[_REPLAY] = json.dumps([replay, *real])
    os.environ["EXT_RECORDER_AGAIN"] = f"--record {record or replay}"
    mode = "all" if record else "none"
    argv = [*own_program("ext_recorder"), "run", "--mode", mode, *options, record or replay, "--", *words]
    sys.stdout.flush()
    os.execv(argv[0], argv)  # noqa: S606 - so that signals, the terminal and the exit code are those of the run


def _words(context: click.Context) -> list[str]:
    """Return the command line of a recorded run. Reports are chosen by variables: each replay can have its own."""
    words = ["run", *context.params["files"]]
    for param in context.command.params:
        value = context.params[param.name or ""]
        is_default = value in {None, (), "", False, param.default}
        if not isinstance(param, click.Option) or param.name in _RECORDING or is_default:
            continue
        if param.envvar:
            os.environ[str(param.envvar)] = str(value)
        elif param.is_flag:
            words.append(param.opts[-1])
        else:
            words += [f"{param.opts[-1]}={each}" for each in (value if param.multiple else (value,))]
    return words


def perform(runs: Sequence[EvalRun]) -> tuple[list[EvalResult], int]:
    """Check and perform runs, one after the other; a signal cancels them. Return the results and the exit code."""
    import signal
    import threading

    from .commands import redactor_of

    if problems := [problem for run in runs for problem in run.check()]:
        failure = FileError(problems)
        if not all(problem.task for problem in problems):
            raise failure
        raise HostError(f"{failure}\nto run the other tasks, without assertions, use --skip-unsupported")
    skipped = [f"not evaluated: {each}" for run in runs for each in run.not_evaluated()]
    warnings = [text for run in runs for text in run.warnings()]
    for text in dict.fromkeys([*warnings, *skipped]):
        _report(text)
    received: list[int] = []

    def cancel(number: int, _frame: object) -> None:
        received.append(number)
        again = len(received) > 1
        for run in runs:
            threading.Thread(target=run.cancel, kwargs={"cleanup": not again}).start()

    previous = {number: signal.signal(number, cancel) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        results = [run.run() for run in runs]
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    redact = redactor_of(os.environ).redact_text
    for problem in (problem for result in results for problem in result.problems):
        _report(redact(problem))
    if received:
        return results, 128 + received[0]
    return results, 0 if all(result.status == "passed" for result in results) else EXIT_FAILED


def main(words: Sequence[str] | None = None) -> int:
    """Run a command line. Return its exit code."""
    return run_program("ext-host", lambda: _main(words))


def _main(words: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if words is None else words) or ["--help"]
    if reason := unsupported_system():
        _report(reason)
        return EXIT_WRONG
    try:
        code = group.main(list(words), prog_name="ext-host", standalone_mode=False)
    except HostError as failure:
        return _fail(words, str(failure))
    except click.UsageError as wrong:
        program = wrong.ctx.command_path if wrong.ctx else "ext-host"
        return _fail(words, f"{wrong.format_message()} See: {program} --help")
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        raise
    except OSError as failure:
        return _fail(words, f"{failure.filename}: {failure.strerror}" if failure.filename else str(failure))
    except Exception as failure:  # noqa: BLE001 - users get a message instead of a traceback
        trace = failure.__traceback__
        while trace and trace.tb_next:
            trace = trace.tb_next
        place = f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})" if trace else ""
        text = f"internal error, please report it with this line: {type(failure).__name__}: {failure}{place}"
        return _fail(words, text, EXIT_INTERNAL)
    return code if isinstance(code, int) else 0


def _fail(words: Sequence[str], text: str, code: int = EXIT_WRONG) -> int:
    """Report why there was no run, also in the reports of `run`: those of an earlier one would look like its result."""
    _report(text)
    if words[0] != "run":
        return code
    from .reports import as_json, is_report, junit, write_file

    given = run_command.make_context(
        "run", list(words[1:]), resilient_parsing=True, ignore_unknown_options=True, allow_extra_args=True
    ).params
    for name, form in (("junit", junit), ("json_file", as_json)):
        path = given.get(name)
        with suppress(HostError, OSError):
            if path and (path == "-" or is_report(path)):
                write_file(path, form([], error=text), os.environ)
    return code


def _report(text: str) -> None:
    for line in text.splitlines():
        sys.stderr.write(f"ext-host: {line}\n")


if __name__ == "__main__":
    sys.exit(main())
