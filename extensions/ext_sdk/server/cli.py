"""Command line of an extension for people: help, one operation called by hand, the manifest."""

from __future__ import annotations

import argparse
import io
import os
import shlex
import shutil
import sys
import textwrap
from contextlib import suppress
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

from ext_sdk.args import rules_text
from ext_sdk.core import gevals_spec, own_arguments
from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.core.redaction.secret_names import secret_variables
from ext_sdk.core.stdio import Stdio, run_program
from ext_sdk.core.wire.errors import MessageError, RpcError
from ext_sdk.core.wire.json_codec import dumps, loads
from ext_sdk.server.server import GevalsAdapter

from .line_limit import dumps_without_secrets, printable
from .manifest import build_manifest
from .mcp import build_tools
from .schema import branches_of, params_schema, properties_of
from .server import InitialIO, Server
from .serving import AGENT, PROTOCOLS, Serving, ServingError, Tools
from .session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ext_sdk.args import Schema
    from ext_sdk.definition import Definition
    from ext_sdk.operation import Operation
    from ext_sdk.result import Result


FAILURE = 1
USAGE_ERROR = 2
INTERRUPTED = 130  # the convention of shells: 128 and the number of SIGINT
_OF_THE_CALLER = (gevals_spec.INVALID_PARAMS, gevals_spec.METHOD_NOT_FOUND)


def main(extension: Definition, arguments: Sequence[str], serve: Callable[[Serving], int]) -> int:
    """Run the command line for a person.

    Args:
        arguments: of the command line, without the program's name; none means that stdin is a terminal.
        serve: runs the command `serve`, and returns the exit code.

    Returns:
        The exit code: 0, FAILURE of an operation, USAGE_ERROR, or INTERRUPTED.
    """
    program = f"ext-{extension.name}"
    return run_program(program, lambda: _main(program, extension, arguments, serve))


