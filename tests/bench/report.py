"""What was found, as a table for people and as JSON for programs."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.evaluation import Judged, Spread
    from tests.bench.figures import Figure, Limit
    from tests.bench.harness import Bench

_HEADINGS = ("figure", "", "measured (min..max)", "beside", "ratio (min..max)", "asked", "")
_SIGNS = {"less": "<=", "more": ">="}
_DIGITS = 3  # what a measurement has, at most


def table(found: Sequence[Judged], bench: Bench) -> str:
    """One line for each figure."""
    rows = [_HEADINGS, *(_row(each, bench) for each in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def summary(found: Sequence[Judged]) -> str:
    """How many limits are kept."""
    asked = [each for each in found if each.figure.limit]
    missed = [each.figure.name for each in asked if each.verdict == "MISSED"]
    absent = [each.figure.name for each in asked if each.verdict == "not measured"]
    text = f"{len(asked) - len(missed) - len(absent)} of {len(asked)} limits are met"
    text += f"; missed: {', '.join(missed)}" if missed else ""
    text += f"; not measured here: {', '.join(absent)}" if absent else ""
    return "\n".join([text, *dict.fromkeys(each.reason for each in found if each.reason)])


def conditions(bench: Bench) -> str:
    """What the figures depend on."""
    compiler = bench.programs.compiler
    language = f"C ({compiler})" if compiler else "Python, for want of a C compiler"
    cores = len(bench.two_cores)
    where = f"pinned to {cores} core{'s' * (cores > 1)}" if cores else "not pinned: this system does not say how"
    return (
        f"Python {platform.python_version()}; {where}; host and child in {language}; "
        f"{bench.scale.rounds} rounds ({bench.scale.name}); load {os.getloadavg()[0]:.1f}"
    )


def as_json(found: Sequence[Judged], bench: Bench) -> dict[str, object]:
    """All of it."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "compiler": bench.programs.compiler,
        "cores": len(bench.two_cores),
        "load": os.getloadavg()[0],
        "scale": asdict(bench.scale),
        "figures": [_members(each, bench) for each in found],
    }


def _members(judged: Judged, bench: Bench) -> dict[str, object]:
    figure = judged.figure
    return {
        "name": figure.name,
        "what": worded(figure, bench),
        "unit": figure.unit,
        "value": judged.value and asdict(judged.value),
        "beside": judged.beside and asdict(judged.beside) | {"what": figure.beside},
        "ratio": judged.ratio and asdict(judged.ratio),
        "limit": figure.limit and asdict(figure.limit),
        "verdict": judged.verdict,
        "reason": judged.reason,
    }


def _row(judged: Judged, bench: Bench) -> tuple[str, ...]:
    figure = judged.figure
    measured = "-" if judged.value is None else f"{_spread(judged.value)} {figure.unit}"
    beside = "-" if judged.beside is None else f"{_number(judged.beside.median)} {figure.beside.rpartition(' ')[0]}"
    ratio = "-" if judged.ratio is None else _spread(judged.ratio)
    return (figure.name, worded(figure, bench), measured, beside, ratio, _asked(figure.limit), _verdict(judged))


def worded(figure: Figure, bench: Bench) -> str:
    """What a figure is, at this scale."""
    return figure.what.format(**asdict(bench.scale))


def _verdict(judged: Judged) -> str:
    return f"{judged.verdict}: {judged.reason.partition(chr(10))[0]}" if judged.reason else judged.verdict


def _asked(limit: Limit | None) -> str:
    if limit is None:
        return ""
    text = f"{limit.of} {_SIGNS[limit.better]} {_number(limit.number)}"
    return text if limit.goal is None else f"{text} (goal {_number(limit.goal)})"


def _spread(spread: Spread) -> str:
    return f"{_number(spread.median)} ({_number(spread.least)}..{_number(spread.most)})"


def _number(value: float) -> str:
    """Three digits that count, and all those before the point."""
    if value >= 10 ** (_DIGITS - 1):
        return f"{value:,.0f}"
    return f"{value:.{_DIGITS}g}"
