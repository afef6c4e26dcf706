"""`ext-recorder record`: run a command and record the session."""

from __future__ import annotations

import os

from ext_recorder.cli import GIVEN, Command, Option
from ext_recorder.cli.options import (
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
    check_urls,
    is_url,
    live,
    redaction,
    start_of_shim,
    value_of,
    values_of_child,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_recorder.cli import Values
    from ext_recorder.http.controller import HttpController
    from ext_recorder.messages.provenance import Live
    from ext_recorder.record.config import RecordingConfig
    from ext_recorder.run.children import Start

DETERMINISTIC = Option(
    "deterministic",
    "Values of the child to record and repeat on replay --http: time, uuid, random, or secrets (os.urandom; the file "
    "then reveals them). Repeatable.",
    "KIND",
    choices=("time", "uuid", "random", "secrets"),
    many=True,
)
FILES = Option(
    "files",
    "Include the files that COMMAND changes in its working directory, or an ACP agent in the cwd of its sessions, and "
    "in the folders of --bind, in NAME.patch next to NAME.yaml. Replay changes them again.",
)
DIR = Option(
    "dir",
    "Folder for a new cassette for each session, instead of CASSETTE. None of them is replayed.",
    "FOLDER",
    key=False,
)


def run(values: Values) -> int:
    """Run the command. Return its exit code."""
    if start := start_of_shim(values):
        return _join(values, start)
    cassette, unique = _cassette_of(values)
    action, expected = ("record", None) if unique else _action(values, cassette)
    if action == "replay":
        from ext_recorder.cli.commands import replay

        values |= {"CASSETTE": (cassette,)}
        if not values["http"]:
            return replay.run_recorded(values, expected)
        return replay.run(values if expected else values | {ACCEPT_COMMAND.name: ("",)})
    _check_options(values, action)
    if not unique:
        return _record(values, cassette, expected, go_on=action == "go-on")
    from ext_recorder.cli.cassette_names import release, reserved
    from ext_recorder.errors import RecorderError

    cassette = reserved(cassette)
    try:
        return _record(values, cassette, None, unique=True)
    except RecorderError:
        release(cassette)
        raise


def _join(values: Values, start: Start) -> int:
    """Record, replay or run a child as a part of a recorded command. Return its exit code."""
    if start.action == "run":
        os.execvp(start.command[0], start.command)  # noqa: S606
    if start.action == "replay":
        from ext_recorder.cli.commands import replay

        return replay.run_child(values, start)
    from functools import partial

    from ext_recorder.cli.cassette_names import release, reserved
    from ext_recorder.errors import RecorderError
    from ext_recorder.run.children import clock_started, started

    cassette = reserved(start.cassette)
    values = values_of_child(values, start) | {"COMMAND": start.command}
    try:
        started(start.name, cassette)
        return _record(values, cassette, None, unique=True, on_start=partial(clock_started, cassette))
    except RecorderError as error:
        started(start.name, cassette, str(error))
        release(cassette)
        raise


def _check_options(values: Values, action: str) -> None:
    """Check that the options can be combined and the command is given. Raises UsageError."""
    from ext_recorder.errors import UsageError

    listen, connect = value_of(values, "listen"), value_of(values, "connect")
    if bool(listen) != bool(connect):
        raise UsageError("--listen is the address for clients, --connect that of the server: expected both or neither")
    if listen and connect:
        check_urls(listen, connect, values)
    if value_of(values, "framing") == "http" and (not listen or value_of(values, "protocol") != "auto"):
        raise UsageError("--framing http is for a socket server: expected --listen and --connect, and no --protocol")
    if values["http"]:
        behind(values, "record --http CASSETTE", HTTP_COMMAND)
    elif "deterministic" in values[GIVEN]:
        raise UsageError("--deterministic requires --http")
    elif not listen:
        behind(values, "record CASSETTE", "the command to record")
    check_playing(values)
    if action == "go-on" and (listen or values["http"] or values["files"]):
        problem = "--mode new_episodes is for a child on stdio, without --http and --files"
        raise UsageError(f"{problem}; --mode all records it again")
    if values["files"] and listen:
        raise UsageError("--files is for a child on stdio, not for a socket server: omit it")


def _cassette_of(values: Values) -> tuple[str, bool]:
    """Return the cassette, and True if each session has a cassette of its own. Raises UsageError."""
    folder, name, mode = value_of(values, "dir"), value_of(values, "CASSETTE"), value_of(values, "mode")
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


def _record(
    values: Values,
    cassette: str,
    expected: Live | None,
    *,
    go_on: bool = False,
    unique: bool = False,
    on_start: Callable[[float], None] | None = None,
) -> int:
    """Record a session, or replay the cassette and record the requests that it does not have.

    Args:
        expected: command from which a cassette to continue must have been recorded; None: any.
        go_on: continue the cassette.
        unique: the name is reserved for this session.
        on_start: see `RecordingConfig`.
    """
    from ext_recorder.record.config import RecordingConfig
    from ext_recorder.record.recorder import record

    session = RecordingConfig(
        cassette,
        values["COMMAND"],
        protocol=value_of(values, "protocol"),
        framing=value_of(values, "framing"),
        bind=bindings(values),
        redact=redaction(values),
        listen=value_of(values, "listen"),
        connect=value_of(values, "connect"),
        match_env=values["match-env"],
        http=bool(values["http"]),
        files=_files(values),
        on_start=on_start,
    )
    if not unique and os.path.exists(session.partial):  # noqa: PTH110 - pathlib costs 5 ms
        _report(
            f"{session.partial} is from an interrupted session; recording again "
            "(`ext-recorder recover` turns it into a cassette)"
        )
    if session.redact and session.redact.off:
        _report(f"{session.cassette} is recorded without redaction (--no-redact) and will contain secrets")
    if go_on:
        from ext_recorder.record.resume import run_new_episodes

        from .replay import options_of

        return run_new_episodes(session, options_of(values, expected))
    http: Callable[[RecordingConfig], HttpController] | None = None
    if values["http"]:
        from functools import partial

        from ext_recorder.cli.http_run import recording_of

        http = partial(recording_of, kinds=values["deterministic"])
    if session.listen and is_url(session.listen):
        from ext_recorder.http.proxy.mcp_recording import record_sessions

        return record_sessions(session)
    if session.listen:
        from ext_recorder.sockets.relay import record as relay

        return relay(session, http)
    if os.isatty(0):
        from ext_recorder.messages.provenance import quiet

        if not quiet(values["quiet"]):
            _report("recording; the command is connected to pipes instead of this terminal, and may not show a prompt")
    return record(session, http)


def _files(values: Values) -> str:
    """Return whose files are recorded, see `RecordingConfig`; "" if `--files` is not given."""
    if not values["files"]:
        return ""
    is_agent = values["files"][0] or value_of(values, "protocol") == "acp"
    return "sessions" if is_agent else "cwd"


def _action(values: Values, cassette: str) -> tuple[str, Live | None]:
    """Return the action, see `record.config.act`, and the command from which it must have been recorded; None: any.

    Mode `once` records a cassette again that is older than `--max-age`.

    Raises:
        UsageError: the mode cannot be used, or the cassette was recorded from another command.
    """
    from ext_recorder.record.config import act

    mode, max_age, traffic = value_of(values, "mode"), value_of(values, "max-age"), cassette
    if values["http"]:
        from ext_recorder.cassette.paths import beside

        traffic = beside(cassette)
    action = act(mode, traffic)
    connect = value_of(values, "connect")
    if is_url(connect):  # the cassette names the server, not the command that starts it
        values = values | {"COMMAND": (connect,)}
    expected = None if action == "record" or mode == "none" or values["accept-command"] else live(values)
    if action != "replay" or mode != "once" or not max_age or not os.path.exists(cassette):  # noqa: PTH110
        return action, expected
    from ext_recorder.cassette import age
    from ext_recorder.cassette.reader import Reader
    from ext_recorder.messages.provenance import check

    with Reader(cassette) as reader:
        if not age.is_old(cassette, reader.header, max_age):
            return action, expected
        if expected:
            check(cassette, reader.header, expected)
        _report(f"{age.problem(cassette, reader.header, max_age)}; recording again")
    return "record", None


def _report(text: str) -> None:
    from ext_recorder.posix.output import host_outlet, write_message

    write_message(host_outlet(2), text)


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

An MCP server with Streamable HTTP is recorded between two URLs: that of clients, and that of the server. Each session
has a cassette of its own, as on stdio: NAME.yaml, NAME-2.yaml, and so on. `replay --listen URL` replays all of them.

    ext-recorder record --listen http://127.0.0.1:0/mcp --connect https://example.com/mcp mcp.yaml

With --http, the HTTP traffic of COMMAND, a Python program, is recorded in NAME.http.yaml next to NAME.yaml. Later,
`replay --http` runs the real COMMAND without the servers it called. Traffic that cannot be recorded (HTTP/2,
WebSockets, programs not written in Python) is reported at the end, and the exit code is 3.

    ext-recorder record --http session.yaml -- ext-kubernetes
    ext-recorder record --http --deterministic time --deterministic uuid session.yaml -- python app.py
    ext-recorder record --http --listen tcp:4711 --connect tcp:4712 --protocol waza waza.yaml -- waza serve --tcp 4712

With --files, the files that COMMAND changes are recorded before the message that follows, as a patch that `git apply`
accepts. A replay applies it at the same point to its own working directory; it refuses if the files there differ.

    ext-recorder record --files --protocol acp agent.yaml -- some-coding-agent --acp

Secrets are replaced before anything is written to disk: values of environment variables whose names look secret,
authorization headers, members such as password or token, and tokens in well-known formats. --redact and --redact-except
adjust this. The working directories of requests, the home directory and the paths of --bind are replaced by
placeholders, so that the cassette can be replayed on another machine.
""",
    run,
    arguments=("CASSETTE",),
    tail="COMMAND",
    unless="dir",
    options=(
        MODE,
        DIR,
        HTTP,
        DETERMINISTIC,
        FILES,
        *RECORDING,
        LISTEN,
        CONNECT,
        *PLAYING,
        *COMPARING,
        ACCEPT_COMMAND,
        QUIET,
    ),
)
COMMANDS = (COMMAND,)
