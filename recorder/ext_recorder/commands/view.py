"""`ext-recorder view`: a cassette as a page for a browser."""

from __future__ import annotations

from ext_recorder.options import Command

from .shared import FORCE, one, to_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.options import Values


def run(values: Values) -> int:
    """Do what the command line says; returns the exit code."""
    import sys
    from pathlib import Path

    from ext_recorder.errors import UsageError
    from ext_recorder.many.names import file_of
    from ext_recorder.reports.cases import write
    from ext_recorder.view.page import page

    with file_of(one(values, "CASSETTE")) as (path, _):
        text = page(str(path)).encode()
        by_default = path.with_suffix(".html").name
    output = one(values, "output") or by_default
    if output == "-":
        sys.stdout.buffer.write(text)
        return 0
    target = Path(output)
    if target.is_file() and not values["force"] and b'<script id="events"' not in target.read_bytes():
        raise UsageError(f"{target} is there already, and no page of this kind: choose another by -o, or --force")
    write(str(target), text)
    sys.stdout.write(f"{target}\n")
    return 0


COMMAND = Command(
    "view",
    "Make one HTML page of a cassette, to look at in a browser.",
    """
The page has everything in it: swim lanes of host and child, the calls over time, search, messages as indented JSON, how
long each call took, and each request as a command for a shell. It needs no server and no network.

    ext-recorder view session.yaml
    ext-recorder view -o /tmp/session.html session.yaml

Without -o it is written to the current folder. In the page: / searches, j and k go from event to event, Escape closes.
""",
    run,
    arguments=("CASSETTE",),
    options=(
        to_file("the page; - for standard output; by default NAME.html for NAME.yaml"),
        FORCE,
    ),
)
