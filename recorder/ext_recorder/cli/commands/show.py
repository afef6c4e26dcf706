"""`ext-recorder show`: a cassette in human-readable form."""

from __future__ import annotations

from ext_recorder.cli import Command, Option
from ext_recorder.cli.options import lines_of_json, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cli import Values


def run(values: Values) -> int:
    """Run the command. Return its exit code."""
    from ext_recorder.batch.selection import file_of
    from ext_recorder.tools.show import show

    with file_of(value_of(values, "CASSETTE")) as (path, name):
        show(str(path), name=name, raw=bool(values["raw"]), as_json=bool(values["json"]))
    return 0


RAW = Option("raw", "Print messages in full.")
COMMAND = Command(
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
    run,
    arguments=("CASSETTE",),
    options=(RAW, lines_of_json("event")),
)
