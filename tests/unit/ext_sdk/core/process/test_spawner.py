"""Starting commands: what they are given, what they are not, and what is said when they can't be started."""

from __future__ import annotations

import gc
import os
import resource
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from ext_sdk.core.process.child import CommandNotFound, CommandNotStarted, ExitStatus, signal_name
from ext_sdk.core.process.spawner import Command, Spawner, find_executable
from tests.support.process_tracker import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.ext_sdk.core.process.conftest import Shell


def test_a_command_gets_its_arguments_unchanged(shell: Shell) -> None:
    arguments = ["$(touch x)", "'; rm -rf /", "a\nb", "-n", "", "*", "ä€😀", "\\", '"']
    _, output = shell.run_argv(["printf", "%s\\0", *arguments])
    assert output.text.split("\0")[:-1] == arguments


def test_bytes_that_are_no_utf_8_pass_as_surrogates(shell: Shell) -> None:
    _, output = shell.run_argv(["printf", "%s", os.fsdecode(b"\xff\xfe")])
    assert output.data == b"\xff\xfe"


def test_a_command_gets_exactly_the_given_environment(shell: Shell) -> None:
    _, output = shell.run_argv(["env", "-0"], env={"PATH": os.environ["PATH"], "A": "1=2", "B": "x\ny"})
    assert sorted(output.text.split("\0")[:-1]) == sorted(["A=1=2", "B=x\ny", f"PATH={os.environ['PATH']}"])


def test_the_environment_of_this_process_is_not_to_be_read_from_the_ancestors(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_TOKEN", "sesame-opens")
    _, output = shell.run("tr '\\0' '\\n' </proc/$PPID/environ; echo read")
    assert output.text == "read\n"


def test_a_command_has_no_descriptors_but_its_streams(shell: Shell) -> None:
    _, output = shell.run_argv(["ls", "/proc/self/fd"])
    assert output.text.split() == ["0", "1", "2", "3"]  # 3 is the directory that ls reads


def test_a_command_leads_a_session_without_a_terminal(shell: Shell) -> None:
    child, output = shell.run("ps -o pid=,pgid=,sid=,tty= $$")
    assert output.text.split() == [str(child.pid)] * 3 + ["?"]


def test_a_command_starts_with_default_signals(shell: Shell) -> None:
    """Python ignores SIGPIPE, and what is ignored stays so over exec."""
    _, output = shell.run("grep -E 'Sig(Blk|Ign)' /proc/$$/status")
    _, blocked, _, ignored = output.text.split()
    # 32 and 33 are glibc's own: its posix_spawn, and so make, starts processes that ignore them, and none can change it
    assert (int(blocked, 16), int(ignored, 16) & ~(0b11 << 31)) == (0, 0)


def test_a_blocked_signal_of_the_starting_thread_is_not_handed_on(shell: Shell) -> None:
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        _, output = shell.run("grep SigBlk /proc/$$/status")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
    assert output.text.split() == ["SigBlk:", "0" * 16]


def test_the_working_directory_is_the_opened_one_even_when_it_was_renamed(shell: Shell, tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    directory = os.open(before, os.O_RDONLY)
    before.rename(after)
    before.symlink_to("/")
    shell.directory = tmp_path / f"/proc/self/fd/{directory}"
    _, output = shell.run("pwd -P")
    os.close(directory)
    assert output.text == f"{after}\n"


def test_limits_and_umask_are_set(shell: Shell) -> None:
    limits = {resource.RLIMIT_NOFILE: (64, 64), resource.RLIMIT_CPU: (5, 6), resource.RLIMIT_FSIZE: (1024, 1024)}
    _, output = shell.run("ulimit -Hn; ulimit -St; ulimit -Ht; umask", limits=limits, umask=0o027)
    assert output.text.split() == ["64", "5", "6", "0027"]


def test_the_exit_code_and_the_signal_of_a_command_are_told(shell: Shell) -> None:
    assert shell.run("exit 255")[0].status == ExitStatus(255)
    child, _ = shell.run("kill -USR1 $$")
    assert child.status == ExitStatus(-signal.SIGUSR1)
    assert str(child.status) == "killed by SIGUSR1"
    assert str(ExitStatus(3)) == "exit code 3"


def test_signals_without_a_name_of_their_own_have_a_number() -> None:
    assert signal_name(15) == "SIGTERM"
    assert signal_name(40) == "SIG40"


def test_a_signal_can_be_sent_to_the_command_alone(shell: Shell, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    child = shell.start("trap 'echo usr1 >go' USR1; echo ready >go; sleep 3600 & wait; wait")
    assert (tmp_path / "go").read_text() == "ready\n"
    child.send_signal(signal.SIGUSR1)
    assert (tmp_path / "go").read_text() == "usr1\n"
    child.stop()
    assert child.wait(PATIENCE)


def test_orders_to_a_command_that_has_ended_do_nothing(shell: Shell) -> None:
    child, _ = shell.run("exit 0")
    child.stop()
    child.send_signal(signal.SIGTERM)
    assert child.status == ExitStatus(0)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda path: path.write_text("data"), r"Permission denied \(exec\): it is not executable"),
        (lambda path: path.mkdir(), r"Permission denied \(exec\)"),
        (lambda path: None, r"No such file or directory \(exec\)"),
        (lambda path: (path.write_bytes(b"\0\1\2"), path.chmod(0o755)), r"Exec format error .*begins with a #! line"),
        (lambda path: (path.write_text("#!/nowhere/sh\n"), path.chmod(0o755)), r"its #! line names an interpreter"),
    ],
    ids=["no permission", "a directory", "missing", "no program", "missing interpreter"],
)
def test_a_command_that_the_system_refuses_is_an_error_that_says_why(
    make: object, expected: str, shell: Shell, tmp_path: Path
) -> None:
    assert callable(make)
    make(tmp_path / "program")
    with pytest.raises(CommandNotStarted, match=expected):
        shell.run_argv(["./program"])


