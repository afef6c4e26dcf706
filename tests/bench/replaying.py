"""`ext-recorder replay` of a short and of a long cassette."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.bench.load_driver import WINDOW, drive
from tests.bench.process_times import memory_at_line, seconds_to_exit, seconds_to_line
from tests.bench.start_up import AFTER_JSON
from tests.bench.traffic import INITIALIZE, LATER_IDS, LIVE_WORKDIR, answer, request, write_cassette, write_requests

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.bench.harness import Bench, Series


def measure_first(bench: Bench) -> Series:
    """Milliseconds from the start to the first answer: "strict few ms", "any many ms", …; "import json ms"."""
    asked, expected = (say(0, LATER_IDS, LIVE_WORKDIR) + b"\n" for say in (request, answer))
    cassettes = _cassettes(bench)

    def answered(order: str, size: str) -> Mapping[str, float]:
        return {"ms": seconds_to_line(bench, _replay(bench, cassettes[size], order), asked, expected) * 1e3}

    def to_end() -> Mapping[str, float]:
        return {"ms": seconds_to_exit(bench, [bench.programs.python, "-c", "import json"]) * 1e3}

    quick = {
        "strict few": lambda: answered("strict", "few"),
        "strict many": lambda: answered("strict", "many"),
        "import json": to_end,
    }
    slow = {"any few": lambda: answered("any", "few"), "any many": lambda: answered("any", "many")}
    return {**bench.take_turns(quick, times=bench.scale.starts), **bench.take_turns(slow)}


def measure_whole(bench: Bench) -> Series:
    """Interactions a second and peak memory: "CANDIDATE trips/s", one at a time, "… pipelined/s", and "… MB".

    The candidates: "strict few", "strict many", "any many"; "echo", a Python that gives back what it gets; of "import
    json", a Python that has done no more than that, the memory alone.
    """
    cassettes = _cassettes(bench)
    sessions = {size: _session(bench, count) for size, count in _sizes(bench).items()}

    def driven(command: Sequence[str], requests: Path, answers: Path, count: int) -> Mapping[str, float]:
        one = drive(bench, command, requests, answers, cores=bench.one_core)
        more = drive(bench, command, requests, answers, window=WINDOW, cores=bench.two_cores)
        return {
            "trips/s": count / one.seconds,
            "pipelined/s": count / more.seconds,
            "MB": max(one.peak_kib, more.peak_kib) * 1024 / 1e6,
        }

    def replayed(order: str, size: str) -> Mapping[str, float]:
        return driven(_replay(bench, cassettes[size], order), *sessions[size], _sizes(bench)[size])

    def echoed() -> Mapping[str, float]:
        requests, _ = sessions["many"]
        return driven(bench.programs.echo_in_python, requests, requests, bench.scale.many)

    def python() -> Mapping[str, float]:
        kib = memory_at_line(bench, [bench.programs.python, "-c", AFTER_JSON], INITIALIZE)
        return {"MB": kib * 1024 / 1e6}

    return bench.take_turns(
        {
            "strict few": lambda: replayed("strict", "few"),
            "strict many": lambda: replayed("strict", "many"),
            "any many": lambda: replayed("any", "many"),
            "echo": echoed,
            "import json": python,
        },
        warm_up=False,
    )


def _sizes(bench: Bench) -> dict[str, int]:
    return {"few": bench.scale.few, "many": bench.scale.many}


def _cassettes(bench: Bench) -> dict[str, Path]:
    paths = {size: bench.directory / f"{size}.yaml" for size in _sizes(bench)}
    for size, path in paths.items():
        if not path.exists():
            write_cassette(path, _sizes(bench)[size])
    return paths


def _session(bench: Bench, count: int) -> tuple[Path, Path]:
    """What a host says, with ids and a folder of its own, and what it must hear."""
    return (
        write_requests(bench.directory / f"asked-{count}.jsonl", count, LATER_IDS),
        write_requests(bench.directory / f"answered-{count}.jsonl", count, LATER_IDS, answer),
    )


def _replay(bench: Bench, cassette: Path, order: str) -> list[str]:
    return [bench.programs.recorder, "replay", "--speed", "max", "--order", order, str(cassette)]
