"""A whole cassette read into memory, by our reader and by a YAML library in C."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from tests.bench.harness import BenchError, pinned
from tests.bench.traffic import write_cassette

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.bench.harness import Bench, Series

PATIENCE_SECONDS = 600
OURS = """
import sys
from time import perf_counter
from ext_recorder.cassette.reader import Reader
begin = perf_counter()
with Reader(sys.argv[1]) as reader:
    events = list(reader)
print(len(events), perf_counter() - begin)
"""
YAML = """
import sys
from time import perf_counter
import yaml
begin = perf_counter()
with open(sys.argv[1], "rb") as file:
    events = yaml.load(file, yaml.CSafeLoader)["events"]
print(len(events), perf_counter() - begin)
"""


def measure(bench: Bench) -> Series:
    """Seconds: "reader s", and "CSafeLoader s", which has one turn only, because it takes a minute."""
    cassette = str(write_cassette(bench.directory / "parsed.yaml", bench.scale.parsed))

    def parsed(code: str) -> Mapping[str, float]:
        with pinned(bench.one_core):
            process = subprocess.Popen(
                [bench.programs.python, "-c", code, cassette], stdout=subprocess.PIPE, env=bench.environment
            )
        try:
            said, _ = process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            process.kill()
        events, _, seconds = said.decode().partition(" ")
        if events != str(2 * bench.scale.parsed + 3):
            raise BenchError(f"a parser found {events or 'no'} events, expected {2 * bench.scale.parsed + 3}")
        return {"s": float(seconds)}

    ours = bench.take_turns({"reader": lambda: parsed(OURS)})
    bench.tell("CSafeLoader, once")
    with pinned(bench.own_core):
        yaml = parsed(YAML)["s"]
    return {**ours, "CSafeLoader s": [yaml] * bench.scale.rounds}
