"""--max-age: cassettes that are too old are refused, or recorded again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette import age
from ext_recorder.cassette.header import Header
from ext_recorder.errors import CassetteError, UsageError
from tests.support.project_files import call
from tests.support.recorder_process import ECHO, run

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86_400
LINE = b'{"jsonrpc":"2.0","id":1,"method":"a"}\n'


def ago(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - seconds))


def header(recorded: str) -> Header:
    return Header("mcp", "ndjson", command=("server", "--stdio"), recorded=recorded)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A cassette of 45 days."""
    file = tmp_path / "old.yaml"
    run(file, ECHO, stdin=LINE)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text(
        "".join(f"recorded: {ago(45 * DAY)}\n" if line.startswith("recorded: ") else line for line in lines)
    )
    return file


@pytest.mark.parametrize(("text", "found"), [("90m", 5_400), ("12h", 43_200), ("30d", 30 * DAY), ("2w", 14 * DAY)])
def test_an_age_is_a_number_and_a_unit(text: str, found: int) -> None:
    assert age.seconds(text) == found


@pytest.mark.parametrize("text", ["30", "d", "1.5d", "-1d", "30 d", "30y", "٣d", "9999999d"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--max-age .*: expected a number and a unit"):
        age.seconds(text)


def test_a_cassette_is_as_old_as_its_date(tmp_path: Path) -> None:
    path = str(tmp_path / "c.yaml")
    assert not age.is_old(path, header(""), "")
    assert not age.is_old(path, header(ago(29 * DAY)), "30d")
    assert age.is_old(path, header(ago(30 * DAY + 60)), "30d")
    assert not age.is_old(path, header(ago(-DAY)), "30d")  # by the clock of another machine
    with pytest.raises(CassetteError, match=r"--max-age needs the date of the recording, found no `recorded:`"):
        age.check(path, header(""), "30d")


def test_the_message_has_the_age_and_how_to_record_again(tmp_path: Path) -> None:
    path = str(tmp_path / "c.yaml")
    with pytest.raises(CassetteError) as refused:
        age.check(path, header(ago(45 * DAY + 5)), "30d")
    text = str(refused.value)
    assert text.startswith(f"{path}: recorded 45 days ago (20")
    assert text.endswith(
        f"and --max-age is 30d (record it again: ext-recorder record --mode all {path} -- server --stdio)"
    )


@pytest.mark.parametrize("command", ["replay", "lint", "verify"])
def test_an_old_cassette_is_refused(command: str, old: Path) -> None:
    tail = ["--", *ECHO] if command == "verify" else []
    done = call(command, "--max-age", "30d", str(old), *tail, stdin=LINE)
    assert done.returncode == 2
    assert "recorded 45 days ago" in done.stdout + done.stderr
    done = call(command, "--max-age=60d", str(old), *tail, stdin=LINE)
    assert done.returncode != 2
    assert "45 days" not in done.stdout + done.stderr


@pytest.mark.parametrize("command", ["replay", "lint", "verify"])
def test_a_wrong_age_is_refused(command: str, old: Path) -> None:
    tail = ["--", *ECHO] if command == "verify" else []
    done = call(command, "--max-age", "old", str(old), *tail)
    assert done.returncode == 2
    assert "--max-age old: expected a number and a unit" in done.stderr


def test_record_once_records_an_old_one_again(old: Path) -> None:
    before = old.read_text()
    assert call("record", "--max-age=60d", str(old), "--", *ECHO, stdin=LINE).returncode == 0
    assert old.read_text() == before
    done = call("record", "--max-age=30d", str(old), "--", *ECHO, stdin=LINE)
    assert (done.returncode, done.stdout) == (0, LINE.decode())
    assert f"{old}: recorded 45 days ago" in done.stderr
    assert "; recording again" in done.stderr
    assert old.read_text() != before
    assert call("replay", "--max-age=30d", str(old), stdin=LINE).returncode == 0


def test_the_modes_that_promise_to_replay_refuse_it(old: Path) -> None:
    for mode in ("none", "new_episodes"):
        done = call("record", f"--mode={mode}", "--max-age=30d", str(old), "--", *ECHO, stdin=LINE)
        assert done.returncode == 2
        assert "recorded 45 days ago" in done.stderr


def test_the_age_is_set_in_a_project_file(old: Path) -> None:
    (old.parent / "ext-recorder.toml").write_text('max-age = "30d"')
    assert call("replay", str(old), stdin=LINE).returncode == 2
    (old.parent / "ext-recorder.toml").write_text("max-age = 30")
    assert "max-age: expected a string" in call("replay", str(old), stdin=LINE).stderr
