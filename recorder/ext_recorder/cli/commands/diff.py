"""`ext-recorder diff`: compare two cassettes."""

from __future__ import annotations

from ext_recorder.cli import Command
from ext_recorder.cli.options import DIFFERING, MASK, NAME, lines_of_json, order, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cli import Values


def run(values: Values) -> int:
    """Run the command. Return its exit code."""
    import sys

    from ext_recorder.batch.reports import json_line, lines
    from ext_recorder.batch.selection import file_of
    from ext_recorder.tools.diff import diff

    with file_of(value_of(values, "A")) as (left, name), file_of(value_of(values, "B")) as (right, other_name):
        case = diff(
            left,
            right,
            names=(name, other_name),
            ignore=values["ignore"],
            mask=values["mask"],
            name=values["name"],
            in_order=value_of(values, "order") == "strict",
        )
    sys.stdout.write(json_line(case) if values["json"] else "".join(f"{line}\n" for line in lines(case)))
    return 0 if case.ok else 1


COMMAND = Command(
    "diff",
    "Compare two cassettes, or two recordings of one command, message by message.",
    """
Pairs the requests and notifications of both cassettes: first those with equal content, then the rest of each method in
order. Compares their JSON values, their responses and the exit codes. Times, ids, standard error and members that the
protocol declares volatile are not compared. The exit code is 1 if anything differs.

Two recordings (`ext-recorder run`) are compared child by child and server by server. The differences are printed in the
order of time, so the first one is where the two runs part; a summary for each child and server follows. Responses of
models are compared without the form of their streams, and objects of clusters without uids, versions and times.
--ignore accepts pointers to requests (/body/id, see replay --http) and responses (/response/body/id), too.

    ext-recorder diff old.yaml new.yaml
    ext-recorder diff --ignore /result/outputs/seconds --mask '[0-9.]+m?s' old.yaml new.yaml
    ext-recorder diff --order any --json old.yaml new.yaml
    ext-recorder diff recordings/before recordings/after
""",
    run,
    arguments=("A", "B"),
    options=(
        DIFFERING,
        MASK,
        NAME,
        order("strict: messages in a different order count as a difference; any: they do not."),
        lines_of_json("comparison"),
    ),
)
