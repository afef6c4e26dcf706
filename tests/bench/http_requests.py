"""Requests of ext-http, one call each, beside a bare loop of its library; and the memory for a big body, or a bomb."""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.bench.building import SOURCES
from tests.bench.harness import Bench, BenchError, pinned
from tests.bench.load_driver import drive

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.bench.harness import Series

MIB = 1024 * 1024
CAP = 10 * 1024 * 1024  # bytes, of `maxBody`


def measure(bench: Bench) -> Series:
    """Seconds and MiB: "ext-http s", "bare loop s", "big body MiB", "bomb MiB", "small body MiB"."""
    with server(bench) as origin:
        requests = write_requests(bench.directory / "gets.jsonl", {"url": f"{origin}/small"}, bench.scale.gets)

        def extension() -> Mapping[str, float]:
            return {"s": drive(bench, [bench.programs.http], requests, None, cores=bench.one_core).seconds}

        def bare() -> Mapping[str, float]:
            command = [bench.programs.python, str(SOURCES / "bare_http.py"), f"{origin}/small", str(bench.scale.gets)]
            with pinned(bench.one_core):
                done = subprocess.run(command, env=bench.environment, capture_output=True, text=True, check=False)
            if done.returncode:
                raise BenchError(f"{command[1]}: {done.stderr[-500:]}")
            return {"s": float(done.stdout)}

        def body(path: str) -> Mapping[str, float]:
            args = {"url": f"{origin}{path}", "maxBody": CAP}
            once = write_requests(bench.directory / "once.jsonl", args, 1)
            driven = drive(bench, [bench.programs.http], once, None, cores=bench.two_cores)
            return {"MiB": driven.peak_kib / 1024}

        times = bench.take_turns({"ext-http": extension, "bare loop": bare})
        memory = bench.take_turns(
            {
                "big body": lambda: body("/big"),
                "bomb": lambda: body("/bomb"),
                "small body": lambda: body("/small"),
            },
            warm_up=False,
        )
    return {**times, **memory}


def write_requests(path: Path, args: Mapping[str, object], count: int) -> Path:
    """So many calls of `request`, a line each."""
    context = {"workdir": str(path.parent), "phase": "setup"}
    params = {"operation": "request", "args": args, "context": context}
    with path.open("w") as file:
        for number in range(count):
            message = {"jsonrpc": "2.0", "id": number, "method": "execute", "params": params}
            file.write(json.dumps(message, separators=(",", ":")) + "\n")
    return path


@contextmanager
def server(bench: Bench) -> Iterator[str]:
    """The origin of a web server, on a core of its own."""
    command = [bench.programs.python, str(SOURCES / "web.py"), str(bench.scale.body_mib * MIB)]
    with (
        pinned(bench.own_core),
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=bench.environment, text=True
        ) as process,
    ):
        assert process.stdout
        try:
            port = process.stdout.readline().strip()
            if not port:
                raise BenchError(f"{command[1]} ended without a word")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
