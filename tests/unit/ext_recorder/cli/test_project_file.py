"""Search for the project file, and commands that use it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ext_recorder.cli.project_file import folders, searched
from ext_recorder.cli.settings import toml
from ext_recorder.errors import UsageError
from tests.support.host import PATIENCE_S
from tests.support.project_files import call, values, write
from tests.support.recorder_process import ECHO, run

if TYPE_CHECKING:
    from pathlib import Path


def test_the_nearest_file_counts_and_a_pyproject_without_the_table_does_not(project: Path) -> None:
    write(project, '[tool.ext-recorder]\norder = "any"')
    write(project / "cassettes", "[tool.other]\nx = 1")
    cassette = str(project / "cassettes" / "a.yaml")
    assert values("replay", cassette)["order"] == ("any",)
    write(project, 'order = "strict"', "ext-recorder.toml")  # of the two in one folder, this one
    assert values("replay", cassette)["order"] == ("strict",)
    (project / "ext-recorder.toml").unlink()
    write(project / "cassettes", "[tool.ext-recorder]")
    assert values("replay", cassette)["config"] == (f"{project}/cassettes/pyproject.toml",)


def test_the_search_ends_at_the_repository_and_at_home(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(searched(f"{project}/cassettes")) == [f"{project}/cassettes", str(project)]
    inner = project / "cassettes" / "x" / "y"
    monkeypatch.setenv("HOME", f"{project}/cassettes")
    assert list(searched(str(inner)))[-1] == f"{project}/cassettes"
    monkeypatch.setenv("HOME", "/nowhere")
    assert list(searched("/usr/share"))[-1] == "/"


def test_the_working_directory_does_not_matter_when_a_cassette_is_named(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, 'order = "any"', "ext-recorder.toml")
    monkeypatch.chdir("/")
    for word in ("a.yaml", "", "*.yaml", "**/*.yaml", "new/folder/a.yaml"):
        assert folders([f"{project}/cassettes/{word}"]) in (
            [f"{project}/cassettes"],
            [f"{project}/cassettes/new/folder"],
        )
        assert values("verify", f"{project}/cassettes/{word}")["order"] == ("any",)
    assert values("verify", "a.yaml")["order"] == ("strict",)


def test_config_names_a_file_or_none_and_so_does_the_variable(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, 'order = "any"', "ext-recorder.toml")
    other = write(project, "speed = 3", "other.toml")
    cassette = str(project / "a.yaml")
    assert values("replay", cassette, "--config", str(other))["speed"] == ("3",)
    assert values("replay", cassette, "--config=none")["order"] == ("strict",)
    monkeypatch.setenv("EXT_RECORDER_CONFIG", str(other))
    assert values("replay", cassette)["order"] == ("strict",)
    monkeypatch.setenv("EXT_RECORDER_CONFIG", "none")
    assert values("replay", cassette)["order"] == ("strict",)
    with pytest.raises(UsageError, match=r"--config /.*missing\.toml: no such file"):
        values("replay", cassette, "--config", "missing.toml")


def test_cassettes_of_two_projects_are_refused(project: Path) -> None:
    write(project / "cassettes", "", "ext-recorder.toml")
    write(project, "", "ext-recorder.toml")
    with pytest.raises(UsageError, match="the cassettes have different project files"):
        values("verify", str(project / "a.yaml"), str(project / "cassettes"))


def owned(status: os.stat_result, user: int) -> os.stat_result:
    return os.stat_result((*status[:4], user, *status[5:]))


def test_a_file_of_another_user_is_not_read_and_that_is_reported(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    file = write(project, 'order = "any"', "ext-recorder.toml")
    write(project, "[tool.other]")
    cassette = str(project / "cassettes" / "a.yaml")
    real = os.fstat
    monkeypatch.setattr(os, "fstat", lambda fd: owned(real(fd), 4711))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert values("replay", cassette)["order"] == ("strict",)
    expected = f"ext-recorder: {file} belongs to another user and is not read; --config FILE reads it\n"
    assert capfd.readouterr().err == expected
    assert values("replay", cassette, "--config", str(file))["order"] == ("any",)
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert values("replay", cassette)["order"] == ("any",)


def test_root_reads_files_of_the_owner_of_the_working_directory(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, 'order = "any"', "ext-recorder.toml")
    cassette = str(project / "cassettes" / "a.yaml")
    fstat, stat = os.fstat, os.stat
    user = 4711

    def stat_here(path: str) -> os.stat_result:
        return owned(stat(path), user) if path == "." else stat(path)

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "fstat", lambda fd: owned(fstat(fd), 4711))
    monkeypatch.setattr(os, "stat", stat_here)
    assert values("replay", cassette)["order"] == ("any",)
    user = 4712
    assert values("replay", cassette)["order"] == ("strict",)


def test_a_fifo_of_that_name_is_passed_over(project: Path) -> None:
    os.mkfifo(project / "ext-recorder.toml")
    assert values("replay", str(project / "a.yaml"))["order"] == ("strict",)


def test_a_session_is_recorded_played_and_verified_by_the_file_alone(project: Path) -> None:
    command = tomllib_list([*ECHO])
    write(project, f'[tool.ext-recorder]\ncassettes = ["cassettes"]\ncommand = {command}\nignore = ["/params/n"]\n')
    cassette = str(project / "cassettes" / "echo.yaml")
    line = b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"n":1}}\n'
    assert call("record", cassette, stdin=line).returncode == 0
    played = call("replay", cassette, stdin=line.replace(b'"n":1', b'"n":2'))
    assert (played.returncode, played.stdout) == (0, line.decode())
    refused = call("replay", "--config", "none", cassette, stdin=line.replace(b'"n":1', b'"n":2'))
    assert refused.returncode == 3
    verified = call("verify", cwd=project)
    assert (verified.returncode, verified.stdout) == (0, "ok      cassettes/echo.yaml\n")
    assert call("verify", cwd=project / "cassettes").stdout == "ok      echo.yaml\n"
    assert "expected CASSETTE…" in call("lint", "--config", "none", cwd=project).stderr


def tomllib_list(words: list[str]) -> str:
    return toml({"x": words}).removeprefix("x = ").strip()


def test_without_a_file_no_toml_parser_is_imported(project: Path) -> None:
    write(project, "[tool.other]")
    cassette = project / "cassettes" / "echo.yaml"
    run(cassette, ECHO, stdin=b"{}\n")
    program = (
        "import sys\nfrom ext_recorder import __main__ as entry\n"
        "sys.argv, listed = sys.argv[1:], open(sys.argv[1], 'w')\nentry.main()\nprint(*sys.modules, file=listed)"
    )
    listed = project / "modules"
    command = [sys.executable, "-P", "-c", program, str(listed), "replay", str(cassette)]
    subprocess.run(command, input=b"{}\n", capture_output=True, timeout=PATIENCE_S, check=True)
    loaded = listed.read_text().split()
    assert "ext_recorder.cli.project_file" in loaded
    assert not {"tomllib", "ext_recorder.cli.settings", "re"} & set(loaded)
