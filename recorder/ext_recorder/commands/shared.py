"""What several commands take: their options, each written once, and how their values are read.

An option that is about another thing in each command is a function of that.
"""

from __future__ import annotations

from ext_recorder.modes import MODES
from ext_recorder.options import Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_recorder.errors import UsageError
    from ext_recorder.options import Values
    from ext_recorder.provenance import Live
    from ext_recorder.redaction import Redaction

PROTOCOLS = (
    "gevals", "pi", "gassist", "waza", "waza-go", "kaiak", "kaiak-head", "mcp", "lsp", "dap", "acp", "jsonrpc", "raw",
)  # fmt: skip
FRAMINGS = ("ndjson", "content-length", "uint32")
ORDERS = ("strict", "any")

# --- Values -----------------------------------------------------------------------------------------------------------


def one(values: Values, name: str) -> str:
    """The value of an option that has one; "" where it was not given."""
    return values[name][-1] if values[name] else ""


def number(option: str, text: str, expected: str, *, most: float = float("inf")) -> float:
    """The number that an option says, 0 or more.

    Args:
        option: its name.
        text: what it says.
        expected: what it should, in words.
        most: too much.

    Raises:
        UsageError: it says something else.
    """
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if 0 <= found < most:
        return found
    raise _unexpected(option, text, expected)


def speed(text: str) -> float:
    """Return what `--speed` says, as `replay.Options` has it. Raises UsageError."""
    if text == "max":
        return float("inf")
    return number("speed", text or "0", "max, or a number, as 1 for the recorded pace, 2 for twice as fast")


def seconds(text: str) -> float:
    """What `--timeout` says. Raises UsageError: it is no number above 0."""
    expected = "a number of seconds above 0, as 10 or 0.5"
    if found := number("timeout", text, expected, most=1e6):
        return found
    raise _unexpected("timeout", text, expected)


def jobs(values: Values) -> int:
    """What `--jobs` says; 0: as many as there are cores. Raises UsageError."""
    text = one(values, "jobs") or "0"
    if text.isascii() and text.isdigit() and len(text) < 5:
        return int(text)
    raise _unexpected("jobs", text, "a number, as 4; by default one for each core")


def bindings(values: Values) -> dict[str, str]:
    """Return the bindings of `--bind NAME=PATH`, by name.

    Raises:
        UsageError: a value is not of this form.
    """
    if not values["bind"]:
        return {}
    from ext_recorder.bindings import parse_bind

    return parse_bind(values["bind"])


def live(values: Values) -> Live:
    """Return the command that a host starts, with what has to be as it was recorded. Raises UsageError."""
    from ext_recorder.provenance import Live

    passed = one(values, "passed") or "-1"
    count = int(passed) if passed == "-1" or (passed.isascii() and passed.isdigit() and len(passed) < 7) else None
    if count is None or count > len(values["COMMAND"]):
        raise _unexpected("passed", passed, "how many of the words behind `--` a host passed")
    return Live(
        values["COMMAND"],
        passed=count,
        match_env=values["match-env"],
        bind=bindings(values),
        redact=redaction(values),
    )


def redaction(values: Values) -> Redaction | None:
    """Return what the options about redaction say; None if none is given. Raises UsageError."""
    if not (values["redact"] or values["redact-except"] or values["no-redact"]):
        return None
    from ext_recorder.redaction import Redaction

    return Redaction.of(values)


def output(values: Values) -> str:
    """What `--output` says, of a command that can't do without. Raises UsageError."""
    target = one(values, "output")
    if target:
        return target
    from ext_recorder.errors import UsageError

    raise UsageError("expected the cassette to write: -o FILE")


def behind(values: Values, words: str, what: str = "the command") -> tuple[str, ...]:
    """The command that stands behind `--`.

    Args:
        values: of the command line.
        words: what may stand before it, for the message.
        what: it is.

    Raises:
        UsageError: nothing does.
    """
    if values["COMMAND"]:
        return values["COMMAND"]
    from ext_recorder.errors import UsageError

    raise UsageError(f"expected {what} behind `--`: ext-recorder {words} -- COMMAND…")


def _unexpected(option: str, text: str, expected: str) -> UsageError:
    from ext_recorder.errors import UsageError

    return UsageError(f"--{option} {text}: expected {expected}")


# --- Options of one meaning -------------------------------------------------------------------------------------------

MODE = Option(
    "mode",
    "; ".join(f"{name}: {mode.help}" for name, mode in MODES.items()),
    "MODE",
    choices=tuple(MODES),
    default="once",
)


def _bound(text: str) -> object:
    from ext_recorder.bindings import parse_bind

    return parse_bind([text])


def _masked(text: str) -> object:
    from ext_recorder.rules import Mask

    return Mask([text])


def _aged(text: str) -> object:
    from ext_recorder.age import seconds as age

    return age(text)


def placed(option: str) -> Callable[[str], object]:
    """Return the check of an option whose values are places, see `rules.Places`."""

    def check(text: str) -> object:
        from ext_recorder.rules import Places

        return Places(option, [text])

    return check


