"""`remove`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_sdk.files import Workdir

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.ext_shell_files import FileHost


@pytest.fixture(autouse=True)
def _entries(workdir: Path) -> None:
    for name in ("a.txt", "b.txt", "c.log", ".hidden.txt", "dir/d.txt", "dir/sub/e.txt", "dir/.git/config"):
        (workdir / name).parent.mkdir(parents=True, exist_ok=True)
        (workdir / name).touch()
    (workdir / "empty").mkdir()
    (workdir / "out").symlink_to("../outside")
    (workdir / "in").symlink_to("dir")


def left(workdir: Path) -> set[str]:
    return {str(path.relative_to(workdir)) for path in workdir.rglob("*") if not path.is_dir()}


ALL = {"a.txt", "b.txt", "c.log", ".hidden.txt", "dir/d.txt", "dir/sub/e.txt", "dir/.git/config"}


def test_a_file_is_removed(host: FileHost, workdir: Path) -> None:
    result = host.ok("remove", path="a.txt")
    assert (result.message, result.outputs) == ("Removed a.txt", {"removed": "1"})
    assert left(workdir) == ALL - {"a.txt"}


def test_an_empty_directory_is_removed_and_another_only_recursively(host: FileHost, workdir: Path) -> None:
    host.ok("remove", path="empty")
    failure = host.failed("remove", path="dir")
    assert failure.error == (
        "dir: expected a file or an empty directory, got a directory with 3 entries; `recursive: true` removes it"
    )
    assert (workdir / "dir").is_dir()
    host.ok("remove", path="dir", recursive=True)
    assert not (workdir / "dir").exists()


def test_a_link_is_removed_and_not_what_it_leads_to(host: FileHost, workdir: Path) -> None:
    host.ok("remove", path="out")
    host.ok("remove", path="in")
    assert (workdir.parent / "outside" / "secret").exists()
    assert left(workdir) == ALL


def test_nothing_to_remove_is_a_failure_unless_told(host: FileHost) -> None:
    assert "`ignoreMissing: true` accepts that" in host.failed("remove", path="nothing").error
    host.failed("remove", glob="*.nothing")
    host.failed("remove", path="a.txt/nothing")
    assert host.ok("remove", path="nothing", ignoreMissing=True).outputs == {"removed": "0"}
    assert host.ok("remove", glob="no/*/thing", ignoreMissing=True).message == "Removed 0 entries of no/*/thing"


@pytest.mark.parametrize(
    ("glob", "gone"),
    [
        ("*.txt", {"a.txt", "b.txt"}),
        ("?.log", {"c.log"}),
        ("[ab].*", {"a.txt", "b.txt"}),
        (".*.txt", {".hidden.txt"}),
        ("**/*.txt", {"a.txt", "b.txt", "dir/d.txt", "dir/sub/e.txt"}),
        ("dir/**/*.txt", {"dir/d.txt", "dir/sub/e.txt"}),
        ("*/d.txt", {"dir/d.txt"}),
        ("a.txt", {"a.txt"}),
        ("./dir/../*.log", {"c.log"}),
        ("dir/.git/*", {"dir/.git/config"}),
        ("in/*.txt", set()),
    ],
)
def test_what_matches_a_pattern_is_removed(host: FileHost, workdir: Path, glob: str, gone: set[str]) -> None:
    result = host("remove", glob=glob, ignoreMissing=True)
    assert result.success
    assert left(workdir) == ALL - gone
    assert result.outputs == {"removed": str(len(gone))}


def test_a_pattern_takes_directories_with_it_when_told(host: FileHost, workdir: Path) -> None:
    host.failed("remove", glob="d*")
    assert left(workdir) == ALL
    host.ok("remove", glob="**", recursive=True)
    assert left(workdir) == {".hidden.txt"}
    assert (workdir.parent / "outside" / "secret").exists()


@pytest.mark.parametrize("path", [".", "dir/..", "..", "../outside/secret", "/", "out/secret", "dir/../../outside"])
def test_neither_the_working_directory_nor_anything_outside_is_removed(
    host: FileHost, workdir: Path, path: str
) -> None:
    failure = host.failed("remove", path=path, recursive=True, ignoreMissing=True)
    assert "working directory" in failure.error
    assert left(workdir) == ALL
    assert (workdir.parent / "outside" / "secret").exists()


def test_the_absolute_path_of_the_working_directory_is_no_way_round(host: FileHost, workdir: Path) -> None:
    host.failed("remove", path=str(workdir), recursive=True)
    assert left(workdir) == ALL
    host.ok("remove", path=str(workdir / "a.txt"))


@pytest.mark.parametrize("glob", ["../*", "../outside/*", "/tmp/*", "dir/../../outside/**"])
def test_a_pattern_does_not_lead_out(host: FileHost, workdir: Path, glob: str) -> None:
    failure = host.failed("remove", glob=glob, recursive=True, ignoreMissing=True)
    assert "not a path inside the working directory" in failure.error
    assert (workdir.parent / "outside" / "secret").exists()


def test_a_pattern_follows_no_link(host: FileHost, workdir: Path) -> None:
    host.ok("remove", glob="out/*", ignoreMissing=True)
    host.ok("remove", glob="**/secret", ignoreMissing=True)
    assert (workdir.parent / "outside" / "secret").exists()


@pytest.mark.parametrize("args", [{}, {"path": "a", "glob": "b"}, {"path": ""}])
def test_one_of_path_and_glob_is_needed(host: FileHost, args: dict[str, object]) -> None:
    assert "expected one of path and glob" in host.refused("remove", **args)


def test_what_somebody_else_removes_first_is_no_failure_but_nothing_removed(
    host: FileHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = Workdir.remove

    def too_late(workdir: Workdir, text: str) -> None:
        remove(workdir, text)
        remove(workdir, text)

    monkeypatch.setattr(Workdir, "remove", too_late)
    assert host.ok("remove", path="a.txt", ignoreMissing=True).outputs == {"removed": "0"}


def test_a_directory_that_goes_while_a_pattern_is_looked_for_has_nothing_in_it(
    host: FileHost, workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Workdir.names

    def names_and_exchange(looked: Workdir, text: str) -> list[str]:
        found = names(looked, text)
        if text == "." and (workdir / "empty").exists():
            (workdir / "empty").rmdir()
            (workdir / "dir").rename(workdir.parent / "gone")
        return found

    monkeypatch.setattr(Workdir, "names", names_and_exchange)
    assert host.ok("remove", glob="*/*.txt", ignoreMissing=True).outputs == {"removed": "0"}


def test_a_removal_without_time_left_stops(host: FileHost, workdir: Path) -> None:
    host.more_context = {"timeout": "1ns"}
    assert "the time was up" in host.failed("remove", glob="**/*.txt").message
    assert left(workdir) == ALL
