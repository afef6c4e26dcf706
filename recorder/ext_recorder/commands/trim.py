"""`ext-recorder trim`: a part of a session."""

from __future__ import annotations

from ext_recorder.options import Command, Option

from .shared import FORCE, number, one, output, to_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.options import Values


def run(values: Values) -> int:
    """Do what the command line says; returns the exit code."""
    import sys
    from pathlib import Path

    from ext_recorder.errors import UsageError
    from ext_recorder.many.names import file_of
    from ext_recorder.trim import Part, parse_calls, trim

    part = Part(
        after=_moment(values, "after", 0.0),
        before=_moment(values, "before", float("inf")),
        calls=parse_calls(one(values, "calls")),
        only=values["only"],
        without=values["without"],
    )
    if part.before <= part.after:
        raise UsageError(
            f"--after {part.after:g} --before {part.before:g}: nothing is after the one and before the other"
        )
    target = output(values)
    with file_of(one(values, "CASSETTE")) as (path, _):
        kept, count = trim(path, Path(target), part, replace=bool(values["force"]))
    sys.stdout.write(f"{target}: {kept} of {count} messages kept\n")
    return 0


def _moment(values: Values, name: str, default: float) -> float:
    text = one(values, name)
    return number(name, text, "seconds of the session, as 2.5") if text else default


AFTER = Option("after", "cut away what the host asked before this time of the session", "SECONDS")
BEFORE = Option("before", "cut away what it asked from this time on", "SECONDS")
CALLS = Option("calls", "keep these requests of the host, counted from 1: 3-7,9", "NUMBERS")
ONLY = Option("only", "keep this method, or what it is about, only: 'execute run'; repeatable", "METHOD", many=True)
WITHOUT = Option("without", "cut away messages of this method, or about this; repeatable", "METHOD", many=True)
COMMAND = Command(
    "trim",
    "Make a cassette of a part of a session, which still plays.",
    """
A call that is cut away goes with its answer, with what the child told and asked meanwhile, and with the answers to
that. Requests of the child in a call that stays are kept unless --without names them. The handshake (all before the
host's second request) and the end of the session always stay.

    ext-recorder trim --before 30 -o short.yaml session.yaml
    ext-recorder trim --calls 3-7,9 -o part.yaml session.yaml
    ext-recorder trim --only tools/call -o calls.yaml session.yaml
    ext-recorder trim --without log --without textDocument/publishDiagnostics -o quiet.yaml session.yaml
""",
    run,
    arguments=("CASSETTE",),
    options=(AFTER, BEFORE, CALLS, ONLY, WITHOUT, to_file("the new cassette"), FORCE),
)
