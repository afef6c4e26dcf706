"""Workspaces: changes that are noted, and patches that are applied completely, inside the workspace, or not at all."""

from __future__ import annotations

import marshal
import os
from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.git_patch import FILE, LINK, Entry, PatchFile, encode, file_of, publish
from ext_recorder.messages.path_bindings import ReplayBindings
from ext_recorder.replay import workspace
from ext_recorder.replay.workspace import CHILD, Snapshot, WorkspaceError, Workspaces, WorkspaceTracker, tracker_of

if TYPE_CHECKING:
    from pathlib import Path


def same(data: bytes) -> bytes:
    return data


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("a\n")
    return folder


def apply(tmp_path: Path, work: Path, patch: bytes, folder: str = "/tmp/cwd") -> None:
    cassette = str(tmp_path / "s.yaml")
    (tmp_path / "s.patch").write_bytes(b"# patch: 1, folder: %b, t: 0.000000\n" % folder.encode() + patch)
    bindings = ReplayBindings({"cwd": "/tmp/cwd", "home": "/home/user"}, {"cwd": str(work)}, str(tmp_path))
    Workspaces(cassette, bindings, same).apply(1)


def recorded(tmp_path: Path, snapshot: Snapshot) -> bytes:
    """Return the patch file of what has changed since the last time."""
    cassette = str(tmp_path / "s.yaml")
    patches = PatchFile(cassette, same, same)
    changes = snapshot.changes()
    if changes is None or not patches.append(0.0, marshal.dumps(changes)):
        return b""
    publish(cassette)
    return (tmp_path / "s.patch").read_bytes()


