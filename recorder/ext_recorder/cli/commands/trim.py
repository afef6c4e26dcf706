"""`ext-recorder trim`: a part of a session."""

from __future__ import annotations

from ext_recorder.cli import Command, Option
from ext_recorder.cli.options import FORCE, number, output, to_file, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cli import Values


def run(values: Values) -> int:
    """Run the command. Return its exit code."""
    import sys
    from pathlib import Path

    from ext_recorder.batch.selection import file_of
    from ext_recorder.errors import UsageError
    from ext_recorder.tools.trim import Part, parse_calls, trim

    part = Part(
        after=_moment(values, "after", 0.0),
        before=_moment(values, "before", float("inf")),
        calls=parse_calls(value_of(values, "calls")),
        only=values["only"],
        without=values["without"],
    )
    if part.before <= part.after:
        raise UsageError(f"--after {part.after:g} --before {part.before:g}: expected --after to be less than --before")
    target = output(values)
    with file_of(value_of(values, "CASSETTE")) as (path, _):
        kept, count = trim(path, Path(target), part, replace=bool(values["force"]))
    sys.stdout.write(f"{target}: {kept} of {count} messages kept\n")
    return 0


def _moment(values: Values, name: str, default: float) -> float:
    text = value_of(values, name)
    return number(name, text, "seconds of the session, as 2.5") if text else default


AFTER = Option("after", "Remove calls that the host made before this time of the session.", "SECONDS")
BEFORE = Option("before", "Remove calls that the host made at or after this time of the session.", "SECONDS")
CALLS = Option("calls", "Keep these requests of the host, counted from 1: 3-7,9.", "NUMBERS")
ONLY = Option("only", "Keep only this method, or one subject of it: 'execute run'. Repeatable.", "METHOD", many=True)
WITHOUT = Option("without", "Remove messages of this method, or of one subject of it. Repeatable.", "METHOD", many=True)
COMMAND = Command(
    "trim",
    "Extract part of a session into a cassette that can be replayed.",
    """
A call that is removed takes with it its response, all that the child sent during the call, and the responses to that.
Requests of the child during a call that stays are kept unless --without names them. The handshake (everything before
the second request of the host) and the end of the session are always kept.

    ext-recorder trim --before 30 -o short.yaml session.yaml
    ext-recorder trim --calls 3-7,9 -o part.yaml session.yaml
    ext-recorder trim --only tools/call -o calls.yaml session.yaml
    ext-recorder trim --without log --without textDocument/publishDiagnostics -o quiet.yaml session.yaml
""",
    run,
    arguments=("CASSETTE",),
    options=(AFTER, BEFORE, CALLS, ONLY, WITHOUT, to_file("New cassette."), FORCE),
)
