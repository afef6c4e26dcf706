"""What a hostile text, a hostile command or a careless host may try, and what comes of it: nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.ext_shell import TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.ext_shell import Extension

HOSTILE = [
    "$(touch owned)",
    "`touch owned`",
    "'; touch owned; '",
    '"; touch owned; "',
    "\ntouch owned\n",
    "| touch owned",
    "&& touch owned",
    "-n",
    "--help",
    "*",
    "${IFS}",
    "$HOME",
    "a\\",
    "$${x.y}",
    "😀\u2028\x1b[31m",
]


@pytest.fixture(autouse=True)
def _nothing_was_done(shell: Extension) -> object:
    yield
    assert not (shell.workdir / "owned").exists()


def _capture(shell: Extension, text: str) -> None:
    """Have a text captured from a command, as an agent's answer or a page might bring it."""
    (shell.workdir / "text").write_text(text)
    shell.ok("run", command=["cat", "text"], capture={"text": {"trim": False}}, **{"as": "got"})


class TestInjection:
    @pytest.mark.parametrize("text", HOSTILE)
    def test_a_captured_text_is_one_argument(self, text: str, shell: Extension) -> None:
        _capture(shell, text)
        answer = shell.ok("run", command=["printf", "%s\\0%s", "${got.text}", "end"])
        assert answer.outputs["stdout"] == f"{text}\0end"

    @pytest.mark.parametrize("text", HOSTILE)
    def test_a_captured_text_reaches_a_script_by_its_environment(self, text: str, shell: Extension) -> None:
        _capture(shell, text)
        answer = shell.ok("run", script='printf "%s" "$TEXT"', env={"TEXT": "${got.text}"})
        assert answer.outputs["stdout"] == text

    @pytest.mark.parametrize("text", HOSTILE)
    def test_a_captured_text_reaches_a_script_by_its_input(self, text: str, shell: Extension) -> None:
        _capture(shell, text)
        assert shell.ok("run", script="cat", stdin="${got.text}").outputs["stdout"] == text

    def test_a_captured_text_never_becomes_part_of_a_script(self, shell: Extension) -> None:
        _capture(shell, "$(touch owned)")
        answer = shell.failed("run", script="echo ${got.text}")
        advice = "${got.text} is not replaced in scripts; pass the value in `env`, such as {VALUE: '${got.text}'}"
        assert "bad substitution" in answer.error
        assert advice in answer.error
        answer = shell.failed("start", name="web", script="echo ${got.text}", ready={"logLine": "never"})
        assert "bad substitution" in answer.error
        assert advice in answer.error
        shell.ok("start", name="web", script="echo ${got.text}")
        assert advice in shell.failed("wait", name="web").error
        assert "not replaced" not in shell.failed("run", script="echo ${other.text}").error
        assert "not replaced" not in shell.failed("run", script="echo ${got.text}", verbatim=True).error

    def test_a_program_that_is_no_script_of_a_shell_gets_references_as_they_are_with_a_warning(
        self, shell: Extension
    ) -> None:
        _capture(shell, "x")
        answer = shell.ok("run", script="print('${got.text}')", shell="python3", log=False)
        assert answer.outputs["stdout"] == "${got.text}\n"
        assert [log["level"] for log in answer.logs] == ["warn"]
        assert "${got.text} is not replaced in scripts" in answer.log_messages[0]
        assert not shell.ok("run", script="print('${got.other}')", shell="python3", log=False).logs

    def test_a_value_is_not_expanded_again(self, shell: Extension) -> None:
        _capture(shell, "${got.exitCode}")
        assert shell.ok("run", command=["echo", "${got.text}"]).outputs["stdout"] == "${got.exitCode}\n"

    def test_a_nul_in_a_captured_text_is_refused_where_no_program_can_be_given_it(self, shell: Extension) -> None:
        (shell.workdir / "text").write_bytes(b"a\0; touch owned")
        shell.ok("run", command=["cat", "text"], **{"as": "got"})
        assert "an argument has a NUL" in shell.refused("run", command=["echo", "${got.stdout}"])
        assert "variable A has a NUL" in shell.refused("run", command=["env"], env={"A": "${got.stdout}"})
        assert shell.ok("run", command=["cat"], stdin="${got.stdout}").outputs["stdout"] == "a\0; touch owned"

    def test_a_name_of_a_variable_cannot_smuggle_another(self, shell: Extension) -> None:
        assert "a variable's name" in shell.refused("run", command=["env"], env={"A=1\nLD_PRELOAD": "x"})


