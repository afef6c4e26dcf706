"""`ext-recorder replay`: be the recorded child."""

from __future__ import annotations

from ext_recorder.options import Command

from .shared import BIND, HTTP, LISTEN, PLAYING, REDACT, bindings, one, speed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.options import Values


def run(values: Values) -> int:
    """Do what the command line says; returns the exit code."""
    if values["http"]:
        return _run_http(values)
    if values["COMMAND"]:
        from ext_recorder.errors import UsageError

        raise UsageError("replay runs no command; with --http it does: its HTTP requests are answered then")
    from ext_recorder.matching import MATCH_ON
    from ext_recorder.replay import Options, run_replay

    options = Options(
        order=one(values, "order"),
        ignore=values["ignore"],
        match_on=values["match-on"] or MATCH_ON,
        bind=bindings(values),
        redact=values["redact"],
        report=one(values, "report"),
        speed=speed(one(values, "speed")),
    )
    listen = one(values, "listen")
    if listen:
        from ext_recorder.sockets.server import run_server

        return run_server(one(values, "CASSETTE"), listen, options)
    return run_replay(one(values, "CASSETTE"), options)


def _run_http(values: Values) -> int:
    from ext_recorder.errors import UsageError
    from ext_recorder.http.naming import beside
    from ext_recorder.http.running import run as run_child

    if not values["COMMAND"]:
        raise UsageError("--http answers a real program: ext-recorder replay --http CASSETTE -- COMMAND…")
    defaults = COMMAND.defaults()
    for name in ("listen", *(option.name for option in PLAYING)):
        if values[name] != defaults[name]:
            raise UsageError(f"--{name} is for messages on stdio, which are live with --http")
    return run_child(beside(one(values, "CASSETTE")), values["COMMAND"], bind=bindings(values), redact=values["redact"])


COMMAND = Command(
    "replay",
    "Be the recorded child, without the child.",
    """
Answers on standard output what the recorded child answered, with the ids and paths of this session, and ends as it
ended. A request that was not recorded is answered by an error that names the nearest one, and makes the exit code 3.

    ext-recorder replay session.yaml
    ext-recorder replay --order any --ignore /params/args/seed session.yaml

A session over sockets is played to whoever connects:

    ext-recorder replay --listen unix:/tmp/kaiak.sock kaiak.yaml

With --http the real COMMAND runs, and its HTTP requests are answered from NAME.http.yaml. Nothing reaches the network:
what was not recorded is refused, and makes the exit code 3, as does what was recorded and not asked for.

    ext-recorder replay --http session.yaml -- ext-kubernetes
""",
    run,
    arguments=("CASSETTE",),
    tail="COMMAND",
    options=(HTTP, LISTEN, BIND, REDACT, *PLAYING),
)
