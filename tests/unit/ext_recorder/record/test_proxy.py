"""The tap: whatever host and child do to each other's streams, they do it as if it were not there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.host import PATIENCE_S, HostProcess, read
from tests.support.recorder_process import (
    ECHO,
    marks,
    messages,
    patched,
    python,
    recorder,
    run,
    scribe_of,
    start,
    wait_until_gone,
    wire,
)

if TYPE_CHECKING:
    from pathlib import Path


MIB = 1_048_576
BINARY = bytes(range(256)) * 4_096  # 1 MiB, without any structure


@pytest.mark.parametrize("framing", ["ndjson", "content-length", "uint32"])
def test_every_byte_passes_both_ways_whatever_the_framing_is_said_to_be(cassette: Path, framing: str) -> None:
    session = run(cassette, ECHO, "--framing", framing, stdin=BINARY)
    assert session.out == BINARY
    assert session.code == 0


def test_a_chunk_passes_before_its_message_is_whole(cassette: Path) -> None:
    host = start(cassette, ECHO)
    host.write(b'{"jsonrpc":')
    assert host.read(11) == b'{"jsonrpc":'
    host.write(b"Content-Length: 5\r\n")
    assert host.read(19) == b"Content-Length: 5\r\n"
    assert host.end().code == 0


def test_stderr_passes_apart_from_stdout(cassette: Path) -> None:
    child = python("import os; os.write(2, b'one\\ntwo\\n\\xff'); os.write(1, b'out\\n')")
    session = run(cassette, child)
    assert (session.out, session.err) == (b"out\n", b"one\ntwo\n\xff")
    assert messages(cassette, "err") == [b"one", b"two", b"\xff"]


def test_a_message_of_20_mb_passes_and_is_one_event(cassette: Path) -> None:
    message = b'{"a":"' + b"x" * (20 * MIB) + b'"}\n'
    session = run(cassette, ECHO, stdin=message)
    assert session.out == message
    assert messages(cassette, "in") == messages(cassette, "out") == [message[:-1]]


# --- Ends of streams ------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(fcntl, "F_GETPIPE_SZ"), reason="pipes of this system have one size")
def test_the_pipes_of_the_child_hold_four_times_what_others_do(cassette: Path) -> None:
    sizes = "import fcntl; print([fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ) for fd in (0, 1)])"
    assert run(cassette, python(sizes)).out == b"[262144, 262144]\n"


def test_the_end_of_the_hosts_input_reaches_a_child_that_goes_on(cassette: Path) -> None:
    host = start(cassette, python("import os\nwhile os.read(0, 99): pass\nos.write(1, b'seen\\n')"))
    host.write(b"x\n")
    assert host.end().out == b"seen\n"
    assert marks(cassette, "eof")[0] == ("eof", "in")


def test_the_end_of_the_childs_output_reaches_the_host_while_the_child_goes_on(cassette: Path) -> None:
    child = python("import os; os.write(1, b'last\\n'); os.close(1); os.read(0, 1); raise SystemExit(5)")
    host = start(cassette, child)
    assert host.read(99) == b"last\n"  # up to the end of file
    assert host.poll() is None
    assert host.end().code == 5
    assert marks(cassette, "eof", "exit") == [("eof", "out"), ("eof", "in"), ("eof", "err"), ("exit", 5)]


def test_a_child_sees_that_the_host_has_stopped_reading(cassette: Path) -> None:
    child = python(
        "import os, signal\n"
        "signal.signal(signal.SIGPIPE, signal.SIG_IGN)\n"
        "os.read(0, 1)\n"
        "try:\n"
        "    while True: os.write(1, b'more\\n')\n"
        "except BrokenPipeError:\n"
        "    raise SystemExit(9)"
    )
    host = start(cassette, child)
    assert host.stdout is not None
    host.stdout.close()
    host.write(b"x")
    assert host.wait(PATIENCE_S) == 9
    assert host.stdin is not None
    assert host.stderr is not None
    host.stdin.close()
    host.stderr.close()


def test_a_child_dies_of_a_closed_pipe_as_it_would_without_the_recorder(cassette: Path) -> None:
    child = python("import os, signal; signal.signal(signal.SIGPIPE, signal.SIG_DFL)\nwhile True: os.write(1, b'x')")
    host = start(cassette, child)
    host.read(10)
    assert host.stdout is not None
    host.stdout.close()
    assert host.wait(PATIENCE_S) == -13
    host.end()
    assert marks(cassette, "exit") == [("exit", "SIGPIPE")]


def test_the_host_sees_that_the_child_has_closed_its_input(cassette: Path) -> None:
    child = python("import os, signal; os.close(0); os.write(1, b'closed\\n'); signal.pause()")
    host = start(cassette, child)
    assert host.read_line() == b"closed\n"
    with pytest.raises(BrokenPipeError):
        host.write(b"x" * MIB)
    host.terminate()
    with contextlib.suppress(BrokenPipeError):
        host.end()
    assert host.returncode == -15


# --- Back-pressure --------------------------------------------------------------------------------------------------


def test_a_host_that_writes_everything_before_it_reads_does_not_deadlock(cassette: Path) -> None:
    # The child answers while it reads, in two threads: without the recorder, this host would come through.
    child = python(
        "import os, threading\n"
        "def flood():\n"
        "    for _ in range(64): os.write(1, b'y' * 65535 + b'\\n')\n"
        "thread = threading.Thread(target=flood)\n"
        "thread.start()\n"
        "total = 0\n"
        "while data := os.read(0, 65536): total += len(data)\n"
        "thread.join()\n"
        "os.write(1, b'%d\\n' % total)"
    )
    host = start(cassette, child)
    line = b"x" * 65_535 + b"\n"
    for _ in range(64):
        host.write(line)
    session = host.end()
    assert session.out == (b"y" * 65_535 + b"\n") * 64 + b"4194304\n"


def test_a_reader_of_stdout_alone_gets_it_while_stderr_is_full(cassette: Path) -> None:
    child = python(
        "import os, threading\n"
        "threading.Thread(target=lambda: os.write(2, b'e' * 1000000), daemon=True).start()\n"
        "for _ in range(16): os.write(1, b'o' * 65536)\n"
        "os._exit(0)"
    )
    host = start(cassette, child)
    assert host.read(MIB) == b"o" * MIB
    assert host.end().code == 0


FLOOD = python("import os\nline = b'z' * 999 + b'\\n'\nfor _ in range(200): os.write(1, line * 65)")
FLOOD_BYTES = 13_000_000


def test_the_wire_waits_for_a_scribe_that_is_far_behind(cassette: Path) -> None:
    host = flooded(cassette, "proxy.QUEUE_BYTES = 1_000_000")
    assert host.stdout is not None
    scribe = scribe_of(host)
    os.kill(scribe, signal.SIGSTOP)
    taken = 0
    readable = select.poll()
    readable.register(host.stdout.fileno(), select.POLLIN)
    while readable.poll(500):
        piece = os.read(host.stdout.fileno(), MIB)
        assert piece
        taken += len(piece)
    assert taken < 5_000_000  # the queue, a batch, and what the pipes hold
    os.kill(scribe, signal.SIGCONT)
    session = host.end()
    assert taken + len(session.out) == FLOOD_BYTES
    assert len(messages(cassette, "out")) == 13_000


def test_a_scribe_that_takes_nothing_any_more_is_given_up(cassette: Path) -> None:
    host = flooded(cassette, "proxy.QUEUE_BYTES = 1_000_000", "note_queue.STALL_S = 0.1", "proxy.STALL_CHECK_MS = 10")
    scribe = scribe_of(host)
    os.kill(scribe, signal.SIGSTOP)
    session = host.end()
    wait_until_gone(scribe)
    assert (session.code, len(session.out)) == (0, FLOOD_BYTES)
    assert session.err.startswith(b"ext-recorder: recording stopped, the session continues: the disk is too slow")


WORKING = """
import time
from ext_recorder.record.event_encoder import EventEncoder
lines = EventEncoder.lines
def work_first(transcript, notes):
    EventEncoder.lines = lines
    until = time.process_time() + 3
    while time.process_time() < until: pass
    return lines(transcript, notes)