class TestEscapes:
    @pytest.mark.parametrize(
        "path", ["..", "../..", "/", "/tmp", "a/../..", "out", "out/tmp", "in", "in/tmp", "", "a\0b", "~"]
    )
    def test_no_command_runs_outside_of_the_workdir(self, path: str, shell: Extension) -> None:
        (shell.workdir / "out").symlink_to("/")
        (shell.workdir / "in").symlink_to("out")
        answer = shell.failed("run", command=["touch", "owned"], cwd=path)
        assert "cwd" in answer.error or "inside the working directory" in answer.error

    def test_a_link_that_leads_up_and_in_again_by_name_is_followed_only_inside(self, shell: Extension) -> None:
        (shell.workdir / "sub").mkdir()
        (shell.workdir / "link").symlink_to(f"../{shell.workdir.name}/sub")
        assert "symbolic link" in shell.failed("run", command=["true"], cwd="link").error

    @pytest.mark.parametrize("path", ["/etc/passwd", "../x", "link"])
    def test_no_input_is_read_from_outside_of_the_workdir(self, path: str, shell: Extension) -> None:
        (shell.workdir / "link").symlink_to("/etc/passwd")
        answer = shell.failed("run", command=["cat"], stdinFile=path)
        assert "root:" not in repr(answer.raw)
        assert "inside the working directory" in answer.error


class TestTheWire:
    def test_a_command_cannot_read_the_next_request(self, shell: Extension) -> None:
        """One that inherits the host's pipe would eat it."""
        first = shell.send("run", {"command": ["cat"], "timeout": "20s"})
        second = shell.send("run", {"command": ["echo", "second"]})
        assert shell.answer(first).outputs["stdout"] == ""
        assert shell.answer(second).outputs["stdout"] == "second\n"

    def test_a_command_finds_no_wire_to_write_on(self, shell: Extension) -> None:
        script = """
        for fd in /proc/self/fd/* /proc/$PPID/fd/*; do
            test "$(readlink "$fd" | cut -c1-4)" = pipe && echo '{"jsonrpc":"2.0","id":1,"result":{}}' >"$fd"
        done || true
        """
        answer = shell.run(script)
        assert answer.success
        for line in shell.host.lines:
            assert json.loads(line.data).get("method") == "log" or line.message["id"] == answer.raw["id"]

    def test_lines_that_look_like_messages_stay_output(self, shell: Extension) -> None:
        text = '{"jsonrpc":"2.0","id":1,"result":{"success":true}}\n\n'
        answer = shell.ok("run", script='printf "%s" "$TEXT"', env={"TEXT": text})
        assert answer.outputs["stdout"] == text

    def test_terminals_are_out_of_reach(self, shell: Extension) -> None:
        assert "No such device or address" in shell.failed("run", script="echo hi >/dev/tty").error


