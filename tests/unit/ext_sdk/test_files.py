"""Files beneath a directory, by openat2(2), where there is one, and by the walk that stands in for it."""

from __future__ import annotations

import os
import socket
import stat
import sys
from pathlib import Path

import pytest

from ext_sdk import files
from ext_sdk.files import NotRegular, PathEscapes, TooLarge, Workdir, kind_of, os_errors
from ext_sdk.result import OperationFailed


def names_in(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


WAYS = {"best": files.safe_opener(), "walk": files.open_by_walk}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    root = tmp_path / "workdir"
    root.mkdir()
    return root


@pytest.fixture(params=WAYS)
def workdir(root: Path, request: pytest.FixtureRequest) -> Workdir:
    return Workdir(root, WAYS[request.param])


@pytest.fixture(autouse=True)
def _no_descriptor_is_left_open() -> object:
    before = names_in(Path("/proc/self/fd"))
    yield
    assert names_in(Path("/proc/self/fd")) == before


# --- Paths ---


@pytest.mark.parametrize(
    ("text", "relative"),
    [
        ("a", "a"),
        ("./a//b/", "a/b"),
        ("a/../b", "b"),
        ("a/b/../../c", "c"),
        (".", "."),
        ("a/..", "."),
        ("...", "..."),
        ("a b\n", "a b\n"),
        ("~", "~"),
        ("$HOME", "$HOME"),
    ],
)
def test_a_path_is_relative_to_the_directory(workdir: Workdir, text: str, relative: str) -> None:
    assert workdir.relative(text) == relative


def test_an_absolute_path_inside_is_taken(workdir: Workdir, root: Path, tmp_path: Path) -> None:
    assert workdir.relative(str(root)) == "."
    assert workdir.relative(f"{root}/a/b") == "a/b"
    (tmp_path / "alias").symlink_to(root)
    assert Workdir(tmp_path / "alias").relative(f"{root}/a") == "a"
    assert Workdir(tmp_path / "alias").relative(f"{tmp_path}/alias/a") == "a"


@pytest.mark.parametrize(
    "text", ["..", "../outside/secret", "a/../../outside/secret", "/etc/passwd", "/", "", "a\0b", "\ud800"]
)
def test_a_path_that_leads_out_or_names_nothing_is_refused(workdir: Workdir, text: str) -> None:
    for access in (workdir.relative, workdir.exists, workdir.stat, workdir.mkdir, workdir.remove, workdir.names):
        with pytest.raises(PathEscapes, match="not a path inside the working directory"):
            access(text)


def test_a_name_that_only_begins_like_the_directory_is_outside(workdir: Workdir, root: Path) -> None:
    (root.parent / "workdir-2").mkdir()
    with pytest.raises(PathEscapes):
        workdir.relative(f"{root}-2")


def test_the_path_for_programs_is_absolute_and_exists(workdir: Workdir, root: Path) -> None:
    (root / "a").mkdir()
    assert workdir.path("a/../a") == root / "a"
    assert workdir.path(".") == root
    with pytest.raises(FileNotFoundError):
        workdir.path("b")


# --- Symbolic links ---


@pytest.fixture
def links(root: Path) -> None:
    (root / "dir").mkdir()
    (root / "dir" / "file").write_text("inside")
    for name, target in {
        "out": "../outside/secret",
        "out-dir": "../outside",
        "out-absolute": str(root.parent / "outside"),
        "absolute-inside": str(root / "dir"),
        "out-and-in-again": "../workdir/dir/file",
        "in": "dir/file",
        "in-dir": "dir",
        "chain": "in",
        "up-inside": "dir/../dir/file",
        "loop": "loop",
        "broken": "nothing",
    }.items():
        (root / name).symlink_to(target)
    (root / "dir" / "up").symlink_to("../in")


@pytest.mark.usefixtures("links")
@pytest.mark.parametrize("text", ["in", "in-dir/file", "chain", "up-inside", "dir/up", "in-dir/up"])
def test_a_link_that_stays_inside_is_followed(workdir: Workdir, text: str) -> None:
    assert workdir.read(text, limit=100) == b"inside"


@pytest.mark.usefixtures("links")
@pytest.mark.parametrize(
    "text",
    ["out", "out-dir/secret", "out-absolute/secret", "absolute-inside/file", "out-and-in-again", "in-dir/../out"],
)
def test_a_link_that_leads_out_is_not_followed(workdir: Workdir, text: str) -> None:
    with pytest.raises(PathEscapes, match="not a path inside"):
        workdir.read(text, limit=100)
    with pytest.raises(PathEscapes, match="not a path inside"):
        workdir.append(text, b"x")


@pytest.mark.usefixtures("links")
def test_nothing_is_made_written_or_removed_beyond_a_link_that_leads_out(workdir: Workdir, root: Path) -> None:
    for attempt in (
        lambda: workdir.write("out-dir/new", b"x"),
        lambda: workdir.write("out-dir/a/b", b"x", parents=True),
        lambda: workdir.mkdir("out-dir/new"),
        lambda: workdir.remove("out-dir/secret"),
        lambda: workdir.names("out-dir"),
        lambda: workdir.stat("out-dir/secret"),
        lambda: workdir.stat("out-dir/secret", follow=False),
        lambda: workdir.exists("out-dir/secret"),
        lambda: workdir.path("out-dir"),
    ):
        with pytest.raises(PathEscapes):
            attempt()
    assert names_in(root.parent / "outside") == ["secret"]
    assert (root.parent / "outside" / "secret").read_text() == "secret"


@pytest.mark.usefixtures("links")
def test_links_in_a_circle_and_to_nowhere_are_errors_of_the_system(workdir: Workdir) -> None:
    with pytest.raises(OSError, match="Too many levels"):
        workdir.read("loop", limit=1)
    with pytest.raises(FileNotFoundError):
        workdir.read("broken", limit=1)


@pytest.mark.usefixtures("links")
@pytest.mark.parametrize("name", ["in", "chain", "up-inside", "dir/up", "in-dir/up"])
def test_writing_follows_a_link_that_stays_inside(workdir: Workdir, root: Path, name: str) -> None:
    (root / "dir" / "file").chmod(0o640)
    workdir.write(name, b"new")
    assert (root / name).is_symlink()
    assert not (root / "dir" / "file").is_symlink()
    assert (root / "dir" / "file").read_bytes() == b"new"
    assert (root / "dir" / "file").stat().st_mode & 0o777 == 0o640
    assert names_in(root / "dir") == ["file", "up"]


@pytest.mark.usefixtures("links")
def test_writing_makes_the_file_that_a_link_leads_to(workdir: Workdir, root: Path) -> None:
    workdir.write("broken", b"new")
    assert (root / "broken").is_symlink()
    assert (root / "nothing").read_bytes() == b"new"
    (root / "far").symlink_to("missing/file")
    with pytest.raises(FileNotFoundError):
        workdir.write("far", b"new", parents=True)


@pytest.mark.usefixtures("links")
@pytest.mark.parametrize("name", ["out", "out-absolute", "out-and-in-again", "absolute-inside"])
def test_writing_does_not_follow_a_link_that_leads_out(workdir: Workdir, root: Path, name: str) -> None:
    with pytest.raises(PathEscapes):
        workdir.write(name, b"new")
    assert (root / name).is_symlink()
    assert (root / "dir" / "file").read_text() == "inside"
    assert (root.parent / "outside" / "secret").read_text() == "secret"
    assert names_in(root.parent / "outside") == ["secret"]


@pytest.mark.usefixtures("links")
@pytest.mark.parametrize("target", [".", "..", "dir", "dir/", "dir/.."])
def test_writing_to_a_link_to_a_directory_is_refused(workdir: Workdir, root: Path, target: str) -> None:
    (root / "link").symlink_to(target)
    with pytest.raises((NotRegular, PathEscapes)):
        workdir.write("link", b"new")


@pytest.mark.usefixtures("links")
def test_writing_to_links_in_a_circle_is_an_error_of_the_system(workdir: Workdir) -> None:
    with pytest.raises(OSError, match="Too many levels"):
        workdir.write("loop", b"new")


def test_a_file_in_the_place_of_a_directory_is_named(workdir: Workdir, root: Path) -> None:
    (root / "a").write_text("file")
    with pytest.raises(NotADirectoryError, match="'a' is a file, not a directory"):
        workdir.write("a/b/c", b"new", parents=True)


@pytest.mark.usefixtures("links")
def test_removing_a_link_leaves_what_it_leads_to(workdir: Workdir, root: Path) -> None:
    for name in ("out-dir", "in-dir", "broken", "loop"):
        workdir.remove(name)
        assert not os.path.lexists(root / name)
    assert (root / "dir" / "file").exists()
    assert (root.parent / "outside" / "secret").exists()


@pytest.mark.usefixtures("links")
def test_a_broken_link_is_there_and_its_target_is_not(workdir: Workdir) -> None:
    assert workdir.exists("broken")
    assert kind_of(workdir.stat("broken", follow=False).st_mode) == "symlink"
    with pytest.raises(FileNotFoundError):
        workdir.stat("broken")


def test_a_directory_exchanged_for_a_link_while_it_is_open_changes_nothing(workdir: Workdir, root: Path) -> None:
    (root / "dir").mkdir()
    with workdir.parent("dir/new") as (directory, name):
        (root / "dir").rename(root / "moved")
        (root / "dir").symlink_to("../outside")
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=directory))
    assert names_in(root.parent / "outside") == ["secret"]
    assert (root / "moved" / "new").exists()


