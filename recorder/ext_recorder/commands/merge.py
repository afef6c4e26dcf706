"""`ext-recorder merge`: several sessions as one."""

from __future__ import annotations

from ext_recorder.options import Command

from .shared import FORCE, output, to_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.options import Values


def run(values: Values) -> int:
    """Do what the command line says; returns the exit code."""
    import sys
    from contextlib import ExitStack
    from pathlib import Path

    from ext_recorder.many.names import file_of
    from ext_recorder.merge import merge

    target = output(values)
    with ExitStack() as stack:
        paths = [stack.enter_context(file_of(word))[0] for word in values["CASSETTE"]]
        events = merge(paths, Path(target), replace=bool(values["force"]))
    sys.stdout.write(f"{target}: {len(paths)} sessions, {events} events\n")
    return 0


COMMAND = Command(
    "merge",
    "Make one session of several, in which can be asked what was asked in any of them.",
    """
The sessions follow each other as if one host had held them with one child. Only the last one ends (end of input, exit,
shutdown), and a handshake that is the first one's again is left out. They have to speak one protocol, and what they
call by one neutral path is one folder in the merged session.

    ext-recorder merge -o all.yaml first.yaml second.yaml

A host that asks for parts of it, in an order of its own, plays it by `replay --order any`.
""",
    run,
    arguments=("CASSETTE",),
    repeats=True,
    options=(to_file("the new cassette"), FORCE),
)
