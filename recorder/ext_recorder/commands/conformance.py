"""`ext-recorder conformance`: does an extension do what its protocol's specification says?"""

from __future__ import annotations

from ext_recorder.options import Command, Option

from .shared import one

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.options import Values


def run(values: Values) -> int:
    """Do what the command line says; returns the exit code."""
    from ext_recorder.conformance.running import run as ask
    from ext_recorder.errors import UsageError

    if not values["COMMAND"]:
        raise UsageError("expected the extension to ask behind `--`: ext-recorder conformance -- COMMAND…")
    jobs = one(values, "jobs")
    if jobs and not (jobs.isascii() and jobs.isdigit() and 0 < int(jobs) < 1000):
        raise UsageError(f"--jobs {jobs}: expected a number from 1")
    return ask(
        values["COMMAND"],
        protocol=one(values, "protocol"),
        profile=one(values, "profile"),
        only=values["only"],
        as_json=bool(values["json"]),
        junit_file=one(values, "junit"),
        jobs=int(jobs or 0),
    )


COMMAND = Command(
    "conformance",
    "Ask any extension for the clauses of its protocol's specification.",
    """
The specification's text, and what real hosts do beyond it, as clauses with a check each: a table says which are met.
COMMAND is started anew for each, in an empty directory, and talked to by a host that shares no code with any SDK.

    ext-recorder conformance -- ext-shell
    ext-recorder conformance --only spec: --junit conformance.xml -- ./my-extension

Some clauses need to know an operation that succeeds, one that fails, and the like. A profile says so, as JSON:
{"succeeds": {"operation": "greet", "args": {"name": "Ada"}}}. A clause for which it has no entry is skipped.

    ext-recorder conformance --profile profile.json -- ./my-extension

Children of the other specifications are asked in one conversation, and what they say is held against the clauses that
`lint` knows. A profile tells what to ask of them; a clause about which a child says nothing is skipped.

    ext-recorder conformance --protocol pi -- ./my-extension
    ext-recorder conformance --protocol waza --profile waza.json -- waza serve

The exit code is 1 when a clause is violated.
""",
    run,
    arguments=(),
    tail="COMMAND",
    options=(
        Option(
            "protocol", "whose clauses", "NAME", choices=("gevals", "pi", "gassist", "waza", "kaiak"), default="gevals"
        ),
        Option("profile", "what may be asked of this extension", "FILE"),
        Option("only", "clauses whose id begins like this, as spec: or host:sigterm; repeatable", "ID", many=True),
        Option("jobs", "how many clauses at once; by default one for each core", "NUMBER"),
        Option("junit", "write a report as JUnit XML", "FILE"),
        Option("json", "a line of JSON for each clause, for programs"),
    ),
)
