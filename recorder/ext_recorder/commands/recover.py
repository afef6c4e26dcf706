"""`ext-recorder recover`: a cassette of what a killed recorder left."""

from __future__ import annotations

from ext_recorder.options import Command, Option

from .shared import FORCE, one

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.options import Values


def run(values: Values) -> int:
    """Do what the command line says; returns the exit code."""
    import sys
    from pathlib import Path

    from ext_recorder.cassette.recovery import recover

    output = one(values, "output")
    done = recover(Path(one(values, "PARTIAL")), Path(output) if output else None, replace=bool(values["force"]))
    dropped = f"; the last line was torn: {done.dropped} bytes are gone" if done.dropped else ""
    events = "1 event" if done.events == 1 else f"{done.events} events"
    sys.stdout.write(f"{done.path}: {events} kept{dropped}\n")
    return 0


OUTPUT = Option("output", "the cassette; by default NAME, for NAME.partial", "FILE", short="o")

COMMAND = Command(
    "recover",
    "Make a cassette of what a killed recorder left.",
    """
A cassette is written as NAME.partial, and gets its name when the session ends. Of a session that was broken off,
everything but a torn last line is kept.

    ext-recorder recover session.yaml.partial
    ext-recorder recover session.yaml.partial -o rescued.yaml
""",
    run,
    arguments=("PARTIAL",),
    options=(OUTPUT, FORCE),
)
