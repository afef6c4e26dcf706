"""`ext-recorder record`: stand in for a command, and keep the session."""

from __future__ import annotations

import os

from ext_recorder.options import Command

from .shared import CONNECT, HTTP, HTTP_COMMAND, LISTEN, MODE, PLAYING, RECORDING, behind, bindings, one

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.http.layer import Layer
    from ext_recorder.options import Values
    from ext_recorder.session import Session


def run(values: Values) -> int:
    """Do what the command line says; returns the exit code."""
    from ext_recorder.modes import act

    cassette = one(values, "CASSETTE")
    kept = cassette
    if values["http"]:
        from ext_recorder.http.naming import beside

        kept = beside(cassette)
    what = act(one(values, "mode"), kept)
    if what == "replay":
        from .replay import run as replay

        if os.isatty(2):
            os.write(2, os.fsencode(f"ext-recorder: {kept} is there, and replayed; --mode all records it anew\n"))
        return replay(values if values["http"] else values | {"COMMAND": (), "connect": ()})
    from ext_recorder.errors import UsageError
    from ext_recorder.record import record
    from ext_recorder.session import Session

    listen, connect = one(values, "listen"), one(values, "connect")
    if bool(listen) != bool(connect):
        raise UsageError("--listen ADDRESS is for clients, --connect ADDRESS is the server's: both or none")
    if values["http"]:
        behind(values, "record --http CASSETTE", HTTP_COMMAND)
    elif not listen:
        behind(values, "record CASSETTE", "the command to record")
    session = Session(
        cassette,
        values["COMMAND"],
        protocol=one(values, "protocol"),
        framing=one(values, "framing"),
        bind=bindings(values),
        redact=values["redact"],
        listen=listen,
        connect=connect,
    )
    _tell_of_partial(session.partial)
    if what == "go-on":
        if listen or values["http"]:
            raise UsageError(
                "--mode new_episodes is for a child on stdio, without --http; --mode all records all of it anew"
            )
        from ext_recorder.episodes import run_new_episodes

        from .replay import options_of

        return run_new_episodes(session, options_of(values))
    http = _recording_of if values["http"] else None
    if listen:
        from ext_recorder.sockets.relay import record as relay

        return relay(session, http)
    return record(session, http)


def _tell_of_partial(partial: str) -> None:
    if os.path.exists(partial):  # noqa: PTH110 - pathlib costs 5 ms
        from ext_recorder.outlets import host_outlet, tell

        text = f"{partial} is left of an interrupted session; recording again"
        tell(host_outlet(2), f"{text} (`ext-recorder recover` makes a cassette of it)")


def _recording_of(session: Session) -> Layer:
    """The layer that records its HTTP traffic; imported where it is asked for."""
    from ext_recorder.http.running import recording_of

    return recording_of(session)


COMMAND = Command(
    "record",
    "Run a command, pass everything on, and keep it in a cassette.",
    """
Stands in for COMMAND: its standard input, output and error, its exit code, and the signals that it is sent are those of
COMMAND. Bytes are passed on at once; when a cassette can't be written, that is said on standard error, and the session
goes on.

    ext-recorder record session.yaml -- ext-shell
    ext-recorder record --mode all mcp.yaml -- npx some-mcp-server
    ext-recorder record --protocol jsonrpc --framing content-length other.yaml -- some-server

With --mode new_episodes a cassette is replayed as far as it goes; then COMMAND is started, is told what the host has
said so far, and the rest is recorded.

    ext-recorder record --mode new_episodes session.yaml -- ext-shell

A socket server is recorded by a relay: clients connect to --listen, and it connects to the server. The server may run
already, or COMMAND starts it.

    ext-recorder record --protocol waza --listen tcp:127.0.0.1:4711 --connect tcp:127.0.0.1:4712 waza.yaml

With --http the HTTP traffic of COMMAND, a Python program, is kept beside the cassette, so that `replay --http` can run
the real COMMAND again, without the servers that it talked to. What can't be recorded is told at the end, and makes the
exit code 3: HTTP/2, websockets, a program that is not Python.

    ext-recorder record --http session.yaml -- ext-kubernetes
    ext-recorder record --http --listen tcp:4711 --connect tcp:4712 --protocol waza waza.yaml -- waza serve --tcp 4712

Secrets are replaced before anything reaches the disk: values of environment variables that look secret, authorization
headers, members like password or token, and well-known shapes of keys. The working directories of requests, the home
directory and what --bind names are kept by a neutral name, so that the cassette plays on another machine.
""",
    run,
    arguments=("CASSETTE",),
    tail="COMMAND",
    options=(MODE, HTTP, *RECORDING, LISTEN, CONNECT, *PLAYING),
)
