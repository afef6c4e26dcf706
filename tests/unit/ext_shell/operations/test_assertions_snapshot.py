"""`snapshot` and `assert-changes` of folders."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from ext_sdk.files import Workdir
from ext_shell.operations import assertions

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.ext_shell_files import FileHost


@pytest.fixture(autouse=True)
def _entries(workdir: Path) -> None:
    for name in ("a.txt", "src/b.py", "src/.env", "src/deep/c.py", "cache/x"):
        (workdir / name).parent.mkdir(parents=True, exist_ok=True)
        (workdir / name).write_text(name)
    (workdir / "empty").mkdir()
    (workdir / "link").symlink_to("a.txt")
    (workdir / "out").symlink_to("../outside")
    os.mkfifo(workdir / "fifo")


def changes(host: FileHost, **args: object) -> dict[str, list[str]]:
    """Return what has changed since the snapshot, by kind."""
    outputs = host.ok("assert-changes", only=["**"], **args).outputs
    return {name: outputs[name].splitlines() for name in ("added", "changed", "removed") if outputs[name]}


def test_nothing_has_changed_if_files_are_only_read_and_touched(host: FileHost, workdir: Path) -> None:
    taken = host.ok("snapshot")
    assert taken.message == "Kept the state of 8 files in . as 'default'"
    assert taken.outputs == {"name": "default", "path": str(workdir), "files": "8"}
    (workdir / "a.txt").write_text((workdir / "a.txt").read_text())
    os.utime(workdir / "src/b.py", (0, 0))
    result = host.ok("assert-changes")
    assert result.message == "Compared 8 files in . with snapshot 'default': 1 check passed"
    assert result.outputs == {"added": "", "changed": "", "removed": "", "count": "0"}


def test_a_failure_lists_the_patterns_that_match_nothing(host: FileHost, workdir: Path) -> None:
    host.ok("snapshot", path="src")
    (workdir / "src/b.py").write_text("changed")
    failure = host.failed("assert-changes", only=["src/**", "./*.py", "[a", "deep/**"])
    assert failure.error.splitlines()[1:] == [
        "pattern 'src/**' matches nothing",
        "pattern './*.py' matches nothing",
        "pattern '[a' has a [ without ], and matches nothing",
        "patterns are relative to src",
    ]


def test_all_kinds_of_changes_are_found(host: FileHost, workdir: Path) -> None:
    host.ok("snapshot", name="before")
    (workdir / "a.txt").write_text("A.txt")
    (workdir / "src/b.py").chmod(0o755)
    (workdir / "link").unlink()
    (workdir / "link").symlink_to("src")
    (workdir / "fifo").unlink()
    (workdir / "fifo").write_text("no longer one")
    (workdir / "src/deep/c.py").unlink()
    (workdir / "src/deep").rmdir()
    (workdir / "empty").rmdir()
    (workdir / "new/deeper").mkdir(parents=True)
    (workdir / "new/file\n").touch()
    assert changes(host, since="before") == {
        "added": ["new/deeper/", "new/file\\n"],
        "changed": ["a.txt", "fifo", "link", "src/b.py"],
        "removed": ["empty/", "src/deep/c.py"],
    }
    failure = host.failed("assert-changes", since="before", only=["new/**", "**/c.py", "empty"])
    assert failure.outputs["count"] == "8"
    expected = "expected no change since snapshot 'before', got a change:"
    for text in (
        f"a.txt: {expected} content, 5 bytes instead of 5",
        f"fifo: {expected} a file instead of a fifo",
        f"link: {expected} target 'src' instead of 'a.txt'",
        f"src/b.py: {expected} permissions 0755 instead of 0644",
    ):
        assert text in failure.error


def test_only_and_required_name_what_may_and_what_must_change(host: FileHost, workdir: Path) -> None:
    host.ok("snapshot", path="src")
    (workdir / "src/b.py").write_text("fixed")
    (workdir / "a.txt").write_text("outside of the folder")
    assert host.ok("assert-changes", required=["*.py"]).outputs["changed"] == "b.py"
    assert "'deep/**': expected a change" in host.failed("assert-changes", required=["deep/**"], only=["b.py"]).error
    assert "b.py: expected no change" in host.failed("assert-changes", only=["deep/**"]).error


def test_excluded_files_are_neither_read_nor_compared(host: FileHost, workdir: Path) -> None:
    (workdir / "cache/secret").write_text("x")
    (workdir / "cache/secret").chmod(0)
    host.ok("snapshot", exclude=["cache", "**/.env"])
    (workdir / "src/.env").unlink()
    (workdir / "cache/more").touch()
    host.ok("assert-changes")


def test_scopes_and_names_have_snapshots_of_their_own(host: FileHost, workdir: Path) -> None:
    host.ok("snapshot", name="one")
    (workdir / "a.txt").write_text("changed")
    host.ok("snapshot", name="two")
    assert changes(host, since="one") == {"changed": ["a.txt"]}
    assert changes(host, since="two") == {}
    unknown = host.failed("assert-changes", since="one", scope="other")
    assert unknown.error == (
        "since: expected the name of a snapshot of this workdir and scope, found 'one'; "
        "take it with `snapshot`, in a previous step that has the same `scope`; none was taken"
    )


def test_a_folder_that_was_removed_has_lost_all_its_files(host: FileHost, workdir: Path) -> None:
    host.ok("snapshot", path="cache")
    (workdir / "cache/x").unlink()
    (workdir / "cache").rmdir()
    assert changes(host) == {"removed": ["x"]}


def test_links_are_not_followed_and_no_path_leads_out(host: FileHost) -> None:
    assert "not a path inside the working directory" in host.failed("snapshot", path="out").error
    assert "not a path inside the working directory" in host.failed("snapshot", path="../outside").error
    assert "it is not a folder" in host.failed("snapshot", path="a.txt").error
    assert "No such file" in host.failed("snapshot", path="nothing").error


def test_a_folder_with_too_many_files_is_a_failure(host: FileHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assertions, "MOST_ENTRIES", 5)
    failure = host.failed("snapshot")
    assert failure.error.startswith(".: expected at most 5 files and folders, found more; `exclude` leaves out")


def test_the_time_of_the_call_ends_the_reading(host: FileHost) -> None:
    call = host.prepare("snapshot")
    call.context.deadline.stopped.set()
    assert "the time was up while reading" in host.perform(call).error


def test_a_folder_that_is_nested_very_deeply_is_a_failure(host: FileHost, monkeypatch: pytest.MonkeyPatch) -> None:
    # Scripted: pytest could not remove such a folder after a test that is interrupted.
    def too_deep(*_: object, **__: object) -> None:
        raise RecursionError

    monkeypatch.setattr(os, "fwalk", too_deep)
    monkeypatch.setattr(Workdir, "names", too_deep)
    assert "nested too deeply" in host.failed("snapshot").error
    assert "nested too deeply" in host.failed("assert-file", glob="**/x").error


@pytest.mark.skipif(os.getuid() == 0, reason="root may read all files")
def test_a_file_that_cannot_be_read_is_named(host: FileHost, workdir: Path) -> None:
    (workdir / "src/b.py").chmod(0)
    assert "src/b.py: Permission denied; `exclude` leaves it out" in host.failed("snapshot").error
