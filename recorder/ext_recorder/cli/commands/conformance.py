"""`ext-recorder conformance`: check an extension against the specification of its protocol."""

from __future__ import annotations

from ext_recorder.cli import Command, Option
from ext_recorder.cli.options import JUNIT, at_once, behind, connect, jobs, lines_of_json, seconds, timeout, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cli import Values


def run(values: Values) -> int:
    """Run the command. Return its exit code."""
    from ext_recorder.conformance.runner import run as ask

    address = value_of(values, "connect")
    return ask(
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


COMMAND = Command(
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
names the requests to send. A clause that no message of the child concerns is skipped.

    ext-recorder conformance --protocol pi -- ./my-extension
    ext-recorder conformance --protocol waza --profile waza.json -- waza jsonrpc

A socket server is tested at --connect, by two clients if it accepts two. COMMAND starts that server; without COMMAND it
must already be running.

    ext-recorder conformance --protocol waza --connect tcp:127.0.0.1:9000 -- waza jsonrpc --tcp 127.0.0.1:9000
    ext-recorder conformance --protocol kaiak --connect unix:/tmp/kaiak.sock

The exit code is 1 if a clause is violated.
""",
    run,
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
        connect("of a server on sockets"),
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
COMMANDS = (COMMAND,)
