"""`run`: what is run, where, with what, and what is answered."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.rejections import refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.ext_shell import Extension
    from tests.support.process_tracker import ProcessTracker


def test_a_command_is_run_and_answered(shell: Extension) -> None:
    answer = shell.ok("run", command=["echo", "hi"])
    assert answer.outputs.pop("duration").endswith("ms")
    assert answer.outputs == {"exitCode": "0", "stdout": "hi\n", "stderr": ""}
    assert answer.message.startswith("echo hi: exit code 0 after ")
    assert answer.message.endswith(", 1 check passed")


def test_a_message_is_one_line_whatever_the_command_has_in_it(shell: Extension) -> None:
    answer = shell.ok("run", command=["echo", "two\nlines\x1b[1m"])
    assert answer.message.startswith(r"echo 'two\nlines\x1b[1m': exit code 0 after ")
    assert "\n" not in answer.message


def test_a_failure_says_what_was_expected_and_found_and_what_the_command_said(shell: Extension) -> None:
    answer = shell.failed("run", command=["bash", "-c", "echo out; echo no such thing >&2; exit 3"])
    assert "exit code 3" in answer.message
    assert "1 of 1 check failed" in answer.message
    assert "exitCode: expected to equal 0, got 3" in answer.error
    assert "stderr ends with: no such thing" in answer.error
    assert "stdout ends with: out" in answer.error
    assert "command: bash -c" in answer.error
    assert answer.outputs["exitCode"] == "3"
    assert answer.outputs["stderr"] == "no such thing\n"


def test_a_failure_without_output_says_so(shell: Extension) -> None:
    assert "no output" in shell.failed("run", command=["false"]).error


def test_a_command_that_a_signal_ends_has_a_signal_and_no_exit_code(shell: Extension) -> None:
    answer = shell.failed("run", script="kill -SEGV $$")
    assert answer.outputs["signal"] == "SIGSEGV"
    assert "exitCode" not in answer.outputs
    assert "exitCode: expected to equal 0, got none (killed by SIGSEGV)" in answer.error


class TestScripts:
    def test_bash_stops_at_the_first_failure(self, shell: Extension) -> None:
        answer = shell.failed("run", script="echo begin; false; echo end")
        assert answer.outputs["stdout"] == "begin\n"

    def test_bash_fails_for_a_variable_that_is_not_set(self, shell: Extension) -> None:
        assert "NO_SUCH_THING" in shell.failed("run", script='echo "$NO_SUCH_THING"').error

    def test_bash_fails_for_a_failure_in_a_pipeline(self, shell: Extension) -> None:
        assert shell.failed("run", script="false | cat").outputs["exitCode"] == "1"

    def test_bash_reads_no_file_of_the_user(self, shell: Extension) -> None:
        (shell.workdir / ".bashrc").write_text("echo from bashrc\n")
        (shell.workdir / "env").write_text("echo from BASH_ENV\n")
        assert shell.ok("run", script="true", env={"HOME": str(shell.workdir)}).outputs["stdout"] == ""

    @pytest.mark.parametrize("name", ["sh", "dash", "bash"])
    def test_other_shells_stop_at_the_first_failure_too(self, name: str, shell: Extension) -> None:
        answer = shell.failed("run", script="echo $0; false; echo end", shell=name)
        assert answer.outputs["stdout"] == f"{name}\n"

    def test_python_can_be_the_shell(self, shell: Extension) -> None:
        assert shell.ok("run", script="print(6 * 7)", shell="python3").outputs["stdout"] == "42\n"

    def test_a_shell_that_is_not_installed_is_a_requirement_that_is_not_met(self, shell: Extension) -> None:
        answer = shell.run("true", env={"PATH": str(shell.workdir)})
        assert "required command not found in PATH: bash" in refusal("ext_shell", "run", {"script": "true"}, answer.raw)

    def test_a_shell_that_is_unknown_is_refused(self, shell: Extension) -> None:
        assert "shell: expected one of" in shell.refused("run", script="true", shell="csh")

    def test_a_script_longer_than_an_argument_may_be_is_refused_with_the_way_out(self, shell: Extension) -> None:
        text = shell.refused("run", script="#" * 131_072)
        assert "script: expected at most 131071 bytes, found 131072" in text
        assert "write-file" in text

    def test_the_longest_script_runs(self, shell: Extension) -> None:
        script = "echo end #"
        assert shell.ok("run", script=script + "x" * (131_071 - len(script))).outputs["stdout"] == "end\n"

    def test_messages_show_the_beginning_of_a_long_script(self, shell: Extension) -> None:
        answer = shell.ok("run", script="true\n# " + "x" * 1000)
        assert "bash script 'true # xxx" in answer.message
        assert len(answer.message) < 200


class TestWhere:
    def test_a_command_runs_in_the_workdir(self, shell: Extension) -> None:
        assert shell.ok("run", command=["pwd", "-P"]).outputs["stdout"] == f"{shell.workdir.resolve()}\n"

    @pytest.mark.parametrize("cwd", ["sub/dir", "sub/../sub/dir", "./sub//dir", "link", "{workdir}/sub/dir"])
    def test_or_in_a_directory_of_it(self, cwd: str, shell: Extension) -> None:
        (shell.workdir / "sub/dir").mkdir(parents=True)
        (shell.workdir / "link").symlink_to("sub/dir")
        answer = shell.ok("run", command=["pwd", "-P"], cwd=cwd.format(workdir=shell.workdir))
        assert answer.outputs["stdout"] == f"{shell.workdir.resolve()}/sub/dir\n"

    def test_a_program_with_a_slash_is_found_from_there(self, shell: Extension) -> None:
        program = shell.workdir / "sub" / "program"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\necho ran\n")
        program.chmod(0o755)
        assert shell.ok("run", command=["./program"], cwd="sub").outputs["stdout"] == "ran\n"

    def test_a_directory_that_make_temp_gave_will_do(self, shell: Extension) -> None:
        made = shell.ok("make-temp", kind="directory").outputs["path"]
        assert shell.ok("run", command=["pwd", "-P"], cwd=made).outputs["stdout"] == f"{made}\n"

    def test_a_directory_that_is_not_there_is_said(self, shell: Extension) -> None:
        answer = shell.failed("run", command=["true"], cwd="nowhere")
        assert "cwd: expected a directory in" in answer.error
        assert "found 'nowhere': No such file or directory" in answer.error

    def test_a_file_is_no_directory(self, shell: Extension) -> None:
        (shell.workdir / "file").write_text("")
        assert "Not a directory" in shell.failed("run", command=["true"], cwd="file").error

    def test_a_workdir_that_is_not_there_is_said(self, shell: Extension) -> None:
        shell.workdir = shell.workdir / "gone"
        answer = shell.failed("run", command=["true"])
        assert str(shell.workdir) in answer.error
        assert "does not exist" in answer.error


class TestStandardInput:
    def test_is_empty_where_nothing_is_given(self, shell: Extension) -> None:
        assert shell.ok("run", command=["cat"]).outputs["stdout"] == ""

    @pytest.mark.parametrize("given", ["", "text", "two\nlines\n", "ä€😀", "a\0b", "-n"])
    def test_is_the_text_that_is_given(self, given: str, shell: Extension) -> None:
        assert shell.ok("run", command=["cat"], stdin=given).outputs["stdout"] == given

    def test_may_be_longer_than_a_pipe_holds(self, shell: Extension) -> None:
        answer = shell.ok("run", command=["wc", "-c"], stdin="x" * 1_000_000)
        assert answer.outputs["stdout"] == "1000000\n"

    def test_may_be_left_unread(self, shell: Extension) -> None:
        assert shell.ok("run", command=["true"], stdin="x" * 1_000_000).success

    def test_may_be_a_file_of_the_workdir(self, shell: Extension) -> None:
        (shell.workdir / "file").write_bytes(b"\xff\0bytes")
        assert shell.ok("run", command=["wc", "-c"], stdinFile="file").outputs["stdout"] == "7\n"

    def test_a_file_that_is_not_there_is_said(self, shell: Extension) -> None:
        assert (
            "could not read 'nowhere': No such file" in shell.failed("run", command=["cat"], stdinFile="nowhere").error
        )

    def test_a_fifo_is_refused_and_not_waited_for(self, shell: Extension) -> None:
        os.mkfifo(shell.workdir / "fifo")
        assert "expected a regular file, got a fifo" in shell.failed("run", command=["cat"], stdinFile="fifo").error


class TestWhatCannotBeStarted:
    def test_an_unknown_command_is_a_failure_that_says_where_was_looked(self, shell: Extension) -> None:
        answer = shell.failed("run", command=["no-such-command"], env={"PATH": "/usr/bin:/bin"})
        assert answer.message == "command not found: no-such-command"
        assert "searched PATH '/usr/bin:/bin'" in answer.error
        assert "./x" in answer.error

    def test_a_file_that_is_not_executable_is_a_failure_that_says_so(self, shell: Extension) -> None:
        (shell.workdir / "file").write_text("data")
        answer = shell.failed("run", command=["./file"])
        assert "Permission denied (exec): it is not executable (chmod +x)" in answer.error
        assert "command: ./file" in answer.error

    def test_a_script_without_its_first_line_is_a_failure_that_says_so(self, shell: Extension) -> None:
        (shell.workdir / "file").write_text("echo hi\n")
        (shell.workdir / "file").chmod(0o755)
        assert "begins with a #! line" in shell.failed("run", command=["./file"]).error

    @pytest.mark.parametrize(
        ("args", "expected"),
        [
            ({}, "expected one of command and script, found none"),
            ({"command": ["true"], "script": "true"}, "expected one of command and script, found both"),
            ({"command": []}, "command: expected an array of length >= 1"),
            ({"command": [""]}, "command: the name of the program is empty"),
            (
                {"command": "echo hi"},
                'command: expected an array, found a string; write a list, as in ["a", "b"], or use script',
            ),
            ({"command": ["true"], "shell": "sh"}, "`shell` requires `script`"),
            ({"command": ["true"], "stdin": "", "stdinFile": "x"}, "expected one of stdin and stdinFile, found both"),
            ({"command": ["true"], "comand": ["x"]}, "unknown argument 'comand'; did you mean 'command'?"),
            ({"command": ["true"], "timeout": "3"}, "timeout"),
            ({"command": ["true"], "timeout": "-3s"}, "timeout: expected a duration of 0s or more, found -3s"),
            ({"command": ["true"], "killAfter": "-3s"}, "killAfter: expected a duration of 0s or more, found -3s"),
            ({"command": ["true"], "umask": "99"}, "umask"),
            ({"command": ["a\0b"]}, "an argument has a NUL character"),
            ({"command": ["true"], "env": {"A": "b\0c"}}, "variable A has a NUL character"),
            ({"command": ["true"], "env": {"A=B": "c"}}, "a variable's name is empty or has a '='"),
        ],
    )
    def test_wrong_arguments_are_refused_by_name(
        self, args: dict[str, object], expected: str, shell: Extension
    ) -> None:
        assert expected in shell.refused("run", **args)


class TestTimeouts:
    def test_a_command_is_stopped_and_its_output_so_far_is_answered(self, shell: Extension) -> None:
        answer = shell.failed("run", script="echo so far; sleep 3600", timeout="2s")
        why = "timed out: it did not end within `timeout` (2s) and was stopped with all processes that it started"
        assert answer.message.endswith(why)
        assert f"{why}\nraise `timeout` if it needs longer\ncommand:" in answer.error
        assert "stdout ends with: so far" in answer.error
        assert answer.outputs["stdout"] == "so far\n"
        assert answer.outputs["signal"] == "SIGTERM"

    def test_the_time_of_the_host_counts_as_well(self, fresh: Callable[..., Extension]) -> None:
        shell = fresh(config={"maxOperationTime": "2s"})
        answer = shell.failed("run", script="sleep 3600", timeout="1h")
        why = "timed out: it did not end within the host's time limit for a call (2.0 s) and was stopped"
        assert why in answer.message
        assert f"{why} with all processes that it started\nfor longer work use `start`, and then `wait`" in answer.error
        assert "raise" not in answer.error

    @pytest.mark.parametrize("operation", ["run", "start"])
    def test_its_output_is_not_lost_by_a_long_kill_after(
        self, operation: str, fresh: Callable[..., Extension], tracker: ProcessTracker
    ) -> None:
        shell = fresh(config={"maxOperationTime": "2s"})
        script = f"{tracker.hold}; trap '' TERM; echo so far; while :; do sleep 3600; done"
        args: dict[str, object] = {} if operation == "run" else {"name": "x", "ready": {"file": "never"}}
        answer = shell.failed(operation, script=script, killAfter="1h", timeout="1h", **args)
        assert "stdout ends with: so far" in answer.error
        assert not tracker.left(0)

    def test_a_command_that_has_ended_has_not_timed_out_by_what_it_left_running(self, shell: Extension) -> None:
        """At the deadline, a busy process that it left is still given time to end by itself."""
        script = "while :; do :; done & disown; exit 0"
        answer = shell.ok("run", script=script, timeout="1900ms")
        assert answer.outputs["exitCode"] == "0"

    def test_a_command_that_ignores_sigterm_is_killed(self, shell: Extension) -> None:
        answer = shell.failed(
            "run", script="trap '' TERM; while :; do sleep 3600; done", timeout="2s", killAfter="100ms"
        )
        assert answer.outputs["signal"] == "SIGKILL"

    def test_a_command_may_clean_up_when_it_is_stopped(self, shell: Extension) -> None:
        script = "trap 'echo cleaned; exit 5' TERM; sleep 3600 & wait"
        answer = shell.failed("run", script=script, timeout="2s", killAfter="20s")
        assert answer.outputs["stdout"] == "cleaned\n"
        assert answer.outputs["exitCode"] == "5"

    def test_even_a_command_that_meets_all_expectations_has_failed_when_it_timed_out(self, shell: Extension) -> None:
        expect = {"signal": "SIGTERM"}
        assert "timed out" in shell.failed("run", command=["sleep", "3600"], timeout="2s", expect=expect).error


class TestWhatIsLeftRunning:
    def test_a_child_in_the_background_does_not_hold_the_answer_and_is_stopped_and_named(
        self, shell: Extension
    ) -> None:
        answer = shell.ok("run", script="sleep 3600 & echo done")
        assert answer.outputs["stdout"] == "done\n"
        assert "stopped the processes that it left running: sleep(" in answer.message
        assert "use `start`" in answer.message

    def test_a_substituted_process_may_end_its_work(self, shell: Extension) -> None:
        answer = shell.ok("run", script="exec > >(sed s/a/b/); echo aaa")
        assert answer.outputs["stdout"] == "baa\n"
        assert "left running" not in answer.message


class TestLimits:
    def test_a_limit_of_time_on_the_processor_ends_a_command_and_is_named(self, shell: Extension) -> None:
        answer = shell.failed("run", script="while :; do :; done", limits={"cpu": "1s"})
        assert answer.outputs["signal"] == "SIGXCPU"
        assert "limits.cpu of 1s was reached" in answer.error

    def test_a_limit_of_file_size_ends_a_command_and_is_named(self, shell: Extension) -> None:
        answer = shell.failed(
            "run", command=["dd", "if=/dev/zero", "of=file", "bs=2048", "count=1"], limits={"fileSize": 1024}
        )
        assert answer.outputs["signal"] == "SIGXFSZ"
        assert "limits.fileSize of 1024 was reached" in answer.error
        assert (shell.workdir / "file").stat().st_size == 1024

    @pytest.mark.parametrize(
        ("script", "limits", "said"),
        [
            ("bash -c 'while :; do :; done'; exit $?", {"cpu": "1s"}, "limits.cpu of 1s was reached"),
            (
                "dd if=/dev/zero of=file bs=2048 count=1; exit $?",
                {"fileSize": 1024},
                "limits.fileSize of 1024 was reached",
            ),
            (
                """python3 -c 'with open("file", "wb") as file: file.write(bytes(2048))'""",
                {"fileSize": 1024},
                "limits.fileSize of 1024 was probably reached: stderr contains 'file too large'",
            ),
            (
                """python3 -c 'bytes(10**9)'""",
                {"memory": "300MiB"},
                "limits.memory of 300MiB was probably reached: stderr contains 'memoryerror'",
            ),
            ("kill -KILL $$", {"memory": "300MiB"}, "limits.memory of 300MiB may be too low"),
            (
                """python3 -c 'a = [open("/dev/null") for _ in range(99)]'""",
                {"openFiles": 20},
                "limits.openFiles of 20 was probably reached: stderr contains 'too many open files'",
            ),
        ],
    )
    def test_a_limit_that_a_command_reports_by_its_exit_code_or_text_is_named(
        self, script: str, limits: dict[str, object], said: str, shell: Extension
    ) -> None:
        assert said in shell.failed("run", script=script, limits=limits).error

    def test_a_limit_is_not_named_for_another_failure(self, shell: Extension) -> None:
        limits = {"cpu": "60s", "memory": "1GiB", "fileSize": "1GiB", "openFiles": 100, "processes": 1000}
        assert "limits." not in shell.failed("run", script="echo no >&2; exit 3", limits=limits).error

    def test_limits_are_set_for_the_command(self, shell: Extension) -> None:
        limits = {"cpu": "1500ms", "memory": "512MiB", "openFiles": 77, "fileSize": "3kB", "processes": 99}
        answer = shell.ok(
            "run", script="ulimit -St; ulimit -Sv; ulimit -Hn; ulimit -Hf; ulimit -Hu; ulimit -Hc", limits=limits
        )
        assert answer.outputs["stdout"].split() == ["2", str(512 * 1024), "77", str(3000 // 1024), "99", "0"]

    def test_a_memory_limit_makes_a_command_fail(self, shell: Extension) -> None:
        answer = shell.failed("run", script="print(len('x' * 10**9))", shell="python3", limits={"memory": "300MiB"})
        assert "MemoryError" in answer.error

    def test_limits_of_the_configuration_hold_where_the_operation_sets_none(
        self, fresh: Callable[..., Extension]
    ) -> None:
        shell = fresh(config={"limits": {"openFiles": 55, "cpu": "7s"}})
        script = "ulimit -Hn; ulimit -St"
        assert shell.ok("run", script=script).outputs["stdout"].split() == ["55", "7"]
        assert shell.ok("run", script=script, limits={"openFiles": 66}).outputs["stdout"].split() == ["66", "7"]

    @pytest.mark.parametrize(
        ("limits", "expected"),
        [
            ({"cpu": "0s"}, "expected a duration over 0"),
            ({"memory": "much"}, "limits.memory: expected a string matching regex"),
            ({"memory": 0}, "limits.memory: expected an integer >= 1"),
            ({"openFiles": -1}, "limits.openFiles: expected an integer >= 1"),
            ({"files": 1}, "unknown argument 'files'"),
        ],
    )
    def test_wrong_limits_are_refused(self, limits: dict[str, object], expected: str, shell: Extension) -> None:
        assert expected in shell.refused("run", command=["true"], limits=limits)

    def test_the_umask_is_set(self, shell: Extension) -> None:
        shell.ok("run", command=["touch", "file"], umask="077")
        assert (shell.workdir / "file").stat().st_mode & 0o777 == 0o600


class TestSupervision:
    def test_a_command_that_kills_its_supervisor_has_no_known_end_and_leaves_nothing(
        self, shell: Extension, tracker: ProcessTracker
    ) -> None:
        os.mkfifo(shell.workdir / "go")
        starts = f"{tracker.hold}; echo $$ >>ran; (setsid sleep 3600 &); echo up"
        script = f"{starts}; read -r _ <go; kill -KILL $PPID; sleep 3600"
        since = len(shell.host.lines)
        id = shell.send("run", {"script": script})
        # Its supervisor has told that it runs when its output is read; the test below is about one that could not.
        shell.logged("up")
        (shell.workdir / "go").write_text("on\n")
        answer = shell.answer(id, since)
        assert not answer.success
        assert "ended with an unknown status" in answer.message
        assert "its exit status is unknown, its supervisor was killed" in answer.error
        assert not tracker.left()
        assert len((shell.workdir / "ran").read_text().split()) == 1

    def test_a_command_that_kills_its_supervisor_first_of_all_is_not_run_twice(
        self, shell: Extension, tracker: ProcessTracker
    ) -> None:
        (shell.workdir / "program").write_text(f"#!/bin/dash\n{tracker.hold}\nkill -KILL $PPID\nsleep 3600\n")
        (shell.workdir / "program").chmod(0o755)
        shell.failed("run", command=["./program"])
        assert not tracker.left()

    def test_the_next_command_gets_a_new_fork_server_when_somebody_killed_it(self, shell: Extension) -> None:
        shell.run("kill -KILL $(ps -o ppid= $PPID)")
        assert shell.ok("run", command=["echo", "next"]).outputs["stdout"] == "next\n"

    def test_many_commands_run_side_by_side(self, shell: Extension) -> None:
        ids = [shell.send("run", {"command": ["echo", str(number)]}) for number in range(30)]
        assert [shell.answer(id).outputs["stdout"] for id in ids] == [f"{number}\n" for number in range(30)]


def test_a_limit_above_that_of_the_extension_is_refused(tmp_path: Path) -> None:
    program = str(Path(sys.executable).parent / "ext-shell")
    call = [program, "call", "run", '{"command": ["true"], "limits": {"openFiles": 1000}}', "--workdir", str(tmp_path)]
    done = subprocess.run(
        ["bash", "-c", 'ulimit -n 500; exec "$@"', "bash", *call], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert (
        "limits.openFiles: expected at most 500, which is the limit of the extension's process"
        in done.stdout + done.stderr
    )


def test_a_file_may_be_expected_by_its_text_alone(shell: Extension) -> None:
    shell.ok("run", script="echo x > o.txt", expect={"files": {"o.txt": "x"}})
    answer = shell.failed("run", script="echo y > o.txt", expect={"files": {"o.txt": "x"}})
    assert 'o.txt: expected to equal "x", got "y"' in answer.error


def test_documents_in_the_output_are_checked_and_captured(shell: Extension) -> None:
    (shell.workdir / "schema.json").write_text('{"type": "array", "items": {"required": ["id"]}}')
    script = """printf '{"id": 1}\\n{"id": 2}\\n'"""
    shell.ok("run", script=script, expect={"stdout": {"format": "jsonLines", "jsonSchemaFile": "schema.json"}})
    capture = {"second": {"json": "$[1].id", "format": "jsonLines"}}
    assert shell.ok("run", script=script, capture=capture).outputs["second"] == "2"
    answer = shell.failed("run", script="echo '[{}]'", expect={"stdout": {"jsonSchemaFile": "schema.json"}})
    assert 'stdout at $[0]: expected to have the required member "id"' in answer.error
    missing = shell.failed("run", script="echo '[{}]'", expect={"stdout": {"jsonSchemaFile": "other.json"}})
    assert "other.json" in missing.error