EventEncoder.lines = work_first
"""


def test_a_scribe_that_works_on_one_batch_for_long_is_waited_for(cassette: Path) -> None:
    limits = ("proxy.QUEUE_BYTES = 1_000_000", "note_queue.STALL_S = 1", "proxy.STALL_CHECK_MS = 10")
    urgent = "writer_process.NICENESS = 0"  # on a busy machine, a nice process gets no processor time for a second
    host = flooded(cassette, *limits, urgent, WORKING)
    session = host.end()
    assert (session.code, session.err) == (0, b"")
    assert len(messages(cassette, "out")) == 13_000


def flooded(cassette: Path, *changes: str) -> HostProcess:
    """A session whose child floods its output once the recorder is known to run."""
    child = [*FLOOD[:-1], "import os; os.write(2, b'!'); os.read(0, 1)\n" + FLOOD[-1]]
    host = HostProcess(patched(recorder(cassette, child), *changes))
    assert host.stderr is not None
    assert read(host.stderr.fileno(), 1) == b"!"
    host.write(b"x")
    return host


def test_memory_stays_bounded_whatever_passes(tmp_path: Path) -> None:
    child = python("import os\nline = b'zz z' * 16383 + b'\\n'\nfor _ in range(1500): os.write(1, line)")  # 98 MB
    # Measured by a small process in between: Linux counts what a process was before it became another program.
    program = (
        "import os, sys\n"
        "null = os.open('/dev/null', os.O_WRONLY)\n"
        "pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)])\n"
        "print(os.wait4(pid, 0)[2].ru_maxrss)"
    )
    command = [*python(program), *recorder(tmp_path / "session.yaml", child)]
    done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=True)
    assert int(done.stdout) < 70_000  # KiB: the most notes that may wait, and an interpreter


# --- Files of other kinds -------------------------------------------------------------------------------------------


def test_files_stand_in_for_pipes(cassette: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(BINARY)
    with (tmp_path / "in").open("rb") as stdin, (tmp_path / "out").open("ab") as stdout:
        stdout.write(b"before\n")
        stdout.flush()
        command = recorder(cassette, ECHO)
        done = subprocess.run(command, stdin=stdin, stdout=stdout, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0
    assert (tmp_path / "out").read_bytes() == b"before\n" + BINARY


def test_dev_null_is_a_file_like_any_other(cassette: Path) -> None:
    null = subprocess.DEVNULL
    done = subprocess.run(
        recorder(cassette, ECHO), stdin=null, stdout=null, stderr=null, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0
    assert marks(cassette, "exit") == [("exit", 0)]


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_files_that_the_host_has_closed_do_no_harm(cassette: Path, closed: tuple[int, ...]) -> None:
    child = python("import os; os.write(2, b'err\\n'); os.read(0, 9); raise SystemExit(3)")
    shell = " ".join(["exec", '"$@"', *(f"{fd}>&-" for fd in closed)])
    command = ["/bin/sh", "-c", shell, "sh", *recorder(cassette, child)]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 3
    assert messages(cassette, "err") == [b"err"]


def test_sockets_serve_as_standard_files(cassette: Path) -> None:
    ours, theirs = socket.socketpair()  # as hosts on Node have it
    with ours:
        with theirs:
            host = subprocess.Popen(recorder(cassette, ECHO), stdin=theirs.fileno(), stdout=theirs.fileno())
        ours.settimeout(PATIENCE_S)
        received = bytearray()
        for at in range(0, len(BINARY), 65_536):
            ours.sendall(BINARY[at : at + 65_536])
            while len(received) < at + 65_536:
                received += ours.recv(65_536)
        ours.shutdown(socket.SHUT_WR)
        assert ours.recv(1) == b""
    assert received == BINARY
    assert host.wait(PATIENCE_S) == 0


def test_a_terminal_serves_as_standard_files(cassette: Path) -> None:
    ours, theirs = pty.openpty()
    host = subprocess.Popen(recorder(cassette, ECHO), stdin=theirs, stdout=theirs, stderr=theirs, process_group=0)
    os.close(theirs)
    os.write(ours, b"hello\n\x04")  # Ctrl-D: the end of input
    seen = b""
    with contextlib.suppress(OSError):  # a terminal without programs is an error to read, on Linux
        while piece := read(ours, 1):
            seen += piece
    os.close(ours)
    assert host.wait(PATIENCE_S) == 0
    assert seen.count(b"hello\r\n") == 2  # once by the terminal, once by the child
    assert b"1 in, 1 out" in seen  # the summary is for terminals


def test_flags_of_files_shared_with_the_host_stay_as_they_are(cassette: Path) -> None:
    readable, writable = os.pipe()
    child = python("import os; os.write(1, b'x\\n'); os.read(0, 1)")
    host = subprocess.Popen(recorder(cassette, child), stdin=subprocess.PIPE, stdout=writable)
    assert read(readable, 2) == b"x\n"
    assert os.get_blocking(writable)
    host.communicate(timeout=PATIENCE_S)
    os.close(readable)
    os.close(writable)


def test_further_files_go_to_the_child_and_stay_with_nobody_else(cassette: Path) -> None:
    readable, writable = os.pipe()
    child = python(f"import os; os.write({writable}, b'ready'); os.close({writable}); os.read(0, 1)")
    host = subprocess.Popen(recorder(cassette, child), stdin=subprocess.PIPE, pass_fds=[writable])
    os.close(writable)
    assert read(readable, 99) == b"ready"  # and the end of file: the child was the last to hold it
    os.close(readable)
    assert host.poll() is None
    host.communicate(timeout=PATIENCE_S)
    assert host.returncode == 0


# --- After the child's end ------------------------------------------------------------------------------------------


def test_what_the_child_said_last_arrives_though_the_host_reads_it_after_the_exit(cassette: Path) -> None:
    host = start(cassette, python("import os; os.write(1, b'x' * 65536); os.write(2, b'y' * 65536)"))
    assert host.wait(PATIENCE_S) == 0
    session = host.end()
    assert (len(session.out), len(session.err)) == (65_536, 65_536)


def test_a_child_that_is_stopped_in_mid_flood_ends_at_once_and_loses_nothing_of_what_was_recorded(
    cassette: Path,
) -> None:
    host = start(cassette, python("import os\nos.write(2, b'go')\nwhile True: os.write(1, b'line\\n' * 1000)"))
    assert host.stderr is not None
    assert read(host.stderr.fileno(), 2) == b"go"
    first = host.read(10)
    host.terminate()
    assert host.wait(PATIENCE_S) == -15
    assert first + host.end().out == wire(cassette, "out")


def test_a_process_that_the_child_leaves_behind_does_not_hold_the_host_up_and_is_still_heard(cassette: Path) -> None:
    asked, ask = os.pipe()
    heard, tell = os.pipe()
    child = python(
        "import os\n"
        "if os.fork() == 0:\n"
        f"    os.read({asked}, 1)\n"
        "    os.write(1, b'later\\n')\n"
        "    os._exit(0)\n"
        "os.write(1, b'now\\n')\n"
        "os._exit(4)"
    )
    command = recorder(cassette, child)
    host = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=tell, pass_fds=[asked])
    os.close(tell)
    assert host.wait(PATIENCE_S) == 4
    os.write(ask, b"!")
    assert read(heard, 99) == b"now\nlater\n"
    for fd in (asked, ask, heard):
        os.close(fd)
    assert messages(cassette, "out") == [b"now"]
