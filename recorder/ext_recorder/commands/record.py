"""`ext-recorder record`: stand in for a command, and keep the session."""

from __future__ import annotations

from ext_recorder.options import Command

from .shared import MODE, PLAYING, RECORDING, bindings, one

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.options import Values


def run(values: Values) -> int:
    """Do what the command line says; returns the exit code."""
    from ext_recorder.modes import act

    cassette = one(values, "CASSETTE")
    if act(one(values, "mode"), cassette) == "replay":
        from .replay import run as replay

        return replay(values)
    from ext_recorder.errors import UsageError
    from ext_recorder.record import record
    from ext_recorder.session import Session

    if not values["COMMAND"]:
        raise UsageError("expected the command to record behind `--`: ext-recorder record CASSETTE -- COMMAND…")
    session = Session(
        cassette,
        values["COMMAND"],
        protocol=one(values, "protocol"),
        framing=one(values, "framing"),
        bind=bindings(values),
        redact=values["redact"],
    )
    return record(session)


COMMAND = Command(
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
    run,
    arguments=("CASSETTE",),
    tail="COMMAND",
    options=(MODE, *RECORDING, *PLAYING),
)
