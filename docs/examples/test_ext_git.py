"""Tests of ext_git.py in process: `pytest docs/examples/test_ext_git.py`."""

from pathlib import Path

import pytest

import ext_sdk
from docs.examples import ext_git
from ext_sdk.testing import Host


@pytest.fixture
def extension() -> ext_sdk.Extension:
    return ext_git.extension


def test_a_folder_becomes_a_repository_whose_history_is_checked(ext_host: Host, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<p>")
    assert ext_host.call("commit", {"message": "Add a page"}).success
    assert ext_host.call("assert-status").success
    assert ext_host.call("assert-history", {"message": "Add a page", "count": 1}).success
    wrong = ext_host.call("assert-history", {"message": {"startsWith": "Remove"}})
    assert "Add a page" in wrong.error


def test_changes_that_are_not_committed_are_listed(ext_host: Host, tmp_path: Path) -> None:
    ext_host.call("commit", {"message": "Begin"})
    (tmp_path / "new.txt").touch()
    assert "?? new.txt" in ext_host.call("assert-status").error
    assert ext_host.call("assert-status", {"changes": {"containsLines": "?? new.txt"}}).success


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({"revision": "no-branch"}, "exit code 128"),
        ({"revision": "--output=/tmp/x"}, "exit code 128"),
        ({"repository": ".."}, "not a path inside the working directory"),
    ],
)
def test_what_is_not_there_fails_with_the_output_of_git(ext_host: Host, args: dict[str, str], error: str) -> None:
    ext_host.call("commit", {"message": "Begin"})
    assert error in ext_host.call("assert-history", args).error
