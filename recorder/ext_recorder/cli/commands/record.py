"""`ext-recorder record`: run a command and record the session."""

from __future__ import annotations

import os

from ext_recorder.cli.common_options import (
    ACCEPT_COMMAND,
    COMPARING,
    CONNECT,
    HTTP,
    HTTP_COMMAND,
    LISTEN,
    MODE,
    PLAYING,
    QUIET,
    RECORDING,
    behind,
    bindings,
    check_playing,
    live,
    one,
    redaction,
)
from ext_recorder.cli.options import GIVEN, Command, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ext_recorder.cli.options import Values
    from ext_recorder.http.controller import HttpController
    from ext_recorder.messages.provenance import Live
    from ext_recorder.record.config import RecordingConfig

DETERMINISTIC = Option(
    "deterministic",
    "Values of the child to record and repeat on replay --http: time, uuid, random, or secrets (os.urandom; the file "
    "then reveals them). Repeatable.",
    "KIND",
    choices=("time", "uuid", "random", "secrets"),
    many=True,
)
DIR = Option(
    "dir",
    "Folder for a new cassette for each session, instead of CASSETTE. None of them is replayed.",
    "FOLDER",
    key=False,
)


def run(values: Values) -> int:
    """Run the command. Return its exit code."""
    mode = one(values, "mode")
    cassette, unique = _named(values, mode)
    kept = cassette
    if values["http"]:
        from ext_recorder.cassette.paths import beside

        kept = beside(cassette)
    what, expected = ("record", None) if unique else _act(values, mode, kept, cassette)
    if what == "replay":
        return _replay(values | {"CASSETTE": (cassette,)}, expected)
    from ext_recorder.errors import RecorderError, UsageError

    listen, connect = one(values, "listen"), one(values, "connect")
    if bool(listen) != bool(connect):
        raise UsageError("--listen is the address for clients, --connect that of the server: expected both or neither")
    if one(values, "framing") == "http" and (not listen or one(values, "protocol") != "auto"):
        raise UsageError("--framing http is for a socket server: expected --listen and --connect, and no --protocol")
    _expect_command(values)
    check_playing(values)
    if what == "go-on" and (listen or values["http"]):
        raise UsageError("--mode new_episodes is for a child on stdio, without --http; --mode all records it again")
    if not unique:
        return _record(values, cassette, expected, go_on=what == "go-on")
    from ext_recorder.cli.cassette_names import release, reserved

    cassette = reserved(cassette)
    try:
        return _record(values, cassette, None, unique=True)
    except RecorderError:
        release(cassette)
        raise


def _expect_command(values: Values) -> None:
    """Raise UsageError if the command is missing, or an option is for the HTTP traffic of one that is not recorded."""
    if values["http"]:
        behind(values, "record --http CASSETTE", HTTP_COMMAND)
        return
    if "deterministic" in values[GIVEN]:
        from ext_recorder.errors import UsageError

        raise UsageError("--deterministic requires --http")
    if not values["listen"]:
        behind(values, "record CASSETTE", "the command to record")


def _named(values: Values, mode: str) -> tuple[str, bool]:
    """Return the cassette, and whether each session has one of its own. Raises UsageError."""
    folder, name = one(values, "dir"), one(values, "CASSETTE")
    if not folder and "{" not in name and name:
        return name, False
    from ext_recorder.cli.cassette_names import EACH_SESSION, expanded, is_unique
    from ext_recorder.errors import UsageError

    if not folder and not name:
        raise UsageError("expected a cassette: record CASSETTE -- COMMAND…, or record --dir FOLDER -- COMMAND…")
    if folder and name:
        raise UsageError(f"--dir {folder}: expected no CASSETTE ({name}); each session gets its own name")
    if folder and not os.path.isdir(folder) and os.path.lexists(folder):  # noqa: PTH112 - pathlib costs 5 ms
        raise UsageError(f"--dir {folder}: expected a folder, found a file")
    name = f"{folder}/{EACH_SESSION}" if folder else expanded(name, live(values))
    if is_unique(name) and mode in {"none", "new_episodes"}:
        raise UsageError(f"--mode {mode} replays, and {'--dir' if folder else name} names a new cassette each time")
    return name, is_unique(name)


def _replay(values: Values, expected: Live | None) -> int:
    """Replay the cassette, if it is of this command."""
    from ext_recorder.cli.commands import replay

    if not values["http"]:
        return replay.run_recorded(values, expected)
    return replay.run(values if expected else values | {ACCEPT_COMMAND.name: ("",)})


def _record(values: Values, cassette: str, expected: Live | None, *, go_on: bool = False, unique: bool = False) -> int:
    """Record a session, or replay and record on.

    Args:
        values: of the command line.
        cassette: the file.
        expected: the command that the cassette has to be of, where it is recorded on; None: any.
        go_on: it is recorded on.
        unique: the name is reserved for this session.
    """
    from ext_recorder.record.config import RecordingConfig
    from ext_recorder.record.recorder import record

    session = RecordingConfig(
        cassette,
        values["COMMAND"],
        protocol=one(values, "protocol"),
        framing=one(values, "framing"),
        bind=bindings(values),
        redact=redaction(values),
        listen=one(values, "listen"),
        connect=one(values, "connect"),
        match_env=values["match-env"],
        http=bool(values["http"]),
    )
    if not unique:
        _tell_of_partial(session.partial)
    if session.redact and session.redact.off:
        _tell(f"{session.cassette} is recorded without redaction (--no-redact) and will contain secrets")
    if go_on:
        from ext_recorder.record.resume import run_new_episodes

        from .replay import options_of

        return run_new_episodes(session, options_of(values, expected))
    http = _recording_of(values["deterministic"]) if values["http"] else None
    if session.listen:
        from ext_recorder.sockets.relay import record as relay

        return relay(session, http)
    if os.isatty(0) and not _is_quiet(values):
        from ext_recorder.posix.output import host_outlet, write_message

        text = "recording; the command is connected to pipes instead of this terminal, and may not show a prompt"
        write_message(host_outlet(2), text)
    return record(session, http)


