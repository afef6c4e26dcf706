"""`ext-recorder merge`: several sessions as one."""

from __future__ import annotations

from ext_recorder.cli import Command
from ext_recorder.cli.options import FORCE, output, to_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cli import Values


def run(values: Values) -> int:
    """Run the command. Return its exit code."""
    import sys
    from contextlib import ExitStack
    from pathlib import Path

    from ext_recorder.batch.selection import file_of
    from ext_recorder.tools.merge import merge

    target = output(values)
    with ExitStack() as stack:
        paths = [stack.enter_context(file_of(word))[0] for word in values["CASSETTE"]]
        events = merge(paths, Path(target), replace=bool(values["force"]))
    sys.stdout.write(f"{target}: {len(paths)} sessions, {events} events\n")
    return 0


COMMAND = Command(
    "merge",
    "Merge several sessions into one that can answer any request recorded in them.",
    """
The sessions follow each other as if one host had held them with one child. Only the last session keeps its end (end of
input, exit, shutdown), and a handshake that repeats the first one is left out. All sessions must use the same protocol.
Paths with the same placeholder become the same folder in the merged session.

    ext-recorder merge -o all.yaml first.yaml second.yaml

For a host that sends some of the requests, in its own order, replay the result with `replay --order any`.
""",
    run,
    arguments=("CASSETTE",),
    repeats=True,
    options=(to_file("New cassette."), FORCE),
)
