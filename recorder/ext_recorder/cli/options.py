"""Options that several commands have, and the functions that read their values.

A function builds options whose help differs from command to command. Options of one command are in its module.
"""

from __future__ import annotations

import os

from ext_recorder.protocols import NAMES
from ext_recorder.record.config import MODES

from . import GIVEN, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_recorder.batch.selection import Cassette
    from ext_recorder.errors import UsageError
    from ext_recorder.messages.provenance import Live
    from ext_recorder.messages.redaction import Redaction
    from ext_recorder.run.children import Start

    from . import Values

# Copies of `framing.FRAMINGS` and `replay.ORDERS`, which are too slow to import at every start; a test compares them.
FRAMINGS = ("ndjson", "content-length", "uint32")
ORDERS = ("strict", "any")

# --- Values -----------------------------------------------------------------------------------------------------------


def value_of(values: Values, name: str) -> str:
    """Return the value of an option that has a single one; "" if it was not given."""
    return values[name][-1] if values[name] else ""


def number(option: str, text: str, expected: str, *, most: float = float("inf")) -> float:
    """Return the value of an option as a number, 0 or more.

    Args:
        expected: description of the value, for the message.
        most: the number must be less than this.

    Raises:
        UsageError: the value is not such a number.
    """
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if 0 <= value < most:
        return value
    raise _unexpected(option, text, expected)


def speed(text: str) -> float:
    """Return the speed of `--speed` for `replay.Options`. Raises UsageError."""
    if text == "max":
        return float("inf")
    return number("speed", text or "0", "max, or a number, such as 1 for the recorded pace, 2 for twice as fast")


def seconds(text: str) -> float:
    """Return the seconds of `--timeout`. Raises UsageError unless it is a number above 0."""
    expected = "a number of seconds above 0, such as 10 or 0.5"
    if value := number("timeout", text, expected, most=1e6):
        return value
    raise _unexpected("timeout", text, expected)


def jobs(values: Values) -> int:
    """Return the number of `--jobs`; 0 means one for each core. Raises UsageError."""
    text = value_of(values, "jobs") or "0"
    if text.isascii() and text.isdigit() and len(text) < 5:
        return int(text)
    raise _unexpected("jobs", text, "a number, such as 4; by default one for each core")


def bindings(values: Values) -> dict[str, str]:
    """Return the bindings of `--bind NAME=PATH`, by name.

    Raises:
        UsageError: a value is not of this form.
    """
    if not values["bind"]:
        return {}
    from ext_recorder.messages.path_bindings import parse_bind

    return parse_bind(values["bind"])


def live(values: Values) -> Live:
    """Return the command that a host starts, with the variables that must be as recorded. Raises UsageError."""
    from ext_recorder.messages.provenance import Live

    passed = value_of(values, "passed") or "-1"
    count = int(passed) if passed == "-1" or (passed.isascii() and passed.isdigit() and len(passed) < 7) else None
    if count is None or count > len(values["COMMAND"]):
        raise _unexpected("passed", passed, "the number of arguments after `--` that come from the host")
    return Live(
        values["COMMAND"],
        passed=count,
        match_env=values["match-env"],
        bind=bindings(values),
        redact=redaction(values),
    )


def redaction(values: Values) -> Redaction | None:
    """Return the redaction rules of the options; None if no option is given. Raises UsageError."""
    if not (values["redact"] or values["redact-except"] or values["no-redact"]):
        return None
    from ext_recorder.messages.redaction import Redaction

    return Redaction.of(values)


def output(values: Values) -> str:
    """Return the file of `--output`, which is required. Raises UsageError."""
    target = value_of(values, "output")
    if target:
        return target
    from ext_recorder.errors import UsageError

    raise UsageError("expected the cassette to write: -o FILE")


def is_url(address: str) -> bool:
    """Return True if an address of `--listen` or `--connect` is a URL: an endpoint of MCP over Streamable HTTP."""
    return address.startswith(("http://", "https://"))


