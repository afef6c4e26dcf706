"""`ext-recorder stats`: how long calls took."""

from __future__ import annotations

from ext_recorder.options import Command, Option

from .several import NAMING, SEVERAL, chosen
from .shared import jobs, lines_of_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.options import Values


def run(values: Values) -> int:
    """Run the command. Return its exit code."""
    import sys
    from functools import partial

    from ext_recorder.many.pool import each
    from ext_recorder.stats import collect, table, together
    from ext_sdk.core.wire.json_codec import dumps

    counted, broken = [], 0
    for outcome in each(chosen(values), partial(collect, subjects=bool(values["subjects"])), jobs=jobs(values)):
        if outcome.result is None:
            sys.stderr.write(f"ext-recorder: {outcome.error}\n")
            broken = 2
        else:
            counted.append(outcome.result)
    tallies = together(counted)
    if values["json"]:
        sys.stdout.writelines(dumps(tally.as_json()) + "\n" for tally in tallies)
    elif counted:
        sys.stdout.writelines(f"{line.rstrip()}\n" for line in table(tallies))
    return broken


SUBJECTS = Option("subjects", "Print a row for each operation or tool called, in addition to each method.")
COMMAND = Command(
    "stats",
    "Print call counts and durations for each method.",
    f"""
Counts requests, notifications, failures and requests without a response, and prints percentiles of response times, and
bytes. → marks requests of the host, ← those of the child. Several cassettes are counted together.

    ext-recorder stats session.yaml
    ext-recorder stats --subjects cassettes/
    ext-recorder stats --json 'cassettes/**/*.yaml'

{NAMING}""",
    run,
    arguments=("CASSETTE",),
    repeats=True,
    optional=True,
    options=(SUBJECTS, lines_of_json("row"), *SEVERAL),
)
