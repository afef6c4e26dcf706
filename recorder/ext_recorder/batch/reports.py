"""Reports on cassettes with their problems: text, JSON (`--json`) and JUnit XML (`--junit FILE`).

Each cassette is a test case: passed, failed (with its problems), or broken (it could not be checked).
"""

from __future__ import annotations

import sys
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from xml.etree.ElementTree import Element, SubElement, tostring

from ext_recorder.cassette.paths import is_open_file, target_of
from ext_sdk.core.atomic import atomic_write
from ext_sdk.core.text import readable
from ext_sdk.core.wire.json_codec import dumps

from .pool import install_sigterm_handler, map_cassettes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ext_recorder.messages.differences import Problem

    from .selection import Cassette


@dataclass
class Case:
    """Result of the check of one cassette.

    Attributes:
        problems: the problems; empty if it passed.
        more: number of further problems.
        error: why it could not be checked; "" if it was checked.
        skipped: why it was not checked although it has no error; "" if it was checked.
    """

    noun: ClassVar[str] = "difference"  # for one problem
    verdict: ClassVar[str] = "differs"  # for a case with problems

    name: str
    _: KW_ONLY
    seconds: float = 0.0
    problems: Sequence[Problem] = ()
    more: int = 0
    error: str = ""
    notes: Sequence[str] = ()
    skipped: str = ""

    def __post_init__(self) -> None:
        self.problems, self.notes = tuple(self.problems), tuple(self.notes)

    @property
    def ok(self) -> bool:
        """Return True if the cassette passed."""
        return not self.problems and not self.error

    def as_json(self) -> dict[str, object]:
        """Return the case for `--json`."""
        shown: dict[str, object] = {"cassette": self.name, "ok": self.ok, "seconds": round(self.seconds, 6)}
        if self.error:
            shown["error"] = self.error
        if self.problems:
            shown["problems"] = [{"kind": problem.kind, **problem.data} for problem in self.problems]
        if self.more:
            shown["more"] = self.more
        if self.notes:
            shown["notes"] = list(self.notes)
        return shown


def json_line(case: Case) -> str:
    """Return a case as a line of JSON."""
    return readable(dumps(case.as_json())) + "\n"


def junit(suite: str, cases: Sequence[Case]) -> bytes:
    """Return cases as JUnit XML.

    Args:
        suite: name of the suite, such as "ext-recorder verify".
    """
    failures, errors = sum(bool(case.problems) for case in cases), sum(bool(case.error) for case in cases)
    counts = {
        "name": suite,
        "tests": str(len(cases)),
        "failures": str(failures),
        "errors": str(errors),
        "skipped": str(sum(bool(case.skipped) for case in cases)),
        "time": f"{sum(case.seconds for case in cases):.3f}",
    }
    suites = Element("testsuites", counts)
    inner = SubElement(suites, "testsuite", counts)
    for case in cases:
        folder, _, name = case.name.rpartition("/")
        test = SubElement(
            inner,
            "testcase",
            {"classname": readable(folder) or suite, "name": readable(name), "time": f"{case.seconds:.3f}"},
        )
        if case.skipped:
            SubElement(test, "skipped", {"message": readable(case.skipped)})
        if case.error:
            SubElement(test, "error", {"message": readable(case.error)}).text = readable(case.error)
        if case.problems:
            first, count = case.problems[0].text.splitlines()[0], len(case.problems) + case.more
            headline = readable(first if count == 1 else f"{count} {case.noun}s, the first: {first}")
            failure = SubElement(test, "failure", {"message": headline, "type": case.problems[0].kind})
            failure.text = readable("\n\n".join([*(problem.text for problem in case.problems), *_rest(case)]))
        if case.notes:
            SubElement(test, "system-out").text = readable("\n".join(case.notes))
    data: bytes = tostring(suites, encoding="utf-8", xml_declaration=True)
    return data + b"\n"


def write(path: str, data: bytes | Iterable[bytes]) -> None:
    """Write a report; a regular file appears complete, or not at all.

    A device or pipe is written to, a symbolic link followed. Raises OSError.
    """
    pieces = [data] if isinstance(data, bytes) else data
    target = Path(path)
    if target.exists() and (not target.is_file() or is_open_file(path)):
        with target.open("ab") as file:
            file.writelines(pieces)
        return
    target = Path(target_of(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with atomic_write(str(target)) as file:
            file.writelines(pieces)
    except OSError as error:
        error.filename = path  # instead of the temporary file
        raise


def lines(case: Case) -> list[str]:
    """Return the lines of a case for a terminal: the verdict, and the problems below, indented."""
    if case.error:
        first, *rest = case.error.splitlines()
        return [readable(line) for line in (f"error   {first}", *(f"        {line}" for line in rest))]
    notes = [f"        {line}" for note in case.notes for line in note.splitlines()]
    head = f"{'ok' if case.ok else case.verdict:7} {case.name}"
    count = len(case.problems) + case.more
    problems = [line for problem in case.problems for line in problem.text.splitlines()]
    if count:
        head += f": {count} {case.noun}{'s' if count > 1 else ''}"
    return [readable(line) for line in (head, *(f"        {line}" for line in [*problems, *_rest(case)]), *notes)]


def _rest(case: Case) -> list[str]:
    return [f"and {case.more} more"] if case.more else []


EXIT_DIFFERS = 1
EXIT_BROKEN = 2


def report_each(
    name: str,
    cassettes: Sequence[Cassette],
    work: Callable[[Path, str], Case],
    *,
    jobs: int = 0,
    as_json: bool = False,
    junit_file: str = "",
) -> int:
    """Check cassettes and print the results.

    Args:
        cassettes: the cassettes, in the order of the report.
        work: checks one cassette, see `pool.map_cassettes`.
        jobs: number of processes; 0 for one per core.
        as_json: print one line of JSON per cassette.
        junit_file: file for JUnit XML; "" for none.

    Returns:
        The exit code: 0 if all cassettes passed, 1 if one has problems, 2 if one could not be checked.
    """
    install_sigterm_handler()
    cases = []
    for outcome in map_cassettes(cassettes, work, jobs=jobs):
        case = outcome.result or Case(outcome.name, seconds=outcome.seconds, error=outcome.error)
        sys.stdout.write(json_line(case) if as_json else "".join(f"{line}\n" for line in lines(case)))
        sys.stdout.flush()
        if not junit_file:
            case.problems = case.problems[:1]  # they are printed; only the exit code needs one of them
        cases.append(case)
    if junit_file:
        write(junit_file, junit(f"ext-recorder {name}", cases))
    broken, differing = sum(bool(case.error) for case in cases), sum(bool(case.problems) for case in cases)
    if len(cases) != 1 and not as_json:
        counts = {"ok": sum(case.ok for case in cases), "differing": differing, "broken": broken}
        text = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
        sys.stdout.write(f"{len(cases)} cassettes: {text}\n" if cases else "no cassettes in this part\n")
    return EXIT_BROKEN if broken else EXIT_DIFFERS if differing else 0
