"""`ext-recorder replay`: be the recorded child."""

from __future__ import annotations

from ext_recorder.options import GIVEN, Command

from .shared import (
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
    live,
    one,
    redaction,
    speed,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.options import Values
    from ext_recorder.provenance import Live
    from ext_recorder.replay import Options


def run(values: Values) -> int:
    """Do what the command line says; returns the exit code."""
    if values["http"]:
        return _run_http(values)
    if values["connect"]:
        from ext_recorder.errors import UsageError

        given = f"--connect {one(values, 'connect')}"
        raise UsageError(f"{given}: replay plays one cassette, and runs no program; with --http it runs one")
    command = live(values) if values["COMMAND"] or values["match-env"] or values["passed"] else None
    cassette = one(values, "CASSETTE")
    if command and "{" in cassette:
        from ext_recorder.naming import expanded

        cassette = expanded(cassette, command)
    return run_recorded(values | {"CASSETTE": (cassette,)}, None if values["accept-command"] else command)


def run_recorded(values: Values, command: Live | None) -> int:
    """Replay the messages of a cassette, whose name has been expanded.

    Args:
        values: of the command line.
        command: has to be the recorded one; None: any command.
    """
    from ext_recorder.replay import run_replay

    cassette = one(values, "CASSETTE")
    options = options_of(values, command)
    listen = one(values, "listen")
    if listen:
        from ext_recorder.sockets.server import run_server

        return run_server(cassette, listen, options)
    return run_replay(cassette, options)


def options_of(values: Values, command: Live | None = None) -> Options:
    """Return how to replay, as the command line says it.

    Args:
        values: of the command line.
        command: has to be the recorded one; None: any command.
    """
    from ext_recorder.matching import MATCH_ON
    from ext_recorder.provenance import quiet
    from ext_recorder.replay import Options

    return Options(
        order=one(values, "order"),
        ignore=values["ignore"],
        mask=values["mask"],
        match_on=values["match-on"] or MATCH_ON,
        repeat=values["repeat"],
        max_age=one(values, "max-age"),
        bind=bindings(values),
        redact=redaction(values),
        report=one(values, "report"),
        faults=values.get("fault", ()),
        seed=one(values, "seed") if "seed" in values else "",
        speed=speed(one(values, "speed")),
        live=command,
        quiet=quiet(values["quiet"]),
    )


def _run_http(values: Values) -> int:
    from ext_recorder.errors import UsageError
    from ext_recorder.http.matching import Matching
    from ext_recorder.http.naming import beside
    from ext_recorder.http.running import run as run_child

    words = behind(values, "replay --http CASSETTE", HTTP_COMMAND)
    defaults = COMMAND.defaults()
    for name in (ORDER.name, REPEAT.name, SPEED.name, FAULT.name, SEED.name):
        if name in values[GIVEN] and values[name] != defaults[name]:
            raise UsageError(
                f"--{name} is about recorded messages; with --http those of COMMAND are live: leave it out"
            )
    listen, connect = one(values, "listen"), one(values, "connect")
    if listen and not connect:
        raise UsageError(
            "--listen with --http: COMMAND listens itself, so leave --listen out; or say by --connect ADDRESS where it "
            "does, and clients are relayed"
        )
    if connect and not listen:
        raise UsageError("--connect ADDRESS is where COMMAND listens, --listen ADDRESS is for clients: both or none")
    _introduce(values)
    return run_child(
        beside(one(values, "CASSETTE")),
        words,
        bind=bindings(values),
        redact=redaction(values),
        matching=Matching.of(values["ignore"], values["mask"], values["match-on"], strict="ignore" in values[GIVEN]),
        listen=listen,
        connect=connect,
        report=one(values, "report"),
    )


def _introduce(values: Values) -> None:
    """Print what is replayed: the header of the cassette, if it exists next to its HTTP traffic, names the command."""
    from ext_recorder.cassette.header import Header
    from ext_recorder.cassette.reader import Reader
    from ext_recorder.errors import CassetteError
    from ext_recorder.http.naming import beside
    from ext_recorder.outlets import claim_standard_files, host_outlet, tell
    from ext_recorder.provenance import headline, quiet

    if quiet(values["quiet"]):
        return
    cassette = one(values, "CASSETTE")
    try:
        with Reader(cassette) as reader:
            header = reader.header
    except CassetteError:  # the traffic alone is replayed
        header = Header("", "")
    claim_standard_files()
    tell(host_outlet(2), headline(beside(cassette), header))


COMMAND = Command(
    "replay",
    "Be the recorded child, without the child.",
    """
Answers on standard output what the recorded child answered, with the ids and paths of this session, and ends as it
ended. A request that was not recorded is answered by an error that names the nearest one, and makes the exit code 3.

    ext-recorder replay session.yaml
    ext-recorder replay --order any --ignore /params/args/seed session.yaml

With COMMAND, the cassette is replayed only if it was recorded from that command, which is not started.

    ext-recorder replay session.yaml -- ext-shell

How a host bears a child that fails is tried by faults. They are laid over what is played, the cassette stays as it is:
delay=TIME, drop, duplicate, cut (half of a message), garbage[=BYTES], oversized[=BYTES], error[=CODE] instead of an
answer, exit[=CODE], kill in mid-message. Behind an @ stands which messages: those of a method (an answer has that of
its request), the nth of them, every nth, or each with a chance that falls the same way for the same --seed.

    ext-recorder replay --fault delay=2s@method=execute,nth=1 session.yaml
    ext-recorder replay --fault garbage@every=3 --fault kill@method=shutdown session.yaml
    ext-recorder replay --fault error=-32603@chance=0.1 --seed 7 session.yaml

A session over sockets is played to whoever connects:

    ext-recorder replay --listen unix:/tmp/kaiak.sock kaiak.yaml

With --http the real COMMAND runs, and its HTTP requests are answered from NAME.http.yaml. Nothing reaches the network:
what was not recorded is refused, and makes the exit code 3, as does what was recorded and not asked for. A socket
server listens itself, or with --listen and --connect there is a relay before it, as when it was recorded. --ignore,
--mask and --match-on apply to the HTTP requests: to /method, /scheme, /host, /port, /path, /query, /headers and /body.

    ext-recorder replay --http session.yaml -- ext-kubernetes
    ext-recorder replay --http --ignore /query/nonce --ignore 'POST /body/id' --mask @uuid session.yaml -- python app.py
    ext-recorder replay --http waza.yaml -- waza serve --tcp 4711
""",
    run,
    arguments=("CASSETTE",),
    tail="COMMAND",
    options=(HTTP, LISTEN, CONNECT, BIND, *REDACTING, *PLAYING, FAULT, SEED, *COMPARING, ACCEPT_COMMAND, QUIET),
)
