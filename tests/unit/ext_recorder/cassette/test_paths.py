"""What is written never replaces a device, a pipe, a folder or a symbolic link."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from ext_recorder.cassette.paths import target_of
from ext_recorder.errors import UsageError
from tests.support.host import PATIENCE_S
from tests.support.player_host import END, cassette
from tests.support.recorder_process import ECHO, RECORDER, messages, run

LINE = b'{"jsonrpc":"2.0","method":"a"}\n'
EVENTS = """- {t: 0.1, in: '{"jsonrpc":"2.0","method":"a"}'}\n"""
LEAK = """- {t: 0.1, in: '{"jsonrpc":"2.0","method":"a","params":{"password":"Wq7Rk2vX"}}'}\n"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return cassette(tmp_path / "source.yaml", EVENTS + END, protocol="jsonrpc")


def call(*words: str, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*RECORDER, *words],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=PATIENCE_S,
        check=False,
    )


def made(kind: str, path: Path) -> Path:
    """Create something that is not a file."""
    if kind == "device":
        try:
            os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root can create a device")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    return path


@pytest.mark.parametrize("link", [False, True])
@pytest.mark.parametrize("kind", ["device", "pipe", "folder"])
def test_what_is_not_a_file_is_refused_and_stays(kind: str, link: bool, tmp_path: Path, source: Path) -> None:
    thing = made(kind, tmp_path / "thing.yaml")
    before = thing.lstat()
    name = thing
    if link:
        name = tmp_path / "link.yaml"
        name.symlink_to(thing)
    written = str(name)
    for words in (
        ["record", "--mode=all", written, "--", "touch", str(tmp_path / "started")],
        ["trim", "--force", "-o", written, str(source)],
        ["merge", "--force", "-o", written, str(source), str(source)],
        ["convert", "--force", "-o", written, str(source)],
        ["shim", "--force", written, str(source)],
    ):
        done = call(*words)
        assert done.returncode == 2, words
        assert b"expected a file to write, found a" in done.stderr
        assert done.stderr.count(b"\n") == 1
    now = thing.lstat()
    assert (now.st_mode, now.st_ino, now.st_rdev) == (before.st_mode, before.st_ino, before.st_rdev)
    assert name.is_symlink() == link
    assert {path.name for path in tmp_path.iterdir()} <= {"thing.yaml", "link.yaml", "source.yaml"}


@pytest.mark.parametrize("exists", [True, False])
def test_a_symbolic_link_is_followed(exists: bool, tmp_path: Path, source: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    target, link = folder / "real.yaml", tmp_path / "link.yaml"
    link.symlink_to("store/real.yaml")
    for words in (
        ["record", "--mode=all", str(link), "--", *ECHO],
        ["trim", "--force", "-o", str(link), str(source)],
        ["merge", "--force", "-o", str(link), str(source), str(source)],
        ["convert", "--force", "-o", str(link), str(source)],
        ["shim", "--force", str(link), str(source)],
    ):
        if exists:
            target.write_text("before")
        assert call(*words).returncode == 0, words
        assert link.is_symlink()
        assert target.read_text() != "before"
        target.unlink()
    assert [path.name for path in folder.iterdir()] == []


def test_scrub_and_recover_keep_a_link(tmp_path: Path) -> None:
    target, link = cassette(tmp_path / "real.yaml", LEAK + END, protocol="jsonrpc"), tmp_path / "link.yaml"
    link.symlink_to(target)
    assert call("scrub", str(link)).returncode == 0
    assert link.is_symlink()
    assert b"Wq7Rk2vX" not in target.read_bytes()
    (tmp_path / "other.yaml.partial").write_bytes(target.read_bytes())
    assert call("recover", "--force", "-o", str(link), str(tmp_path / "other.yaml.partial")).returncode == 0
    assert link.is_symlink()


def test_a_session_through_a_link_is_recorded_and_replayed(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    link = tmp_path / "link.yaml"
    link.symlink_to("store/real.yaml")
    assert run(link, ECHO, stdin=LINE).out == LINE
    assert messages(tmp_path / "store" / "real.yaml", "out") == [LINE[:-1]]
    assert run(link, ["/no/such/python3", *ECHO[1:]], stdin=LINE).out == LINE


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(UsageError, match="links in a circle"):
        target_of(str(tmp_path / "a"))


def test_a_name_of_an_open_file_is_no_place_for_a_cassette(tmp_path: Path, source: Path) -> None:
    device = Path("/dev/stdout")
    before = device.lstat()
    with (tmp_path / "out").open("wb") as out:
        done = call("record", "--mode=all", "/dev/stdout", "--", "true", stdout=out.fileno())
        report = call("lint", "--junit=/dev/stdout", str(source), stdout=out.fileno())
    assert (done.returncode, b"found a name of an open file" in done.stderr) == (2, True)
    assert report.returncode == 0
    assert b"<testsuites" in (tmp_path / "out").read_bytes()
    assert device.lstat().st_ino == before.st_ino


def test_a_report_follows_a_link_and_is_written_to_a_device(tmp_path: Path, source: Path) -> None:
    (tmp_path / "link.xml").symlink_to("report.xml")
    assert call("lint", f"--junit={tmp_path}/link.xml", str(source)).returncode == 0
    assert (tmp_path / "link.xml").is_symlink()
    assert b"<testsuites" in (tmp_path / "report.xml").read_bytes()
    assert call("lint", "--junit=/dev/null", str(source)).returncode == 0
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