def test_the_walk_does_not_enter_a_link_that_takes_the_place_of_a_directory(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "dir").mkdir()
    (root / "dir" / "secret").write_text("harmless")
    look = os.stat

    def look_then_exchange(path: str, **options: object) -> os.stat_result:
        found = look(path, **options)  # type: ignore[arg-type]
        if path == "dir":
            (root / "dir").rename(root / "moved")
            (root / "dir").symlink_to("../outside")
        return found

    monkeypatch.setattr(os, "stat", look_then_exchange)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        files.open_by_walk(descriptor := os.open(root, os.O_RDONLY), "dir/secret", os.O_RDONLY, 0)
    os.close(descriptor)


# --- Reading ---


def test_a_file_is_read_up_to_the_limit(workdir: Workdir, root: Path) -> None:
    (root / "a").write_bytes(b"12345")
    assert workdir.read("a", limit=5) == b"12345"
    assert workdir.read("a", limit=1 << 62) == b"12345"
    with pytest.raises(TooLarge, match="too large") as failure:
        workdir.read("a", limit=4)
    assert failure.value.error == "a: expected at most 4 bytes, got more"


def test_an_endless_file_is_read_no_further_than_the_limit(workdir: Workdir, root: Path) -> None:
    with (root / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(TooLarge):
        workdir.read("sparse", limit=1000)


def test_what_is_no_regular_file_is_refused_without_waiting(workdir: Workdir, root: Path) -> None:
    os.mkfifo(root / "fifo")
    (root / "dir").mkdir()
    (root / "null").symlink_to("/dev/null")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(root / "socket"))
    for name, kind in {"fifo": "fifo", "dir": "directory", "socket": "socket", ".": "directory"}.items():
        for attempt in (
            lambda name=name: workdir.read(name, limit=1),
            lambda name=name: workdir.append(name, b"x"),
        ):
            with pytest.raises(NotRegular) as failure:
                attempt()
            assert failure.value.error == f"{name}: expected a regular file, got a {kind}"
    for name in ("fifo", "dir", "socket"):
        with pytest.raises(NotRegular):
            workdir.write(name, b"x")
    with pytest.raises(PathEscapes):
        workdir.read("null", limit=1)


