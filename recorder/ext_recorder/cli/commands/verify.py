"""`ext-recorder verify` and `conformance`: act as the host of a real child."""

from __future__ import annotations

from ext_recorder.cli import GIVEN, Command, Option
from ext_recorder.cli.options import (
    BIND,
    DIFFERING,
    HTTP,
    HTTP_COMMAND,
    JUNIT,
    MASK,
    MAX_AGE,
    NAME,
    NAMING,
    REDACTING,
    REPORTS,
    SEVERAL,
    at_once,
    behind,
    bindings,
    chosen,
    connect,
    headers_of,
    is_url,
    jobs,
    lines_of_json,
    order,
    redaction,
    seconds,
    timeout,
    value_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cli import Values
    from ext_recorder.errors import UsageError


def run_verify(values: Values) -> int:
    """Run `verify`. Return its exit code."""
    import sys
    from functools import partial
    from pathlib import Path

    from ext_recorder.batch.reports import report_each
    from ext_recorder.cassette import age
    from ext_recorder.errors import UsageError
    from ext_recorder.messages.matcher import MessageComparison
    from ext_recorder.messages.redaction import Redaction
    from ext_recorder.protocols.dialect import DIALECTS
    from ext_recorder.verify.session import VerifyOptions
    from ext_recorder.verify.verify import verify

    address = value_of(values, "connect")
    _check_address(address, values)
    recorded = bool(values["recorded-command"] and not values["COMMAND"])
    if values["COMMAND"] and "recorded-command" in values[GIVEN]:
        raise UsageError("--recorded-command runs the command of each cassette: expected none after `--`")
    if not recorded and not values["COMMAND"] and (values["http"] or not address):
        raise _without_command(values)
    files = value_of(values, "files")
    if files and not Path(files).is_dir():
        raise UsageError(f"--files {files}: expected a folder, whose content is copied into the working directory")
    options = VerifyOptions(
        values["COMMAND"],
        ignore=values["ignore"],
        mask=values["mask"],
        name=values["name"],
        bind=bindings(values),
        redact=redaction(values) or Redaction(),
        timeout=seconds(value_of(values, "timeout")),
        in_order=value_of(values, "order") == "strict" and not (is_url(address) and ORDER.name not in values[GIVEN]),
        stderr=bool(values["stderr"]),
        junk=not values["messages-only"],
        update=bool(values["update"]),
        files=files,
        http=bool(values["http"]),
        connect=address,
        headers=tuple(headers_of(values)),
        recorded_command=recorded,
        max_age=value_of(values, "max-age"),
    )
    if options.max_age:
        age.seconds(options.max_age)
    # Errors in these rules are reported before anything starts.
    MessageComparison(DIALECTS["raw"], options.ignore, options.mask, options.name)
    for note in options.redact.require(for_recording=options.update):
        sys.stderr.write(f"ext-recorder: {note}\n")
    cassettes = chosen(values)
    for cassette in cassettes:
        cassette.http = options.http
    if options.update and (remote := next((cassette.name for cassette in cassettes if cassette.remote), "")):
        raise UsageError(f"--update: {remote} is read-only; verify a copy of it")
    return report_each(
        "verify",
        cassettes,
        partial(verify, options=options),
        jobs=1 if address else jobs(values),  # a server has one address
        as_json=bool(values["json"]),
        junit_file=value_of(values, "junit"),
    )


def _check_address(address: str, values: Values) -> None:
    """Check the address of a server. Raises UsageError."""
    from ext_recorder.errors import UsageError

    if is_url(address):
        from ext_recorder.http.proxy.mcp_recording import Endpoint

        Endpoint.parse(address, "--connect")
        if values["http"]:
            raise UsageError(f"--connect {address}: --http is for a COMMAND; omit it")
    elif values["header"]:
        raise UsageError("--header requires --connect with a URL")
    elif address:
        from ext_recorder.sockets.address import Address

        Address.parse(address, "--connect")


def _without_command(values: Values) -> UsageError:
    """Return the error for a command line without a command, with the commands that --recorded-command would run."""
    from ext_recorder.cassette.reader import Reader
    from ext_recorder.errors import RecorderError, UsageError

    commands: dict[str, int] = {}
    for cassette in chosen(values):
        try:
            with cassette.local() as path, Reader(path) as reader:
                words = " ".join(reader.header.command)
        except RecorderError:
            continue
        if words:
            shown = "".join(char if char.isprintable() else "\ufffd" for char in words[:_SHOWN_CHARS])
            commands[shown] = commands.get(shown, 0) + 1
    listed = ", ".join(f"{words} ({count})" for words, count in list(commands.items())[:_SHOWN_COMMANDS])
    more = ", …" if len(commands) > _SHOWN_COMMANDS else ""
    what = HTTP_COMMAND if values["http"] else "the command to verify"
    return UsageError(
        f"expected {what} after `--`: ext-recorder verify CASSETTE -- COMMAND…; or `command` in a project file"
        + (f"; or --recorded-command, which runs what was recorded: {listed}{more}" if listed else "")
    )


_SHOWN_CHARS = 100  # of a recorded command in an error
_SHOWN_COMMANDS = 5
RECORDED_COMMAND = Option(
    "recorded-command",
    "Run the command that each cassette was recorded from. By default no command from a file is run.",
)
ORDER = order("strict: messages of the child must arrive in the recorded order; any: in any order.")
TIMEOUT = timeout("Additional time for a response, compared to the recording", "10")
STDERR = Option("stderr", "Also compare the lines of standard error.")
MESSAGES_ONLY = Option("messages-only", "Ignore lines of the child that are not messages.")
FILES = Option("files", "Folder whose content is copied to the working directory of each session.", "FOLDER")
CONNECT = connect("of the server, for a session over sockets or HTTP")
HEADER = Option(
    "header",
    "Header of requests to a URL of --connect, such as 'Authorization: Bearer …'. Repeatable.",
    "NAME: VALUE",
    many=True,
)
UPDATE = Option("update", "Accept the differences: replace the cassette with the new session.", key=False)

VERIFY = Command(
    "verify",
    "Send the recorded requests to a real child and compare its responses.",
    f"""
Acts as the host: sends COMMAND the recorded requests, each after the responses recorded before it have arrived, and
answers the child's own requests from the cassette. Messages of the child are compared as JSON, without ids, members
that the protocol declares volatile, and what --ignore and --mask name; the exit code is compared too. Each session runs
in a new working directory: empty, or with a copy of --files. The exit code of verify is 1 if anything differs.

    ext-recorder verify session.yaml -- ext-shell
    ext-recorder verify --ignore /result/outputs/seconds --junit report.xml cassettes/ -- ext-shell
    ext-recorder verify --mask '[0-9.]+m?s' --mask 'pid [0-9]+' session.yaml -- ext-shell
    ext-recorder verify --update session.yaml -- ext-shell
    ext-recorder verify --recorded-command cassettes/
    ext-recorder verify --shard 2/3 'cassettes/**/*.yaml' -- ext-shell

A session recorded by `record --listen` is sent to the server at --connect, all its clients in parallel. COMMAND starts
that server; without COMMAND it must already be running.

    ext-recorder verify --connect tcp:127.0.0.1:4712 waza.yaml -- waza serve --tcp 4712
    ext-recorder verify --connect unix:/tmp/kaiak.sock kaiak.yaml
    ext-recorder verify --http --connect tcp:4712 waza.yaml -- waza serve --tcp 4712

A session of MCP can be sent to a server with Streamable HTTP, also if it was recorded on stdio. Messages of the server
may then arrive in any order by default, because they arrive on several streams.

    ext-recorder verify --connect http://127.0.0.1:8000/mcp mcp.yaml
    ext-recorder verify --connect http://127.0.0.1:8000/mcp mcp.yaml -- some-mcp-server --port 8000

{NAMING}
A response may take as long as in the recording plus --timeout; then the child is stopped, with all processes it
started. With --http, a Python COMMAND needs no servers: its HTTP requests are answered from NAME.http.yaml, and
--ignore and --mask apply to them too, for example --ignore /query/nonce. --update replaces the cassette with the new
session, in which secrets and local paths are replaced as `record` does.
""",
    run_verify,
    arguments=("CASSETTE",),
    repeats=True,
    optional=True,
    tail="COMMAND",
    options=(
        DIFFERING,
        MASK,
        NAME,
        ORDER,
        TIMEOUT,
        STDERR,
        MESSAGES_ONLY,
        BIND,
        FILES,
        *REDACTING,
        HTTP,
        CONNECT,
        HEADER,
        UPDATE,
        RECORDED_COMMAND,
        MAX_AGE,
        *REPORTS,
        *SEVERAL,
    ),
)


def run_conformance(values: Values) -> int:
    """Run `conformance`. Return its exit code."""
    from ext_recorder.conformance.runner import run
    from ext_recorder.errors import UsageError

    address = value_of(values, "connect")
    if is_url(address):
        raise UsageError(
            f"--connect {address}: expected tcp:HOST:PORT or unix:PATH; for MCP, check a recorded session with `lint`"
        )
    return run(
        values["COMMAND"] if address else behind(values, "conformance", "the extension to ask"),
        protocol=value_of(values, "protocol"),
        connect=address,
        profile=value_of(values, "profile"),
        only=values["only"],
        as_json=bool(values["json"]),
        junit_file=value_of(values, "junit"),
        jobs=jobs(values),
        timeout=seconds(value_of(values, "timeout")),
    )


CONFORMANCE = Command(
    "conformance",
    "Check an extension against the specification of its protocol.",
    """
Checks each clause of the specification, and of the behaviour that real hosts require beyond it, and prints a table of
the results. For each clause, COMMAND is started in an empty directory by a host that shares no code with any SDK.

    ext-recorder conformance -- ext-shell
    ext-recorder conformance --only spec: --junit conformance.xml -- ./my-extension

Some clauses require an operation that succeeds, one that fails, and so on. A profile names them, as JSON:
{"succeeds": {"operation": "greet", "args": {"name": "Ada"}}}. A clause without its entry in the profile is skipped.

    ext-recorder conformance --profile profile.json -- ./my-extension

For the other protocols, the child is tested in one conversation, and in a few short ones that contain invalid input.
Its messages are also checked against the clauses of `lint`, and its requests to the host are answered. The profile
names the requests to send. A clause that no message of the child concerns is skipped. For a protocol that --protocol
does not name, such as MCP, record a session, and check it with `lint`.

    ext-recorder conformance --protocol pi -- ./my-extension
    ext-recorder conformance --protocol waza --profile waza.json -- waza jsonrpc

A socket server is tested at --connect, by two clients if it accepts two. COMMAND starts that server; without COMMAND it
must already be running.

    ext-recorder conformance --protocol waza --connect tcp:127.0.0.1:9000 -- waza jsonrpc --tcp 127.0.0.1:9000
    ext-recorder conformance --protocol kaiak --connect unix:/tmp/kaiak.sock

The exit code is 1 if a clause is violated.
""",
    run_conformance,
    arguments=(),
    tail="COMMAND",
    options=(
        Option(
            "protocol",
            "Protocol of the extension.",
            "NAME",
            choices=("gevals", "pi", "gassist", "waza", "kaiak"),
            default="gevals",
        ),
        connect("of a server on sockets", "tcp:HOST:PORT or unix:PATH"),
        Option("profile", "JSON file that names operations of the extension for the checks.", "FILE"),
        Option(
            "only",
            "Check only clauses whose id starts with this, such as spec: or host:sigterm. Repeatable.",
            "ID",
            many=True,
        ),
        timeout("Maximum wait for a message that must arrive", "20"),
        at_once("clauses"),
        JUNIT,
        lines_of_json("clause"),
    ),
    project=False,
)
COMMANDS = (VERIFY, CONFORMANCE)
