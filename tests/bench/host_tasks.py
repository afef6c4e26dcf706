"""Tasks of ext-host: what a task costs beyond its agent."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.bench.harness import Bench, Series

WORKERS = 8
TASK = """\
kind: Task
apiVersion: mcpchecker/v1alpha2
metadata: {name: NAME, parallel: true}
spec:
  requires: [{extension: shell}]
  prompt: {inline: Say done.}
  verify: [{shell.assert-agent: {output: {contains: done}}}]
"""


def measure(bench: Bench) -> Series:
    """Milliseconds of a task with a trivial agent, of many that run at the same time: "tasks ms"; "agents ms"."""
    folder = bench.directory / "tasks"
    folder.mkdir()
    names = [f"task-{number}" for number in range(bench.scale.applied)]
    for name in names:
        (folder / f"{name}.yaml").write_text(TASK.replace("NAME", name))
    host = [bench.programs.python, "-m", "ext_host", "run", *(f"{name}.yaml" for name in names)]
    host += ["-p", str(WORKERS), "--agent", "echo done", f"--extension=shell={bench.programs.shell}", "--quiet"]
    count = len(names)
    agents = f"seq {count} | xargs -P {WORKERS} -I% sh -c 'echo done'"

    def milliseconds(command: list[str]) -> Mapping[str, float]:
        begin = time.monotonic()
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        return {"ms": (time.monotonic() - begin) * 1000 / count}

    return bench.take_turns({"tasks": lambda: milliseconds(host), "agents": lambda: milliseconds(["sh", "-c", agents])})
