"""Work on many cassettes, told as it goes: lines for people or JSON for programs, and JUnit XML at the end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ext_recorder.many.pool import each, leave_cleanly_on_sigterm

from .cases import Case, json_line, junit, lines, write

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ext_recorder.many.names import Cassette

EXIT_DIFFERS = 1
EXIT_BROKEN = 2


def report(
    name: str,
    cassettes: Sequence[Cassette],
    work: Callable[[Path, str], Case],
    *,
    jobs: int = 0,
    as_json: bool = False,
    junit_file: str = "",
) -> int:
    """Do the work for each cassette, and tell what became of it.

    Args:
        name: of the command.
        cassettes: in the order in which they are told.
        work: looks at one, see `many.pool.each`.
        jobs: processes; 0: one for each core.
        as_json: a line of JSON for each instead of lines for people.
        junit_file: where to write JUnit XML; "" for nowhere.

    Returns:
        The exit code: 0 when all is as it should be, 1 when something is not, 2 when a cassette could not be looked at.
    """
    leave_cleanly_on_sigterm()
    cases = []
    for outcome in each(cassettes, work, jobs=jobs):
        case = outcome.result or Case(outcome.name, seconds=outcome.seconds, error=outcome.error)
        sys.stdout.write(json_line(case) if as_json else "".join(f"{line}\n" for line in lines(case)))
        sys.stdout.flush()
        if not junit_file:
            case.problems = case.problems[:1]  # told already; only whether there were any is of interest yet
        cases.append(case)
    if junit_file:
        write(junit_file, junit(f"ext-recorder {name}", cases))
    if len(cases) != 1 and not as_json:
        sys.stdout.write(_summary(cases))
    if any(case.error for case in cases):
        return EXIT_BROKEN
    return EXIT_DIFFERS if any(case.problems for case in cases) else 0


def _summary(cases: Sequence[Case]) -> str:
    counts = {
        "ok": sum(case.ok for case in cases),
        "differing": sum(bool(case.problems) for case in cases),
        "broken": sum(bool(case.error) for case in cases),
    }
    told = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return f"{len(cases)} cassettes: {told}\n" if cases else "no cassettes in this part\n"
