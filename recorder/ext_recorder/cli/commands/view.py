"""`ext-recorder view`: a cassette or a recording as a page for a browser."""

from __future__ import annotations

from ext_recorder.cli import Command
from ext_recorder.cli.options import FORCE, to_file, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cli import Values


def run(values: Values) -> int:
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


COMMAND = Command(
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
    run,
    arguments=("CASSETTE",),
    options=(
        to_file("HTML file, or - for standard output. Default: NAME.html for NAME.yaml or the folder NAME."),
        FORCE,
    ),
)
