"""`ext-recorder lint`: check recorded sessions against their specification."""

from __future__ import annotations

from ext_recorder.cli import Command
from ext_recorder.cli.options import MAX_AGE, NAMING, REPORTS, SEVERAL, chosen, jobs, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cli import Values


def run(values: Values) -> int:
    """Run the command. Return its exit code."""
    from functools import partial

    from ext_recorder.batch.reports import report_each
    from ext_recorder.cassette import age
    from ext_recorder.tools.lint import lint

    max_age = value_of(values, "max-age")
    if max_age:
        age.seconds(max_age)
    return report_each(
        "lint",
        chosen(values, recordings=True),
        partial(lint, max_age=max_age),
        jobs=jobs(values),
        as_json=bool(values["json"]),
        junit_file=value_of(values, "junit"),
    )


COMMAND = Command(
    "lint",
    "Check recorded sessions against their protocol specification.",
    f"""
Checks each message: it belongs to the protocol, has the right direction, matches its schema, and is allowed at this
point of the session. Checks each request: it has exactly one response, within its time limit. A finding names the line
and the violated clause. The exit code is 1 if there are findings.

    ext-recorder lint session.yaml
    ext-recorder lint --json cassettes/
    ext-recorder lint recordings/create-pod

Of the recording of a run, all cassettes and the HTTP traffic are checked, and that the folder contains the files that
its header lists.

{NAMING}
waza-go and kaiak-head describe real servers instead of a specification: lint checks what these servers require and
return. For raw lines, lint only checks that the file can be read.
""",
    run,
    arguments=("CASSETTE",),
    repeats=True,
    optional=True,
    options=(MAX_AGE, *REPORTS, *SEVERAL),
)
