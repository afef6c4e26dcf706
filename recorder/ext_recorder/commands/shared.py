"""What several commands take, and how their values are read."""

from __future__ import annotations

from ext_recorder.options import Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.options import Values

PROTOCOLS = (
    "gevals", "pi", "gassist", "waza", "waza-go", "kaiak", "kaiak-head", "mcp", "lsp", "dap", "acp", "jsonrpc", "raw",
)  # fmt: skip
FRAMINGS = ("ndjson", "content-length", "uint32")
ORDERS = ("strict", "any")


def one(values: Values, name: str) -> str:
    """The value of an option that has one; "" where it was not given."""
    return values[name][-1] if values[name] else ""


def speed(text: str) -> float:
    """How many times as fast as recorded; 0.0 for as fast as possible."""
    try:
        times = float(text or 0)
    except ValueError:
        times = -1.0
    if 0 <= times < float("inf"):
        return times
    from ext_recorder.errors import UsageError

    raise UsageError(f"--speed {text}: expected a number, as 1 for the recorded pace, 2 for twice as fast")


def bindings(values: Values) -> dict[str, str]:
    """What `--bind NAME=VALUE` said.

    Raises:
        UsageError: a value of it is no NAME=VALUE.
    """
    if not values["bind"]:
        return {}
    from ext_recorder.bindings import parse_bind

    return parse_bind(values["bind"])


MODE = Option(
    "mode",
    "once: replay the cassette if it is there, else record it; none: replay only; new_episodes: replay, and record on "
    "where it has no answer; all: record anew",
    "[once|none|new_episodes|all]",
    default="once",
)
BIND = Option(
    "bind", "a path of this machine, and the name that the cassette has for it; repeatable", "NAME=VALUE", many=True
)
PROTOCOL = Option(
    "protocol",
    "the protocol of the messages; auto: the one that the first of them look like",
    "NAME",
    choices=("auto", *PROTOCOLS),
    default="auto",
)
FRAMING = Option(
    "framing", "how messages are told apart; by default as is usual in the protocol", "NAME", choices=FRAMINGS
)
REDACT = Option(
    "redact",
    "an environment variable whose value is a secret, though its name does not look like it; repeatable",
    "NAME",
    many=True,
)
ORDER = Option(
    "order",
    "strict: requests have to come as they were recorded; any: in any order",
    "ORDER",
    choices=ORDERS,
    default="strict",
)
IGNORE = Option(
    "ignore", "a place in requests that need not match, as /params/args/seed; repeatable", "POINTER", many=True
)
MATCH_ON = Option(
    "match-on",
    "what has to match: method, params, or a place; repeatable; by default method and params",
    "WHAT",
    many=True,
)
SPEED = Option("speed", "1: at the recorded pace; by default as fast as possible", "NUMBER")
LISTEN = Option(
    "listen", "where clients connect, instead of stdio: tcp:HOST:PORT (0: any free one), unix:PATH", "ADDRESS"
)
CONNECT = Option("connect", "where the real socket server listens, for which clients come to --listen", "ADDRESS")
REPORT = Option("report", "add a line of JSON to FILE: how a replay went, what had no match", "FILE")
HTTP = Option("http", "the HTTP traffic of COMMAND, a Python program, too: in NAME.http.yaml, beside NAME.yaml")
FAULT = Option(
    "fault",
    "what goes wrong: KIND[=VALUE][@method=NAME,nth=N,every=N,chance=P], or @FILE with one a line; repeatable",
    "RULE",
    many=True,
)
SEED = Option("seed", "decides how the chances of --fault fall: the same text, the same faults", "TEXT")
FORCE = Option("force", "replace the file when it is there")
RECORDING = (PROTOCOL, FRAMING, BIND, REDACT)
PLAYING = (ORDER, IGNORE, MATCH_ON, SPEED, REPORT)
