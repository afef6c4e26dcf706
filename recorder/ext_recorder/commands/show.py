"""`ext-recorder show`: a cassette for people."""

from __future__ import annotations

from ext_recorder.options import Command, Option

from .shared import lines_of_json, one

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.options import Values


def run(values: Values) -> int:
    """Do what the command line says; returns the exit code."""
    from ext_recorder.many.names import file_of
    from ext_recorder.show import show

    with file_of(one(values, "CASSETTE")) as (path, name):
        show(str(path), name=name, raw=bool(values["raw"]), as_json=bool(values["json"]))
    return 0


RAW = Option("raw", "messages in full")
COMMAND = Command(
    "show",
    "Show a cassette to people.",
    """
One line for each thing that happened: when, which way, what, and how long the answer took.

    ext-recorder show session.yaml
    ext-recorder show --json session.yaml
    ext-recorder show zip://session.yaml::sessions.zip
""",
    run,
    arguments=("CASSETTE",),
    options=(RAW, lines_of_json("event")),
)
