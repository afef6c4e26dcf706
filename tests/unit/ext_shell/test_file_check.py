"""Checks of one file: existence, properties, content."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest
from msgspec import ValidationError, convert

from ext_sdk.expect import Searcher
from ext_sdk.files import PathEscapes
from ext_shell.file_check import AssertFile, FileCheck, FileExpectation, check_files
from ext_shell.files import workdir_for
from tests.support.shell_contexts import shell_call

if TYPE_CHECKING:
    from pathlib import Path


def failures(workdir: Path, **given: object) -> tuple[list[str], dict[str, str | int | bool]]:
    """Return the failed checks of the file `a`, and the outputs."""
    args = convert({"path": "a"} | given, AssertFile)
    with shell_call(workdir) as call, Searcher() as searcher:
        check = FileCheck(args, workdir_for(call.context, "a"), call.context, searcher)
        return [str(made) for made in check.checks() if not made.ok], check.outputs


def test_a_file_has_type_size_permissions_and_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("hello\n")
    (tmp_path / "a").chmod(0o640)
    digest = hashlib.sha256(b"hello\n").hexdigest()
    failed, outputs = failures(
        tmp_path, type="file", size=6, mode="640", content={"equals": "hello"}, sha256=digest.upper()
    )
    assert failed == []
    assert outputs == {
        "path": str(tmp_path / "a"),
        "exists": True,
        "type": "file",
        "size": 6,
        "mode": "0640",
        "sha256": digest,
    }


def test_each_difference_is_a_failed_check(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("hello\n")
    (tmp_path / "a").chmod(0o600)
    assert failures(tmp_path, type="directory", size=1, mode="0644", content="bye")[0] == [
        "a: expected to be a directory, got a file",
        "mode of a: expected to be 0644, got 0600",
        "size of a: expected to equal 1, got 6",
        'a: expected to equal "bye", got "hello"',
    ]


def test_a_missing_file(tmp_path: Path) -> None:
    assert failures(tmp_path)[0] == ["a: expected to exist, got nothing"]
    assert failures(tmp_path, exists=False) == ([], {"path": str(tmp_path / "a"), "exists": False})


def test_a_broken_link_exists(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("missing")
    assert failures(tmp_path, exists=False)[0] == ["a: expected not to exist, got a symlink"]
    assert failures(tmp_path, type="symlink")[0] == []


def test_bytes_that_are_not_text_have_no_content_to_check(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"ab\xff")
    assert failures(tmp_path, content="ab")[0] == ["a: expected to be UTF-8, got byte 0xff at offset 2"]


def test_secrets_are_not_in_failed_checks(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("key opensesame-77")
    assert "opensesame" not in str(failures(tmp_path, content="key")[0])


def test_several_files_are_checked_by_path(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    expectations = {
        "a": convert({"content": "1"}, FileExpectation),
        "b": convert({"exists": False}, FileExpectation),
        "c": convert({"exists": True}, FileExpectation),
    }
    with shell_call(tmp_path) as call, Searcher() as searcher:
        checks = check_files(expectations, call.context, searcher)
        with pytest.raises(PathEscapes):
            check_files({"../x": expectations["b"]}, call.context, searcher)
    assert [(check.where, check.ok) for check in checks] == [("a", True), ("a", True), ("b", True), ("c", False)]


@pytest.mark.parametrize("kind", [AssertFile, FileExpectation])
def test_nothing_else_is_expected_of_a_file_that_must_not_exist(kind: type) -> None:
    with pytest.raises(ValidationError, match="`exists: false` excludes size"):
        convert({"path": "a", "exists": False, "size": 1} if kind is AssertFile else {"exists": False, "size": 1}, kind)