def test_names_are_sorted(workdir: Workdir, root: Path) -> None:
    for name in ("b", "a", ".c"):
        (root / name).touch()
    assert workdir.names(".") == [".c", "a", "b"]


# --- Writing ---


def test_a_file_is_written_with_the_permissions_asked_for(workdir: Workdir, root: Path) -> None:
    workdir.write("a", b"1", mode=0o600)
    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o600
    workdir.write("a", b"2")
    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o600, "a file that is replaced keeps its permissions"
    workdir.write("a", b"3", mode=0o755)
    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o755
    assert (root / "a").read_bytes() == b"3"


def test_new_files_and_directories_obey_the_umask(workdir: Workdir, root: Path) -> None:
    before = os.umask(0o027)
    try:
        workdir.write("dir/a", b"", parents=True)
    finally:
        os.umask(before)
    assert stat.S_IMODE((root / "dir").stat().st_mode) == 0o750
    assert stat.S_IMODE((root / "dir" / "a").stat().st_mode) == 0o640


def test_directories_are_made_only_when_asked_for(workdir: Workdir, root: Path) -> None:
    with pytest.raises(FileNotFoundError):
        workdir.write("a/b/c", b"")
    workdir.write("a/b/c", b"", parents=True)
    workdir.write("a/b/d", b"", parents=True)
    assert names_in(root / "a" / "b") == ["c", "d"]


def test_an_existing_file_is_left_alone_when_told_so(workdir: Workdir, root: Path) -> None:
    (root / "a").write_text("old")
    (root / "link").symlink_to("nothing")
    for name in ("a", "link"):
        with pytest.raises(FileExistsError):
            workdir.write(name, b"new", overwrite=False)
    workdir.write("b", b"new", overwrite=False)
    assert (root / "a").read_text() == "old"
    assert names_in(root) == ["a", "b", "link"]


