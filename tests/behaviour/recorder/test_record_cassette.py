"""What is in the cassette, what never is, and what becomes of it when it can't be written."""

from __future__ import annotations

import base64
import subprocess
from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.events import Data, Mark
from ext_recorder.cassette.reader import Reader
from ext_recorder.cassette.recovery import recover
from tests.support.host import PATIENCE_S
from tests.support.recorder_process import (
    ECHO,
    events,
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
    wire,
)

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hunter2-correct-horse"


# --- What is kept ---------------------------------------------------------------------------------------------------


def test_a_session_is_kept_in_the_order_in_which_it_happened(cassette: Path) -> None:
    child = python(
        "import os, sys\n"
        "line = os.read(0, 99)\n"
        "os.write(2, b'thinking\\n')\n"
        "os.write(1, line)\n"
        "os.read(0, 99)\n"
        "raise SystemExit(4)"
    )
    host = start(cassette, child)
    host.write(b'{"id": 1.0, "a": "\\u00e4 \xc3\xa4"}\n')
    assert host.read_line() == b'{"id": 1.0, "a": "\\u00e4 \xc3\xa4"}\n'
    assert host.end().code == 4
    shape = [(each.kind, each.value if isinstance(each, Mark) else each.payload) for each in events(cassette)]
    message = b'{"id": 1.0, "a": "\\u00e4 \xc3\xa4"}'
    assert shape[0] == ("in", message)
    assert sorted(shape[1:3]) == [("err", b"thinking"), ("out", message)]
    assert shape[3] == ("eof", "in")
    assert set(shape[4:6]) == {("eof", "out"), ("eof", "err")}
    assert shape[6] == ("exit", 4)
    times = [each.time for each in events(cassette)]
    assert times == sorted(times)
    assert times[0] >= 0


def test_the_header_says_what_was_recorded_and_how(cassette: Path) -> None:
    run(cassette, ["cat", "-u"], "--protocol", "jsonrpc", "--framing", "content-length")
    with Reader(cassette) as reader:
        header = reader.header
    assert (header.protocol, header.framing, header.command) == ("jsonrpc", "content-length", ("cat", "-u"))
    assert header.recorder
    assert header.recorded.endswith("Z")


def test_the_header_has_no_machine_path_of_the_command(cassette: Path) -> None:
    run(cassette, ["/bin/cat", "/dev/null"])
    with Reader(cassette) as reader:
        assert reader.header.command == ("cat", "/dev/null")


def test_messages_with_headers_are_kept_as_messages(cassette: Path) -> None:
    frame = b'Content-Length: 7\r\n\r\n{"a":1}'
    other = b"Content-Type: x\r\nContent-Length: 2\r\n\r\n{}"
    session = run(
        cassette, ECHO, "--protocol", "jsonrpc", "--framing", "content-length", stdin=frame + b"log\n" + other
    )
    assert session.out == frame + b"log\n" + other
    found = [
        (each.payload, each.raw, each.head) for each in events(cassette) if isinstance(each, Data) and each.kind == "in"
    ]
    assert found == [
        (b'{"a":1}', False, ()),
        (b"log\n", True, ()),
        (b"{}", False, ("Content-Type: x", "Content-Length: 2")),
    ]


def test_a_binary_child_is_kept_byte_for_byte(cassette: Path) -> None:
    data = bytes(range(256)) * 1_000
    run(cassette, ECHO, "--protocol", "raw", stdin=data)
    assert wire(cassette, "in") == wire(cassette, "out") == data


def test_a_frame_over_the_limit_of_its_framing_is_kept_byte_for_byte(cassette: Path) -> None:
    data = b"\0\0\0\2{}" + (11_000_000).to_bytes(4, "big") + b"some text " * 1_100_000
    assert run(cassette, ECHO, "--protocol", "jsonrpc", "--framing", "uint32", stdin=data).out == data
    first, *rest = [each for each in events(cassette) if isinstance(each, Data) and each.kind == "in"]
    assert (first.payload, first.raw) == (b"{}", False)
    assert b"".join(each.payload for each in rest) == data[6:]
    assert all(each.raw for each in rest)


def test_a_prompt_without_line_end_is_kept(cassette: Path) -> None:
    host = start(cassette, python("import os; os.write(1, b'name? '); os.read(0, 9)"))
    assert host.read(6) == b"name? "
    host.end()
    assert wire(cassette, "out") == b"name? "


def test_what_is_on_the_wire_is_soon_on_the_disk(cassette: Path) -> None:
    host = start(cassette, ECHO)
    host.write(b"first\n")
    host.read_line()
    wait_for(partial_of(cassette), b"out: 'first'")
    assert not cassette.exists()
    host.end()
    assert cassette.exists()


# --- What is not ----------------------------------------------------------------------------------------------------


def spellings(secret: str) -> list[bytes]:
    raw = secret.encode()
    return [raw, base64.b64encode(raw), raw.hex().encode()]


def everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def assert_no_secret(folder: Path, secret: str = SECRET) -> None:
    content = everything_in(folder)
    assert content
    for spelling in spellings(secret):
        assert spelling not in content


def test_values_of_secret_variables_reach_no_file_whatever_stream_they_are_on(cassette: Path, tmp_path: Path) -> None:
    child = python(
        "import base64, os\n"
        "secret = os.environ['API_TOKEN'].encode()\n"
        "os.write(1, b'{\"a\":\"' + secret + b'\"}\\n')\n"
        "os.write(1, b'\\xff' + secret + b'\\n')\n"
        "os.write(1, base64.b64encode(secret) + b'\\n')\n"
        "os.write(2, b'using ' + secret + b'\\n')\n"
        "os.write(2, b'no line end ' + secret)"
    )
    session = run(cassette, child, env={"API_TOKEN": SECRET})
    assert session.out.count(SECRET.encode()) == 2  # the host has everything
    assert_no_secret(tmp_path)
    with Reader(cassette) as reader:
        assert b"[redacted:env.API_TOKEN#1]" in b"".join(event.payload for event in reader if isinstance(event, Data))
        assert "env.API_TOKEN" in (reader.redacted or ())


def test_a_secret_that_comes_in_two_chunks_reaches_no_file(cassette: Path, tmp_path: Path) -> None:
    host = start(cassette, ECHO, env={"API_TOKEN": SECRET})
    for piece in (b'{"a":"', SECRET[:9].encode(), SECRET[9:].encode(), b'"}\n'):
        host.write(piece)
        assert host.read(len(piece)) == piece
    wait_for(partial_of(cassette), b"out: '{")
    host.write(b"prompt> " + SECRET[:9].encode())
    host.read(17)
    assert SECRET[:9].encode() not in everything_in(tmp_path)
    host.write(SECRET[9:].encode())
    host.end()
    assert_no_secret(tmp_path)


def test_a_killed_recorder_leaves_no_secret_in_the_partial_file(cassette: Path, tmp_path: Path) -> None:
    host = start(cassette, ECHO, env={"API_TOKEN": SECRET})
    host.write(f"first {SECRET}\nsecond {SECRET}".encode())
    host.read(14 + 2 * len(SECRET))
    wait_for(partial_of(cassette), b"out: 'first")
    scribe = scribe_of(host)
    host.kill()
    host.end()
    wait_until_gone(scribe)
    assert_no_secret(tmp_path)
    recover(partial_of(cassette))
    assert messages(cassette, "out")[1] == b"second [redacted:env.API_TOKEN#1]"
    assert_no_secret(tmp_path)


def test_a_secret_among_the_arguments_of_the_command_reaches_no_file(cassette: Path, tmp_path: Path) -> None:
    child = python("pass")
    run(cassette, [*child, "--header", f"Authorization: Bearer {SECRET}", f"--token={SECRET}", "--password", SECRET])
    assert_no_secret(tmp_path)
    with Reader(cassette) as reader:
        *_, header, bearer, token, option, password = reader.header.command
    assert (header, option) == ("--header", "--password")
    for redacted in (bearer, token, password):
        assert "[redacted:" in redacted


def test_a_variable_named_by_the_user_is_a_secret_too(cassette: Path, tmp_path: Path) -> None:
    run(cassette, ECHO, "--redact", "CUSTOMER", stdin=b"acme-corporation\n", env={"CUSTOMER": "acme-corporation"})
    assert messages(cassette, "out") == [b"[redacted:env.CUSTOMER#1]"]
    assert_no_secret(tmp_path, "acme-corporation")


def test_a_variable_to_be_redacted_that_is_not_there_is_an_error_before_anything_starts(cassette: Path) -> None:
    session = run(cassette, python("print('started')"), "--redact", "NO_SUCH_VARIABLE")
    assert session.code == 2
    assert session.out == b""
    assert b"--redact NO_SUCH_VARIABLE" in session.err


def test_machine_paths_are_kept_by_their_neutral_names(cassette: Path, tmp_path: Path) -> None:
    workdir = tmp_path / "task"
    request = (
        f'{{"id":1,"method":"execute","params":{{"context":{{"workdir":"{workdir}"}},"file":"{workdir}/a.txt"}}}}\n'
    )
    run(cassette, ECHO, "--bind", "data=/srv/data", stdin=request.encode() + b"/srv/data/x\n", env={"HOME": "/home/me"})
    first, second = messages(cassette, "out")
    assert (
        first
        == b'{"id":1,"method":"execute","params":{"context":{"workdir":"/tmp/workdir"},"file":"/tmp/workdir/a.txt"}}'
    )
    assert second == b"/tmp/data/x"
    with Reader(cassette) as reader:
        assert reader.header.bindings == {"data": "/tmp/data", "home": "/home/user", "workdir": "/tmp/workdir"}


# --- When it can't be written ---------------------------------------------------------------------------------------


