"""`make bench`: how fast and how small, each figure measured side by side with something that everybody knows.

`python -m tests.bench` measures everything, in some ten minutes; `--quick` sooner, with smaller sizes; `--only record`
what begins with that name.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench import report
from tests.bench.building import build, find_compiler
from tests.bench.evaluation import Judged, judge
from tests.bench.figures import FIGURES
from tests.bench.harness import Bench, BenchError, NotHere, compile_everything
from tests.bench.scale import FULL, QUICK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.bench.figures import Figure, Measure
    from tests.bench.harness import Series

ERASE_LINE = "\r\x1b[K"
EXIT_INTERRUPTED = 130  # as shells say it: 128 + SIGINT


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write. Returns the exit code: 1 where a candidate did not do what was to be measured."""
    parser = _parser()
    options = parser.parse_args(arguments)
    figures = chosen(options.only)
    if not figures:
        parser.error(f"--only {' '.join(options.only)}: no such figure; there are {', '.join(f.name for f in FIGURES)}")
    scale = QUICK if options.quick else FULL
    if options.rounds:
        scale = replace(scale, rounds=options.rounds)
    compile_everything()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        try:
            programs = replace(build(Path(name), find_compiler()), with_peers=options.peers)
            with Bench(scale, programs, Path(name), _progress()) as bench:
                found = measured(bench, figures)
                sys.stdout.write(
                    f"{report.table(found, bench)}\n\n{report.conditions(bench)}\n{report.summary(found)}\n"
                )
                options.json.write_text(json.dumps(report.as_json(found, bench), indent=2, ensure_ascii=False) + "\n")
        except (BenchError, OSError) as error:
            sys.stderr.write(f"{ERASE_LINE if sys.stderr.isatty() else ''}bench: {error}\n")
            return 1
        except KeyboardInterrupt:
            return EXIT_INTERRUPTED
    return 0


def chosen(names: Sequence[str]) -> list[Figure]:
    """The figures whose names begin so; all of them where nothing is named."""
    return [figure for figure in FIGURES if not names or figure.name.startswith(tuple(names))]


def measured(bench: Bench, figures: Sequence[Figure]) -> list[Judged]:
    """Measure what these figures need, each thing once. Raises BenchError."""
    series: dict[Measure, Series | NotHere] = {}
    for figure in figures:
        if figure.measure not in series:
            try:
                series[figure.measure] = figure.measure(bench)
            except NotHere as reason:
                series[figure.measure] = reason
    bench.tell("")
    return [judge(figure, series[figure.measure]) for figure in figures]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", metavar="NAME", nargs="+", default=[], help="figures whose names begin so")
    parser.add_argument("--rounds", metavar="N", type=_positive, help="turns of each candidate")
    parser.add_argument("--json", metavar="FILE", type=Path, default=Path("bench.json"), help="default: %(default)s")
    parser.add_argument("--peers", action="store_true", help="other recorders, too, which are installed at first")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, fewer rounds")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _progress() -> Callable[[str], None]:
    """Says what is going on, in one line that is written over, where somebody looks on."""
    if not sys.stderr.isatty():
        return lambda _: None

    def tell(text: str) -> None:
        sys.stderr.write(ERASE_LINE + text)
        sys.stderr.flush()

    return tell


if __name__ == "__main__":
    raise SystemExit(main())