def _act(values: Values, mode: str, kept: str, cassette: str) -> tuple[str, Live | None]:
    """Return what to do, see `modes.act`, and the command that a cassette has to be of; None: any.

    Mode `once` records a cassette again that is older than `--max-age`.
    """
    from ext_recorder.record.config import act

    what = act(mode, kept)
    expected = None if what == "record" or mode == "none" or values["accept-command"] else live(values)
    if what == "replay" and mode == "once" and _is_old(cassette, one(values, "max-age"), expected):
        return "record", None
    return what, expected


def _is_old(cassette: str, max_age: str, expected: Live | None) -> bool:
    """Return True, and report it, if a cassette is older than `--max-age`.

    Raises:
        UsageError: it is of another command.
    """
    if not max_age or not os.path.exists(cassette):  # noqa: PTH110 - pathlib costs 5 ms
        return False
    from ext_recorder.cassette import age
    from ext_recorder.cassette.reader import Reader
    from ext_recorder.messages.provenance import check
    from ext_recorder.posix.output import host_outlet, write_message

    with Reader(cassette) as reader:
        if not age.is_old(cassette, reader.header, max_age):
            return False
        if expected:
            check(cassette, reader.header, expected)
        write_message(host_outlet(2), f"{age.problem(cassette, reader.header, max_age)}; recording again")
    return True


def _is_quiet(values: Values) -> bool:
    from ext_recorder.messages.provenance import quiet

    return quiet(values["quiet"])


def _tell_of_partial(partial: str) -> None:
    if os.path.exists(partial):  # noqa: PTH110 - pathlib costs 5 ms
        text = f"{partial} is from an interrupted session; recording again"
        _tell(f"{text} (`ext-recorder recover` turns it into a cassette)")


def _tell(text: str) -> None:
    from ext_recorder.posix.output import host_outlet, write_message

    write_message(host_outlet(2), text)


def _recording_of(kinds: Sequence[str]) -> Callable[[RecordingConfig], HttpController]:
    """Return what starts the layer that records a session's HTTP traffic, and these kinds of values of the child."""
    from ext_recorder.cli.http_run import recording_of

    return lambda session: recording_of(session, kinds)


COMMAND = Command(
    "record",
    "Run a command, forward its input and output, and record both in a cassette.",
    """
Runs COMMAND and forwards its standard input, output and error, its exit code, and the signals it receives. Bytes are
forwarded at once. If the cassette cannot be written, the session continues and standard error reports the problem.

    ext-recorder record session.yaml -- ext-shell
    ext-recorder record --mode all mcp.yaml -- npx some-mcp-server
    ext-recorder record --protocol jsonrpc --framing content-length other.yaml -- some-server

An existing cassette is replayed instead of recorded; --mode all records it again. One line on standard error names the
replayed cassette (--quiet omits it). If the cassette was recorded from another COMMAND, or with another value of a
variable named by --match-env, nothing is replayed and the exit code is 2. With --dir, each session is recorded in a
file of its own and none is replayed: use it in the configuration of a client that starts COMMAND repeatedly.

    ext-recorder record --dir sessions -- npx some-mcp-server

Placeholders in the name give separate cassettes: {args} one for each set of arguments of COMMAND, {env} one for the
values of --match-env, {stdin} one for each standard input (read to its end before COMMAND starts), {time} and {pid} one
for each session.

    ext-recorder record credentials/{args}.yaml -- git credential-store get

With --mode new_episodes, the cassette is replayed until a request has no recorded response. Then COMMAND is started and
receives everything the host has sent so far, and the rest of the session is recorded.

    ext-recorder record --mode new_episodes session.yaml -- ext-shell

A socket server is recorded through a relay: clients connect to --listen, and the relay connects to the server at
--connect. The server may already be running, or COMMAND starts it.

    ext-recorder record --protocol waza --listen tcp:127.0.0.1:4711 --connect tcp:127.0.0.1:4712 waza.yaml

With --http, the HTTP traffic of COMMAND, a Python program, is recorded in NAME.http.yaml next to NAME.yaml. Later,
`replay --http` runs the real COMMAND without the servers it called. Traffic that cannot be recorded (HTTP/2,
WebSockets, programs not written in Python) is reported at the end, and the exit code is 3.

    ext-recorder record --http session.yaml -- ext-kubernetes
    ext-recorder record --http --deterministic time --deterministic uuid session.yaml -- python app.py
    ext-recorder record --http --listen tcp:4711 --connect tcp:4712 --protocol waza waza.yaml -- waza serve --tcp 4712

Secrets are replaced before anything is written to disk: values of environment variables whose names look secret,
authorization headers, members such as password or token, and tokens in well-known formats. --redact and --redact-except
adjust this. The working directories of requests, the home directory and the paths of --bind are replaced by
placeholders, so that the cassette can be replayed on another machine.
""",
    run,
    arguments=("CASSETTE",),
    tail="COMMAND",
    unless="dir",
    options=(MODE, DIR, HTTP, DETERMINISTIC, *RECORDING, LISTEN, CONNECT, *PLAYING, *COMPARING, ACCEPT_COMMAND, QUIET),
)
