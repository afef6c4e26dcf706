"""`make demo` runs the main commands of the recorder, and fails if a step does not do what it announces."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.docs.pages import ROOT

if TYPE_CHECKING:
    from pathlib import Path

LIMIT_SECONDS = 120


def demo(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "docs.demo"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_SECONDS,
    )


def copied(folder: Path) -> Path:
    for name in ("cassettes", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_the_demo_records_replays_verifies_a_changed_extension_and_makes_a_page(tmp_path: Path) -> None:
    done = demo(copied(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    shown = re.findall(r"^\$ ext-recorder (\w+)", done.stdout, re.MULTILINE)
    assert {"run", "record", "replay", "show", "view", "verify"} <= set(shown)
    assert "bytes, the same, " in done.stdout
    assert done.stdout.count("task     passed  book-a-trip") == 2
    assert "; not paid: 2 model calls with 480 + 50 tokens" in done.stderr
    assert 'expected  "Hello, Ada!"\n          found     "Hi, Ada!"' in done.stdout
    assert "CrashLoopBackOff" in done.stdout
    assert "  remove: remove is not served, because it may destroy something; start the server with" in done.stdout
    for served in ("gassist/greeter", "pi/served", "kaiak/served"):
        assert f"ok      cassettes/{served}.yaml" in done.stdout
    assert "arguments differ from the closest one" in done.stderr
    assert (tmp_path / "build" / "demo" / "eval.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "build" / "demo" / "task.html").read_text().startswith("<!doctype html>")
    assert len(done.stdout.splitlines()) < 100, "a demo is read to its end"


def test_an_act_that_comes_out_otherwise_ends_the_demo(tmp_path: Path) -> None:
    greeter = copied(tmp_path) / "docs" / "examples" / "greeter.py"
    greeter.write_text(greeter.read_text().replace("Hello, ", "Hi, "))  # like the extension that the demo changes
    done = demo(tmp_path)
    assert done.returncode == 1
    assert "This step failed: Send the recorded requests to the real extension, and" in done.stderr
