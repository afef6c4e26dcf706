"""How a recorded session ends: exit codes, signals, and processes that are killed, each in its turn."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest

from ext_recorder.cassette.reader import Reader
from ext_recorder.cassette.recovery import recover
from tests.support.host import PATIENCE_S, HostProcess
from tests.support.recorder_process import (
    DEAF,
    ECHO,
    after_headline,
    children_of,
    marks,
    messages,
    partial_of,
    patched,
    python,
    recorder,
    run,
    scribe_of,
    start,
    wait_for,
    wait_until_gone,
)


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_the_exit_code_is_the_childs(cassette: Path, code: int) -> None:
    assert run(cassette, python(f"raise SystemExit({code})")).code == code
    assert marks(cassette, "exit") == [("exit", code)]


def test_a_child_has_the_environment_that_the_recorder_was_given(cassette: Path) -> None:
    shown = python("import json, os; print(json.dumps(dict(os.environ)))")
    environment = {**os.environ, "ONE_MORE": "1"}
    found = subprocess.run(
        recorder(cassette, shown), env=environment, stdout=subprocess.PIPE, check=True, timeout=PATIENCE_S
    )
    assert json.loads(found.stdout) == environment


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGSEGV", "SIGABRT", "SIGUSR1"])
def test_a_child_that_dies_by_a_signal_makes_the_recorder_die_by_it(cassette: Path, name: str) -> None:
    number = signal.Signals[name]
    session = run(cassette, python(f"import os; os.kill(os.getpid(), {number})"))
    assert session.code == -number
    assert marks(cassette, "exit") == [("exit", name)]


@pytest.mark.parametrize(
    "name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGRTMIN"]
)
def test_signals_are_passed_on_and_noted(cassette: Path, name: str) -> None:
    number = signal.Signals[name]
    child = python(
        "import os, signal\n"
        f"signal.pthread_sigmask(signal.SIG_BLOCK, [{number}])\n"
        "os.write(1, b'ready\\n')\n"
        f"os.write(1, b'%d\\n' % signal.sigwait([{number}]))"
    )
    host = start(cassette, child)
    assert host.read_line() == b"ready\n"
    host.send_signal(number)
    assert host.read_line() == b"%d\n" % number
    assert host.end().code == 0
    assert marks(cassette, "signal") == [("signal", name)]


def test_what_is_replayed_is_told_at_a_terminal_and_elsewhere_unless_quiet(cassette: Path) -> None:
    line = b"a line\n"
    run(cassette, ECHO, stdin=line)
    with Reader(cassette) as reader:
        recorded = reader.header.recorded
    ours, theirs = pty.openpty()
    again = subprocess.run(
        recorder(cassette, ECHO), input=line, stdout=subprocess.PIPE, stderr=theirs, timeout=PATIENCE_S, check=True
    )
    told = os.read(ours, 4096).decode()
    os.close(theirs)
    os.close(ours)
    assert again.stdout == line
    headline = f"ext-recorder: replaying {cassette}, recorded {recorded} from python -S -E -c "
    assert told.startswith(headline)
    elsewhere = run(cassette, ECHO, stdin=line)
    assert elsewhere.err.decode().startswith(headline)
    assert after_headline(elsewhere.err) == b""
    assert run(cassette, ECHO, "--quiet", stdin=line).err == b""
    assert run(cassette, ECHO, stdin=line, env={"EXT_RECORDER_QUIET": "1"}).err == b""


def test_ctrl_c_at_a_terminal_reaches_the_child_once(cassette: Path) -> None:
    ours, theirs = pty.openpty()
    name = os.ttyname(theirs)
    child = python(
        "import os, signal\n"
        "count = 0\n"
        "def on_signal(*_):\n"
        "    global count\n"
        "    count += 1\n"
        "    os.write(1, b'%d\\n' % count)\n"
        "signal.signal(signal.SIGINT, on_signal)\n"
        "os.write(1, b'ready\\n')\n"
        "while os.read(0, 99): pass"
    )

    # A session of its own, whose terminal is the first that it opens.
    lead = python(f"import os, sys; os.open({name!r}, os.O_RDWR); os.execv(sys.argv[1], sys.argv[1:])")
    command = [*lead, *recorder(cassette, child)]
    host = HostProcess(command, stdin=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    assert host.read_line() == b"ready\n"
    os.write(ours, b"\x03")
    assert host.read_line() == b"1\n"
    wait_for(partial_of(cassette), b"signal: SIGINT}")  # noted after it would have been passed on
    host.send_signal(signal.SIGINT)  # by us, to the recorder alone: this one has to be passed on
    assert host.read_line() == b"2\n"
    wait_for(partial_of(cassette), b"signal: SIGINT}", 2)
    os.write(ours, b"\x04")
    assert host.read(1) == b""  # no third one
    assert host.wait(PATIENCE_S) == 0
    os.close(ours)
    host.end()


def test_a_signal_that_meets_the_scribe_as_it_is_born_is_not_passed_on_for_it(cassette: Path) -> None:
    change = (
        "import os, signal\n"
        "fork = os.fork\n"
        "def hit():\n"
        "    pid = fork()\n"
        "    if not pid: os.kill(os.getpid(), signal.SIGUSR1)\n"
        "    return pid\n"
        "os.fork = hit"
    )
    command = patched(recorder(cassette, ECHO), change)
    done = subprocess.run(command, input=b"hello\n", capture_output=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout) == (0, b"hello\n")
    assert marks(cassette, "signal") == []


def test_a_signal_that_ends_the_child_ends_the_recorder(cassette: Path) -> None:
    host = start(cassette, python("import os, signal; os.write(1, b'ready\\n'); signal.pause()"))
    host.read_line()
    host.terminate()
    assert host.end().code == -signal.SIGTERM
    assert marks(cassette, "signal", "exit") == [("signal", "SIGTERM"), ("exit", "SIGTERM")]


def test_a_signal_that_the_child_survives_does_not_end_the_recorder(cassette: Path) -> None:
    host = start(cassette, DEAF)
    pid = int(host.read_line())
    host.terminate()
    host.send_signal(signal.SIGINT)
    os.kill(pid, signal.SIGKILL)
    assert host.end().code == -signal.SIGKILL


@pytest.mark.parametrize("name", ["SIGHUP", "SIGINT", "SIGTERM"])
def test_a_signal_that_the_host_has_set_to_be_ignored_is_ignored_by_the_child(cassette: Path, name: str) -> None:
    child = python(f"import signal; print(signal.getsignal(signal.{name}) is signal.SIG_IGN)")
    shell = f"trap '' {name.removeprefix('SIG')}; exec \"$@\""
    command = ["/bin/sh", "-c", shell, "sh", *recorder(cassette, child)]
    done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=True)
    assert done.stdout == b"True\n"


def test_sigpipe_is_not_ignored_by_the_child_though_python_ignores_it(cassette: Path) -> None:
    shell = ["/bin/sh", "-c", "grep SigIgn /proc/self/status"]
    ignored = int(run(cassette, shell).out.split()[1], 16)
    assert not ignored & 1 << (signal.SIGPIPE - 1)
    assert not ignored & 1 << (signal.SIGXFSZ - 1)


# --- Commands that cannot be run -------------------------------------------------------------------------------------


def test_a_command_that_is_not_in_path_is_an_error_of_the_shells_code(cassette: Path) -> None:
    session = run(cassette, ["no-such-command"])
    assert session.code == 127
    assert session.err == b"ext-recorder: the command 'no-such-command' is not in PATH\n"
    assert list(cassette.parent.iterdir()) == []


def test_a_path_that_does_not_exist_is_said_to_be_that(cassette: Path) -> None:
    session = run(cassette, ["./no/such"])
    assert session.code == 127
    assert session.err == b"ext-recorder: the command './no/such' does not exist\n"


def test_a_file_that_is_no_program_is_said_to_be_that(cassette: Path, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello\n")
    session = run(cassette, [str(tmp_path / "note.txt")])
    assert session.code == 126
    assert b"cannot be executed: Permission denied" in session.err


def test_a_script_without_interpreter_is_said_to_be_that(cassette: Path, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("echo hi\n")
    script.chmod(0o755)
    session = run(cassette, [str(script)])
    assert session.code == 126
    assert b"a script needs a first line like #!/bin/sh" in session.err
    script.write_text("#!/no/such/interpreter\n")
    session = run(cassette, [str(script)])
    assert session.code == 127
    assert b"the interpreter in its first line does not" in session.err


# --- Who is killed --------------------------------------------------------------------------------------------------


def test_a_killed_child_leaves_a_whole_cassette(cassette: Path) -> None:
    host = start(cassette, python("import os, signal; os.write(1, b'%d\\n' % os.getpid()); signal.pause()"))
    os.kill(int(host.read_line()), signal.SIGKILL)
    assert host.end().code == -signal.SIGKILL
    assert marks(cassette, "exit") == [("exit", "SIGKILL")]


def test_a_killed_scribe_stops_the_recording_and_not_the_session(cassette: Path) -> None:
    host = start(cassette, ECHO)
    host.write(b"one\n")
    assert host.read_line() == b"one\n"
    os.kill(scribe_of(host), signal.SIGKILL)
    assert host.stderr is not None
    said = host.stderr.readline()
    assert said.startswith(b"ext-recorder: recording stopped, the session continues: ")
    assert b"SIGKILL" in said
    host.write(b"two\n")
    assert host.read_line() == b"two\n"
    session = host.end()
    assert (session.code, session.err) == (0, b"")
    assert not cassette.exists()


def test_a_killed_recorder_leaves_what_can_be_recovered_and_no_process(cassette: Path) -> None:
    host = start(cassette, ECHO)
    host.write(b"one\n")
    assert host.read_line() == b"one\n"
    wait_for(partial_of(cassette), b"out: 'one'")
    processes = children_of(host.pid)
    assert len(processes) == 2
    host.kill()
    assert host.end().code == -signal.SIGKILL
    for pid in processes:
        wait_until_gone(pid)
    assert not cassette.exists()
    assert recover(partial_of(cassette)).events >= 2
    assert messages(cassette, "in") == messages(cassette, "out") == [b"one"]
    assert marks(cassette, "exit") == []


def test_a_killed_recorder_takes_a_child_along_that_does_not_end_by_itself(cassette: Path) -> None:
    command = patched(recorder(cassette, DEAF), "writer_process.CHILD_GRACE_S = 0.1")
    host = HostProcess(command)
    pid = int(host.read_line())
    host.kill()
    host.end()
    wait_until_gone(pid)


def test_a_killed_host_leaves_a_whole_cassette_and_no_process(cassette: Path) -> None:
    program = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)\n"
        "child.stdin.write(b'one\\n')\n"
        "print(child.stdout.read(4), child.pid, flush=True)\n"
        "time.sleep(1000)"
    )
    host = HostProcess([*python(program), *recorder(cassette, ECHO)])
    pid = int(host.read_line().split()[1])
    processes = [pid, *children_of(pid)]
    assert len(processes) == 3
    host.kill()
    host.end()
    for each in processes:
        wait_until_gone(each)
    assert messages(cassette, "out") == [b"one"]
    assert marks(cassette, "exit") == [("exit", 0)]


def test_a_killed_process_group_leaves_what_can_be_recovered(cassette: Path) -> None:
    host = HostProcess(recorder(cassette, ECHO), process_group=0)
    host.write(b"one\n")
    assert host.read_line() == b"one\n"
    wait_for(partial_of(cassette), b"out: 'one'")
    scribe = scribe_of(host)
    assert os.getpgid(scribe) != host.pid  # so it writes what it has, and may say goodbye
    os.killpg(host.pid, signal.SIGKILL)
    host.end()
    wait_until_gone(scribe)
    recover(partial_of(cassette))
    assert messages(cassette, "out") == [b"one"]


def test_the_scribe_holds_none_of_the_hosts_files(cassette: Path) -> None:
    host = start(cassette, ECHO)
    host.write(b"one\n")
    host.read_line()
    wait_for(partial_of(cassette), b"one")  # so it has detached
    scribe = scribe_of(host)
    theirs = files_of(scribe)
    mine = {
        Path(f"/proc/self/fd/{file.fileno()}").readlink() for file in (host.stdin, host.stdout, host.stderr) if file
    }
    assert theirs
    assert not theirs & mine
    host.end()


def files_of(pid: int) -> set[Path]:
    """What a process has open; what it closes meanwhile does not count."""
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.add(entry.readlink())
    return found


def test_the_cassette_is_there_when_the_host_sees_the_exit(cassette: Path) -> None:
    host = start(cassette, python("for number in range(20000): print(number)"))
    assert host.stdout is not None
    while os.read(host.stdout.fileno(), 65_536):
        pass
    host.wait(PATIENCE_S)
    assert cassette.exists()
    assert not partial_of(cassette).exists()
    host.end()


# --- Interrupted sessions -------------------------------------------------------------------------------------------

REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"execute","params":{}}\n'
# Answers each request but `hang`.
ANSWERING = python(
    "import json, sys\n"
    "for line in sys.stdin:\n"
    "    message = json.loads(line)\n"
    "    if message['method'] != 'hang':\n"
    "        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': {}}), flush=True)"
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_session_that_a_signal_interrupts_is_no_cassette_and_is_recorded_again(
    cassette: Path, number: signal.Signals
) -> None:
    host = start(cassette, ANSWERING, "--protocol=gevals")
    host.write(REQUEST)
    host.read_line()
    host.send_signal(number)
    host.wait(PATIENCE_S)
    interrupted = host.end()
    assert f"not made, the session was interrupted: it was ended by {number.name}".encode() in interrupted.err
    assert not cassette.exists()

    again = run(cassette, ANSWERING, "--protocol=gevals", stdin=REQUEST)
    assert f"{partial_of(cassette)} is from an interrupted session; recording again".encode() in again.err
    assert messages(cassette, "in") == [REQUEST.strip()]


@pytest.mark.parametrize("protocol", ["gevals", "mcp"])
def test_a_session_with_an_open_call_is_no_cassette(cassette: Path, protocol: str) -> None:
    host = start(cassette, ANSWERING, f"--protocol={protocol}")
    host.write(REQUEST + REQUEST.replace(b"1", b"2").replace(b"execute", b"hang"))
    host.read_line()
    done = host.end()
    assert b"request hang (line" in done.err
    assert not cassette.exists()
    assert partial_of(cassette).exists()


def test_a_signal_is_the_usual_end_of_a_protocol_that_has_no_message_for_it(cassette: Path) -> None:
    host = start(cassette, ANSWERING, "--protocol=mcp")
    host.write(REQUEST)
    host.read_line()
    host.terminate()
    host.wait(PATIENCE_S)
    host.end()
    assert marks(cassette, "signal") == [("signal", "SIGTERM")]


def test_a_signal_after_the_message_for_the_end_interrupts_nothing(cassette: Path) -> None:
    host = start(cassette, ANSWERING, "--protocol=gevals")
    host.write(REQUEST.replace(b"execute", b"shutdown"))
    host.read_line()
    host.terminate()
    host.wait(PATIENCE_S)
    host.end()
    assert cassette.exists()


# --- What is not recorded ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("closed", ["", "2>/dev/null"])
def test_output_of_a_background_process_is_passed_on_and_reported_as_not_recorded(
    cassette: Path, tmp_path: Path, closed: str
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    child = ["sh", "-c", f"echo first; (cat {gate}; echo later) {closed} &"]
    host = start(cassette, child)
    assert host.read_line() == b"first\n"
    assert host.wait(PATIENCE_S) == 0
    gate.write_bytes(b"")  # the process goes on now, after the exit
    done = host.end()
    assert done.out == b"later\n"
    assert done.err.count(b"passed on, but not recorded") == 1
    assert messages(cassette, "out") == [b"first"]


def test_a_background_process_that_writes_nothing_is_not_reported(cassette: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    host = start(cassette, ["sh", "-c", f"echo first; cat {gate} &"])
    assert host.read_line() == b"first\n"
    assert host.wait(PATIENCE_S) == 0
    gate.write_bytes(b"")
    assert host.end().err == b""


def test_at_a_terminal_the_command_is_said_to_get_pipes(cassette: Path) -> None:
    ours, theirs = pty.openpty()
    for options in ([], ["--quiet"]):
        cassette.unlink(missing_ok=True)
        command = recorder(cassette, python("print('a line')"), *options)
        done = subprocess.run(command, stdin=theirs, capture_output=True, timeout=PATIENCE_S, check=True)
        assert done.stdout == b"a line\n"
        assert (b"is connected to pipes instead of this terminal" in done.stderr) == (not options)
    os.close(ours)
    os.close(theirs)