def test_a_file_that_is_being_written_is_seen_whole_or_not_at_all(workdir: Workdir, root: Path) -> None:
    (root / "a").write_text("old")
    with pytest.raises(RuntimeError), workdir.writing("a") as file:  # noqa: PT012
        file.write(b"half")
        file.flush()
        assert (root / "a").read_text() == "old"
        raise RuntimeError
    assert (root / "a").read_text() == "old"
    assert names_in(root) == ["a"], "nothing is left behind"


def test_bytes_are_added_to_the_end(workdir: Workdir, root: Path) -> None:
    workdir.append("dir/a", b"1", parents=True, mode=0o640)
    workdir.append("dir/a", b"2")
    assert (root / "dir" / "a").read_bytes() == b"12"
    assert stat.S_IMODE((root / "dir" / "a").stat().st_mode) == 0o640


def test_a_directory_is_made_once(workdir: Workdir, root: Path) -> None:
    workdir.mkdir("a/b")
    workdir.mkdir("a/b")
    workdir.mkdir(".")
    (root / "file").touch()
    with pytest.raises(NotADirectoryError, match="'file' is a file"):
        workdir.mkdir("file")
    with pytest.raises(NotADirectoryError):
        workdir.mkdir("file/b")


# --- Removing ---


def test_a_directory_is_removed_with_all_that_is_in_it(workdir: Workdir, root: Path) -> None:
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file").touch()
    (root / "a" / "link").symlink_to("../../outside")
    workdir.remove("a")
    assert names_in(root) == []
    assert (root.parent / "outside" / "secret").exists()


def test_the_working_directory_itself_is_never_removed_or_written(workdir: Workdir, root: Path) -> None:
    for text in (".", str(root), "a/.."):
        for attempt in (workdir.remove, lambda text: workdir.write(text, b"")):
            with pytest.raises(PathEscapes, match="working directory"):
                attempt(text)
    assert root.is_dir()


def test_removing_what_is_not_there_is_an_error(workdir: Workdir) -> None:
    with pytest.raises(FileNotFoundError):
        workdir.remove("a")


def test_a_missing_working_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Workdir(tmp_path / "nothing").read("a", limit=1)


# --- Errors ---


def test_what_the_system_says_becomes_a_failure_with_path_and_advice() -> None:
    advice = "is the path right? It starts in the working directory"
    for action, more in (("read", ""), ("write", ", and `parents: true` makes its directories")):
        with pytest.raises(OperationFailed, match=f"could not {action} 'a'") as failure, os_errors(action, "a"):
            raise FileNotFoundError(2, "No such file or directory", "a")
        assert failure.value.error == f"could not {action} 'a': No such file or directory; {advice}{more}"
    with pytest.raises(OperationFailed) as failure, os_errors("read", "a"):
        raise OSError(5, "Input/output error")
    assert failure.value.error == "could not read 'a': Input/output error"


def test_on_linux_the_kernel_does_it_and_the_walk_where_the_call_is_not_to_be_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    best = files.safe_opener.__wrapped__
    if os.uname().sysname == "Linux":
        assert best() is not files.open_by_walk
    monkeypatch.setattr(files, "SYS_OPENAT2", 100_000)  # no such system call, as on an older kernel
    assert best() is files.open_by_walk
    monkeypatch.setitem(sys.modules, "ctypes", None)  # a Python that was built without
    assert best() is files.open_by_walk


@pytest.mark.parametrize("way", ["best", "walk"])
def test_a_chain_of_links_has_an_end(tmp_path: Path, way: str) -> None:
    opener = files.safe_opener() if way == "best" else files.open_by_walk
    (tmp_path / "0").touch()
    for number in range(1, 60):
        (tmp_path / str(number)).symlink_to(str(number - 1))
    root = os.open(tmp_path, os.O_RDONLY)
    try:
        os.close(opener(root, "40", os.O_RDONLY, 0))
        with pytest.raises(OSError, match="Too many levels of symbolic links"):
            opener(root, "59", os.O_RDONLY, 0)
    finally:
        os.close(root)


@pytest.mark.parametrize("way", ["best", "walk"])
def test_what_is_opened_is_closed_on_exec(tmp_path: Path, way: str) -> None:
    opener = files.safe_opener() if way == "best" else files.open_by_walk
    root = os.open(tmp_path, os.O_RDONLY)
    for path, flags in (("new", os.O_CREAT | os.O_WRONLY), (".", os.O_RDONLY)):
        descriptor = opener(root, path, flags, 0o600)
        assert not os.get_inheritable(descriptor)
        os.close(descriptor)
    os.close(root)
