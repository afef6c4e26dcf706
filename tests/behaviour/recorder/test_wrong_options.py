"""Options and files that are wrong: reported before anything runs, with what to do."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.reader import Reader
from ext_recorder.replay.replay import unknown_repeats
from tests.support.host import PATIENCE_S
from tests.support.player_host import END, cassette
from tests.support.recorder_process import RECORDER, python

if TYPE_CHECKING:
    from pathlib import Path

LINE = '{"jsonrpc":"2.0","id":1,"method":"a"}'
ONE_CALL = f"""
    - {{t: 0.1, in: '{LINE}'}}
    - {{t: 0.2, out: '{{"jsonrpc":"2.0","id":1,"result":1}}'}}
    {END}
    """


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The root of a repository, so that nothing above it is read."""
    (tmp_path / ".git").mkdir()
    cassette(tmp_path / "c.yaml", ONE_CALL, protocol="jsonrpc", bindings={})
    return tmp_path


def call(*words: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RECORDER, *words], input=stdin, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=cwd
    )


@pytest.mark.parametrize(
    "words",
    [
        ["--ignore", "abc"],
        ["--mask", "("],
        ["--mask", "@foo"],
        ["--match-on", "blah"],
        ["--speed", "fast"],
        ["--max-age", "3"],
        ["--report", "missing/x"],
        ["--redact-except", "valu:hunter22"],
        ["--http", "--ignore", "/nowhere"],
    ],
)
def test_a_wrong_option_for_replay_is_refused_before_anything_is_recorded(words: list[str], tmp_path: Path) -> None:
    child = python("open('started', 'w')")
    done = call("record", "--config=none", *words, "new.yaml", "--", *child, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"ext-recorder: {words[-2]}")
    assert list(tmp_path.iterdir()) == []


def test_a_variable_of_a_project_file_may_be_missing_where_nothing_is_recorded(project: Path) -> None:
    (project / "ext-recorder.toml").write_text('redact = ["MY_PIN_OF_NOBODY"]\n')
    note = "redact MY_PIN_OF_NOBODY in the project file: this environment variable is not set"
    child = python('import sys\nsys.stdin.readline()\nprint(\'{"jsonrpc":"2.0","id":1,"result":1}\', flush=True)')
    for words in (["verify", "c.yaml", "--", *child], ["scrub", "--check", "c.yaml"], ["convert", "c.yaml"]):
        done = call(*words, cwd=project)
        assert (done.returncode, note in done.stderr) == (0, True), done
    recorded = call("record", "--mode=all", "c.yaml", "--", *child, cwd=project)
    assert recorded.returncode == 2
    assert f"{note}, so that its value cannot be recognized; set it" in recorded.stderr
    given = call("scrub", "--check", "--redact=MY_PIN_OF_NOBODY", "--config=none", "c.yaml", cwd=project)
    assert given.returncode == 2


def test_a_missing_cassette_with_an_interrupted_recording_is_to_be_recovered(tmp_path: Path) -> None:
    (tmp_path / "c.yaml.partial").touch()
    done = call("replay", "c.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "ext-recorder recover c.yaml.partial" in done.stderr


@pytest.mark.parametrize("words", [["--match-on", "blah"], ["--fault", "nothing"], ["--bind", "nothing=/x"]])
def test_nothing_is_announced_before_the_options_are_known_to_be_right(words: list[str], project: Path) -> None:
    done = call("replay", *words, "c.yaml", cwd=project)
    assert done.returncode == 2
    assert "replaying" not in done.stderr


def test_a_method_to_repeat_that_was_never_recorded_is_reported(project: Path) -> None:
    done = call("replay", "--repeat=nope", "--repeat=a", "--repeat=all", "c.yaml", cwd=project, stdin=f"{LINE}\n")
    assert done.returncode == 0
    assert "--repeat nope: c.yaml has no such message of the host" in done.stderr
    assert "--repeat a" not in done.stderr
    with Reader(project / "c.yaml") as reader:
        assert unknown_repeats(reader, ("a subject", "all", "b")) == ["b"]


def test_a_page_is_written_to_a_folder_that_exists(project: Path) -> None:
    done = call("view", "-o", "missing/c.html", "c.yaml", cwd=project)
    assert done.returncode == 2
    assert done.stderr == "ext-recorder: -o missing/c.html: the folder missing does not exist; create it first\n"
    assert not (project / "missing").exists()
    unwritable = call("view", "-o", "/proc/c.html", "c.yaml", cwd=project)
    assert "ext-recorder: /proc/c.html: " in unwritable.stderr


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("ext-recorder.toml", 'cassettes = ["nope"]\n', "cassettes: nope: no such file or folder"),
        ("pyproject.toml", '[tool.ext_recorder]\norder = "any"\n', "did you mean [tool.ext-recorder]"),
    ],
)
def test_a_mistake_in_a_project_file_is_reported(name: str, text: str, problem: str, project: Path) -> None:
    (project / name).write_text(text)
    done = call("config", cwd=project)
    assert done.returncode == 2
    assert problem in done.stderr


def test_a_session_whose_input_ended_too_early_says_how_to_keep_it_open(tmp_path: Path) -> None:
    child = python("import sys\nsys.stdin.read()")
    done = call("record", "--protocol=jsonrpc", "c.yaml", "--", *child, cwd=tmp_path, stdin=f"{LINE}\n")
    assert "request a (line 10) has no response; the input ended before it: keep it open" in done.stderr


def test_with_http_the_command_has_to_be_the_recorded_one(tmp_path: Path) -> None:
    recorded, another = ([sys.executable, "-c", f"print({number})"] for number in (1, 2))
    assert call("record", "--http", "c.yaml", "--", *recorded, cwd=tmp_path).returncode == 0
    other = call("replay", "--http", "c.yaml", "--", *another, cwd=tmp_path)
    assert other.returncode == 2
    assert "recorded from another command" in other.stderr
    assert call("replay", "--http", "--accept-command", "c.yaml", "--", *another, cwd=tmp_path).returncode == 0
    assert call("replay", "--http", "c.yaml", "--", *recorded, cwd=tmp_path).returncode == 0


def test_verify_without_http_names_the_traffic_that_it_did_not_replay(project: Path) -> None:
    (project / "c.http.yaml").touch()
    answer = json.dumps({"jsonrpc": "2.0", "id": 1, "result": 2})
    child = python(f"import sys\nsys.stdin.readline()\nprint({answer!r}, flush=True)")
    done = call("verify", "c.yaml", "--", *child, cwd=project)
    assert done.returncode == 1
    assert "c.http.yaml has the HTTP traffic of this session; --http replays it to the child" in done.stdout
