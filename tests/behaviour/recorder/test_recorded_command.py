"""verify --recorded-command: each cassette is verified with the command that it was recorded from."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ext_recorder.cassette.header import Header
from ext_recorder.errors import CassetteError
from ext_recorder.verify.session import VerifyOptions
from ext_recorder.verify.verify import recorded_command
from tests.support.project_files import call
from tests.support.recorder_process import run

PYTHON = Path(sys.executable)
LINE = b'{"jsonrpc":"2.0","id":1,"method":"a"}\n'


def found(command: tuple[str, ...], *, bind: dict[str, str] | None = None, connect: str = "") -> tuple[str, ...]:
    header = Header("mcp", "ndjson", command=command, bindings={"home": "/home/user", "data": "/tmp/data"})
    options = VerifyOptions((), bind=bind or {}, connect=connect, recorded_command=True)
    return recorded_command("c.yaml", header, options, {"HOME": "/home/ada"})


def test_paths_of_the_command_are_those_of_this_machine() -> None:
    words = ("server", "--data=/tmp/data/x", "/home/user/notes", "é")
    assert found(words, bind={"data": "/srv/d"}) == ("server", "--data=/srv/d/x", "/home/ada/notes", "é")


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (("server", "/tmp/data"), r"a path of another machine: /tmp/data \(--bind data=…\)"),
        (("server", "--key=[redacted:env.KEY#1]"), "not complete: --key="),
        (("sh", "-c", "a\ufffdb"), "not complete: a"),
        ((), "has no recorded command"),
    ],
)
def test_a_command_that_is_not_complete_is_refused(command: tuple[str, ...], problem: str) -> None:
    with pytest.raises(CassetteError, match=rf"^c\.yaml: .*{problem}"):
        found(command)


def test_a_server_that_was_not_started_by_the_recorder_is_expected_at_its_address() -> None:
    assert found((), connect="tcp:4711") == ()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Cassettes of two servers, and the servers."""
    (tmp_path / "cassettes").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join([str(PYTHON.parent), os.environ["PATH"]]))
    for name in ("one", "two"):
        text = (
            "import json, sys\nfor line in sys.stdin:\n    id = json.loads(line)['id']\n"
            f"    print(json.dumps({{'jsonrpc': '2.0', 'id': id, 'result': '{name}'}}), flush=True)\n"
        )
        (tmp_path / f"{name}.py").write_text(text)
        run(tmp_path / "cassettes" / f"{name}.yaml", [PYTHON.name, f"{name}.py"], stdin=LINE, cwd=tmp_path)
    return tmp_path


def test_each_cassette_is_verified_with_its_own_command(folder: Path) -> None:
    done = call("verify", "--recorded-command", "cassettes", cwd=folder)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "2 cassettes: 2 ok")
    text = (folder / "two.py").read_text()
    (folder / "two.py").write_text(text.replace("'two'", "'other'"))
    done = call("verify", "--recorded-command", "cassettes", cwd=folder)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "2 cassettes: 1 ok, 1 differing")


def test_nothing_is_run_without_consent_and_the_error_shows_what_would_be(folder: Path) -> None:
    done = call("verify", "cassettes", cwd=folder)
    assert done.returncode == 2
    for text in ("expected the command to verify after `--`", "--recorded-command", f"{PYTHON.name} one.py (1), "):
        assert text in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_project_file_gives_the_consent_and_the_command_line_has_the_last_word(folder: Path) -> None:
    (folder / "ext-recorder.toml").write_text(
        'cassettes = ["cassettes"]\nverify.recorded-command = true\ncommand = ["x"]\n'
    )
    assert call("verify", cwd=folder).returncode == 0
    assert call("verify", "--", PYTHON.name, "one.py", cwd=folder).returncode == 1
    done = call("verify", "--recorded-command", "--", PYTHON.name, cwd=folder)
    assert (done.returncode, "expected none after `--`" in done.stderr) == (2, True)