def check_urls(listen: str, connect: str, values: Values) -> None:
    """Check that `--listen` and `--connect` are of one kind, and fit the other options. Raises UsageError."""
    from ext_recorder.errors import UsageError

    if is_url(listen) != is_url(connect):
        raise UsageError(f"--listen {listen} --connect {connect}: expected two URLs of MCP endpoints, or two addresses")
    if not is_url(listen):
        return
    if value_of(values, "protocol") not in {"auto", "mcp"} or value_of(values, "framing") or values["http"]:
        raise UsageError(f"--listen {listen}: the protocol is MCP; omit --protocol, --framing and --http")


def headers_of(values: Values) -> tuple[str, ...]:
    """Return the values of `--header`. Raises UsageError."""
    for header in values["header"]:
        name, colon, _ = header.partition(":")
        if not colon or not name.strip() or any(char in header for char in "\r\n") or " " in name.strip():
            raise _unexpected("header", name if colon else header[:20], "NAME: VALUE")
    return values["header"]


RUN = "EXT_RECORDER_RUN"  # `run.children.VARIABLE`; that module is imported only if the variable is set


def start_of_shim(values: Values) -> Start | None:
    """Return the action for a child that a shim starts within `ext-recorder run`; None in all other cases.

    Raises:
        UsageError: on replay, the recording has no such session.
    """
    if not values["passed"] or RUN not in os.environ or values["listen"]:
        return None
    from ext_recorder.run.children import join, name_of

    passed = live(values).passed
    return join(name_of(value_of(values, "CASSETTE")), values["COMMAND"], passed)


def values_of_child(values: Values, start: Start) -> Values:
    """Return the values of a shim, with those of the run: lists are concatenated, single values of the shim apply."""
    single = (ORDER.name, SPEED.name, MATCH_ON.name)
    added = {
        name: value if name in single else (*values[name], *value)
        for name, value in start.values.items()
        if name in values and not (name in single and name in values[GIVEN])
    }
    return values | added | {"http": ()}


def behind(values: Values, words: str, what: str = "the command") -> tuple[str, ...]:
    """Return the command after `--`.

    Args:
        words: the command line before it, for the message.
        what: description of the command, for the message.

    Raises:
        UsageError: the command is missing.
    """
    if values["COMMAND"]:
        return values["COMMAND"]
    from ext_recorder.errors import UsageError

    raise UsageError(f"expected {what} after `--`: ext-recorder {words} -- COMMAND…")


def _unexpected(option: str, text: str, expected: str) -> UsageError:
    from ext_recorder.errors import UsageError

    return UsageError(f"--{option} {text}: expected {expected}")


# --- Options with the same help everywhere ----------------------------------------------------------------------------

MODE = Option(
    "mode",
    "; ".join(f"{name}: {mode.help}" for name, mode in MODES.items()) + ".",
    "MODE",
    choices=tuple(MODES),
    default="once",
)


def _bound(text: str) -> object:
    from ext_recorder.messages.path_bindings import parse_bind

    return parse_bind([text])


def _masked(text: str) -> object:
    from ext_recorder.messages.comparison_rules import Mask

    return Mask([text])


def _aged(text: str) -> object:
    from ext_recorder.cassette.age import seconds as age

    return age(text)


def placed(option: str) -> Callable[[str], object]:
    """Return the check of an option whose values are pointers, see `comparison_rules.IgnoredPlaces`."""

    def check(text: str) -> object:
        from ext_recorder.messages.comparison_rules import IgnoredPlaces

        return IgnoredPlaces(option, [text])

    return check


def _reported(text: str) -> None:
    from ext_recorder.cassette.paths import expect_folder

    expect_folder("--report", text)


BIND = Option(
    "bind",
    "Local path for a placeholder of the cassette. NAME?=PATH applies only if the cassette has that placeholder. "
    "Repeatable.",
    "NAME=PATH",
    many=True,
    check=_bound,
)

PROTOCOL = Option(
    "protocol",
    "Protocol of the messages; auto detects it from the first messages.",
    "NAME",
    choices=("auto", *NAMES),
    default="auto",
)

