"""`recover`: a cassette out of what a killed recorder left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette import recovery
from ext_recorder.cassette.reader import Reader
from ext_recorder.errors import CassetteError
from tests.support.recorder_process import ECHO, messages, run, start, wait_for
from tests.support.recorder_tools import call

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path


@pytest.fixture
def partial(tmp_path: Path) -> Path:
    """A partial cassette whose last line is torn."""
    run(tmp_path / "session.yaml", ECHO, stdin=b"one\ntwo\n")
    whole = (tmp_path / "session.yaml").read_bytes()
    (tmp_path / "session.yaml").unlink()
    path = tmp_path / "session.yaml.partial"
    path.write_bytes(whole[: whole.index(b"two") + 2])
    return path


def recover(*words: str) -> subprocess.CompletedProcess[str]:
    return call("recover", *words)


def test_whole_lines_are_kept_a_torn_one_is_dropped_and_both_are_said(partial: Path, cassette: Path) -> None:
    done = recover(str(partial))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{cassette}: 1 event kept; the last line was incomplete: ")
    assert messages(cassette, "in") == [b"one"]
    assert not partial.exists()


def test_the_cassette_may_have_another_name(partial: Path, tmp_path: Path) -> None:
    assert recover(str(partial), "-o", str(tmp_path / "rescued.yaml")).returncode == 0
    assert messages(tmp_path / "rescued.yaml", "in") == [b"one"]
    assert not (tmp_path / "session.yaml").exists()


def test_a_cassette_that_is_there_is_replaced_by_force_only(partial: Path, cassette: Path) -> None:
    cassette.write_text("precious")
    done = recover(str(partial))
    assert done.returncode == 2
    assert str(cassette) in done.stderr
    assert cassette.read_text() == "precious"
    assert recover(str(partial), "--force").returncode == 0
    assert messages(cassette, "in") == [b"one"]


def test_a_session_that_still_runs_is_left_alone(tmp_path: Path) -> None:
    cassette = tmp_path / "session.yaml"
    host = start(cassette, ECHO)
    host.write(b"one\n")
    host.read_line()
    wait_for(tmp_path / "session.yaml.partial", b"one")
    done = recover(f"{cassette}.partial")
    assert done.returncode == 2
    assert "another recorder is writing this cassette" in done.stderr
    host.end()
    assert messages(cassette, "out") == [b"one"]


@pytest.mark.parametrize("content", [b"", b"hello\n", b"\x00\xff", b"events:\n"])
def test_a_file_that_is_no_partial_cassette_is_an_error_and_stays(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "session.yaml.partial"
    path.write_bytes(content)
    done = recover(str(path))
    assert done.returncode == 2
    assert done.stderr.startswith("ext-recorder: ")
    assert path.read_bytes() == content
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


# --- Cassettes that were cut off --------------------------------------------------------------------------------------


def error_of(cassette: Path) -> str:
    """Return the error that a reader of the entire cassette raises; empty if it is complete."""
    try:
        with Reader(cassette) as reader:
            list(reader)
    except CassetteError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("output", [None, "fixed.yaml"])
def test_the_command_that_a_reader_suggests_helps_with_any_cut(tmp_path: Path, output: str | None) -> None:
    whole, cut = tmp_path / "whole.yaml", tmp_path / "cut.yaml"
    run(whole, ECHO, stdin=b"one\ntwo\nit's a third\n")
    content = whole.read_bytes()
    first = content.index(b"- {")
    for end_at in range(content.index(b"\n", first) + 1, len(content) - 1):
        cut.write_bytes(content[:end_at])
        error = error_of(cut)
        if not error:  # cut off behind the exit
            continue
        assert f"ext-recorder recover {cut}" in error, end_at
        fixed = recovery.recover(cut, tmp_path / output if output else None, replace=True)
        assert fixed.path == tmp_path / (output or "cut.yaml"), end_at
        assert error_of(fixed.path) == "", end_at
        assert cut.exists()


def test_a_complete_cassette_is_left_alone(tmp_path: Path) -> None:
    whole = tmp_path / "whole.yaml"
    run(whole, ECHO, stdin=b"one\n")
    before = whole.read_bytes()
    done = recover(str(whole))
    assert (done.returncode, "a complete cassette, nothing to recover" in done.stderr) == (2, True)
    assert whole.read_bytes() == before


def test_a_line_that_is_broken_within_is_named_and_the_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    run(path, ECHO, stdin=b"one\ntwo\n")
    content = path.read_bytes().replace(b"in: 'one'", b"in: 'one").partition(b"redacted:")[0]
    path.write_bytes(content)
    done = recover(str(path))
    number = content[: content.index(b"in: 'one")].count(b"\n") + 1
    assert done.returncode == 2
    assert f"{path}:{number}: not an event line of ext-recorder (correct or remove this line" in done.stderr
    assert path.read_bytes() == content


def test_the_partial_file_is_named_if_the_cassette_is_meant(partial: Path) -> None:
    done = recover(str(partial.with_suffix("")))
    assert f"no such file; ext-recorder recover {partial}" in done.stderr
