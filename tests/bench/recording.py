"""`ext-recorder record` as a stand-in, beside stand-ins that only copy bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.bench.harness import BenchError
from tests.bench.load_driver import WINDOW, drive
from tests.bench.traffic import write_requests

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tests.bench.harness import Bench, Series
    from tests.bench.load_driver import Driven

    Measured = Callable[[Driven], Mapping[str, float]]


def measure_sequential(bench: Bench) -> Series:
    """Microseconds of a round trip: "NAME p50", "NAME p99" of "ext-recorder", "copier", "C copier" and "direct".

    All processes share one core, the recorder's writing one as well.
    """
    requests = write_requests(bench.directory / "trips.jsonl", bench.scale.trips)
    return _beside_copiers(
        bench, requests, lambda driven: {"p50": driven.p50 * 1e6, "p99": driven.p99 * 1e6}, 1, bench.one_core
    )


def measure_pipelined(bench: Bench) -> Series:
    """Calls a second, a message and its echo each: "NAME calls/s" until the last answer, "NAME whole" until the exit.

    And "NAME cpu", microseconds of processor time a call, of the stand-in and the child together.
    """
    count = bench.scale.flood
    requests = write_requests(bench.directory / "flood.jsonl", count)

    def measured(driven: Driven) -> Mapping[str, float]:
        return {
            "calls/s": count / driven.seconds,
            "whole": count / driven.to_exit,
            "cpu": driven.cpu / count * 1e6,
        }

    return _beside_copiers(bench, requests, measured, WINDOW, bench.two_cores)


def _beside_copiers(bench: Bench, requests: Path, measured: Measured, window: int, cores: Sequence[int]) -> Series:
    cassette = bench.directory / "recorded.yaml"
    programs = bench.programs

    def through(stand_in: Sequence[str]) -> Mapping[str, float]:
        command = [*stand_in, *programs.echo]
        return measured(drive(bench, command, requests, requests, window=window, cores=cores))

    def recorded() -> Mapping[str, float]:
        cassette.unlink(missing_ok=True)
        found = through([programs.recorder, "record", str(cassette), "--"])
        _check(cassette, requests)
        return found

    candidates: dict[str, Callable[[], Mapping[str, float]]] = {
        "ext-recorder": recorded,
        "copier": lambda: through(programs.copy),
        "direct": lambda: through(()),
    }
    if copy_in_c := programs.copy_in_c:
        candidates["C copier"] = lambda: through(copy_in_c)
    return bench.take_turns(candidates, warm_up=False)


def _check(cassette: Path, requests: Path) -> None:
    """What was fast because it was not recorded does not count."""
    count = requests.read_bytes().count(b"\n")
    found = cassette.read_bytes().count(b'{"jsonrpc":"2.0","id":')
    if found != 2 * count:
        raise BenchError(f"the cassette holds {found} messages, expected {2 * count}")