FRAMING = Option(
    "framing",
    "Framing of the messages. Default: the usual framing of the protocol.",
    "NAME",
    choices=(*FRAMINGS, "http"),
)


def _rule(table: dict[str, object]) -> list[str]:
    from ext_recorder.messages.redaction import table as rule_of

    return rule_of(table)


REDACT = Option(
    "redact",
    "Secret to replace: name of an environment variable, pattern:REGEX, pointer:POINTER or key:GLOB. Repeatable.",
    "NAME|RULE",
    many=True,
    table=_rule,
)

REDACT_EXCEPT = Option(
    "redact-except",
    "Exception from redaction: name of an environment variable, value:TEXT, pattern:REGEX, pointer:POINTER or "
    "key:GLOB. Repeatable.",
    "NAME|RULE",
    many=True,
)

NO_REDACT = Option("no-redact", "Redact only what --redact names.")
REDACTING = (REDACT, REDACT_EXCEPT, NO_REDACT)

MATCH_ON = Option(
    "match-on",
    "Part of a request that must match: method, params, or a JSON pointer. Repeatable. Default: method and params.",
    "WHAT",
    many=True,
    replaces=True,
)

SPEED = Option(
    "speed",
    "Speed of the replay: 1 is the recorded pace, 2 twice as fast, max without any waits. Default: no waits, except "
    "one between a response and notifications, so that the client can read the response first.",
    "NUMBER|max",
    check=speed,
)

LISTEN = Option(
    "listen",
    "Address for clients, instead of stdio: tcp:HOST:PORT (port 0: any free port), unix:PATH, or the URL of an MCP "
    "endpoint, such as http://127.0.0.1:0/mcp.",
    "ADDRESS",
)

REPORT = Option(
    "report",
    "File to which the replay appends lines of JSON: its result and the requests without a match. The last line of a "
    "session is the complete report.",
    "FILE",
    check=_reported,
)

HTTP_COMMAND = "the command to run with --http"
HTTP = Option("http", "Include the HTTP traffic of COMMAND, a Python program, in NAME.http.yaml next to NAME.yaml.")

FAULT = Option(
    "fault",
    "Fault to inject: KIND[=VALUE][@method=NAME,nth=N,every=N,chance=P]; or @FILE with one fault per line. Repeatable.",
    "RULE",
    many=True,
)

SEED = Option("seed", "Seed for the chances of --fault: the same text gives the same faults.", "TEXT")
QUIET = Option("quiet", "Do not name the replayed cassette on standard error; same as EXT_RECORDER_QUIET=1.")

MATCH_ENV = Option(
    "match-env",
    "Environment variable that is recorded with its value and must have the same value on replay. Repeatable.",
    "NAME",
    many=True,
)

PASSED = Option(
    "passed", "Number of arguments at the end of COMMAND that come from the host. Added by shims.", "N", key=False
)

ACCEPT_COMMAND = Option("accept-command", "Replay for any command, not only the recorded one.", key=False)
FORCE = Option("force", "Replace an existing file.", key=False)

# --- Options whose help differs from command to command ---------------------------------------------------------------


def order(of: str) -> Option:
    """Return the option `--order` with this help."""
    return Option("order", of, "ORDER", choices=ORDERS, default="strict")


def ignore(what: str) -> Option:
    """Return the option `--ignore` with this help."""
    return Option(
        "ignore",
        f"{what}; or 'METHOD POINTER' for messages of one method. Repeatable.",
        "POINTER",
        many=True,
        check=placed("ignore"),
    )


def connect(where: str, forms: str = "tcp:HOST:PORT, unix:PATH or the URL of an MCP endpoint") -> Option:
    """Return the option `--connect`: the address of a server."""
    return Option("connect", f"Address {where}: {forms}.", "ADDRESS")


def timeout(what: str, default: str) -> Option:
    """Return the option `--timeout`, in seconds."""
    return Option("timeout", f"{what}, in seconds.", "SECONDS", default=default, check=seconds)


