"""`run`: what can be expected of a command, and what is said when it does not hold."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest
from msgspec import ValidationError, convert

from ext_sdk.expect import Searcher
from ext_sdk.files import PathEscapes
from ext_shell.expectations import AssertFile, FileCheck, FileExpectation, check_files
from ext_shell.files import workdir_for
from tests.support.shell_contexts import shell_call

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.ext_shell import Extension


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


HOLDS: list[tuple[str, dict[str, object], int]] = [
    ("exit 0", {"exitCode": 0}, 1),
    ("exit 3", {"exitCode": 3}, 1),
    ("exit 3", {"exitCode": [1, 3]}, 1),
    ("exit 3", {"exitCode": "nonzero"}, 1),
    ("exit 3", {"exitCode": {"gt": 2, "lt": 4, "not": 5}}, 3),
    ("kill -TERM $$", {"signal": "SIGTERM"}, 1),
    ("kill -USR1 $$", {"signal": "usr1"}, 1),
    ("echo out; echo err >&2", {"stdout": "out", "stderr": "err"}, 3),
    ("echo out", {"stdout": {"contains": ["o", "t"], "matches": "^o.t$", "lineCount": 1}}, 5),
    ("echo out; exit 4", {"stdout": "out", "exitCode": 4}, 2),
    ("echo '{\"n\": 9007199254740993}'", {"stdout": {"json": [{"path": "$.n", "equals": 9007199254740993}]}}, 2),
    ("echo hi >file", {"files": {"file": {"content": "hi", "size": 3}, "other": {"exists": False}}}, 5),
    ("true", {"duration": {"lt": "1h", "gte": "0s"}}, 3),
]

DOES_NOT_HOLD: list[tuple[str, dict[str, object], str]] = [
    ("exit 3", {"exitCode": [0, 1]}, "exitCode: expected to be one of 0, 1, got 3"),
    ("exit 0", {"exitCode": "nonzero"}, "exitCode: expected to be nonzero, got 0"),
    ("exit 0", {"signal": "SIGTERM"}, "the command: expected to be killed by SIGTERM, got exit code 0"),
    ("kill -INT $$", {"signal": "TERM"}, "the command: expected to be killed by SIGTERM, got killed by SIGINT"),
    ("kill -INT $$", {"exitCode": "nonzero"}, "exitCode: expected to be nonzero, got none (killed by SIGINT)"),
    ("echo out", {"stdout": "other"}, 'stdout: expected to equal "other", got "out"'),
    ("echo out; exit 1", {"stdout": "out"}, "exitCode: expected to equal 0, got 1"),
    ("echo err >&2", {"stderr": {"empty": True}}, "stderr: expected to be empty"),
    ('echo \'{"n": "1"}\'', {"stdout": {"json": [{"path": "$.n", "equals": 1}]}}, "$.n"),
    ("echo hi >file", {"files": {"file": {"content": "ho"}}}, 'file: expected to equal "ho", got "hi"'),
    ("true", {"files": {"file": {"exists": True}}}, "file: expected to exist, got nothing"),
    ("true", {"duration": {"gt": "1h"}}, "duration: expected to be more than 1h0m0s, got "),
]

REFUSED: list[tuple[object, str]] = [
    ({}, "expect: this checks nothing"),
    ({"stdout": {}}, "expect.stdout: this checks nothing"),
    ({"files": {}}, "expect.files: expected an object of length >= 1"),
    ({"files": {"x": {}}}, "expect.files.x: this checks nothing"),
    ({"duration": {}}, "expect.duration: this checks nothing"),
    ({"exitCode": 0, "signal": "TERM"}, "expected one of exitCode and signal"),
    ({"signal": "SIGNOTHING"}, "expected the name of a signal, such as SIGTERM, found 'SIGNOTHING'"),
    ({"exitCode": True}, "expect.exitCode"),
    ({"exitCode": "0"}, "expect.exitCode"),
    ({"exitcode": 0}, "unknown argument 'exitcode'; did you mean 'exitCode'?"),
    ({"stdout": {"matches": "("}}, "expect.stdout"),
]


@pytest.mark.parametrize(("script", "expect", "count"), HOLDS)
def test_what_holds_is_a_success_that_says_how_much_was_checked(
    script: str, expect: dict[str, object], count: int, shell: Extension
) -> None:
    answer = shell.ok("run", script=script, expect=expect)
    assert answer.message.endswith(f", {count} check{'' if count == 1 else 's'} passed")


@pytest.mark.parametrize(("script", "expect", "said"), DOES_NOT_HOLD)
def test_what_does_not_hold_is_a_failure_that_says_what_was_found(
    script: str, expect: dict[str, object], said: str, shell: Extension
) -> None:
    assert said in shell.failed("run", script=script, expect=expect).error


@pytest.mark.parametrize(("expect", "said"), REFUSED)
def test_what_checks_nothing_or_cannot_hold_is_refused(expect: object, said: str, shell: Extension) -> None:
    (shell.workdir / "ran").unlink(missing_ok=True)
    assert said in shell.refused("run", script="touch ran", expect=expect)
    assert not (shell.workdir / "ran").exists()


def test_all_failures_are_told(shell: Extension) -> None:
    answer = shell.failed(
        "run", script="echo a; echo b >&2; exit 3", expect={"exitCode": 4, "stdout": "x", "stderr": "y"}
    )
    assert "3 of 3 checks failed" in answer.message
    for name in ("exitCode: ", "stdout: ", "stderr: "):
        assert f"{name}expected to equal" in answer.error


def test_a_pattern_that_never_ends_is_a_failure_and_does_not_hang(shell: Extension) -> None:
    answer = shell.failed("run", command=["echo", "a" * 40 + "b"], expect={"stdout": {"matches": "^(a+)+$"}})
    assert "took longer than" in answer.error


def test_checks_end_with_the_timeout(shell: Extension) -> None:
    patterns = [f"^(a+)+{end}$" for end in "123"]  # each would be searched for 2 s
    answer = shell.failed("run", command=["echo", "a" * 40], expect={"stdout": {"matches": patterns}}, timeout="4s")
    assert "the time of the operation was up" in answer.error


def test_an_expected_file_outside_of_the_workdir_is_not_looked_at(shell: Extension) -> None:
    answer = shell.failed("run", command=["true"], expect={"files": {"../x": {"exists": False}}})
    assert "'../x' is not a path inside the working directory" in answer.error


def test_a_check_that_only_a_secret_fails_does_not_show_it(shell: Extension) -> None:
    """Redacted, the text would even pass: what was found is not shown at all."""
    answer = shell.failed(
        "run",
        script="echo $MY_TOKEN",
        env={"MY_TOKEN": "rosebud-1960"},
        expect={"stdout": {"notContains": "rosebud"}},
        log=False,
    )
    assert "stdout: expected not to contain" in answer.error
    assert 'got "[redacted:env.MY_TOKEN#' in answer.error
    assert "rosebud-1960" not in repr(answer.raw)
