"""The commands of ext-recorder: what each takes, and what it calls. A command's modules are imported when it runs."""

from __future__ import annotations

from .options import Command, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .options import Values

PROTOCOLS = ("gevals", "jsonrpc", "raw")
FRAMINGS = ("ndjson", "content-length", "uint32")
ORDERS = ("strict", "any")


def _record(values: Values) -> int:
    from .modes import act

    cassette = one(values, "CASSETTE")
    if act(one(values, "mode"), cassette) == "replay":
        return _replay(values)
    from .errors import UsageError
    from .record import record
    from .session import Session

    if not values["COMMAND"]:
        raise UsageError("expected the command to record behind `--`: ext-recorder record CASSETTE -- COMMAND…")
    session = Session(
        cassette,
        values["COMMAND"],
        protocol=one(values, "protocol"),
        framing=one(values, "framing"),
        bind=_bindings(values),
        redact=values["redact"],
    )
    return record(session)


def _replay(values: Values) -> int:
    from .matching import MATCH_ON
    from .replay import Options, run_replay

    options = Options(
        order=one(values, "order"),
        ignore=values["ignore"],
        match_on=values["match-on"] or MATCH_ON,
        bind=_bindings(values),
        redact=values["redact"],
        speed=_speed(one(values, "speed")),
    )
    return run_replay(one(values, "CASSETTE"), options)


def _show(values: Values) -> int:
    from .show import show

    show(one(values, "CASSETTE"), raw=bool(values["raw"]), as_json=bool(values["json"]))
    return 0


def _recover(values: Values) -> int:
    import sys
    from pathlib import Path

    from .cassette.recovery import recover

    output = one(values, "output")
    done = recover(Path(one(values, "PARTIAL")), Path(output) if output else None, replace=bool(values["force"]))
    dropped = f"; the last line was torn: {done.dropped} bytes are gone" if done.dropped else ""
    events = "1 event" if done.events == 1 else f"{done.events} events"
    sys.stdout.write(f"{done.path}: {events} kept{dropped}\n")
    return 0


def _shim(values: Values) -> int:
    from pathlib import Path

    from . import shim
    from .errors import UsageError
    from .modes import known

    mode, command, cassette = one(values, "mode"), values["COMMAND"], Path(one(values, "CASSETTE")).absolute()
    file = Path(one(values, "FILE"))
    if known(mode).missing == "refuse" or not command:
        if mode == "all":
            raise UsageError("--mode all records: expected the command behind `--`")
        words = ["replay", *_spelled("replay", values), str(cassette)]
    else:
        words = ["record", *_spelled("record", values), str(cassette), "--", *shim.located(command, file)]
    shim.write(file, shim.script(words, pass_on=words[0] == "record"), force=bool(values["force"]))
    return 0


def _spelled(name: str, values: Values) -> list[str]:
    """The options of another command as they were given to this one."""
    options = COMMANDS[name].options
    return [
        f"--{option.name}={value}" for option in options for value in values[option.name] if value != option.default
    ]


def one(values: Values, name: str) -> str:
    """The value of an option that has one; "" where it was not given."""
    return values[name][-1] if values[name] else ""


def _speed(text: str) -> float:
    """How many times as fast as recorded; 0.0 for as fast as possible."""
    try:
        speed = float(text or 0)
    except ValueError:
        speed = -1.0
    if 0 <= speed < float("inf"):
        return speed
    from .errors import UsageError

    raise UsageError(f"--speed {text}: expected a number, as 1 for the recorded pace, 2 for twice as fast")


def _bindings(values: Values) -> dict[str, str]:
    if not values["bind"]:
        return {}
    from .bindings import parse_bind

    return parse_bind(values["bind"])


