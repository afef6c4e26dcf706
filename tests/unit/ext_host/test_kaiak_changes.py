"""Copies of workspaces, and the changes in them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ext_host import kaiak_changes
from ext_host.kaiak_changes import Change, ChangeRefused, Patterns, TooLarge, WorkspaceCopy
from ext_recorder.cassette.git_patch import patched, read

ALL = Patterns((), ())


def copy_of(tmp_path: Path, files: dict[str, str], patterns: Patterns = ALL, age: float = 0) -> WorkspaceCopy:
    workspace = tmp_path / "workspace"
    for name, text in files.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text)
        os.utime(workspace / name, (time.time() - age,) * 2)
    workspace.mkdir(exist_ok=True)
    return WorkspaceCopy(workspace, tmp_path / "copy", patterns, lambda: None)


def only(copy: WorkspaceCopy) -> Change:
    changes = copy.changes()
    assert (len(changes.proposals), changes.refused, changes.outside) == (1, [], [])
    return changes.proposals[0]


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("**/*.java", "A.java", True),
        ("**/*.java", "src/main/A.java", True),
        ("*.java", "src/A.java", False),
        ("src/?.java", "src/A.java", True),
        ("src/**", "src/a/b", True),
        ("./src/**", "src/a", True),
        ("src/**", "src2/a", False),
        ("a+b(c", "a+b(c", True),
    ],
)
def test_patterns_match_names_and_folders(pattern: str, path: str, *, matches: bool) -> None:
    assert Patterns([pattern], []).included(path) == matches
    assert Patterns([], [pattern]).excluded(path, folder=False) == matches


def test_a_folder_is_left_out_only_if_all_of_it_is_excluded() -> None:
    assert Patterns([], ["target/**"]).excluded("target", folder=True)
    assert not Patterns([], ["target/*"]).excluded("target", folder=True)


def test_excluded_files_are_neither_copied_nor_changes_and_others_may_be_outside(tmp_path: Path) -> None:
    patterns = Patterns(["**/*.txt"], ["target/**"])
    copy = copy_of(tmp_path, {"target/x.txt": "1", "a.txt": "1", "b.log": "1"}, patterns)
    assert sorted(path.name for path in copy.target.iterdir()) == ["a.txt", "b.log"]
    (copy.target / "target").mkdir()
    for name in ("target/x.txt", "a.txt", "b.log"):
        (copy.target / name).write_text("2")
    changes = copy.changes()
    assert [change.path for change in changes.proposals] == ["a.txt"]
    assert changes.outside == ["target/", "b.log"]


def test_files_that_changed_in_the_workspace_alone_are_named(tmp_path: Path) -> None:
    copy = copy_of(tmp_path, {"a.txt": "1", "b.txt": "1", "c.txt": "1"}, Patterns([], []), age=60)
    for name in ("b.txt", "c.txt"):
        (copy.source / name).write_text("2")
    (copy.target / "c.txt").write_text("3")
    changes = copy.changes()
    assert (changes.proposals, changes.direct) == ([], ["b.txt"])
    (refused,) = changes.refused
    assert refused[0] == "c.txt"
    assert refused[1].endswith("since it was copied; if the command has changed it there, let it use relative paths")


LONG = "".join(f"line {number}\n" for number in range(12_000))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("one\n", "two\n"),
        ("one", "one\n"),
        ("one\n", "one"),
        ("", "one"),
        ("one\n", ""),
        ("a\r\nb\x0cc\n", "a\r\nb\x0cd\n"),
        ("".join(f"{number}\n" for number in range(50)), "".join(f"{number}\n" for number in range(50) if number % 20)),
        (LONG, LONG.replace("line 9\n", "nine\n")),
        (LONG, LONG[::-1]),  # one hunk: too long to be compared
        (f"a\n{LONG}z\n", f"a\nb\n{LONG.upper()}z\n"),
    ],
)
def test_a_diff_is_applied_by_another_reader_to_the_same_text(tmp_path: Path, old: str, new: str) -> None:
    copy = copy_of(tmp_path, {"dir/a b.txt": old})
    (copy.target / "dir/a b.txt").write_bytes(new.encode())
    change = only(copy)
    (patch,) = read(change.diff.encode())
    assert patched(patch, old.encode(), bytes, bytes) == new.encode()
    copy.apply(change)
    assert (copy.source / "dir/a b.txt").read_bytes() == new.encode()


def test_created_deleted_and_replaced_files_are_applied(tmp_path: Path) -> None:
    copy = copy_of(tmp_path, {"old/deep/a": "a\n", "thing": "a\n", "folder/x": "x\n", "folder/y": "y\n"})
    (copy.target / "old/deep/a").unlink()
    (copy.target / "old/deep").rmdir()
    (copy.target / "old").rmdir()
    (copy.target / "thing").unlink()
    (copy.target / "thing").mkdir()
    (copy.target / "thing/new").write_text("n\n")
    for name in "xy":
        (copy.target / "folder" / name).unlink()
    (copy.target / "folder").rmdir()
    (copy.target / "folder").write_text("f\n")
    changes = copy.changes().proposals
    assert [(change.operation, change.path) for change in changes] == [
        ("delete", "folder/x"), ("delete", "folder/y"), ("delete", "old/deep/a"), ("delete", "thing"),
        ("create", "folder"), ("create", "thing/new"),
    ]  # fmt: skip
    assert {change.risk for change in changes if change.operation == "delete"} == {"high"}
    for change in changes:
        copy.apply(change)
    found = {str(path.relative_to(copy.source)): path.read_text() for path in copy.source.rglob("*") if path.is_file()}
    assert found == {"folder": "f\n", "thing/new": "n\n"}
    assert not (copy.source / "old").exists()


def test_modes_links_and_binary_files_are_high_risks(tmp_path: Path) -> None:
    copy = copy_of(tmp_path, {"run.sh": "x\n", "data": "x\n", "small": "x\n"})
    (copy.target / "run.sh").chmod(0o755)
    (copy.target / "data").write_bytes(b"\0\xff")
    (copy.target / "link").symlink_to("small")
    (copy.target / "small").write_text("y\n")
    (copy.target / 'odd "\t').write_text("new\n")
    changes = {change.path: change for change in copy.changes().proposals}
    assert {path: (change.risk, change.text) for path, change in changes.items()} == {
        "run.sh": ("high", True), "data": ("high", False), "link": ("high", False), "small": ("low", True),
        'odd "\t': ("medium", True),
    }  # fmt: skip
    assert changes["run.sh"].diff == "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n"
    assert changes["data"].diff.endswith("Binary files a/data and b/data differ (2 and 2 bytes)\n")
    assert "new file mode 120000\n" in changes["link"].diff
    assert changes['odd "\t'].diff.startswith('diff --git "a/odd \\"\\011" "b/odd \\"\\011"\nnew file mode 100644\n')
    for change in changes.values():
        copy.apply(change)
    assert os.access(copy.source / "run.sh", os.X_OK)
    assert (copy.source / "data").read_bytes() == b"\0\xff"
    assert (copy.source / "link").readlink() == Path("small")


def test_a_file_that_the_user_has_changed_is_not_overwritten(tmp_path: Path) -> None:
    copy = copy_of(tmp_path, {"a": "1\n", "b": "1\n", "c": "1\n"})
    for name in "abcd":
        (copy.target / name).write_text("agent\n")
    (copy.source / "a").write_text("user\n")  # before the comparison
    (copy.source / "d").write_text("user\n")
    changes = copy.changes()
    assert [path for path, _ in changes.refused] == ["a", "d"]
    b, c = changes.proposals
    (copy.source / "b").write_text("user\n")  # while the proposal waits
    with pytest.raises(ChangeRefused, match="changed in the workspace since it was copied"):
        copy.apply(b)
    copy.apply(c, "edited\n")
    assert {name: (copy.source / name).read_text() for name in "abcd"} == {
        "a": "user\n", "b": "user\n", "c": "edited\n", "d": "user\n",
    }  # fmt: skip


def test_nothing_is_written_through_a_symbolic_link_of_the_workspace(tmp_path: Path) -> None:
    copy = copy_of(tmp_path, {"dir/a": "1\n"})
    (copy.target / "dir/b").write_text("new\n")
    change = only(copy)
    (copy.source / "dir/a").unlink()
    (copy.source / "dir").rmdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (copy.source / "dir").symlink_to(elsewhere)
    with pytest.raises(ChangeRefused, match="symbolic link"):
        copy.apply(change)
    assert list(elsewhere.iterdir()) == []


def test_a_link_into_the_workspace_leads_into_the_copy_and_is_no_change(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    (workspace / "src").mkdir(parents=True)
    (workspace / "link").symlink_to(workspace / "src")
    copy = copy_of(tmp_path, {})
    assert (copy.target / "link").readlink() == copy.target / "src"
    assert copy.changes().proposals == []
    (copy.target / "link/new").write_text("n\n")
    assert only(copy).path == "src/new"
    (copy.target / "other").symlink_to(copy.target / "src")
    assert [path for path, _ in copy.changes().refused] == ["other"]


def test_names_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    copy = copy_of(tmp_path, {})
    (copy.target / os.fsdecode(b"\xff")).write_text("x")
    assert copy.changes().refused == [(os.fsdecode(b"\xff"), "its name is not UTF-8, so that it cannot be sent")]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_files_that_cannot_be_read_are_skipped(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "secret").touch(mode=0o000)
    copy = copy_of(tmp_path, {"a": "1"})
    assert copy.skipped == [("secret", "Permission denied")]
    assert copy.changes().proposals == []


def test_a_copy_has_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kaiak_changes, "MOST_BYTES", 3)
    with pytest.raises(TooLarge, match="has more than 0 GiB"):
        copy_of(tmp_path / "1", {"a": "12", "b": "34"})
    monkeypatch.setattr(kaiak_changes, "MOST_FILES", 1)
    with pytest.raises(TooLarge, match="has more than 1 file"):
        copy_of(tmp_path / "2", {"a": "", "b": ""})


def test_a_long_diff_is_cut_and_a_high_risk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kaiak_changes, "DIFF_CHARACTERS", 100)
    copy = copy_of(tmp_path, {"a": "1\n"})
    (copy.target / "a").write_text("x" * 200)
    change = only(copy)
    assert change.risk == "high"
    assert change.diff.endswith("characters of the diff not shown ...]\n")
