"""`ext-recorder replay`: replay a cassette in place of the recorded child."""

from __future__ import annotations

import gc
import os

from ext_recorder.cli import GIVEN, Command
from ext_recorder.cli.options import (
    ACCEPT_COMMAND,
    BIND,
    COMPARING,
    CONNECT,
    FAULT,
    HTTP,
    HTTP_COMMAND,
    LISTEN,
    ORDER,
    PLAYING,
    QUIET,
    REDACTING,
    REPEAT,
    SEED,
    SPEED,
    behind,
    bindings,
    is_url,
    live,
    redaction,
    speed,
    start_of_shim,
    value_of,
    values_of_child,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cli import Values
    from ext_recorder.messages.provenance import Live
    from ext_recorder.replay.replay import Options
    from ext_recorder.run.children import Start


def run(values: Values) -> int:
    """Run the command. Return its exit code."""
    if (start := start_of_shim(values)) and start.action == "replay":
        return run_child(values, start)
    if values["http"]:
        return _run_http(values)
    if values["connect"]:
        from ext_recorder.errors import UsageError

        given = f"--connect {value_of(values, 'connect')}"
        raise UsageError(f"{given}: replay does not connect to a server; add --http to run one")
    command = live(values) if values["COMMAND"] or values["match-env"] or values["passed"] else None
    cassette = value_of(values, "CASSETTE")
    if command and "{" in cassette:
        from ext_recorder.cli.cassette_names import expanded

        cassette = expanded(cassette, command)
    return run_recorded(values | {"CASSETTE": (cassette,)}, None if values["accept-command"] else command)


def run_recorded(values: Values, command: Live | None) -> int:
    """Replay the messages of a cassette, whose name has been expanded.

    Args:
        command: the command that must be the recorded one; None: any command.
    """
    cassette, listen = value_of(values, "CASSETTE"), value_of(values, "listen")
    if is_url(listen):
        from ext_recorder.http.proxy.mcp_replaying import replay_sessions

        if ORDER.name not in values[GIVEN]:  # clients send requests in parallel
            values = values | {ORDER.name: ("any",)}
        return replay_sessions(cassette, listen, options_of(values, command))
    if listen:
        from ext_recorder.sockets.server import run_server

        return run_server(cassette, listen, options_of(values, command))
    gc.disable()  # until `play`: collections would scan what is imported, for 2 ms in all, and free nothing
    from ext_recorder.replay.replay import run_replay

    return run_replay(cassette, options_of(values, command))


def run_child(values: Values, start: Start) -> int:
    """Replay a child as a part of a recorded command. Return its exit code."""
    from ext_recorder.replay.replay import run_replay

    options = options_of(values_of_child(values, start))
    options.alternatives = start.claim if start.claim and start.claim.others() else None
    return run_replay(start.cassette, options)


def options_of(values: Values, command: Live | None = None) -> Options:
    """Return the options of the replay.

    Args:
        command: the command that must be the recorded one; None: any command.
    """
    from ext_recorder.messages.matcher import MATCH_ON
    from ext_recorder.messages.provenance import quiet
    from ext_recorder.replay.replay import Options

    return Options(
        order=value_of(values, "order"),
        ignore=values["ignore"],
        mask=values["mask"],
        match_on=values["match-on"] or MATCH_ON,
        repeat=values["repeat"],
        max_age=value_of(values, "max-age"),
        bind=bindings(values),
        redact=redaction(values),
        report=value_of(values, "report"),
        faults=values.get("fault", ()),
        seed=value_of(values, "seed") if "seed" in values else "",
        speed=speed(value_of(values, "speed")),
        live=command,
        quiet=quiet(values["quiet"]),
    )


def _run_http(values: Values) -> int:
    from ext_recorder.cassette.paths import beside
    from ext_recorder.cli.http_run import run as run_child
    from ext_recorder.errors import UsageError
    from ext_recorder.http.request_matching import RequestRules

    words = behind(values, "replay --http CASSETTE", HTTP_COMMAND)
    defaults = COMMAND.defaults()
    for name in (ORDER.name, REPEAT.name, SPEED.name, FAULT.name, SEED.name):
        if name in values[GIVEN] and values[name] != defaults[name]:
            raise UsageError(
                f"--{name} applies to recorded messages, but with --http the messages of COMMAND are live; omit it"
            )
    listen, connect = value_of(values, "listen"), value_of(values, "connect")
    if listen and not connect:
        raise UsageError(
            "--listen with --http: COMMAND listens by itself; omit --listen, or add --connect ADDRESS, where COMMAND "
            "listens, to relay clients"
        )
    if connect and not listen:
        raise UsageError("--listen is the address for clients, --connect that of COMMAND: expected both or neither")
    matching = RequestRules(
        values["ignore"],
        values["mask"],
        values["match-on"],
        strict="ignore" in values[GIVEN],
        exact=bool(values["exact"]),
    )
    _introduce(values)
    return run_child(
        beside(value_of(values, "CASSETTE")),
        words,
        bind=bindings(values),
        redact=redaction(values),
        matching=matching,
        listen=listen,
        connect=connect,
        report=value_of(values, "report"),
    )


def _introduce(values: Values) -> None:
    """Check that the cassette was recorded from the command, and print its name. Raises UsageError.

    The header of the cassette, if it exists next to its HTTP traffic, names the command.
    """
    from ext_recorder.cassette.header import Header
    from ext_recorder.cassette.paths import beside
    from ext_recorder.cassette.reader import Reader
    from ext_recorder.errors import CassetteError
    from ext_recorder.messages.provenance import check, headline, quiet
    from ext_recorder.posix.output import host_outlet, write_message
    from ext_sdk.core.stdio import claim_standard_files

    cassette = value_of(values, "CASSETTE")
    try:
        with Reader(cassette) as reader:
            header = reader.header
    except CassetteError:  # only the HTTP traffic exists
        header = Header("", "")
    if not values["accept-command"]:
        check(cassette, header, live(values))
    if not quiet(values["quiet"]) and os.path.exists(beside(cassette)):  # noqa: PTH110 - pathlib costs 5 ms
        claim_standard_files()
        write_message(host_outlet(2), headline(beside(cassette), header))


COMMAND = Command(
    "replay",
    "Replay a cassette in place of the recorded child.",
    """
Writes the recorded responses to standard output, with the ids and paths of this session, and exits as the recorded
child did. A request that was not recorded gets an error response that names the closest recorded request, and the exit
code is 3.

    ext-recorder replay session.yaml
    ext-recorder replay --order any --ignore /params/args/seed session.yaml

With COMMAND, the cassette is replayed only if it was recorded from that command. COMMAND itself is not started.

    ext-recorder replay session.yaml -- ext-shell

Use --fault to test how a host handles a failing child. Faults change the replayed messages, not the cassette. Kinds:
delay=TIME, drop, duplicate, cut (send half of a message), garbage[=BYTES], oversized[=BYTES], error[=CODE] instead of a
response, exit[=CODE], and kill (in the middle of a message). Conditions after @ select messages: those of a method (a
response has the method of its request), the nth of them, every nth, or each with a chance. The same --seed selects the
same messages.

    ext-recorder replay --fault delay=2s@method=execute,nth=1 session.yaml
    ext-recorder replay --fault garbage@every=3 --fault kill@method=shutdown session.yaml
    ext-recorder replay --fault error=-32603@chance=0.1 --seed 7 session.yaml

A session over sockets is replayed to any client that connects:

    ext-recorder replay --listen unix:/tmp/kaiak.sock kaiak.yaml

A session of MCP is replayed over Streamable HTTP, wherever it was recorded, to clients that connect to a URL. Requests
may then arrive in any order by default.

    ext-recorder replay --listen http://127.0.0.1:0/mcp mcp.yaml

With --http the real COMMAND runs, and its HTTP requests are answered from NAME.http.yaml. Nothing reaches the network.
A request that was not recorded is refused. The exit code is 3 if a request was refused, or if a recorded request was
not sent. A socket server listens by itself, or behind a relay if --listen and --connect are given. --ignore, --mask and
--match-on apply to the HTTP requests: to /method, /scheme, /host, /port, /path, /query, /headers and /body. Parts that
are known to differ in each run need not match unless --exact is given.

    ext-recorder replay --http session.yaml -- ext-kubernetes
    ext-recorder replay --http --ignore /query/nonce --ignore 'POST /body/id' --mask @uuid session.yaml -- python app.py
    ext-recorder replay --http waza.yaml -- waza serve --tcp 4711
""",
    run,
    arguments=("CASSETTE",),
    tail="COMMAND",
    options=(HTTP, LISTEN, CONNECT, BIND, *REDACTING, *PLAYING, FAULT, SEED, *COMPARING, ACCEPT_COMMAND, QUIET),
)
COMMANDS = (COMMAND,)
