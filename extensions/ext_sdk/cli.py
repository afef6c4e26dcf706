"""An extension for people: `--help`, `--version`, `--manifest`, and `call OPERATION` to try one by hand."""

from __future__ import annotations

import argparse
import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from .boot import serve_host
from .explained import operation_text, operations_text, result_text
from .fitting import printable
from .protocols import gevals
from .redaction import Redactor, secret_variables
from .session import Session
from .transport import Stdio
from .wire import MessageError, RpcError, dumps, loads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .extension import Extension
    from .result import Result

FAILURE = 1
USAGE_ERROR = 2
INTERRUPTED = 130  # as shells say it: 128 and the number of SIGINT
_OF_THE_CALLER = (gevals.INVALID_PARAMS, gevals.METHOD_NOT_FOUND)


def main(extension: Extension, arguments: Sequence[str]) -> int:
    """Serve a person.

    Args:
        extension: which.
        arguments: of the command line, without the program's name; none of them means that stdin is a
            terminal.

    Returns:
        The exit code: 0, FAILURE of an operation, USAGE_ERROR, or INTERRUPTED.
    """
    program = f"ext-{extension.name}"
    _accept_any_text()
    try:
        code = _serve(extension, _parser(extension, program), arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except (RpcError, _UsageError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        return FAILURE if isinstance(error, RpcError) and error.code not in _OF_THE_CALLER else USAGE_ERROR
    except OSError as error:  # of stdout: the disk is full, or a pager has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # else the interpreter tries again at its end, and complains
        if not isinstance(error, BrokenPipeError):
            print(f"{program}: stdout: {error.strerror}", file=sys.stderr)
        return FAILURE
    return code


def _accept_any_text() -> None:
    """What a terminal can't show is shown as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _serve(extension: Extension, parser: argparse.ArgumentParser, arguments: Sequence[str]) -> int:
    if not arguments:
        parser.print_help()
        return 0
    if arguments[0] in extension.operations:
        raise _UsageError(f"{arguments[0]} is an operation: {parser.prog} call {arguments[0]} '{{…}}'")
    try:
        chosen = _parsed(parser, arguments)
    except SystemExit as end:  # --help, --version, or a usage error, which is told
        return int(end.code or 0)
    if chosen.manifest:
        print(dumps(extension.manifest()))
        return 0
    config = _json(chosen.config, "--config") if chosen.config else {}
    if chosen.command == "call":
        return _call(extension, chosen, config)
    return serve_host(extension, Stdio.claim(), config=config)


class _UsageError(Exception):
    """The command line can't be used."""


class _Parser(argparse.ArgumentParser):
    """argparse, with the next step in its errors."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE_ERROR, f"{self.prog}: {message}\nSee {self.prog} --help\n")


def _parser(extension: Extension, program: str) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=program,
        description=f"{extension.description.rstrip('.')}. An eval host starts this program without arguments and "
        "speaks the gevals extension protocol with it on stdin and stdout.",
        epilog=operations_text(extension, program),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"{program} {extension.version}")
    parser.add_argument("--manifest", action="store_true", help="print the manifest as JSON and end")
    parser.add_argument("--config", metavar="JSON", help="configuration, as `initialize` would bring it")
    commands = parser.add_subparsers(dest="command", title="commands", metavar="COMMAND")
    call = commands.add_parser(
        "call",
        prog=f"{program} call",
        help="run one operation and show its result",
        description="Run one operation and show its result. The exit code is 1 where the operation fails.",
        epilog="Operations: " + ", ".join(extension.operations),
    )
    call.add_argument(
        "operation",
        nargs="?",
        metavar="OPERATION",
        help="which; without ARGS and with --describe, it is explained",
    )
    call.add_argument(
        "args",
        nargs="?",
        metavar="ARGS",
        help='its arguments as a JSON object, such as \'{"command": ["date"]}\'',
    )
    call.add_argument("--describe", action="store_true", help="show the operation's arguments and end")
    call.add_argument("--workdir", default=".", help="the task's directory (default: this one)")
    call.add_argument("--phase", default="setup", choices=gevals.PHASES)
    call.add_argument("--timeout", help="longest time, such as 30s")
    call.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="a variable of the task")
    call.add_argument("--agent-output", metavar="TEXT", help="what the agent said, for operations of the verify phase")
    call.add_argument("--json", action="store_true", help="print the result as JSON")
    call.add_argument("--config", metavar="JSON", help=argparse.SUPPRESS, default=argparse.SUPPRESS)
    return parser


def _parsed(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """As `parse_args`, with options between OPERATION and ARGS, where argparse gives up ARGS for missing."""
    chosen, left = parser.parse_known_args(arguments)
    if left and chosen.command == "call" and chosen.operation and chosen.args is None and not left[0].startswith("-"):
        chosen.args = left.pop(0)
    if left:
        parser.error(f"unrecognized arguments: {' '.join(left)}")
    return chosen


def _json(text: str, name: str) -> object:
    try:
        return loads(text)
    except MessageError as error:
        raise _UsageError(f'{name}: expected an object of JSON, as \'{{"name": "value"}}\': {error}') from error


def _call(extension: Extension, chosen: argparse.Namespace, config: object) -> int:
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
        about_args = error.message.startswith(f"{chosen.operation}: ") and error.code == gevals.INVALID_PARAMS
        advice = f"\nSee ext-{extension.name} call {chosen.operation} --describe" if about_args else ""
        raise RpcError(error.code, printable(redactor.redact_text(error.message)) + advice) from error
    finally:
        for close in session.begin_shutdown():
            with suppress(Exception):  # there is a result, or an error, and it is what counts
                close()
    print(printable(redactor.redact_text(dumps(_members(result)) if chosen.json else result_text(result))))
    return 0 if result.success else FAILURE


def _params(chosen: argparse.Namespace) -> dict[str, object]:
    context: dict[str, object] = {
        "workdir": chosen.workdir,
        "phase": chosen.phase,
        "env": dict(map(_variable, chosen.env)),
    }
    if chosen.timeout:
        context["timeout"] = chosen.timeout
    if chosen.agent_output is not None:
        context |= {"phase": "verify", "agent": {"prompt": "", "output": chosen.agent_output}}
    args = _json(chosen.args, "ARGS") if chosen.args else None
    return {"operation": chosen.operation, "args": args, "context": context}


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise _UsageError(f"--env: expected NAME=VALUE, found {text!r}")
    return name, value


def _members(result: Result) -> dict[str, object]:
    return {
        "success": result.success,
        "message": result.message,
        "error": result.error,
        "outputs": result.outputs,
    }