def _main(program: str, extension: Definition, arguments: Sequence[str], serve: Callable[[Serving], int]) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # characters that a terminal can't show
    try:
        return _run(extension, _parser(extension, program), arguments, serve)
    except KeyboardInterrupt:
        return INTERRUPTED
    except (RpcError, _UsageError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        return FAILURE if isinstance(error, RpcError) and error.code not in _OF_THE_CALLER else USAGE_ERROR
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return FAILURE


def _run(
    extension: Definition,
    parser: argparse.ArgumentParser,
    arguments: Sequence[str],
    serve: Callable[[Serving], int],
) -> int:
    if not arguments:
        parser.print_help()
        return 0
    if arguments[0] in extension.operations:
        raise _UsageError(f"{arguments[0]} is an operation: {parser.prog} call {arguments[0]} '{{…}}'")
    try:
        chosen, left = parser.parse_known_args(arguments)
        # Options may be between OPERATION and ARGS, which `parse_args` refuses.
        if left and chosen.command == "call" and chosen.operation and not (chosen.args or left[0].startswith("-")):
            chosen.args = left.pop(0)
        if left:
            parser.prog += f" {chosen.command}" if chosen.command else ""
            parser.error(f"unrecognized arguments: {' '.join(left)}")
    except SystemExit as end:  # --help, --version, or a usage error, which was printed
        return int(end.code or 0)
    if chosen.manifest:
        print(dumps(build_manifest(extension)))
        return 0
    if chosen.command == "serve":
        options = {"allow": chosen.allow, "deny": chosen.deny, "workdir": chosen.workdir}
        return serve(Serving(chosen.protocol, **options, config=chosen.config or ""))
    config = _json(chosen.config, "--config") if chosen.config else {}
    if chosen.command == "call":
        return _call(extension, chosen, config)
    if chosen.command == "export":
        return _export(extension, chosen, config)
    redactor = Redactor(secret_variables(os.environ))
    return Server(extension, Stdio.claim(), redactor, GevalsAdapter, config).run(InitialIO())


class _UsageError(Exception):
    """Command line that can't be used."""


class _Parser(argparse.ArgumentParser):
    """Argument parser that refers to --help in its errors."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE_ERROR, f"{self.prog}: {message}\nSee {self.prog} --help\n")


def _parser(extension: Definition, program: str) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=program,
        description=f"{extension.description.rstrip('.')}. An eval host starts this program without arguments and "
        "uses the gevals extension protocol with it on stdin and stdout.",
        epilog=operations_text(extension, program),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"{program} {extension.version}")
    parser.add_argument("--manifest", action="store_true", help="print the manifest as JSON and exit")
    parser.add_argument("--config", metavar="JSON", help="configuration, as in `initialize`")
    commands = parser.add_subparsers(dest="command", title="commands", metavar="COMMAND")
    call = commands.add_parser(
        "call",
        prog=f"{program} call",
        help="run one operation and show its result",
        description="Run one operation and show its result. The exit code is 1 if the operation fails.",
        epilog="Operations: " + ", ".join(extension.operations),
    )
    call.add_argument(
        "operation",
        nargs="?",
        metavar="OPERATION",
        help="the operation; with --describe and without ARGS, its description is shown",
    )
    call.add_argument(
        "args",
        nargs="?",
        metavar="ARGS",
        help='its arguments as a JSON object, such as \'{"command": ["date"]}\'',
    )
    call.add_argument("--describe", action="store_true", help="show the operation's arguments and exit")
    call.add_argument("--workdir", default=".", help="the task's directory (default: the current one)")
    call.add_argument("--phase", default="setup", choices=gevals_spec.PHASES)
    call.add_argument("--timeout", help="maximum duration, such as 30s")
    call.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="a variable of the task")
    call.add_argument("--agent-output", metavar="TEXT", help="output of the agent, for operations of the verify phase")
    call.add_argument("--json", action="store_true", help="print the result as JSON")
    call.add_argument("--config", metavar="JSON", help=argparse.SUPPRESS, default=argparse.SUPPRESS)
    export = commands.add_parser(
        "export",
        prog=f"{program} export",
        help="write the files with which a host of another protocol starts this program",
        description="Write the files with which a host of another protocol starts this program; over `gassist`, the "
        "folder of a plugin of NVIDIA G-Assist. Files that were not written by this command, or were changed since, "
        "are never overwritten.",
    )
    export.add_argument("--protocol", required=True, choices=EXPORTS, help="the protocol of the host")
    export.add_argument("folder", metavar="DIR", help="the folder to write, created if missing")
    _add_serving(export, "as the written files describe")
    serve = commands.add_parser(
        "serve",
        prog=f"{program} serve",
        help="serve the operations over another protocol",
        description="Serve the operations on stdin and stdout over another protocol than gevals: `mcp` is the Model "
        "Context Protocol, in which each operation is a tool; `gassist` is the plugin protocol of NVIDIA G-Assist, in "
        "which it is a function; `pi` is the extension protocol of the Pi coding agent, which has tools and a slash "
        "command. Operations that may change or delete what exists are only served if --allow names "
        "them, or, over `gassist`, after the user has confirmed each call.",
        epilog=serve_text(extension, program),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    serve.add_argument("--protocol", required=True, choices=PROTOCOLS)
    _add_serving(
        serve, "the first root of an MCP client that has roots, `cwd` of a call of Pi, else the current directory"
    )
    return parser


def _add_serving(parser: argparse.ArgumentParser, workdir: str) -> None:
    """Add the options of `serve`.

    Args:
        workdir: the default of --workdir.
    """

    def names(text: str) -> str:
        if not text.strip(" ,"):
            raise argparse.ArgumentTypeError(f"expected names of operations, or patterns with *, found {text!r}")
        return text

    def directory(text: str) -> str:
        if text and not os.path.isdir(text):  # noqa: PTH112
            raise argparse.ArgumentTypeError(f"expected a directory that exists, found {text!r}")
        return text

    parser.add_argument(
        "--allow",
        action="append",
        type=names,
        default=[],
        metavar="NAMES",
        help="operations that are served although they may destroy something: names, or patterns with *, separated by "
        "commas; may be repeated",
    )
    parser.add_argument(
        "--deny",
        action="append",
        type=names,
        default=[],
        metavar="NAMES",
        help="operations that are not served, in the same form; an exact name in --allow counts more than a pattern",
    )
    parser.add_argument(
        "--workdir", type=directory, default="", metavar="DIR", help=f"working directory (default: {workdir})"
    )
    parser.add_argument("--config", metavar="JSON", help="configuration", default=argparse.SUPPRESS)


def _json(text: str, name: str) -> object:
    try:
        return loads(text)
    except MessageError as error:
        raise _UsageError(f'{name}: expected an object of JSON, as \'{{"name": "value"}}\': {error}') from error


def _call(extension: Definition, chosen: argparse.Namespace, config: object) -> int:
    if not chosen.operation:
        raise _UsageError("call: expected an OPERATION: one of " + ", ".join(extension.operations))
    if chosen.describe and chosen.operation in extension.operations:
        print(operation_text(extension.operations[chosen.operation], f"ext-{extension.name}"))
        return 0
    redactor = Redactor(secret_variables(os.environ))
    session = Session(extension, redactor, config)

    def print_log(level: str, message: str, data: Mapping[str, object]) -> None:
        details = "".join(f" {name}={value}" for name, value in data.items())
        print(printable(redactor.redact_text(f"{level}: {message}{details}")), file=sys.stderr)

    try:
        call = session.prepare(_params(chosen), print_log)
        result = session.perform(call)
    except RpcError as error:
        about_args = error.message.startswith(f"{chosen.operation}: ") and error.code == gevals_spec.INVALID_PARAMS
        advice = f"\nSee ext-{extension.name} call {chosen.operation} --describe" if about_args else ""
        raise RpcError(error.code, printable(redactor.redact_text(error.message)) + advice) from error
    finally:
        for close in session.begin_shutdown():
            with suppress(Exception):  # the result or error of the operation is more important
                close()
    text = result_text(result)
    if chosen.json:
        names = ("success", "message", "error", "outputs")
        text = dumps({name: getattr(result, name) for name in names})
    print(printable(redactor.redact_text(text)))
    return 0 if result.success else FAILURE


def _params(chosen: argparse.Namespace) -> dict[str, object]:
    env: dict[str, str] = {}
    for text in chosen.env:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise _UsageError(f"--env: expected NAME=VALUE, found {text!r}")
        env[name] = value
    context: dict[str, object] = {"workdir": chosen.workdir, "phase": chosen.phase, "env": env}
    if chosen.timeout:
        context["timeout"] = chosen.timeout
    if chosen.agent_output is not None:
        context |= {"phase": "verify", "agent": {"prompt": "", "output": chosen.agent_output}}
    args = _json(chosen.args, "ARGS") if chosen.args else None
    return {"operation": chosen.operation, "args": args, "context": context}


# Modules of adapters that have files for hosts: `exported(extension, tools, command, folder)` returns their texts by
# name, or raises ValueError. `tools` are the operations that are served, `command` is the command line that serves the
# protocol, `folder` the absolute path of DIR. A text that begins with `#!` is written as an executable.
EXPORTS = {"gassist": "gassist", "pi": "pi"}
RECORD = ".exported.json"  # of the files of an export: the SHA-256 of each text, by name


def _export(extension: Definition, chosen: argparse.Namespace, config: object) -> int:
    command = [*own_command(), "serve", "--protocol", chosen.protocol]
    for name in ("allow", "deny"):
        command += [f"--{name}={text}" for text in getattr(chosen, name)]
    workdir = os.path.abspath(chosen.workdir) if chosen.workdir else ""  # noqa: PTH100
    command += [f"--workdir={workdir}"] if workdir else []
    command += [f"--config={chosen.config}"] if chosen.config else []
    exporter = import_module(f"ext_sdk.server.{EXPORTS[chosen.protocol]}")
    tools, folder = Tools(build_tools(extension)), Path(chosen.folder)
    try:
        tools.select(Serving(chosen.protocol, allow=chosen.allow, deny=chosen.deny))
        path = Path(os.path.abspath(folder))  # noqa: PTH100
        texts: dict[str, str] = exporter.exported(extension, tools, command, path)
        written = write_export(folder, texts, private=bool(chosen.config))
    except (ServingError, ValueError) as error:
        raise _UsageError(f"export: {error}") from error
    except OSError as error:
        raise _UsageError(f"export: {error.filename or folder}: {error.strerror}") from error
    if chosen.config and dumps(config) != dumps_without_secrets(config):
        advice = "; name a variable in passEnv instead" if hasattr(extension.config_type, "pass_env") else ""
        text = f"a file in {folder} has a value of --config that looks secret in clear, readable only by you{advice}"
        print(f"ext-{extension.name}: export: warning: {text}", file=sys.stderr)
    for name in texts:
        print(f"{folder / name}: {'written' if name in written else 'unchanged'}")
    return 0


def own_command() -> list[str]:
    """Return the command line, without arguments, that starts this program from any folder."""
    main = sys.modules["__main__"]
    if main.__spec__ is not None:  # python -m
        name, file = main.__spec__.name, os.path.abspath(main.__file__ or "")  # noqa: PTH100
        root = str(Path(file).parents[name.count(".")])
        folders = ["", *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        not_installed = root in map(os.path.abspath, folders)
        found = ["env", f"PYTHONPATH={root}"] if not_installed else []
        return [*found, sys.executable, "-m", name.removesuffix(".__main__"), *own_arguments]
    path = shutil.which(sys.argv[0]) or sys.argv[0]
    if os.access(path, os.X_OK):
        return [os.path.abspath(path), *own_arguments]  # noqa: PTH100  (a link stays: it may be the one that is in PATH)
    return [sys.executable, os.path.abspath(path), *own_arguments]  # noqa: PTH100


def write_export(folder: Path, texts: Mapping[str, str], *, private: bool = False) -> list[str]:
    """Write the files of an export, and return the names of those that were written; others had their text already.

    Args:
        texts: by name; see EXPORTS.
        private: only this user may read them.

    Raises:
        _UsageError: a file exists that no export has written, or that was changed since.
        OSError: the folder or a file cannot be read or written.
    """
    from ext_sdk.core.atomic import atomic_write

    if folder.exists() and not folder.is_dir():
        raise _UsageError(f"export: {folder}: expected a folder, or a new name, found a file; choose another DIR")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        recorded = loads((folder / RECORD).read_text(encoding="utf-8"))
    except (FileNotFoundError, UnicodeDecodeError, MessageError):
        recorded = {}
    hashes = {name: text for name, text in recorded.items() if "/" not in name} if isinstance(recorded, dict) else {}
    present = {  # "" for a link, a folder or another thing that is not a file
        name: sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
        for name in {*texts, *hashes}
        if os.path.lexists(path := folder / name)
    }
    wanted = {name: sha256(text.encode()).hexdigest() for name, text in texts.items()}
    for name, found in present.items():
        if name in texts and found not in (wanted[name], hashes.get(name)):
            text = "was not written by this command, or was changed since; move it away, or choose another DIR"
            raise _UsageError(f"export: {folder / name}: the file exists, and {text}")
    written = [name for name in texts if present.get(name) != wanted[name]]
    for name in written:
        mode = 0o755 if texts[name].startswith("#!") else 0o644
        with atomic_write(str(folder / name), mode=mode & 0o700 if private else mode) as file:
            file.write(texts[name].encode())
    for name in texts if private else ():  # one that was written before, and is unchanged
        (folder / name).chmod((folder / name).stat().st_mode & 0o700)
    for name in present.keys() - texts.keys():  # of a previous version
        if present[name] == hashes[name]:
            (folder / name).unlink()
    with atomic_write(str(folder / RECORD)) as file:
        file.write(dumps(wanted).encode() + b"\n")
    return written


WIDTH = 110  # columns of a list of members


def operations_text(extension: Definition, program: str) -> str:
    """Return all operations, with examples of calls; aliases are listed separately."""
    known = extension.operations
    main = [operation for operation in known.values() if not operation.same_as]
    aliases = [operation for operation in known.values() if operation.same_as]
    width = max(map(len, known), default=0)
    summaries = (f"  {operation.name:<{width}}  {operation.description.partition(chr(10))[0]}" for operation in main)
    lines = ["operations:", *summaries, ""]
    if aliases:
        lines += ["other names:", *(f"  {alias.name:<{width}}  {alias.same_as}" for alias in aliases), ""]
    first = next(iter(known), "OPERATION")
    example = next((operation for operation in main if operation.example), None)
    return "\n".join(
        [
            *lines,
            "examples:",
            f"  {program} call {first} --describe",
            f"  {_typed(example, program) if example else f'{program} call {first}'}",
            f"  {program} --manifest",
        ]
    )


def serve_text(extension: Definition, program: str) -> str:
    """Return which operations `serve` offers, and examples."""
    known = [operation for operation in extension.operations.values() if not operation.same_as]
    usable = [operation for operation in known if operation.needs != AGENT]
    free = [each.name for each in usable if not each.destructive and not each.needs]
    dependent = [f"{each.name} ({each.needs})" for each in usable if not each.destructive and each.needs]
    needing = [operation.name for operation in known if operation.needs == AGENT]
    others = [operation.name for operation in known if operation.destructive]
    lines = []
    for title, names in (
        ("served", free),
        ("served with --allow", others),
        ("served with another operation", dependent),
        ("not served, because only hosts of evals send the answer of an agent", needing),
    ):
        if names:
            lines += textwrap.wrap(f"{title}: {', '.join(names)}", WIDTH, subsequent_indent="  ")
    lines += ["", "examples:", f"  {program} serve --protocol mcp --workdir /path/of/project"]
    if others:
        lines += [f"  {program} serve --protocol mcp --allow {min(others, key=len)}"]
        lines += [f"  {program} serve --protocol mcp --allow '*'"]
    return "\n".join([*lines, f"  {program} serve --protocol mcp --deny '*' --allow {','.join((*free, *others)[:2])}"])


def operation_text(operation: Operation, program: str) -> str:
    """Return the description, the arguments, the outputs and the example of an operation."""
    required = {field.encode_name for field in msgspec.structs.fields(operation.args_type) if field.required}
    rules = rules_text(operation.args_type)
    lines = [f"{operation.name}: {operation.description}", "", f"effects: {operation.effects}", ""]
    lines.append(f"arguments{f' ({rules})' if rules else ''}:")
    for field, schema in properties_of(params_schema(operation.args_type)).items():
        fallback = f", default {dumps(schema['default'])}" if "default" in schema else ""
        lines.append(f"  {field} ({_kind(schema)}{', required' if field in required else fallback})")
        if "description" in schema:
            lines.append(f"      {schema['description']}")
        members: dict[str, None] = {}  # of an object, or of each object of a list or a map
        for branch in branches_of(schema):
            inner = branch.get("items") or branch.get("additionalProperties")
            members |= dict.fromkeys(properties_of(inner if isinstance(inner, dict) else branch))
        if members:
            text = f"members: {', '.join(members)}"
            lines += textwrap.wrap(text, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 8)
    if operation.outputs:
        lines += ["", "outputs (? is not always present):"]
        lines += [f"  {name}\n      {description}" for name, description in operation.outputs.items()]
    if operation.example:
        lines += ["", "example:", f"  {_typed(operation, program)}"]
    return "\n".join(lines)


def result_text(result: Result) -> str:
    """Return the outcome of an operation, and its outputs."""
    lines = [("ok: " if result.success else "failed: ") + result.message]
    if not result.success and result.error and result.error != result.message:
        lines.append(result.error)
    for name, value in result.outputs.items():
        text = value.rstrip("\n")
        lines.append(f"  {name}: {text}" if "\n" not in text else f"  {name}:\n    " + text.replace("\n", "\n    "))
    return "\n".join(lines)


def _typed(operation: Operation, program: str) -> str:
    """Return an operation's example as a command line."""
    return f"{program} call {operation.name} {shlex.quote(dumps(operation.example))}"


def _kind(schema: Schema) -> str:
    """Return the type of a value as text."""
    branches = branches_of(schema)
    if branches != [schema]:
        return " or ".join(_kind(branch) for branch in branches)
    if "enum" in schema:
        return dumps(schema["enum"])
    return str(schema.get("type", "any value"))
