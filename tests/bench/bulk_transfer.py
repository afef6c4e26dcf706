"""What is big, or much at once: a message of many megabytes, and all requests before the first answer is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.bench.building import SOURCES
from tests.bench.harness import Bench, BenchError
from tests.bench.load_driver import told
from tests.bench.traffic import LATER_IDS, LIVE_WORKDIR, request, write_cassette, write_requests

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.bench.harness import Series

MEGABYTE = 1_000_000
WHOLE_PIPE = 65_536  # bytes
SLOWLY = 0.0005  # seconds after each piece: 100,000 messages are read in some 0.3 s, and could be in a tenth of it


@dataclass(frozen=True, slots=True)
class Transfer:
    """What `programs/bulk_host.py` has measured: seconds to the last byte, and the child's peak memory in MB."""

    seconds: float
    megabytes: float


def measure_large(bench: Bench) -> Series:
    """Milliseconds for a message and its echo: "ext-recorder ms", "copier ms", "C copier ms", "direct ms"."""
    requests = bench.directory / "large.jsonl"
    small = request(0, 1, LIVE_WORKDIR)
    text = b'"text":"' + b"large " * (bench.scale.large_mb * MEGABYTE // 6)
    requests.write_bytes(small + b"\n" + small.replace(b'"id":1', b'"id":2').replace(b'"text":"', text) + b"\n")
    cassette = bench.directory / "large.yaml"

    def through(stand_in: Sequence[str]) -> Mapping[str, float]:
        transferred = transfer(bench, requests, ["--same", *stand_in, *_batch_child(bench, 2)])
        return {"ms": transferred.seconds * 1e3}

    def recorded() -> Mapping[str, float]:
        cassette.unlink(missing_ok=True)
        found = through([bench.programs.recorder, "record", str(cassette), "--"])
        if cassette.stat().st_size < 2 * requests.stat().st_size:
            raise BenchError("the cassette does not hold the large message twice")
        return found

    candidates = {
        "ext-recorder": recorded,
        "copier": lambda: through(bench.programs.copy),
        "direct": lambda: through(()),
    }
    if copy_in_c := bench.programs.copy_in_c:
        candidates["C copier"] = lambda: through(copy_in_c)
    return bench.take_turns(candidates, times=3)


def measure_in_flight(bench: Bench) -> Series:
    """MB at the peak, none answered before all are sent, and read slowly: "record MB", "replay MB", "copier MB"."""
    count = bench.scale.many
    requests = write_requests(bench.directory / "in-flight.jsonl", count)
    asked = write_requests(bench.directory / "asked-in-flight.jsonl", count, LATER_IDS)
    played = bench.directory / "many.yaml"
    if not played.exists():
        write_cassette(played, count)
    cassette = bench.directory / "in-flight.yaml"
    child = _batch_child(bench, count)

    def slowly(requests: Path, command: Sequence[str]) -> Mapping[str, float]:
        return {"MB": transfer(bench, requests, command, pause=SLOWLY).megabytes}

    def recorded() -> Mapping[str, float]:
        cassette.unlink(missing_ok=True)
        found = slowly(requests, ["--same", bench.programs.recorder, "record", str(cassette), "--", *child])
        if cassette.read_bytes().count(b'{"jsonrpc":"2.0","id":') != 2 * count:
            raise BenchError(f"the cassette does not hold {2 * count} messages")
        return found

    return bench.take_turns(
        {
            "record": recorded,
            "replay": lambda: slowly(asked, [bench.programs.recorder, "replay", "--speed", "max", str(played)]),
            "copier": lambda: slowly(requests, ["--same", *bench.programs.copy, *child]),
        },
        warm_up=False,
    )


def transfer(bench: Bench, requests: Path, command: Sequence[str], pause: float = 0.0) -> Transfer:
    """Send a file of lines to a command at once.

    Args:
        bench: where.
        requests: a file of lines; the first is answered before the others are sent.
        command: what it goes to; `--same` before it says that the same lines must come back.
        pause: seconds after each piece that is read.

    Raises:
        BenchError: other answers, or an exit code other than 0.
    """
    words = [bench.programs.python, str(SOURCES / "bulk_host.py"), str(requests), str(WHOLE_PIPE), str(pause), *command]
    measured, _ = told(bench, words, command, bench.two_cores)
    if measured["exit"]:
        raise BenchError(f"{' '.join(command)}: exit code {measured['exit']}, expected 0")
    return Transfer(measured["seconds"], measured["peak_kib"] * 1024 / MEGABYTE)


def _batch_child(bench: Bench, count: int) -> list[str]:
    return [bench.programs.python, str(SOURCES / "batch_child.py"), str(count)]