class TestSecrets:
    def test_the_keys_of_the_host_are_not_in_the_environment_of_ancestors(self, shell: Extension) -> None:
        """Of those that are ours: the supervisor and the fork server. The extension itself runs as the same user."""
        script = """
        for pid in $PPID $(ps -o ppid= $PPID); do tr '\\0' '\\n' <"/proc/$pid/environ"; echo "read $pid"; done
        """
        answer = shell.ok("run", script=script, log=False)
        assert answer.outputs["stdout"].count("read") == 2
        assert "API_TOKEN" not in answer.outputs["stdout"]

    def test_no_secret_is_in_anything_that_is_written(self, fresh: Callable[..., Extension], tmp_path: Path) -> None:
        artifacts = tmp_path / "artifacts"
        shell = fresh(config={"artifacts": str(artifacts), "passEnv": ["API_TOKEN"]})
        leak = "echo $API_TOKEN; echo -n x$API_TOKEN | base64 >&2; seq 20000; printf '\\xff%s' $API_TOKEN"
        shell.failed("run", script=f"{leak}; exit 1")
        shell.failed("run", script=f"{leak}; sleep 3600", timeout="3s")
        shell.ok("start", name="web", script=f"{leak}; sleep 3600", ready={"logLine": TOKEN})
        shell.failed("wait", name="web", timeout="10ms")
        shell.failed("start", name=f"other-{TOKEN}", script=f"{leak}; exit 1", ready={"file": TOKEN})
        shell.failed("run", command=[TOKEN])
        shell.ok("stop", name="web")
        written = b"".join(line.data for line in shell.host.lines)
        for directory, _, names in os.walk(artifacts):
            written += b"".join((Path(directory) / name).read_bytes() for name in names)
        assert len(written) > 400_000
        assert TOKEN.encode() not in written
        for form in (b"eHNlc2FtZS1vcGVucy00M", TOKEN.encode().hex().encode()):
            assert form not in written

    @pytest.mark.parametrize("size", [262_100, 262_144, 262_150, 524_280])
    def test_a_secret_where_a_long_output_is_cut_in_pieces_is_hidden(self, size: int, shell: Extension) -> None:
        """Files are written piece by piece: a value across two pieces would be in neither."""
        script = f"head -c {size} /dev/zero | tr '\\0' x; printf %s $API_TOKEN; head -c 300000 /dev/zero | tr '\\0' x"
        answer = shell.ok("run", script=script, passEnv=["API_TOKEN"], log=False)
        data = Path(answer.outputs["stdoutFile"]).read_text()
        assert TOKEN not in data
        assert data.count("x") == size + 300_000
        assert "[redacted:env.API_TOKEN" in data

    def test_a_secret_that_comes_in_two_writes_is_hidden_in_the_log_file(self, shell: Extension) -> None:
        half = len(TOKEN) // 2
        script = f"printf {TOKEN[:half]}; sleep 0.05; echo err >&2; sleep 0.05; echo {TOKEN[half:]}; sleep 3600"
        answer = shell.ok("start", name="web", script=script, passEnv=["API_TOKEN"], ready={"logLine": "opens"})
        text = Path(answer.outputs["logFile"]).read_text()
        shell.ok("stop", name="web")
        assert TOKEN[:half] not in text
        assert TOKEN[half:] not in text

    def test_a_long_secret_is_not_shown_by_half_where_texts_are_cut(self, shell: Extension) -> None:
        """A message shows the beginning of a long text; the beginning of a token is not recognized as one."""
        token = "opensesame" + "0123456789abcdef" * 60
        shell.ok(
            "run", script=f"echo token={token}", capture={"token": {"regex": "=(.*)", "secret": True}}, **{"as": "in"}
        )
        for args in (
            {"command": ["false", "${in.token}"]},
            {"command": ["echo", "x"], "expect": {"stdout": "${in.token}"}},
            {"command": ["echo", "x"], "expect": {"stdout": {"contains": ["x${in.token}"], "matches": "${in.token}"}}},
            {"command": ["echo", "${in.token}"], "expect": {"stdout": {"startsWith": "y"}}},
            {"command": ["echo", "x"], "capture": {"v": {"regex": "x${in.token}"}}},
            {"command": ["${in.token}"]},
            {"command": ["true"], "cwd": "${in.token}"},
        ):
            answer = shell.failed("run", **args)
            assert "opensesame" not in repr(answer.raw), args
        assert "opensesame" not in repr(
            shell.failed("start", name="web", command=["true"], ready={"logLine": "${in.token}"})
        )
