"""`copy`."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.ext_shell_files import FileHost


def entries(directory: Path) -> dict[str, str]:
    """What is below a directory: the text of each file, the target of each link."""
    found = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            found[name] = path.read_text()
    return found


def test_a_file_is_copied_with_its_permissions(host: FileHost, workdir: Path) -> None:
    (workdir / "a").write_text("hello")
    (workdir / "a").chmod(0o4750)
    result = host.ok("copy", source="a", destination="new/b")
    assert entries(workdir / "new") == {"b": "hello"}
    assert stat.S_IMODE((workdir / "new" / "b").stat().st_mode) == 0o750, "set-user-ID is not copied"
    assert result.message == "Copied 1 file (5 bytes) from a to new/b"
    assert result.outputs == {"path": str(workdir / "new" / "b"), "files": "1", "size": "5"}


def test_permissions_are_left_out_on_request(host: FileHost, workdir: Path) -> None:
    (workdir / "a").touch()
    (workdir / "a").chmod(0o777)
    before = os.umask(0o077)
    try:
        host.ok("copy", source="a", destination="b", preserveMode=False)
    finally:
        os.umask(before)
    assert stat.S_IMODE((workdir / "b").stat().st_mode) == 0o600


def test_a_directory_is_copied_with_all_that_is_in_it(host: FileHost, workdir: Path) -> None:
    (workdir / "a" / "deep" / "empty").mkdir(parents=True)
    (workdir / "a" / "one").write_text("1")
    (workdir / "a" / "deep" / "two").write_text("2")
    (workdir / "a" / "deep" / "link").symlink_to("../one")
    (workdir / "a" / "broken").symlink_to("nothing")
    (workdir / "a" / "deep").chmod(0o500)
    result = host.ok("copy", source="a", destination="b")
    (workdir / "a" / "deep").chmod(0o700)
    assert entries(workdir / "b") == {"one": "1", "deep/two": "2", "deep/link": "-> ../one", "broken": "-> nothing"}
    assert (workdir / "b" / "deep" / "empty").is_dir()
    assert stat.S_IMODE((workdir / "b" / "deep").stat().st_mode) == 0o500
    (workdir / "b" / "deep").chmod(0o700)
    assert result.outputs["files"] == "4"


def test_a_directory_is_merged_into_an_existing_one(host: FileHost, workdir: Path) -> None:
    for name in ("a", "b"):
        (workdir / name).mkdir()
        (workdir / name / "same").write_text(name)
        (workdir / name / f"only-{name}").write_text(name)
        (workdir / name / "link").symlink_to(f"only-{name}")
    host.ok("copy", source="a", destination="b")
    assert entries(workdir / "b") == {"same": "a", "only-a": "a", "only-b": "b", "link": "-> only-a"}


def test_nothing_is_overwritten_when_that_is_forbidden(host: FileHost, workdir: Path) -> None:
    (workdir / "a").mkdir()
    (workdir / "a" / "file").write_text("new")
    (workdir / "b").mkdir()
    (workdir / "c").write_text("old")
    assert "`overwrite: true`" in host.failed("copy", source="a", destination="b", overwrite=False).error
    assert "`overwrite: true`" in host.failed("copy", source="a/file", destination="c", overwrite=False).error
    assert (workdir / "c").read_text() == "old"
    assert entries(workdir / "b") == {}
    host.ok("copy", source="a", destination="d", overwrite=False)
    assert entries(workdir / "d") == {"file": "new"}


def test_a_file_does_not_take_the_place_of_a_directory_nor_the_other_way_round(host: FileHost, workdir: Path) -> None:
    (workdir / "file").write_text("x")
    (workdir / "tree" / "file").mkdir(parents=True)
    (workdir / "links").mkdir()
    (workdir / "links" / "file").symlink_to("other")
    assert "got a directory" in host.failed("copy", source="file", destination="tree").error
    assert "could not copy" in host.failed("copy", source="tree", destination="file").error
    assert "got a directory" in host.failed("copy", source="links", destination="tree").error
    assert (workdir / "tree" / "file").is_dir()
    assert (workdir / "file").read_text() == "x"


def test_directories_are_not_made_when_that_is_forbidden(host: FileHost, workdir: Path) -> None:
    (workdir / "a").mkdir()
    (workdir / "a" / "file").touch()
    host.failed("copy", source="a", destination="no/b", parents=False)
    host.failed("copy", source="a/file", destination="no/b", parents=False)
    assert not (workdir / "no").exists()
    host.ok("copy", source="a", destination="b", parents=False)


@pytest.mark.parametrize("destination", ["a", "a/b", "a/b/c", "./a/../a", "alias/b"])
def test_a_directory_is_not_copied_into_itself(host: FileHost, workdir: Path, destination: str) -> None:
    (workdir / "a").mkdir()
    (workdir / "a" / "file").touch()
    (workdir / "alias").symlink_to("a")
    assert "into itself" in host.failed("copy", source="a", destination=destination).message


def test_the_whole_working_directory_is_not_copied_into_itself(host: FileHost, workdir: Path) -> None:
    assert "into itself" in host.failed("copy", source=".", destination="backup").message
    assert list(workdir.iterdir()) == []


@pytest.mark.parametrize("target", ["../../outside/secret", "../../outside", "/etc/passwd", "deep/../../../outside"])
def test_a_link_in_a_directory_that_leads_out_is_a_failure(host: FileHost, workdir: Path, target: str) -> None:
    (workdir / "a").mkdir()
    (workdir / "a" / "link").symlink_to(target)
    failure = host.failed("copy", source="a", destination="b")
    assert "not a path inside the working directory" in failure.error
    assert entries(workdir / "b") == {}


def test_a_link_that_would_lead_out_only_at_its_new_place_is_a_failure(host: FileHost, workdir: Path) -> None:
    (workdir / "a" / "deep").mkdir(parents=True)
    (workdir / "a" / "deep" / "link").symlink_to("../../outside/secret")
    host.ok("copy", source="a/deep", destination="b/deep")
    failure = host.failed("copy", source="a/deep", destination="c")
    assert "not a path inside the working directory" in failure.error
    assert entries(workdir / "c") == {}


@pytest.mark.parametrize(
    ("source", "destination"),
    [("../outside/secret", "a"), ("out/secret", "a"), ("out", "a"), ("file", "../outside/new"), ("file", "out/new")],
)
def test_nothing_outside_is_read_or_written(host: FileHost, workdir: Path, source: str, destination: str) -> None:
    (workdir / "out").symlink_to("../outside")
    (workdir / "file").write_text("x")
    failure = host.failed("copy", source=source, destination=destination)
    assert "not a path inside the working directory" in failure.error
    assert entries(workdir.parent / "outside") == {"secret": "secret"}
    assert not (workdir / "a").exists()


def test_a_link_to_a_file_inside_is_copied_as_the_file(host: FileHost, workdir: Path) -> None:
    (workdir / "file").write_text("x")
    (workdir / "link").symlink_to("file")
    host.ok("copy", source="link", destination="copy")
    assert not (workdir / "copy").is_symlink()
    assert (workdir / "copy").read_text() == "x"


def test_a_fifo_is_refused_without_waiting(host: FileHost, workdir: Path) -> None:
    (workdir / "a").mkdir()
    os.mkfifo(workdir / "a" / "fifo")
    assert "got a fifo" in host.failed("copy", source="a/fifo", destination="b").error
    assert "got a fifo" in host.failed("copy", source="a", destination="b").error


def test_a_missing_source_is_told(host: FileHost) -> None:
    assert "could not copy 'a': No such file or directory" in host.failed("copy", source="a", destination="b").error


def test_a_copy_without_time_left_stops(host: FileHost, workdir: Path) -> None:
    (workdir / "a").mkdir()
    (workdir / "a" / "file").write_text("x")
    host.more_context = {"timeout": "1ns"}
    assert "the time was up" in host.failed("copy", source="a", destination="b").message
    assert not (workdir / "b" / "file").exists()