_MODE = Option(
    "mode",
    "once: replay the cassette if it is there, else record it; none: replay only; all: record anew",
    "[once|none|all]",
    default="once",
)
_BIND = Option(
    "bind", "a path of this machine, and the name that the cassette has for it; repeatable", "NAME=VALUE", many=True
)
_PROTOCOL = Option("protocol", "what the messages are", "NAME", choices=PROTOCOLS, default="gevals")
_FRAMING = Option(
    "framing", "what tells them apart; by default what is usual in the protocol", "NAME", choices=FRAMINGS
)
_REDACT = Option(
    "redact",
    "an environment variable whose value is a secret, though its name does not look like it; repeatable",
    "NAME",
    many=True,
)
_ORDER = Option(
    "order",
    "strict: requests have to come as they were recorded; any: in any order",
    "ORDER",
    choices=ORDERS,
    default="strict",
)
_IGNORE = Option(
    "ignore", "a place in requests that need not match, as /params/args/seed; repeatable", "POINTER", many=True
)
_MATCH_ON = Option(
    "match-on",
    "what has to match: method, params, or a place; repeatable; by default method and params",
    "WHAT",
    many=True,
)
_SPEED = Option("speed", "1: at the recorded pace; by default as fast as possible", "NUMBER")
_FORCE = Option("force", "replace the file when it is there")
_OUTPUT = Option("output", "the cassette; by default NAME, for NAME.partial", "FILE", short="o")

_RAW = Option("raw", "messages in full")
_JSON = Option("json", "one JSON object a line, for programs")
_RECORDING = (_PROTOCOL, _FRAMING, _BIND, _REDACT)
_PLAYING = (_ORDER, _IGNORE, _MATCH_ON, _SPEED)

COMMANDS = {
    command.name: command
    for command in (
        Command(
            "record",
            "Run a command, pass everything on, and keep it in a cassette.",
            """
Stands in for COMMAND: its standard input, output and error, its exit code, and the signals that it is sent are those of
COMMAND. Bytes are passed on first and noted second; when a cassette can't be written, that is said on standard error,
and the session goes on.

    ext-recorder record session.yaml -- ext-shell
    ext-recorder record --mode all --protocol jsonrpc mcp.yaml -- npx some-mcp-server
    ext-recorder record --protocol jsonrpc --framing content-length lsp.yaml -- gopls

Secrets are replaced before anything reaches the disk: values of environment variables that look secret, authorization
headers, members like password or token, and well-known shapes of keys. The working directories of requests, the home
directory and what --bind names are kept by a neutral name, so that the cassette plays on another machine.
""",
            _record,
            arguments=("CASSETTE",),
            tail="COMMAND",
            options=(_MODE, *_RECORDING, *_PLAYING),
        ),
        Command(
            "replay",
            "Be the recorded child, without the child.",
            """
Answers on standard output what the recorded child answered, with the ids and paths of this session, and ends as it
ended. A request that was not recorded is answered by an error that names the nearest one, and makes the exit code 3.

    ext-recorder replay session.yaml
    ext-recorder replay --order any --ignore /params/args/seed session.yaml
""",
            _replay,
            arguments=("CASSETTE",),
            options=(_BIND, _REDACT, *_PLAYING),
        ),
        Command(
            "show",
            "Show a cassette to people.",
            """
One line for each thing that happened: when, which way, what, and how long the answer took.

    ext-recorder show session.yaml
    ext-recorder show --json session.yaml
""",
            _show,
            arguments=("CASSETTE",),
            options=(_RAW, _JSON),
        ),
        Command(
            "recover",
            "Make a cassette of what a killed recorder left.",
            """
A cassette is written as NAME.partial, and gets its name when the session ends. Of a session that was broken off,
everything but a torn last line is kept.

    ext-recorder recover session.yaml.partial
    ext-recorder recover session.yaml.partial -o rescued.yaml
""",
            _recover,
            arguments=("PARTIAL",),
            options=(_OUTPUT, _FORCE),
        ),
        Command(
            "shim",
            "Write an executable that records or replays, for hosts that pass no arguments.",
            """
FILE becomes a program that a host starts in the place of COMMAND. Without a COMMAND it only replays.

    ext-recorder shim ./ext-shell-recorded session.yaml -- ext-shell
    ext-recorder shim ./ext-shell-replayed session.yaml

An eval of mcpchecker names it in eval.yaml:

    config:
      extensions:
        shell:
          package: /full/path/to/ext-shell-recorded

A host in Go or JavaScript starts it as any program:

    exec.Command("/full/path/to/ext-shell-recorded")
    spawn("/full/path/to/ext-shell-recorded")

It has no other needs: the folder in which it is started, and what PATH says there, do not matter.
""",
            _shim,
            arguments=("FILE", "CASSETTE"),
            tail="COMMAND",
            options=(_MODE, *_RECORDING, *_PLAYING, _FORCE),
        ),
    )
}
