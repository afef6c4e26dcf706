"""The part of `.ci/run` that tests a second interpreter: which one, and what it prints."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("newer_pythons", ROOT / ".ci" / "newer_pythons.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # for dataclasses
    spec.loader.exec_module(module)
    return module


def prints(text: str, code: int = 0) -> list[str]:
    return [sys.executable, "-c", f"import sys\nprint({text!r})\nsys.exit({code})"]


def test_the_versions_are_those_of_the_classifiers_newest_first(script: Any) -> None:
    assert script.supported() == ["3.13", "3.12", "3.11"]


def test_an_interpreter_is_found_in_path_or_among_those_of_pyenv(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("3.13.2", "3.13.10", "3.12.1"):
        program = tmp_path / "pyenv" / "versions" / version / "bin" / "python"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho {version}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert script.interpreter("3.13") == str(tmp_path / "pyenv/versions/3.13.10/bin/python")
    assert script.interpreter("3.14") == ""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3.13").write_text("#!/bin/sh\nexit 1\n")  # pyenv's shim of a version that is not chosen
    (tmp_path / "bin" / "python3.13").chmod(0o755)
    assert script.interpreter("3.13") == str(tmp_path / "pyenv/versions/3.13.10/bin/python")


def test_both_runs_are_in_the_table_and_in_the_last_line(
    script: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(script, "version_of", lambda python: "3.13.0" if python == "other" else "3.11.7")
    monkeypatch.setattr(script, "interpreter", lambda version: "/python" if version == "3.13" else "")
    monkeypatch.setattr(script, "environment", lambda version, python: "other")
    watched = script.watched
    lines = {
        "3.11.7": "=== 7 passed, 2 skipped in 1.50s ===",
        "3.13.0": "1 failed, 6 passed, 1 error in 62.00s (0:01:02)",
    }
    monkeypatch.setattr(script, "watched", lambda _, python: watched(prints(lines[python], python == "3.13.0"), python))
    assert script.main([]) == 1
    *_, head, old, new, _, last = capsys.readouterr().out.splitlines()
    assert head.split() == ["Python", "passed", "failed", "errors", "skipped", "seconds"]
    assert old.split()[:5] == ["3.11.7", "7", "0", "0", "2"]
    assert new.split()[:5] == ["3.13.0", "6", "1", "1", "0"]
    assert last.startswith("1 failed, 13 passed, 2 skipped, 1 errors in ")


def test_a_machine_with_one_interpreter_says_so(
    script: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(script, "version_of", lambda _: "3.11.7")
    monkeypatch.setattr(script, "interpreter", lambda version: "/python" if version == "3.11" else "")
    assert script.main(prints("7 passed in 1.50s")) == 0
    *_, note, last = capsys.readouterr().out.splitlines()
    assert note == "3.11.7 is the newest supported interpreter of this machine: the tests ran on no other one."
    assert last.startswith("7 passed in ")