BIND = Option(
    "bind",
    "a path of this machine, and the name that the cassette has for it; NAME?=PATH: if it has the name; repeatable",
    "NAME=PATH",
    many=True,
    check=_bound,
)
PROTOCOL = Option(
    "protocol",
    "the protocol of the messages; auto: the one that the first of them look like",
    "NAME",
    choices=("auto", *PROTOCOLS),
    default="auto",
)
FRAMING = Option(
    "framing",
    "framing of messages; by default the usual one of the protocol",
    "NAME",
    choices=(*FRAMINGS, "http"),
)


def _rule(table: dict[str, object]) -> list[str]:
    from ext_recorder.redaction import table as rule_of

    return rule_of(table)


REDACT = Option(
    "redact",
    "a secret: an environment variable with its value, pattern:REGEX, pointer:POINTER or key:GLOB; repeatable",
    "NAME|RULE",
    many=True,
    table=_rule,
)
REDACT_EXCEPT = Option(
    "redact-except",
    "an exception from redaction: an environment variable, value:TEXT, pattern:REGEX, pointer:POINTER or key:GLOB; "
    "repeatable",
    "NAME|RULE",
    many=True,
)
NO_REDACT = Option("no-redact", "no redaction but that of --redact")
REDACTING = (REDACT, REDACT_EXCEPT, NO_REDACT)
MATCH_ON = Option(
    "match-on",
    "what has to match: method, params, or a place; repeatable; by default method and params",
    "WHAT",
    many=True,
    replaces=True,
)
SPEED = Option(
    "speed",
    "1: the recorded pace, 2: twice as fast; max: no waits; by default no waits but one, for the client to read, "
    "between a response and notifications",
    "NUMBER|max",
    check=speed,
)
LISTEN = Option(
    "listen", "where clients connect, instead of stdio: tcp:HOST:PORT (0: any free one), unix:PATH", "ADDRESS"
)
REPORT = Option(
    "report",
    "add lines of JSON to FILE: how a replay went, what had no match; the last line of a session has everything",
    "FILE",
)
HTTP_COMMAND = "the command that --http is about, which is started here,"
HTTP = Option("http", "the HTTP traffic of COMMAND, a Python program, too: in NAME.http.yaml, beside NAME.yaml")
FAULT = Option(
    "fault",
    "what goes wrong: KIND[=VALUE][@method=NAME,nth=N,every=N,chance=P], or @FILE with one a line; repeatable",
    "RULE",
    many=True,
)
SEED = Option("seed", "decides how the chances of --fault fall: the same text, the same faults", "TEXT")
QUIET = Option("quiet", "no line on standard error about what is replayed; also by EXT_RECORDER_QUIET=1")
MATCH_ENV = Option(
    "match-env",
    "environment variable that is kept with its value, and must have that value on replay; repeatable",
    "NAME",
    many=True,
)
PASSED = Option(
    "passed", "number of the last words of COMMAND that a host passed to a shim, which adds this option", "N", key=False
)
ACCEPT_COMMAND = Option("accept-command", "replay for any command, also another than the recorded one", key=False)
FORCE = Option("force", "replace the file when it is there", key=False)

# --- Options that are about another thing in each command -------------------------------------------------------------


def order(of: str) -> Option:
    """`--order`, for what has to come in its order, or not."""
    return Option("order", of, "ORDER", choices=ORDERS, default="strict")


def ignore(what: str) -> Option:
    """`--ignore`, for places that may be otherwise."""
    return Option(
        "ignore",
        f"{what}, or 'METHOD POINTER' for messages of one method; repeatable",
        "POINTER",
        many=True,
        check=placed("ignore"),
    )


def connect(where: str) -> Option:
    """`--connect`, for the address of a server."""
    return Option("connect", f"where {where}: tcp:HOST:PORT, unix:PATH", "ADDRESS")


def timeout(what: str, default: str) -> Option:
    """`--timeout`, in seconds."""
    return Option("timeout", f"seconds {what}", "SECONDS", default=default, check=seconds)


def to_file(what: str) -> Option:
    """`--output`, for what is written."""
    return Option("output", what, "FILE", short="o", key=False)


def lines_of_json(each: str) -> Option:
    """`--json`, for what has a line."""
    return Option("json", f"a line of JSON for each {each}, for programs")


def at_once(what: str) -> Option:
    """`--jobs`, for what is worked on in parallel."""
    return Option("jobs", f"how many {what} at once; by default one for each core", "NUMBER")


JUNIT = Option("junit", "write a report as JUnit XML", "FILE")
ORDER = order("strict: requests have to come as they were recorded; any: in any order")
IGNORE = ignore("a place in requests that need not match, as /params/args/seed")
CONNECT = connect("the real socket server listens, for which clients come to --listen")
RECORDING = (PROTOCOL, FRAMING, BIND, *REDACTING)
COMPARING = (MATCH_ENV, PASSED)
MASK = Option(
    "mask",
    "a regular expression: what it matches in texts may differ; or a preset, as @uuid, @time, @duration; repeatable",
    "PATTERN",
    many=True,
    check=_masked,
)
MAX_AGE = Option(
    "max-age",
    "age from which a cassette is refused, as 30d or 12h; by record --mode once it is recorded again",
    "AGE",
    check=_aged,
)
REPEAT = Option(
    "repeat",
    "requests that the host may send more often than recorded: all, METHOD, or 'METHOD SUBJECT' (a tool); repeatable",
    "WHAT",
    many=True,
)
PLAYING = (ORDER, IGNORE, MASK, MATCH_ON, REPEAT, MAX_AGE, SPEED, REPORT)