def test_too_long_an_argument_is_an_error_that_says_what_to_do(shell: Shell) -> None:
    with pytest.raises(CommandNotStarted, match="pass long values by stdin"):
        shell.run_argv(["true", "x" * 200_000])


def test_a_memory_limit_that_is_too_low_for_the_program_ends_it_at_once(shell: Shell) -> None:
    child, _ = shell.run_argv(["true"], limits={resource.RLIMIT_AS: (4096, 4096)})
    assert child.status in {ExitStatus(-signal.SIGKILL), ExitStatus(-signal.SIGSEGV)}


def test_an_unknown_command_is_an_error_with_the_path_that_was_searched(shell: Shell) -> None:
    with pytest.raises(CommandNotFound, match=r"command not found: 'no-such-command'; searched PATH '/bin:/usr/bin'"):
        shell.run_argv(["no-such-command"], env={"PATH": "/bin:/usr/bin"})


@pytest.mark.parametrize(
    ("argv", "env", "expected"),
    [
        (["true", "a\0b"], {}, "an argument has a NUL"),
        (["true"], {"A": "b\0c"}, "variable A has a NUL"),
        (["true"], {"A=B": "c"}, "variable's name"),
        (["true"], {"": "c"}, "variable's name"),
    ],
)
def test_what_no_program_can_be_given_is_refused(
    argv: list[str], env: dict[str, str], expected: str, shell: Shell
) -> None:
    with pytest.raises(ValueError, match=expected):
        shell.run_argv(argv, env={"PATH": "/bin:/usr/bin", **env})


def test_a_command_needs_a_name() -> None:
    with pytest.raises(ValueError, match="at least its name"):
        Command([], env={}, directory=0)


def test_relative_directories_in_path_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert find_executable("program", f"/nowhere:{tmp_path}") == str(program)
    assert find_executable("./program", "/nowhere") == "./program"
    with pytest.raises(CommandNotFound):
        find_executable("program", ":.:/nowhere")
    with pytest.raises(CommandNotFound):
        find_executable("", str(tmp_path))


def test_a_command_that_could_not_be_started_leaves_the_spawner_usable(shell: Shell) -> None:
    with pytest.raises(CommandNotStarted):
        shell.run_argv(["/"])
    assert shell.run("echo fine")[1].text == "fine\n"


def test_commands_can_be_started_from_many_threads(shell: Shell) -> None:
    texts: list[str] = []

    def work(number: int) -> None:
        texts.append(shell.run("echo $1", str(number))[1].text)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(texts) == sorted(f"{number}\n" for number in range(20))


def test_a_spawner_leaves_no_descriptors_open(tmp_path: Path) -> None:
    gc.collect()  # what earlier tests left may not be closed meanwhile
    before = sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208 - one descriptor less
    spawner = Spawner()
    directory, null = os.open(tmp_path, os.O_RDONLY), os.open(os.devnull, os.O_RDWR)
    for _ in range(3):
        with spawner.spawn(
            Command(["true"], env={"PATH": os.defpath}, directory=directory), stdin=null, stdout=null, stderr=null
        ) as child:
            assert child.wait(PATIENCE)
    with pytest.raises(CommandNotStarted):
        spawner.spawn(Command(["/"], env={}, directory=directory), stdin=null, stdout=null, stderr=null)
    spawner.close()
    os.close(directory)
    os.close(null)
    assert sorted(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
