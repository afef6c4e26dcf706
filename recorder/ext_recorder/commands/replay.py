"""`ext-recorder replay`: be the recorded child."""

from __future__ import annotations

from ext_recorder.options import Command

from .shared import BIND, LISTEN, PLAYING, REDACT, bindings, one, speed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.options import Values


def run(values: Values) -> int:
    """Do what the command line says; returns the exit code."""
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
""",
    run,
    arguments=("CASSETTE",),
    options=(LISTEN, BIND, REDACT, *PLAYING),
)
