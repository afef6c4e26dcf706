"""From the start of an extension to its manifest, beside the start of Python itself, or of another extension."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.bench.spawning import memory_at_line, seconds_to_exit, seconds_to_line
from tests.bench.traffic import HTTP_MANIFEST, INITIALIZE, KUBERNETES_MANIFEST, MANIFEST

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.bench.harness import Bench, Series

# Says as much as a manifest is, and so has to wait with it.
AFTER_JSON = "import json, os; os.read(0, 1); os.write(1, b'.' * 40_000)"


def measure(bench: Bench) -> Series:
    """Milliseconds and MiB: "ext-shell ms", "ext-http ms" and others, "import json ms", "pass ms", "ext-shell MiB"."""
    python = bench.programs.python

    def to_manifest(program: str, begin: bytes) -> Mapping[str, float]:
        return {"ms": seconds_to_line(bench, [program], INITIALIZE, begin) * 1e3}

    def to_end(code: str) -> Mapping[str, float]:
        return {"ms": seconds_to_exit(bench, [python, "-c", code]) * 1e3}

    times = bench.take_turns(
        {
            "ext-shell": lambda: to_manifest(bench.programs.shell, MANIFEST),
            "ext-http": lambda: to_manifest(bench.programs.http, HTTP_MANIFEST),
            "ext-kubernetes": lambda: to_manifest(bench.programs.kubernetes, KUBERNETES_MANIFEST),
            "import json": lambda: to_end("import json"),
            "pass": lambda: to_end("pass"),
        },
        times=bench.scale.starts,
    )
    memory = bench.take_turns(
        {
            "ext-shell": lambda: {"MiB": memory_at_line(bench, [bench.programs.shell], INITIALIZE) / 1024},
            "import json": lambda: {"MiB": memory_at_line(bench, [python, "-c", AFTER_JSON], INITIALIZE) / 1024},
        }
    )
    return {**times, **memory}


def measure_help(bench: Bench) -> Series:
    """Milliseconds to the end of `ext-recorder --help`, "ext-recorder ms"; "import json ms"."""
    json = [bench.programs.python, "-c", "import json"]

    def to_end(command: Sequence[str]) -> Mapping[str, float]:
        return {"ms": seconds_to_exit(bench, command) * 1e3}

    return bench.take_turns(
        {"ext-recorder": lambda: to_end([bench.programs.recorder, "--help"]), "import json": lambda: to_end(json)},
        times=bench.scale.starts,
    )
