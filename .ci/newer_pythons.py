"""Run the tests again on the newest supported interpreter of this machine, and print what was run.

    python .ci/newer_pythons.py COMMAND [ARGUMENT…]    COMMAND, then the tests on the other interpreter, then a table

COMMAND runs the tests on the interpreter of `.venv`. Supported are the versions of the classifiers in pyproject.toml;
interpreters are searched in PATH and in pyenv's folder. If `.venv` has the newest one, or the only one, the output says
so. The last line is a summary of pytest over both runs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The last line of a run of pytest: "7790 passed, 21 skipped in 452.99s (0:07:32)".
SUMMARY = re.compile(r"^=*\s*((?:\d+ [a-z]+(?:, )?)+) in ([\d.]+)s\b")
COUNTED = ("passed", "failed", "errors", "skipped")
# Tests of what does not depend on the interpreter: documents, the packaging of the sdist, benchmarks.
LEFT_OUT = ("tests/docs", "tests/bench", "tests/packaging", "tests/live")


@dataclass(frozen=True)
class Run:
    """One run of the tests.

    Attributes:
        python: version of the interpreter.
        counts: number of tests by outcome.
        seconds: as pytest gives them.
        code: exit code.
    """

    python: str
    counts: dict[str, int]
    seconds: float
    code: int


def supported() -> list[str]:
    """Return the versions in the classifiers, the newest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    return sorted(found, key=numbers, reverse=True)


def numbers(version: str) -> tuple[int, ...]:
    """Return a version in a form that can be compared."""
    return tuple(map(int, re.findall(r"\d+", version)))


def version_of(python: str) -> str:
    """Return the full version of an interpreter; "" if it does not run."""
    program = "import platform; print(platform.python_version())"
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def interpreter(version: str) -> str:
    """Return the path of an interpreter of this version, such as 3.13; "" if there is none."""
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    installed = sorted(home.glob(f"versions/{version}.*/bin/python"), key=lambda path: numbers(str(path)), reverse=True)
    candidates = [shutil.which(f"python{version}"), *map(str, installed)]
    return next((found for found in candidates if found and version_of(found).startswith(f"{version}.")), "")


def environment(version: str, python: str) -> Path:
    """Return the interpreter of a virtual environment for a version, which is made if it is not there."""
    name = f".venv-{version}"
    subprocess.run(["make", f"VENV={name}", f"PYTHON={python}", f"{name}/installed-in"], cwd=ROOT, check=True)
    return ROOT / name / "bin" / "python"


def watched(command: list[str], python: str) -> Run:
    """Run a command that ends with a summary of pytest, and pass its output on."""
    began = time.monotonic()
    counts: dict[str, int] = {}
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stdout
        for line in process.stdout:
            print(line, end="", flush=True)
            if found := SUMMARY.match(line):
                counts = {name: int(count) for count, name in re.findall(r"(\d+) ([a-z]+)", found[1])}
    counts["errors"] = counts.pop("errors", 0) + counts.pop("error", 0)
    return Run(python, counts, time.monotonic() - began, process.returncode)


def table(runs: list[Run]) -> str:
    """Return what was run, one line for each interpreter."""
    rows: list[tuple[str, ...]] = [("Python", *COUNTED, "seconds")]
    rows += [(run.python, *(str(run.counts.get(name, 0)) for name in COUNTED), f"{run.seconds:.0f}") for run in runs]
    return "\n".join("  ".join(f"{cell:>8}" for cell in row) for row in rows)


def summary(runs: list[Run]) -> str:
    """Return the sum of the runs as pytest's last line would have it."""
    counts = {name: sum(run.counts.get(name, 0) for run in runs) for name in ("failed", "passed", "skipped", "errors")}
    shown = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    return f"{shown or 'no tests ran'} in {sum(run.seconds for run in runs):.2f}s"


def main(command: list[str]) -> int:
    """Run the tests on both interpreters. Return the exit code: that of the first run that failed."""
    own = version_of(str(ROOT / ".venv/bin/python"))
    runs = [watched(command, own)]
    newest = next(((version, found) for version in supported() if (found := interpreter(version))), None)
    note = f"{own} is the newest supported interpreter of this machine: the tests ran on no other one."
    if newest is not None and numbers(newest[0]) > numbers(own)[:2]:
        python = environment(*newest)
        left_out = [f"--ignore={path}" for path in LEFT_OUT]
        runs.append(watched([str(python), "-m", "pytest", "-n", "auto", *left_out], version_of(str(python))))
        note = f"On {runs[-1].python}: without {', '.join(LEFT_OUT)}."
    print(f"\n{table(runs)}\n{note}\n{summary(runs)}", flush=True)
    return next((run.code for run in runs if run.code), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
