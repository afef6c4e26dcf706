"""`ext-recorder trim`: a part of a session."""

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

    from ext_recorder.errors import UsageError
    from ext_recorder.trim import Part, parse_calls, trim

    part = Part(
        after=_seconds("after", one(values, "after"), 0.0),
        before=_seconds("before", one(values, "before"), float("inf")),
        calls=parse_calls(one(values, "calls")),
        only=values["only"],
        without=values["without"],
    )
    target = one(values, "output")
    if not target:
        raise UsageError("expected the cassette to write: -o FILE")
    kept, count = trim(Path(one(values, "CASSETTE")), Path(target), part, replace=bool(values["force"]))
    sys.stdout.write(f"{target}: {kept} of {count} messages kept\n")
    return 0


def _seconds(name: str, text: str, default: float) -> float:
    try:
        seconds = float(text) if text else default
    except ValueError:
        seconds = -1.0
    if seconds >= 0:
        return seconds
    from ext_recorder.errors import UsageError

    raise UsageError(f"--{name} {text}: expected seconds of the session, as 2.5")


AFTER = Option("after", "cut away what the host asked before this time of the session", "SECONDS")
BEFORE = Option("before", "cut away what it asked from this time on", "SECONDS")
CALLS = Option("calls", "keep these requests of the host, counted from 1: 3-7,9", "NUMBERS")
ONLY = Option("only", "keep this method, or what it is about, only: 'execute run'; repeatable", "METHOD", many=True)
WITHOUT = Option("without", "cut away messages of this method, or about this; repeatable", "METHOD", many=True)
OUTPUT = Option("output", "the new cassette", "FILE", short="o")
COMMAND = Command(
    "trim",
    "Make a cassette of a part of a session, which still plays.",
    """
A call that is cut away goes with its answer, with what the child told and asked meanwhile, and with the answers to
that. The handshake (all before the host's second request) and the end of the session always stay.

    ext-recorder trim --before 30 -o short.yaml session.yaml
    ext-recorder trim --calls 3-7,9 -o part.yaml session.yaml
    ext-recorder trim --only tools/call -o calls.yaml session.yaml
    ext-recorder trim --without log --without textDocument/publishDiagnostics -o quiet.yaml session.yaml
""",
    run,
    arguments=("CASSETTE",),
    options=(AFTER, BEFORE, CALLS, ONLY, WITHOUT, OUTPUT, FORCE),
)