NEW = encode("new", None, Entry(FILE, b"new\n"))


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/tmp/x", "expected a path in the workspace"),
        ("../x", "expected a path in the workspace"),
        ("d/../../x", "expected a path in the workspace"),
        ("d//x", "expected a path in the workspace"),
        (".git/hooks/post-commit", "files of git itself"),
        ("sub/.GIT/config", "files of git itself"),
        ("out/x", "expected a folder, found a symbolic link or a file"),
        ("a.txt/x", "expected a folder, found a symbolic link or a file"),
    ],
)
def test_a_patch_that_leads_out_of_the_workspace_changes_nothing(
    tmp_path: Path, work: Path, path: str, problem: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (work / "out").symlink_to(outside)
    with pytest.raises(WorkspaceError, match=problem):
        apply(tmp_path, work, NEW + encode(path, None, Entry(FILE, b"x")))
    assert not (work / "new").exists()
    assert not list(outside.iterdir())


def test_a_link_of_the_patch_itself_is_not_followed(tmp_path: Path, work: Path) -> None:
    patch = encode("out", None, Entry(LINK, os.fsencode(tmp_path))) + encode("out/x", None, Entry(FILE, b"x"))
    with pytest.raises(WorkspaceError, match="expected a folder"):
        apply(tmp_path, work, patch)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("folder", ["/home/user", "/etc", "/tmp/cwd/..", "/tmp/cwd-2", ".."])
def test_only_a_folder_that_the_host_has_named_is_changed(tmp_path: Path, work: Path, folder: str) -> None:
    with pytest.raises(WorkspaceError, match="is not known; use --bind"):
        apply(tmp_path, work, NEW, folder)
    assert not list(tmp_path.rglob("new"))


@pytest.mark.parametrize(
    ("patch", "problem"),
    [
        (encode("a.txt", Entry(FILE, b"b\n"), Entry(FILE, b"c\n")), r"a\.txt: line 1: expected 'b\\n', found 'a\\n'"),
        (encode("b.txt", Entry(FILE, b"b\n"), Entry(FILE, b"c\n")), r"b\.txt: it does not exist"),
        (encode("a.txt", None, Entry(FILE, b"c\n")), r"a\.txt: it exists already, with other content"),
        (encode("b.txt", Entry(FILE, b""), Entry(FILE, b""), renamed="c.txt"), r"c\.txt: it does not exist"),
        (encode("a.txt", Entry(LINK, b"x"), Entry(LINK, b"y")), r"a\.txt: expected a symbolic link, found a file"),
        (encode("a.txt", Entry(FILE, b"\0"), Entry(FILE, b"\0b")), r"a\.txt: its content is another one"),
    ],
)
def test_other_files_than_the_recorded_ones_are_refused_before_anything_is_written(
    tmp_path: Path, work: Path, patch: bytes, problem: str
) -> None:
    with pytest.raises(
        WorkspaceError, match=f"when recorded: changed files cannot be replayed: patch 1 in s.patch: {problem}; begin"
    ):
        apply(tmp_path, work, NEW + patch)
    assert [path.name for path in work.iterdir()] == ["a.txt"]


def test_a_change_that_the_host_has_made_already_is_no_difference(tmp_path: Path, work: Path) -> None:
    (work / "moved").write_text("m")
    patch = encode("a.txt", Entry(FILE, b"0\n"), Entry(FILE, b"a\n")) + encode("gone", Entry(FILE, b"x"), None) + NEW
    patch += encode("moved", Entry(FILE, b"m"), Entry(FILE, b"m"), renamed="before")
    apply(tmp_path, work, patch)
    apply(tmp_path, work, patch)
    assert (work / "new").read_text() == "new\n"


def test_every_change_is_noted_and_made_again(tmp_path: Path, work: Path) -> None:
    for number in range(3):
        (work / f"{number}.txt").write_text("same\n")
    (work / "folder" / "below").mkdir(parents=True)
    (work / "folder" / "below" / "x").write_text("x")
    before = {path.relative_to(work): path.read_bytes() for path in work.rglob("*") if path.is_file()}
    snapshot = Snapshot(str(work))
    (work / "a.txt").write_text("b\n")  # of the same size, in the same tick of the clock
    (work / "0.txt").rename(work / "moved")
    (work / "1.txt").unlink()
    (work / "1.txt").mkdir()
    (work / "1.txt" / "in").write_text("a folder instead of a file")
    (work / "folder" / "below" / "x").unlink()
    (work / "folder" / "below").rmdir()
    (work / "folder").rmdir()
    (work / "folder").write_text("a file instead of a folder")
    (work / "2.txt").chmod(0o755)
    (work / ".git").mkdir()
    (work / ".git" / "config").write_text("[core]")
    (work / "__pycache__").mkdir()
    (work / "__pycache__" / "a.pyc").write_bytes(b"\0")
    os.mkfifo(work / "pipe")
    patch = recorded(tmp_path, snapshot)
    assert b"rename from 0.txt\nrename to moved\n" in patch
    assert not recorded(tmp_path, snapshot)
    other = tmp_path / "other"
    for path, content in before.items():
        (other / path).parent.mkdir(parents=True, exist_ok=True)
        (other / path).write_bytes(content)
    (tmp_path / "s.patch").write_bytes(patch.replace(str(work).encode(), b"/tmp/cwd"))
    Workspaces(str(tmp_path / "s.yaml"), ReplayBindings({"cwd": "/tmp/cwd"}, {"cwd": str(other)}), same).apply(1)
    expected = {
        path.relative_to(work): (path.read_bytes(), path.stat().st_mode)
        for path in work.rglob("*")
        if path.is_file() and not {".git", "__pycache__"} & set(path.parts)
    }
    found = {
        path.relative_to(other): (path.read_bytes(), path.stat().st_mode) for path in other.rglob("*") if path.is_file()
    }
    assert found == expected


def test_what_cannot_be_recorded_is_named(tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "MOST_BYTES", 100)
    (work / ".git").mkdir()
    (work / ".git" / "HEAD").write_text("ref: refs/heads/main")
    snapshot = Snapshot(str(work))
    (work / "large").write_bytes(b"x" * 101)
    (work / ".git" / "HEAD").write_text("ref: refs/heads/other")
    patch = recorded(tmp_path, snapshot)
    assert b"# not recorded: large: over 100 bytes, or not readable\n" in patch
    assert b"# not recorded: commits, and all else in .git\n" in patch
    monkeypatch.setattr(workspace, "MOST_FILES", 3)
    for number in range(3):
        (work / f"n{number}").touch()
    assert b"# not recorded: further changes: the folder has more than 3 files\n" in recorded(tmp_path, snapshot)
    (work / "b").touch()
    assert not recorded(tmp_path, snapshot)


def test_files_whose_content_is_not_kept_are_recorded_as_a_whole(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "TEXT_BYTES", 10)
    (work / "long").write_text("long\n" * 10)
    snapshot = Snapshot(str(work))
    (work / "long").write_text("long\n" * 11)
    patch = recorded(tmp_path, snapshot)
    assert b"GIT binary patch" in patch
    (work / "long").write_text("long\n" * 10)
    apply(tmp_path, work, patch[patch.index(b"diff") :])
    assert (work / "long").read_text() == "long\n" * 11


def test_changes_are_noted_before_requests_and_responses_of_the_child(work: Path) -> None:
    tracker = WorkspaceTracker(sessions=True, without=())
    noted: list[object] = []
    tracker.keep = lambda changes: noted.append([path for path, *_ in marshal.loads(changes)[1]])
    start = b'{"id":1,"method":"session/new","params":{"cwd":"%b"},"jsonrpc":"2.0"}\n' % os.fsencode(work)
    tracker.observe("in", start[:30])
    tracker.observe("in", start[30:])
    tracker.observe("out", b'{"jsonrpc":"2.0","id":1,"result":{}}\n')
    (work / "of-the-host").touch()
    tracker.observe("in", b'{"jsonrpc":"2.0","id":2,"method":"session/prompt"}\n')
    (work / "b").touch()
    tracker.observe("out", b'{"jsonrpc":"2.0","method":"session/update"}\n')
    tracker.observe("err", b'"id"\n')
    assert noted == []
    tracker.observe("out", b'{"jsonrpc":"2.0","id":0,"method":"session/request_permission"}\n')
    assert noted == [["b"]]
    (work / "c").touch()
    tracker.observe("out", b'{"jsonrpc":"2.0","id":2,"result":{}}\n')
    (work / "d").touch()
    tracker.observe("out", b"")
    assert noted == [["b"], ["c"], ["d"]]


def test_the_recording_is_not_a_part_of_the_workspace(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(work)
    (work / "rec.partial" / "children").mkdir(parents=True)
    cassette = work / "rec.partial" / "children" / "x.yaml"
    tracker = tracker_of("cwd", str(cassette))
    noted: list[object] = []
    tracker.keep = noted.append
    cassette.write_text("x")
    (work / "rec.partial" / "traffic.http.yaml").write_text("x")
    tracker.note()
    assert noted == []
    alone = tracker_of("cwd", str(work / "s.yaml"))
    alone.keep = noted.append
    for path in (work / "s.yaml.partial", work / "s.yaml", work / file_of("s.yaml")):
        path.write_text("x")
    alone.note()
    assert noted == []
    (work / "s-2.txt").write_text("x")
    alone.note()
    assert len(noted) == 1
    assert marshal.loads(noted[0])[0] == CHILD  # type: ignore[arg-type]


def test_folders_of_the_user_are_workspaces_of_their_own(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    noted: list[tuple[str, list[str]]] = []

    def keep(changes: bytes) -> None:
        folder, changed, *_ = marshal.loads(changes)
        noted.append((folder, [path for path, *_ in changed]))

    (work / "below").mkdir()
    for files in ("cwd", "sessions"):
        tracker = tracker_of(files, str(tmp_path / "s.yaml"), [str(work), str(work / "below"), "relative", "/missing"])
        tracker.keep = keep
        (work / "below" / files).touch()
        (tmp_path / f"{files}.txt").touch()
        tracker.note()
    assert noted == [(str(work), ["below/cwd"]), (CHILD, ["cwd.txt"]), (str(work), ["below/sessions"])]
