"""Commands that read cassettes: diff, lint, show, view, stats."""

from __future__ import annotations

from ext_recorder.cli import Command, Option
from ext_recorder.cli.options import (
    DIFFERING,
    FORCE,
    MASK,
    MAX_AGE,
    NAME,
    NAMING,
    REPORTS,
    SEVERAL,
    chosen,
    jobs,
    lines_of_json,
    order,
    to_file,
    value_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cli import Values


# --- diff -------------------------------------------------------------------------------------------------------------


def _diff(values: Values) -> int:
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


DIFF_COMMAND = Command(
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
    _diff,
    arguments=("A", "B"),
    options=(
        DIFFERING,
        MASK,
        NAME,
        order("strict: messages in a different order count as a difference; any: they do not."),
        lines_of_json("comparison"),
    ),
)


# --- lint -------------------------------------------------------------------------------------------------------------


def _lint(values: Values) -> int:
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


LINT_COMMAND = Command(
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
    _lint,
    arguments=("CASSETTE",),
    repeats=True,
    optional=True,
    options=(MAX_AGE, *REPORTS, *SEVERAL),
)


# --- show -------------------------------------------------------------------------------------------------------------


def _show(values: Values) -> int:
    """Run the command. Return its exit code."""
    from ext_recorder.batch.selection import file_of
    from ext_recorder.tools.show import show

    with file_of(value_of(values, "CASSETTE")) as (path, name):
        show(str(path), name=name, raw=bool(values["raw"]), as_json=bool(values["json"]))
    return 0


RAW = Option("raw", "Print messages in full.")
SHOW_COMMAND = Command(
    "show",
    "Print a cassette, or the recording of a run, in human-readable form.",
    """
Prints one line for each event: its time, direction and content, and for a response the time it took. For the recording
of `ext-recorder run`, it prints the events of all children and the HTTP requests in the order of time.

    ext-recorder show session.yaml
    ext-recorder show recordings/create-pod
    ext-recorder show --json session.yaml
    ext-recorder show zip://session.yaml::sessions.zip
""",
    _show,
    arguments=("CASSETTE",),
    options=(RAW, lines_of_json("event")),
)


# --- view -------------------------------------------------------------------------------------------------------------


def _view(values: Values) -> int:
    """Write the page. Return the exit code."""
    import sys
    from itertools import chain
    from pathlib import Path

    from ext_recorder.batch.reports import write
    from ext_recorder.batch.selection import file_of
    from ext_recorder.cassette.paths import expect_folder
    from ext_recorder.errors import UsageError
    from ext_recorder.tools.view.page import SIGNATURE, page

    with file_of(value_of(values, "CASSETTE"), http=None) as (path, _):
        # `..` and `.` have no name of their own.
        page_name = f"{path.resolve().name}.html" if path.is_dir() else path.with_suffix(".html").name
        output = value_of(values, "output") or page_name
        if output != "-":
            expect_folder("-o", output)
        pieces = page(path)
        first = next(pieces)  # the cassette has been read, or an error was raised
        if output == "-":
            sys.stdout.buffer.writelines(chain([first], pieces))
            return 0
        target = Path(output)
        if target.is_file() and not values["force"] and SIGNATURE not in target.read_bytes():
            raise UsageError(f"{target} exists and is not a page of ext-recorder; use another -o FILE, or --force")
        write(str(target), chain([first], pieces))
    sys.stdout.write(f"{target}\n")
    return 0


VIEW_COMMAND = Command(
    "view",
    "Write a cassette, or the recording of a run, as one HTML page.",
    """
The page shows the request and response of each call side by side, a time axis with overlapping calls, JSON inside texts
in structured form, images, filters, figures for each method, and the HTTP traffic of `record --http` below its calls.
It needs neither a server nor the network. Its address contains the filters and the selected call.

The page of a recording (`ext-recorder run`) has a lane for the host, each agent, model, MCP server, extension and
cluster, and one for services, on one time axis: phases and steps of tasks with their verdicts, prompts, tool calls, and
conversations with models, whose streams are assembled.

    ext-recorder view session.yaml
    ext-recorder view -o /tmp/session.html session.yaml
    ext-recorder view recordings/create-pod

Without -o the page is written to the current folder. Press ? in the page to list the keys. Above 200,000 rows, or 64 MB
of messages, the page states what it omits.
""",
    _view,
    arguments=("CASSETTE",),
    options=(
        to_file("HTML file, or - for standard output. Default: NAME.html for NAME.yaml or the folder NAME."),
        FORCE,
    ),
)


# --- stats ------------------------------------------------------------------------------------------------------------


def _stats(values: Values) -> int:
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
STATS_COMMAND = Command(
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
    _stats,
    arguments=("CASSETTE",),
    repeats=True,
    optional=True,
    options=(SUBJECTS, lines_of_json("row"), *SEVERAL),
)


COMMANDS = (DIFF_COMMAND, LINT_COMMAND, SHOW_COMMAND, VIEW_COMMAND, STATS_COMMAND)
