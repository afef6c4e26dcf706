"""`ext-recorder lint`: hold recorded sessions against their specification."""

from __future__ import annotations

from ext_recorder.options import Command

from .several import NAMING, REPORTS, SEVERAL, chosen
from .shared import MAX_AGE, jobs, one

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.options import Values


def run(values: Values) -> int:
    """Do what the command line says; returns the exit code."""
    from functools import partial

    from ext_recorder import age
    from ext_recorder.lint.linting import lint
    from ext_recorder.reports.telling import report

    max_age = one(values, "max-age")
    if max_age:
        age.seconds(max_age)
    return report(
        "lint",
        chosen(values),
        partial(lint, max_age=max_age),
        jobs=jobs(values),
        as_json=bool(values["json"]),
        junit_file=one(values, "junit"),
    )


COMMAND = Command(
    "lint",
    "Hold recorded sessions against their specification.",
    f"""
Looks at every message: is it one of its protocol, in its direction, with what its schema asks for; may it come at this
point; is every request answered, once, and in time. Each finding names the line, and the clause that it is against.
The exit code is 1 when there are findings.

    ext-recorder lint session.yaml
    ext-recorder lint --json cassettes/

{NAMING}
What real servers speak in the place of a specification (waza-go, kaiak-head) is held against what they demand and give.
Of raw lines nothing is demanded: lint only checks that the file can be read.
""",
    run,
    arguments=("CASSETTE",),
    repeats=True,
    optional=True,
    options=(MAX_AGE, *REPORTS, *SEVERAL),
)
