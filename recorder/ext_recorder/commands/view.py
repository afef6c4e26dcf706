"""`ext-recorder view`: a cassette as a page for a browser."""

from __future__ import annotations

from ext_recorder.options import Command

from .shared import FORCE, one, to_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.options import Values


def run(values: Values) -> int:
    """Write the page; returns the exit code."""
    import sys
    from itertools import chain
    from pathlib import Path

    from ext_recorder.errors import UsageError
    from ext_recorder.many.names import file_of
    from ext_recorder.reports.cases import write
    from ext_recorder.view.page import SIGNATURE, page

    with file_of(one(values, "CASSETTE"), http=None) as (path, _):
        output = one(values, "output") or path.with_suffix(".html").name
        pieces = page(path)
        first = next(pieces)  # the cassette has been read, or an error was raised
        if output == "-":
            sys.stdout.buffer.writelines(chain([first], pieces))
            return 0
        target = Path(output)
        if target.is_file() and not values["force"] and SIGNATURE not in target.read_bytes():
            raise UsageError(f"{target} exists and is not such a page; name another file with -o, or add --force")
        write(str(target), chain([first], pieces))
    sys.stdout.write(f"{target}\n")
    return 0


COMMAND = Command(
    "view",
    "Write one HTML page of a cassette, for a browser.",
    """
The page has request and response of each call side by side, a time axis with the calls that overlap, JSON in texts
unfolded, images drawn, filters, figures for each method, and the HTTP traffic of `record --http` below its calls.
It needs no server and no network, and its address names the filters and the call that are shown.

    ext-recorder view session.yaml
    ext-recorder view -o /tmp/session.html session.yaml

Without -o it is written to the current folder. In the page ? lists the keys. Above 200,000 rows, or 64 MB of messages,
the page says what it leaves out.
""",
    run,
    arguments=("CASSETTE",),
    options=(
        to_file("the page; - for standard output; by default NAME.html for NAME.yaml"),
        FORCE,
    ),
)