def test_a_cassette_that_cannot_be_created_stops_the_recording_and_not_the_session(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    session = run(tmp_path / "file" / "session.yaml", ECHO, stdin=b"hello\n")
    assert (session.code, session.out) == (0, b"hello\n")
    assert session.err.startswith(b"ext-recorder: ")
    assert session.err.count(b"\n") == 1
    assert str(tmp_path / "file").encode() in session.err


def test_a_full_disk_stops_the_recording_and_not_the_session(cassette: Path) -> None:
    lines = b"".join(b"line %d\n" % number for number in range(1_000))
    limited = python(
        "import os, resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [*limited, *recorder(cassette, ECHO)]
    done = subprocess.run(command, input=lines, capture_output=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout) == (0, lines)
    assert done.stderr.startswith(b"ext-recorder: ")
    assert b"File too large; what was recorded until then is in" in done.stderr
    assert not cassette.exists()
    assert recover(partial_of(cassette)).dropped == 0
    assert messages(cassette, "in")[0] == b"line 0"


def test_a_fault_of_the_scribe_stops_the_recording_and_tells_no_secret(cassette: Path, tmp_path: Path) -> None:
    fault = "from ext_recorder.record import event_encoder\ndef fail(self, notes): raise ValueError(repr(notes))"
    command = patched(recorder(cassette, ECHO), fault, "event_encoder.EventEncoder.lines = fail")
    done = subprocess.run(command, input=SECRET.encode(), capture_output=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout) == (0, SECRET.encode())
    assert b"internal error: ValueError in <string>:" in done.stderr
    assert SECRET.encode() not in done.stderr
    assert done.stderr.count(b"\n") == 1
    assert_no_secret(tmp_path)


def test_a_scribe_that_cannot_be_started_is_said_and_the_session_runs(cassette: Path) -> None:
    fault = "import os\ndef fail(): raise BlockingIOError(11, 'Resource temporarily unavailable')"
    command = patched(recorder(cassette, ECHO), fault, "os.fork = fail")
    done = subprocess.run(command, input=b"hello\n", capture_output=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout) == (0, b"hello\n")
    assert b"the writer process could not be started" in done.stderr
    assert not cassette.exists()


def test_of_two_recorders_of_one_cassette_the_second_says_so_and_goes_on_unrecorded(cassette: Path) -> None:
    first = start(cassette, ECHO)
    first.write(b"first\n")
    first.read_line()
    wait_for(partial_of(cassette))
    second = run(cassette, ECHO, stdin=b"second\n")
    assert (second.code, second.out) == (0, b"second\n")
    assert b"another recorder is writing this cassette" in second.err
    assert first.end().err == b""
    assert messages(cassette, "in") == [b"first"]


def test_what_a_killed_recorder_left_is_moved_aside_by_the_next_one(cassette: Path) -> None:
    partial_of(cassette).write_text("left by another\n")
    assert run(cassette, ECHO, stdin=b"new\n").code == 0
    assert messages(cassette, "in") == [b"new"]
    assert cassette.with_name(cassette.name + ".partial.1").read_text() == "left by another\n"


# --- Modes ----------------------------------------------------------------------------------------------------------


def test_all_replaces_the_old_cassette_when_the_new_one_is_whole_and_not_before(cassette: Path) -> None:
    run(cassette, ECHO, stdin=b"old\n")
    old = cassette.read_bytes()
    host = start(cassette, ECHO, "--mode", "all")
    host.write(b"new\n")
    host.read_line()
    wait_for(partial_of(cassette))
    assert cassette.read_bytes() == old
    host.end()
    assert messages(cassette, "in") == [b"new"]


def test_a_killed_recorder_does_not_touch_the_old_cassette(cassette: Path) -> None:
    run(cassette, ECHO, stdin=b"old\n")
    host = start(cassette, ECHO, "--mode", "all")
    host.write(b"new\n")
    host.read_line()
    host.kill()
    host.end()
    assert messages(cassette, "in") == [b"old"]


def test_none_with_a_missing_cassette_is_an_error_that_says_so(cassette: Path) -> None:
    session = run(cassette, python("print('started')"), "--mode", "none")
    assert (session.code, session.out) == (2, b"")
    assert (
        session.err
        == f"ext-recorder: {cassette}: no such cassette, and --mode none does not record; use --mode once\n".encode()
    )


@pytest.mark.parametrize(
    ("mode", "says"),
    [("twice", b"expected one of once, none, new_episodes, all"), ("", b"--mode")],
)
def test_a_mode_that_is_not_there_is_an_error_that_names_the_others(cassette: Path, mode: str, says: bytes) -> None:
    session = run(cassette, python("print('started')"), "--mode", mode)
    assert (session.code, session.out) == (2, b"")
    assert says in session.err


def test_the_command_is_missed_when_there_is_something_to_record(cassette: Path) -> None:
    command = recorder(cassette, [])[:-1]
    done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 2
    assert b"expected the command to record after `--`" in done.stderr
