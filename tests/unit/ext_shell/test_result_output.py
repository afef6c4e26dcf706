"""`run`: output of any size and any bytes, whole in a file, short in the answer, line by line in the log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.ext_shell import Extension

LINE_LIMIT = 65_535  # bytes that a host reads


def test_a_short_output_is_answered_whole_and_has_no_file(shell: Extension) -> None:
    answer = shell.ok("run", command=["seq", "1000"])
    assert answer.outputs["stdout"].split() == [str(number) for number in range(1, 1001)]
    assert "stdoutFile" not in answer.outputs


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_long_output_is_answered_by_its_ends_and_kept_in_a_file(stream: str, shell: Extension) -> None:
    script = "seq 100000" + (" >&2" if stream == "stderr" else "")
    answer = shell.ok("run", script=script)
    shown = answer.outputs[stream]
    assert shown.startswith("1\n2\n3\n")
    assert shown.endswith("\n99999\n100000\n")
    assert f"of 588,895 bytes left out; all of it is in {stream}File" in shown
    whole = Path(answer.outputs[f"{stream}File"])
    assert whole.read_text().split() == [str(number) for number in range(1, 100_001)]
    assert whole.stat().st_mode & 0o777 == 0o600


def test_ten_megabytes_on_both_streams_fit_an_answer_and_two_files(shell: Extension) -> None:
    script = "head -c 10000000 /dev/zero | tr '\\0' x; head -c 10000000 /dev/zero | tr '\\0' y >&2"
    answer = shell.ok("run", script=script)
    assert Path(answer.outputs["stdoutFile"]).read_bytes() == b"x" * 10_000_000
    assert Path(answer.outputs["stderrFile"]).read_bytes() == b"y" * 10_000_000
    assert all(len(line.data) <= LINE_LIMIT for line in shell.host.lines)


def test_an_output_past_the_limit_is_counted_and_its_end_is_kept(fresh: Callable[..., Extension]) -> None:
    shell = fresh(config={"outputLimit": "1MiB", "maxOperationTime": "5m"})
    answer = shell.ok("run", script="echo begin; head -c 300000000 /dev/zero | tr '\\0' x; echo end")
    data = Path(answer.outputs["stdoutFile"]).read_bytes()
    assert data.startswith(b"begin\n")
    assert data.endswith(b"xend\n")
    assert b"of 300000010 bytes were not kept" in data
    assert len(data) < 1_200_000
    assert "bytes left out; stdoutFile has more" in answer.outputs["stdout"]
    peak = Path(f"/proc/{shell.host.pid}/status").read_text().partition("VmHWM:")[2].split()[0]
    assert int(peak) < 150_000  # kB


def test_an_output_that_was_not_kept_whole_cannot_pass_a_check(fresh: Callable[..., Extension]) -> None:
    shell = fresh(config={"outputLimit": 1000})
    script = "head -c 1000 /dev/zero; echo hidden; head -c 100000 /dev/zero"
    answer = shell.failed("run", script=script, expect={"stdout": {"notContains": "hidden"}})
    assert "stdout: expected to be checked completely, got 101007 bytes, of which" in answer.error


@pytest.mark.parametrize(
    ("script", "text"),
    [
        (r"printf '\xff\xfe'", "\ufffd\ufffd"),
        (r"printf 'a\xc3'", "a\ufffd"),
        (r"printf '\xed\xa0\x80'", "\ufffd\ufffd\ufffd"),
    ],
)
def test_bytes_that_are_no_utf_8_are_replaced_in_the_answer_and_exact_in_the_file(
    script: str, text: str, shell: Extension
) -> None:
    answer = shell.ok("run", script=script)
    assert answer.outputs["stdout"] == text
    assert Path(answer.outputs["stdoutFile"]).read_bytes().decode("utf-8", "replace") == text
    assert b"\xef\xbf\xbd" not in Path(answer.outputs["stdoutFile"]).read_bytes()


@pytest.mark.parametrize(
    "script",
    [
        "head -c 16000 /dev/zero",
        r"printf '\x01\x1b\x7f%.0s' {1..5000}",
        r"printf '\xf0\x9f\x98\x80%.0s' {1..4000}",
        "head -c 16000 /dev/zero; head -c 16000 /dev/zero >&2",
        r"printf '\\\"%.0s' {1..5000}",
    ],
    ids=["NULs", "control characters", "emoji", "both streams", "backslashes"],
)
def test_no_output_makes_a_line_longer_than_hosts_read(script: str, shell: Extension) -> None:
    """JSON may take six bytes for one."""
    shell.ok("run", script=script)
    assert all(len(line.data) <= LINE_LIMIT for line in shell.host.lines)


def test_a_huge_output_costs_the_extension_bounded_memory(fresh: Callable[..., Extension]) -> None:
    shell = fresh(config={"maxOperationTime": "5m"})
    shell.ok("run", script="head -c 150000000 /dev/zero")
    peak = Path(f"/proc/{shell.host.pid}/status").read_text().partition("VmHWM:")[2].split()[0]
    assert int(peak) < 100_000  # kB


class TestLog:
    def test_lines_are_logged_as_they_come(self, shell: Extension) -> None:
        os.mkfifo(shell.workdir / "go")
        script = "exec 3<>go; echo one; read -r _ <&3; echo two >&2; read -r _ <&3; printf three"
        since = len(shell.host.lines)
        id = shell.send("run", {"script": script})
        for line in ("one", "two"):
            shell.logged(line)
            (shell.workdir / "go").write_text("on\n")
        answer = shell.answer(id, since)
        lines = [(log["message"], log["data"]) for log in answer.logs]
        assert lines == [("one", {"stream": "stdout"}), ("two", {"stream": "stderr"}), ("three", {"stream": "stdout"})]

    def test_a_hundred_lines_are_logged_and_the_rest_is_counted(self, shell: Extension) -> None:
        answer = shell.ok("run", command=["seq", "5000"])
        assert answer.log_messages[:100] == [str(number) for number in range(1, 101)]
        assert len(answer.log_messages) < 200
        assert "lines of stdout were not logged" in answer.log_messages[-1]

    def test_long_lines_are_cut(self, shell: Extension) -> None:
        answer = shell.ok("run", script="head -c 100000 /dev/zero | tr '\\0' x; echo; echo next")
        assert answer.log_messages == ["x" * 2000 + "…", "next"]

    def test_nothing_is_logged_on_request(self, shell: Extension) -> None:
        assert shell.ok("run", command=["echo", "hi"], log=False).log_messages == []


class TestWhereNoFileCanBeWritten:
    def test_a_long_output_is_answered_all_the_same(self, fresh: Callable[..., Extension], tmp_path: Path) -> None:
        shell = fresh(config={"artifacts": str(tmp_path / "file" / "artifacts")})
        (tmp_path / "file").touch()
        answer = shell.ok("run", command=["seq", "100000"], log=False)
        assert "lost" in answer.outputs["stdout"]
        assert "stdoutFile" not in answer.outputs
        assert "failed to write all of stdout to a file" in answer.log_messages[0]

    def test_a_process_is_not_started_without_its_log(self, fresh: Callable[..., Extension], tmp_path: Path) -> None:
        shell = fresh(config={"artifacts": str(tmp_path / "file" / "artifacts")})
        (tmp_path / "file").touch()
        answer = shell.failed("start", name="web", command=["touch", "ran"])
        assert f"could not write 'web.log': Not a directory: '{tmp_path}/file/artifacts'" in answer.error
        assert "configure another directory as `artifacts`" in answer.error
        assert not (shell.workdir / "ran").exists()
