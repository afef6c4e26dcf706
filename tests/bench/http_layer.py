"""`record --http` and `replay --http` of a child that asks, beside the child alone; and the memory of all of them."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from tests.bench.building import SOURCES
from tests.bench.harness import Bench, BenchError, pinned
from tests.bench.http_requests import CAP, server, write_requests

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.bench.harness import Series

MANY = 5  # times as many requests, to see whether each takes longer then


def measure(bench: Bench) -> Series:
    """Seconds: "alone s", "recorded s", "replayed s", "replayed many s" and "five times s" of that."""
    count = bench.scale.gets
    cassettes = {number: bench.directory / f"asked-{number}.yaml" for number in (count, MANY * count)}

    def asking(origin: str, number: int) -> list[str]:
        return [bench.programs.python, str(SOURCES / "bare_http.py"), f"{origin}/small", str(number)]

    def recorded(origin: str, number: int) -> float:
        command = [bench.programs.recorder, "record", "--http", "--mode", "all", str(cassettes[number]), "--"]
        return _seconds(bench, [*command, *asking(origin, number)])

    with server(bench) as origin:
        for number in cassettes:
            recorded(origin, number)

        def replayed(number: int) -> float:
            command = [bench.programs.recorder, "replay", "--http", str(cassettes[number]), "--"]
            return _seconds(bench, [*command, *asking(origin, number)])

        return bench.take_turns(
            {
                "alone": lambda: {"s": _seconds(bench, asking(origin, count))},
                "recorded": lambda: {"s": recorded(origin, count)},
                "replayed": lambda: {"s": replayed(count)},
                "replayed many": lambda: {"s": replayed(MANY * count)},
                "five times": lambda: {"s": MANY * replayed(count)},
            },
            warm_up=False,
        )


def measure_memory(bench: Bench) -> Series:
    """MiB, of the largest of recorder, service and ext-http: "recorded body MiB", "recorded bomb MiB", "small MiB"."""

    def peak(origin: str, path: str) -> Mapping[str, float]:
        requests = write_requests(bench.directory / "once.jsonl", {"url": f"{origin}{path}", "maxBody": CAP}, 1)
        cassette = bench.directory / "body.yaml"
        command = [
            bench.programs.recorder,
            "record",
            "--http",
            "--mode",
            "all",
            str(cassette),
            "--",
            bench.programs.http,
        ]
        return {"MiB": peak_mib(bench, command, requests)}

    with server(bench) as origin:
        return bench.take_turns(
            {
                "recorded body": lambda: peak(origin, "/big"),
                "recorded bomb": lambda: peak(origin, "/bomb"),
                "small": lambda: peak(origin, "/small"),
            },
            warm_up=False,
        )


def _seconds(bench: Bench, command: Sequence[str]) -> float:
    """What the child says of itself, at its end."""
    with pinned(bench.two_cores):
        done = subprocess.run(
            command, env=bench.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise BenchError(f"{command[0]}: {done.stderr[-500:]}")
    return float(done.stdout)


def peak_mib(bench: Bench, command: Sequence[str], requests: Path | str = os.devnull) -> float:
    """Return the peak memory, in MiB, of the largest process among a command and those that it waits for.

    Args:
        bench: names the interpreter and the cores.
        command: its argv.
        requests: a file for its standard input.

    Raises:
        BenchError: the command failed.
    """
    words = [bench.programs.python, "-I", "-S", str(SOURCES / "peak.py"), *command]
    with pinned(bench.two_cores), open(requests, "rb") as stdin:  # noqa: PTH123 - a name or a path
        done = subprocess.run(words, env=bench.environment, stdin=stdin, capture_output=True, check=False)
    if done.returncode:
        raise BenchError(f"{command[0]}: exit code {done.returncode}, expected 0")
    return int(done.stdout) / 1024
