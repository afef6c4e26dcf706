"""`run`: which options apply to HTTP traffic, and which to the messages of children."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.recorder_tools import call

if TYPE_CHECKING:
    import pytest

    from ext_recorder.run.session import RunOptions


def test_options_for_children_and_for_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[str, tuple[str, ...], RunOptions]] = []
    monkeypatch.setattr("ext_recorder.run.session.run", lambda *arguments: given.append(arguments))
    options = [
        "--wrap=a.json",
        "--wrap",
        "b.json",
        "--real=x",
        "--match-on=method",
        "--match-on=path",
        "--ignore=/params/n",
    ]
    call("run", *options, "--bind", f"d={tmp_path}", str(tmp_path / "rec"), "--", "host", "-x", "a.json")
    ((folder, command, chosen),) = given
    assert (folder, command, chosen.mode) == (str(tmp_path / "rec"), ("host", "-x", "a.json"), "once")
    assert chosen.matching is not None
    children = chosen.children
    assert (children.wrap, children.real, children.only) == (("a.json", "b.json"), ("x",), ())
    assert children.values["match-on"] == ("method",)
    assert children.values["ignore"] == ("/params/n",)
    assert children.values["order"] == ("any",)
    assert children.values["bind"] == (f"run-cwd?={Path.cwd()}", f"d={tmp_path}")


def test_a_command_is_required() -> None:
    done = call("run", "rec")
    assert done.returncode == 2
    assert "expected the command to run after `--`: ext-recorder run FOLDER -- COMMAND…" in done.stderr
    assert call("run", "--mode", "sometimes", "rec", "--", "x").returncode == 2