def to_file(what: str) -> Option:
    """Return the option `--output` with this help."""
    return Option("output", what, "FILE", short="o", key=False)


def lines_of_json(noun: str) -> Option:
    """Return the option `--json`: one line for each of these."""
    return Option("json", f"Print one line of JSON for each {noun}.")


def at_once(what: str) -> Option:
    """Return the option `--jobs`: how many of these are processed in parallel."""
    return Option("jobs", f"Number of {what} processed in parallel. Default: one for each core.", "NUMBER")


JUNIT = Option("junit", "File for a report in JUnit XML.", "FILE")
ORDER = order("strict: requests must arrive in the recorded order; any: in any order.")
IGNORE = ignore("JSON pointer to a value in requests that need not match, such as /params/args/seed")
CONNECT = connect("of the real socket server, whose clients connect to --listen")
RECORDING = (PROTOCOL, FRAMING, BIND, *REDACTING)
COMPARING = (MATCH_ENV, PASSED)

MASK = Option(
    "mask",
    "Regular expression: text that it matches may differ. Or a preset, such as @uuid, @time or @duration. Repeatable.",
    "PATTERN",
    many=True,
    check=_masked,
)

MAX_AGE = Option(
    "max-age",
    "Maximum age of a cassette, such as 30d or 12h. An older one is refused; record --mode once records it again.",
    "AGE",
    check=_aged,
)

REPEAT = Option(
    "repeat",
    "Requests that the host may send more often than recorded: all, METHOD, or 'METHOD SUBJECT' (such as a tool). "
    "Repeatable.",
    "WHAT",
    many=True,
)

EXACT = Option(
    "exact",
    "Compare what known APIs send differently in each run, too, such as session ids of coding agents. HTTP only.",
)

PLAYING = (ORDER, IGNORE, MASK, MATCH_ON, EXACT, REPEAT, MAX_AGE, SPEED, REPORT)


def check_playing(values: Values) -> None:
    """Check the options for the replay of a cassette before it is recorded. Raises UsageError."""
    rules = (values["ignore"], values["mask"], values["match-on"])
    if values["http"]:
        from ext_recorder.http.request_matching import RequestRules

        RequestRules(*rules, strict=IGNORE.name in values[GIVEN])
    elif values["match-on"]:
        from ext_recorder.messages.matcher import check_match_on

        check_match_on(values["match-on"])
    for option in PLAYING:
        if option.check and not (values["http"] and option is IGNORE):
            for text in values[option.name]:
                option.check(text)


def chosen(values: Values, *, recordings: bool = False) -> list[Cassette]:
    """Return the cassettes of `CASSETTE…`, or of the project file, and of `--shard`. Raises UsageError if none.

    Args:
        recordings: see `named`.
    """
    from ext_recorder.batch.pool import shard
    from ext_recorder.batch.selection import named

    if not values["CASSETTE"]:
        from ext_recorder.errors import UsageError

        raise UsageError("expected CASSETTE…: a file, folder or pattern; or set `cassettes` in the project file")
    return shard(named(values["CASSETTE"], recordings=recordings), value_of(values, "shard"))


SHARD = Option("shard", "Process one part of the cassettes only: 2/3 is the second of three.", "I/N", key=False)
SEVERAL = (SHARD, at_once("cassettes"))
REPORTS = (lines_of_json("cassette"), JUNIT)
DIFFERING = ignore("JSON pointer to a value that may differ, such as /result/message")

NAME = Option(
    "name",
    "JSON pointer to a value that the child generates and the host sends back, such as /result/token; or 'METHOD "
    "POINTER'. Repeatable.",
    "POINTER",
    many=True,
    check=placed("name"),
)

# Paragraph for the help of these commands.
NAMING = """\
CASSETTE is a file, a folder, a pattern such as 'cassettes/**/*.yaml', or an address in another file system that fsspec
supports, such as s3://bucket/cassettes (pip install fsspec). Several cassettes are processed in
parallel. --shard 2/3 selects every third cassette in the order of their names, starting with the second, so that the
jobs of a CI matrix share the work.
"""
