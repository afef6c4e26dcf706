"""`ext-recorder conformance`: does an extension do what its protocol's specification says?"""

from __future__ import annotations

from ext_recorder.options import Command, Option

from .shared import JUNIT, at_once, behind, connect, jobs, lines_of_json, one, seconds, timeout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.options import Values


def run(values: Values) -> int:
    """Do what the command line says; returns the exit code."""
    from ext_recorder.conformance.running import run as ask

    address = one(values, "connect")
    return ask(
        values["COMMAND"] if address else behind(values, "conformance", "the extension to ask"),
        protocol=one(values, "protocol"),
        connect=address,
        profile=one(values, "profile"),
        only=values["only"],
        as_json=bool(values["json"]),
        junit_file=one(values, "junit"),
        jobs=jobs(values),
        patience=seconds(one(values, "timeout")),
    )


COMMAND = Command(
    "conformance",
    "Hold any extension against the clauses of its protocol's specification.",
    """
The specification's text, and what real hosts do beyond it, as clauses with a check each: a table says which are met.
COMMAND is started anew for each, in an empty directory, and talked to by a host that shares no code with any SDK.

    ext-recorder conformance -- ext-shell
    ext-recorder conformance --only spec: --junit conformance.xml -- ./my-extension

Some clauses need to know an operation that succeeds, one that fails, and the like. A profile says so, as JSON:
{"succeeds": {"operation": "greet", "args": {"name": "Ada"}}}. A clause for which it has no entry is skipped.

    ext-recorder conformance --profile profile.json -- ./my-extension

Children of the other specifications are asked in one conversation, and a few short ones with what can't be read; what
they say is held against the clauses that `lint` knows, too. What they call the host for is answered. A profile tells
what to ask of them; a clause about which a child says nothing is skipped.

    ext-recorder conformance --protocol pi -- ./my-extension
    ext-recorder conformance --protocol waza --profile waza.json -- waza jsonrpc

A socket server is asked at --connect, by two clients where it takes two. COMMAND starts that server; without one it has
to be there.

    ext-recorder conformance --protocol waza --connect tcp:127.0.0.1:9000 -- waza jsonrpc --tcp 127.0.0.1:9000
    ext-recorder conformance --protocol kaiak --connect unix:/tmp/kaiak.sock

The exit code is 1 when a clause is violated.
""",
    run,
    arguments=(),
    tail="COMMAND",
    options=(
        Option(
            "protocol", "whose clauses", "NAME", choices=("gevals", "pi", "gassist", "waza", "kaiak"), default="gevals"
        ),
        connect("the server listens, for one on sockets"),
        Option("profile", "what may be asked of this extension", "FILE"),
        Option("only", "clauses whose id begins like this, as spec: or host:sigterm; repeatable", "ID", many=True),
        timeout("to wait for what has to come", "20"),
        at_once("clauses"),
        JUNIT,
        lines_of_json("clause"),
    ),
    project=False,
)
