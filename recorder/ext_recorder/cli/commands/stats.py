"""`ext-recorder stats`: how long calls took."""

from __future__ import annotations

from ext_recorder.cli import Command, Option
from ext_recorder.cli.options import NAMING, SEVERAL, chosen, jobs, lines_of_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cli import Values


def run(values: Values) -> int:
    """Run the command. Return its exit code."""
    import sys
    from functools import partial

    from ext_recorder.batch.pool import map_cassettes
    from ext_recorder.tools.stats import collect, merge_stats, table
    from ext_sdk.core.wire.json_codec import dumps

    counted, broken = [], 0
    for outcome in map_cassettes(
        chosen(values, recordings=True), partial(collect, subjects=bool(values["subjects"])), jobs=jobs(values)
    ):
        if outcome.result is None:
            sys.stderr.write(f"ext-recorder: {outcome.error}\n")
            broken = 2
        else:
            counted.append(outcome.result)
    tallies = merge_stats(counted)
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
bytes. → marks requests of the host, ← those of the child. Several cassettes are counted together. The recording of a
run has rows for each child and each server, with the tokens of calls of a model.

    ext-recorder stats session.yaml
    ext-recorder stats --subjects cassettes/
    ext-recorder stats --json 'cassettes/**/*.yaml'
    ext-recorder stats recordings/create-pod

{NAMING}""",
    run,
    arguments=("CASSETTE",),
    repeats=True,
    optional=True,
    options=(SUBJECTS, lines_of_json("row"), *SEVERAL),
)
