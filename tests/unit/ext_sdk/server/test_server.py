"""An extension as a host sees it: a process on pipes, through whole sessions, and through all that can go wrong."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.host import PATIENCE_S, PROBE, ExtensionHost, execute, request
from tests.support.meetings import Meeting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.host import Message

ENDED_BY_ALARM = -signal.SIGALRM


@pytest.fixture
def meetings(tmp_path: Path) -> Iterator[list[Meeting]]:
    found = [Meeting(tmp_path, name) for name in ("first", "second", "third")]
    yield found
    for meeting in found:
        meeting.close()


@pytest.fixture
def meeting(meetings: list[Meeting]) -> Meeting:
    return meetings[0]


@pytest.fixture
def peer() -> Iterator[ExtensionHost]:
    with ExtensionHost() as peer:
        yield peer


def shown(error: object) -> tuple[object, str]:
    assert isinstance(error, dict)
    return error["code"], str(error["message"])


# --- Sessions ---


@pytest.mark.parametrize("id", [0, -1, 10**30, 1.5, 1e300, "", "a", 'ä😀\0"\\', "x" * 1000, None, "\ud800"])
def test_an_id_comes_back_as_it_was(peer: ExtensionHost, id: object) -> None:
    # One after the other: while a call goes on, nothing else may have its id.
    for one in (request(id, "initialize", {"protocolVersion": "0.0.1"}), execute(id, "echo"), request(id, "shutdown")):
        peer.send(one)
        answer = peer.message()
        assert (type(answer["id"]), answer["id"]) == (type(id), id)
        assert "result" in answer
    assert peer.rest() == []
    assert peer.exit_code() == 0


def test_operations_run_side_by_side_and_each_answers_when_it_ends(
    peer: ExtensionHost, meetings: list[Meeting]
) -> None:
    peer.send(*(execute(at, "meet", meeting.args) for at, meeting in enumerate(meetings)))
    for meeting in meetings:
        assert meeting.started.line() == "started"
    for at in (2, 0, 1):
        meetings[at].go_on.write(f"go on, {at}")
        answer = peer.message()
        assert answer["id"] == at
        assert answer["result"] == {"success": True, "message": f"go on, {at}"}


def test_requests_are_read_while_operations_run(peer: ExtensionHost, meeting: Meeting) -> None:
    peer.send(execute(0, "meet", meeting.args))
    meeting.started.line()
    assert peer.initialize()["result"]
    assert peer.outputs("echo", {"text": "x"})["text"] == "x"
    meeting.go_on.write("")
    assert peer.message()["id"] == 0


def test_many_calls_one_after_the_other(peer: ExtensionHost) -> None:
    for at in range(300):
        assert peer.outputs("echo", {"text": str(at)})["text"] == str(at)


def test_many_calls_in_one_write(peer: ExtensionHost) -> None:
    peer.send(*(execute(at, "echo", {"text": str(at)}) for at in range(200)), request("end", "shutdown"))
    answers = peer.rest()
    results = {answer["id"]: answer["result"] for answer in answers[:-1]}
    assert {id: result["message"] for id, result in results.items() if isinstance(result, dict)} == {
        at: str(at) for at in range(200)
    }
    assert answers[-1]["id"] == "end"


def test_a_message_may_come_byte_by_byte(peer: ExtensionHost) -> None:
    for byte in b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"0.0.1"}}\n':
        peer.write(bytes([byte]))
    assert peer.message()["id"] == 1


def test_lines_of_20_mb_are_read(peer: ExtensionHost) -> None:
    outputs = peer.outputs("echo", {"text": "x" * 20_000_000})
    assert outputs["length"] == "20000000"
    assert peer.outputs("echo", {"text": "next"})["text"] == "next"


def test_a_first_line_of_20_mb_is_read_too(peer: ExtensionHost) -> None:
    assert shown(peer.call("x" * 20_000_000).get("error"))[0] == -32601


# --- What is wrong with a request ---


# (line, code of the error, id that it comes back with)
REFUSED: list[tuple[bytes, int, object]] = [
    (b"hello\n", -32700, None),
    (b'{"jsonrpc":"2.0","id":1\n', -32700, None),
    (b"\xff\n", -32700, None),
    (b'{"jsonrpc":"2.0","id":1e999,"method":"shutdown"}\n', -32700, None),
    (b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"shutdown"}\n', -32600, None),
    (b'{"jsonrpc":"2.0","id":7,"method":"execute","params":{"a":' + b"9" * 5000 + b"}}\n", -32600, 7),
    (b'{"jsonrpc":"2.0","id":7,"method":"execute","params":{"a":1,"a":1}}\n', -32600, 7),
    (b"[" * 100_000 + b"\n", -32600, None),
    (b'[{"jsonrpc":"2.0","id":1,"method":"shutdown"}]\n', -32600, None),
    (b"7\n", -32600, None),
    (b'{"id":7,"method":"shutdown"}\n', -32600, 7),
    (b'{"jsonrpc":"2.0","id":7,"id":7,"method":"shutdown"}\n', -32600, None),
    (b'{"jsonrpc":"2.0","id":true,"method":"shutdown"}\n', -32600, None),
    (b'{"jsonrpc":"2.0","id":7,"method":"shutdwon"}\n', -32601, 7),
    (b'{"jsonrpc":"2.0","id":7,"method":"execute"}\n', -32602, 7),
    (b'{"jsonrpc":"2.0","id":7,"method":"execute","params":[]}\n', -32602, 7),
    (b'{"jsonrpc":"2.0","id":"' + b"x" * 100_000 + b'","method":"shutdown"}\n', -32600, None),
    (b'{"jsonrpc":"1.0","id":"' + b"x" * 100_000 + b'"}\n', -32600, None),
    (b'{"jsonrpc":"2.0","id":"' + b"\\u0000" * 1000 + b'","method":"shutdown"}\n', -32600, None),
]


@pytest.mark.parametrize(("line", "code", "id"), REFUSED, ids=lambda value: str(value)[:40])
def test_a_first_line_that_cannot_be_served_is_told_and_the_session_goes_on(
    peer: ExtensionHost, line: bytes, code: int, id: object
) -> None:
    peer.send(line)
    answer = peer.message()
    assert (answer["id"], shown(answer["error"])[0]) == (id, code)
    assert peer.outputs("echo", {"text": "still here"})["text"] == "still here"


def test_requests_that_cannot_be_served_are_told_and_the_session_goes_on(peer: ExtensionHost) -> None:
    peer.initialize()
    for line, code, id in REFUSED:
        peer.send(line, execute("next", "echo"))
        answer = peer.message()
        assert (answer["id"], shown(answer["error"])[0]) == (id, code), line[:80]
        assert peer.message()["id"] == "next"


def test_blank_lines_are_nothing(peer: ExtensionHost) -> None:
    peer.send(b"\n\r\n \t \n", request(1, "initialize", {"protocolVersion": "0.0.1"}), b"\n", execute(2, "echo"))
    assert [peer.message()["id"] for _ in range(2)] == [1, 2]


def test_notifications_and_answers_are_not_answered(peer: ExtensionHost) -> None:
    peer.send(
        {"jsonrpc": "2.0", "method": "initialize", "params": {"protocolVersion": "0.0.1"}},
        {"jsonrpc": "2.0", "method": "execute", "params": {"operation": "echo"}},
        {"jsonrpc": "2.0", "method": "no/such"},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "m"}},
        execute(5, "echo"),
    )
    assert peer.message()["id"] == 5


def test_an_id_in_use_is_refused_and_its_first_user_answered(peer: ExtensionHost, meeting: Meeting) -> None:
    peer.send(execute(1, "meet", meeting.args))
    meeting.started.line()
    peer.send(execute(1, "echo"), request(1, "shutdown"))
    for _ in range(2):
        answer = peer.message()
        assert answer["id"] is None
        assert shown(answer["error"]) == (-32600, "id 1 is still in use by a call of 'meet'")
    meeting.go_on.write("first")
    answer = peer.message()
    assert (answer["id"], answer["result"]) == (1, {"success": True, "message": "first"})
    peer.send(execute(1, "echo"))
    assert peer.message()["result"]


def test_values_nested_deeply_are_refused_the_same_on_every_interpreter(peer: ExtensionHost) -> None:
    codes = []
    for depth in (100, 290, 300, 400, 700, 940):
        line = json.dumps(execute(1, "echo", {"text": "HERE"})).replace('"HERE"', "[" * depth + "]" * depth)
        peer.send(line.encode() + b"\n")
        answer = peer.message()
        assert answer["id"] == 1
        codes.append(shown(answer["error"])[0])
    assert codes == [-32602, -32602, -32600, -32600, -32600, -32600]
    assert peer.outputs("echo", {"text": "x"})["text"] == "x"


# --- How operations end ---


@pytest.mark.parametrize(
    ("how", "code", "says"),
    [
        ("boom", -32603, "end-badly: unexpected ValueError: boom; this is a fault of the extension"),
        ("none", -32603, "end-badly: unexpected TypeError: expected a Result, found NoneType"),
        ("leave", -32603, "end-badly: unexpected SystemExit: left"),
        ("interrupt", -32603, "end-badly: unexpected KeyboardInterrupt"),
        ("cancel", -32603, "end-badly: unexpected asyncio.exceptions.CancelledError"),
        ("fail_badly", -32603, "end-badly: unexpected ValueError: an output needs a name without dots, not 'a.b'"),
        ("mute", -32603, "MuteError: <exception str() failed>"),
    ],
)
def test_whatever_an_operation_raises_is_answered(peer: ExtensionHost, how: str, code: int, says: str) -> None:
    found, message = shown(peer.error("end-badly", {"how": how}))
    assert found == code
    assert says in message
    assert "Traceback" not in message
    assert peer.outputs("echo", {"text": "next"})["text"] == "next"
    assert ("Traceback" in peer.stderr) == (code == -32603)


def test_an_operation_that_fails_gives_a_result(peer: ExtensionHost) -> None:
    assert peer.result("end-badly", {"how": "fail"}) == {
        "success": False,
        "message": "not ready",
        "error": "expected Ready, found Pending",
        "outputs": {"lastStatus": "Pending"},
    }


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("refuse", "end-badly: how: expected something else"),
        ("require", "end-badly: required command not found in PATH: frobnicate; install it"),
    ],
)
def test_an_operation_that_refuses_its_arguments_or_misses_a_command_gives_a_result(
    peer: ExtensionHost, how: str, says: str
) -> None:
    assert peer.result("end-badly", {"how": how}) == {"success": False, "message": says, "error": says}
    assert "Traceback" not in peer.stderr


def test_a_traceback_keeps_secrets() -> None:
    with ExtensionHost(env={"PROBE_PASSWORD": "swordfish-99"}) as peer:
        message = shown(peer.error("spill", {"to": "exception", "text": "swordfish-99"}))[1]
        assert "swordfish" not in message + peer.stderr
        assert "[redacted:env.PROBE_PASSWORD#1]" in message
        assert "[redacted:env.PROBE_PASSWORD#1]" in peer.stderr


# --- Deadlines ---


def test_an_operation_that_does_not_end_is_answered_for(peer: ExtensionHost, meeting: Meeting) -> None:
    error = peer.error("hang", meeting.args, timeout="300ms")
    assert shown(error) == (-32001, "hang: the operation did not end within its 0.297 s; it was stopped")
    assert peer.outputs("echo", {"text": "next"})["text"] == "next"


def test_a_call_is_answered_once_however_late_its_operation_ends(peer: ExtensionHost, meeting: Meeting) -> None:
    assert shown(peer.error("meet", meeting.args, timeout="200ms"))[0] == -32001
    meeting.go_on.write("too late")
    peer.send(request("end", "shutdown"))
    assert [answer["id"] for answer in peer.rest()] == ["end"]


def test_an_operation_is_told_to_stop_when_its_time_is_over(peer: ExtensionHost, meeting: Meeting) -> None:
    assert shown(peer.error("wait-for-stop", meeting.args, timeout="200ms"))[0] == -32001


@pytest.mark.parametrize(
    ("args", "context"),
    [
        ({"text": "Pending"}, {"timeout": "5s"}),
        ({"text": "Pending", "timeout": "200ms"}, {}),
        ({"text": "Pending", "timeout": "200ms"}, {"timeout": "1h"}),
        ({"text": "Pending", "timeout": "1h"}, {"timeout": "5s"}),
        ({"text": "Pending"}, {"phase": ""}),
        ({"text": "Pending"}, {"phase": None}),
        ({"text": "Pending", "timeout": "1h"}, {"phase": "", "timeout": "1h"}),
        ({"text": "Pending", "timeout": "0s"}, {}),
    ],
)
def test_an_operation_that_watches_its_deadline_answers_in_time(
    peer: ExtensionHost, args: dict[str, object], context: dict[str, object]
) -> None:
    peer.initialize({"maxOperationTime": "200ms"})
    assert peer.result("wait-for-deadline", args, **context) == {
        "success": False,
        "message": "time is over",
        "error": "time is over",
        "outputs": {"lastStatus": "Pending"},
    }


@pytest.mark.parametrize("timeout", ["1000h", "2562047h47m16.854775807s"])
def test_a_timeout_of_years_is_a_timeout(peer: ExtensionHost, meeting: Meeting, timeout: str) -> None:
    peer.send(execute(0, "meet", meeting.args, timeout=timeout))
    meeting.started.line()
    assert peer.outputs("echo", {"text": "meanwhile"})["text"] == "meanwhile"
    meeting.go_on.write("done")
    assert peer.message()["result"]


# --- The end ---


def test_one_call_without_initialize_is_answered_at_the_end_of_input(peer: ExtensionHost) -> None:
    peer.send(execute(1, "echo", {"text": "once"}))
    peer.eof()
    (answer,) = peer.rest()
    assert isinstance(answer["result"], dict)
    assert answer["result"]["message"] == "once"
    assert peer.exit_code() == 0


def test_the_last_line_needs_no_end(peer: ExtensionHost) -> None:
    peer.write(b'{"jsonrpc":"2.0","id":1,"method":"execute","params":{"operation":"echo","context":{"workdir":"/"}}}')
    peer.eof()
    assert [answer["id"] for answer in peer.rest()] == [1]
    assert peer.exit_code() == 0


def test_operations_that_run_at_the_end_of_input_are_waited_for(peer: ExtensionHost, meeting: Meeting) -> None:
    peer.send(execute(1, "meet", meeting.args))
    meeting.started.line()
    peer.eof()
    meeting.go_on.write("after the end")
    assert [answer["result"] for answer in peer.rest()] == [{"success": True, "message": "after the end"}]
    assert peer.exit_code() == 0


def test_no_input_is_no_output(peer: ExtensionHost) -> None:
    peer.eof()
    assert peer.rest() == []
    assert peer.exit_code() == 0
    assert peer.stderr == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_operations_and_lets_them_answer(
    peer: ExtensionHost, meeting: Meeting, number: signal.Signals
) -> None:
    peer.send(execute(1, "wait-for-stop", meeting.args))
    meeting.started.line()
    peer.process.send_signal(number)
    (answer,) = peer.rest()
    assert answer["result"] == {
        "success": False,
        "message": "stopped",
        "error": "stopped",
        "outputs": {"remaining": "0.0"},
    }
    assert peer.exit_code() == 0
    assert peer.stderr == ""


def test_a_signal_of_the_extensions_own_ends_nothing(peer: ExtensionHost) -> None:
    peer.initialize()
    peer.process.send_signal(signal.SIGUSR1)
    assert peer.outputs("echo", {"text": "still here"})["text"] == "still here"


def test_shutdown_stops_operations_and_is_answered_last(peer: ExtensionHost, meetings: list[Meeting]) -> None:
    waiting, hanging, _ = meetings
    peer.send(execute("waits", "wait-for-stop", waiting.args), execute("hangs", "hang", hanging.args))
    waiting.started.line()
    hanging.started.line()
    peer.send(request("end", "shutdown"))
    stopped, told, end = peer.rest()
    assert isinstance(stopped["result"], dict)
    assert (stopped["id"], stopped["result"]["message"]) == ("waits", "stopped")
    assert told["id"] == "hangs"
    assert shown(told["error"]) == (-32000, "hang: the extension was shut down before the operation ended")
    assert end == {"jsonrpc": "2.0", "id": "end", "result": {}}
    assert peer.exit_code() == 0


def test_state_that_does_not_close_or_fails_to_holds_up_no_shutdown(peer: ExtensionHost) -> None:
    peer.result("hold")
    assert peer.call("shutdown")["result"] == {}
    assert peer.exit_code() == 0
    assert "ValueError: it broke" in peer.stderr


def test_a_thread_that_an_operation_left_holds_up_no_end(peer: ExtensionHost) -> None:
    """Python waits for threads that are no daemons; the system ends the process all the same."""
    peer.result("leave-thread")
    assert peer.call("shutdown")["result"] == {}
    assert peer.exit_code() == ENDED_BY_ALARM


@pytest.mark.parametrize("end", ["shutdown", "eof", "SIGTERM", "no reader"])
def test_state_is_closed_however_the_session_ends(peer: ExtensionHost, tmp_path: Path, end: str) -> None:
    trace = tmp_path / "trace"
    peer.initialize({"trace": str(trace)})
    assert peer.outputs("count", workdir=str(tmp_path))["count"] == "1"
    assert peer.outputs("count", workdir=str(tmp_path))["count"] == "2"
    assert peer.outputs("count", workdir="/")["count"] == "1"
    if end == "shutdown":
        peer.call("shutdown")
    elif end == "eof":
        peer.eof()
    elif end == "SIGTERM":
        peer.process.send_signal(signal.SIGTERM)
    else:
        assert peer.process.stdout
        peer.process.stdout.close()
    assert peer.exit_code() == (1 if end == "no reader" else 0)
    assert sorted(trace.read_text().splitlines()) == ["closed at 1", "closed at 2"]


def test_state_belongs_to_a_directory_however_it_is_called(peer: ExtensionHost, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    for at, workdir in enumerate([tmp_path, tmp_path / "link", tmp_path / "link" / "." / "link"], 1):
        assert peer.outputs("count", workdir=str(workdir))["count"] == str(at)


# --- Hosts that go away ---


def test_a_host_that_stops_reading_ends_the_session(peer: ExtensionHost, meeting: Meeting) -> None:
    peer.send(execute(1, "meet", meeting.args))
    meeting.started.line()
    assert peer.process.stdout
    peer.process.stdout.close()
    assert peer.exit_code() == 1
    assert peer.stderr == ""


def test_an_answer_that_nobody_reads_ends_the_session() -> None:
    with ExtensionHost() as peer:
        assert peer.process.stdout
        peer.process.stdout.close()
        peer.send(execute(1, "echo"))
        assert peer.exit_code() == 1
        assert peer.stderr == ""


@pytest.mark.parametrize("end", ["shutdown", "SIGTERM"])
def test_a_host_that_neither_reads_nor_goes_cannot_keep_the_extension(peer: ExtensionHost, end: str) -> None:
    peer.send(*(execute(at, "spill", {"to": "output", "text": "x", "times": 50_000}) for at in range(10)))
    assert peer.process.stdout
    assert select.select([peer.process.stdout], [], [], PATIENCE_S)[0]
    if end == "shutdown":
        peer.send(request("end", "shutdown"))  # its answer waits behind the others
    else:
        peer.process.send_signal(signal.SIGTERM)
    assert peer.exit_code() == (ENDED_BY_ALARM if end == "shutdown" else 0)


# --- Descriptors ---


def with_nonblocking_pipes() -> tuple[ExtensionHost, int, int]:
    stdin, host_out = os.pipe()
    host_in, stdout = os.pipe()
    os.set_blocking(stdin, False)
    os.set_blocking(stdout, False)
    peer = ExtensionHost(stdin=stdin, stdout=stdout)
    os.close(stdin)
    os.close(stdout)
    return peer, host_out, host_in


def test_pipes_that_a_host_made_non_blocking_work() -> None:
    peer, host_out, host_in = with_nonblocking_pipes()
    with peer, os.fdopen(host_out, "wb") as to, os.fdopen(host_in, "rb") as back:
        peer.process.stdin, peer.process.stdout = to, back
        assert peer.initialize()["result"]
        calls = [execute(at, "spill", {"to": "output", "text": "x", "times": 30_000}) for at in range(20)]
        peer.send(*calls, request("end", "shutdown"))  # 600 KB of answers, before any of them is read
        answers = peer.rest()
        assert len(answers) == 21
        assert answers[-1]["id"] == "end"
        assert peer.process.wait(PATIENCE_S) == 0


def shell(redirections: str, *, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """The probe, with what a shell's redirections make of its descriptors."""
    command = ["sh", "-c", f'exec "$@" {redirections}', "sh", *PROBE]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=PATIENCE_S, check=False)


ONE_SHOT = json.dumps(execute(1, "echo")).encode() + b"\n"


def test_a_closed_stdin_is_an_empty_one() -> None:
    ran = shell("<&-")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


def test_a_closed_stdout_is_an_error_before_anything_is_performed() -> None:
    for redirections in (">&-", "<&- >&-", "<&- >&- 2>&-"):
        ran = shell(redirections, stdin=ONE_SHOT)
        assert (ran.returncode, ran.stdout) == (2, b"")
        assert ran.stderr.count(b"\n") == (0 if "2>&-" in redirections else 1)
        assert (b": standard output: closed; redirect it" in ran.stderr) == ("2>&-" not in redirections)


def test_a_closed_stderr_breaks_nothing() -> None:
    for redirections in ("2>&-", "<&- 2>&-"):
        ran = shell(redirections, stdin=ONE_SHOT)
        assert (ran.returncode, ran.stderr) == (0, b"")
        assert ran.stdout.count(b"\n") == (1 if redirections == "2>&-" else 0)


def test_a_stderr_that_nobody_reads_breaks_nothing() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with ExtensionHost(stderr=writer) as peer:
        os.close(writer)
        assert shown(peer.error("end-badly", {"how": "boom"}))[0] == -32603
        assert peer.call("shutdown")["result"] == {}
        assert peer.exit_code() == 0


def test_a_full_disk_behind_stdout_is_an_end() -> None:
    ran = shell(">/dev/full", stdin=ONE_SHOT)
    assert (ran.returncode, ran.stderr) == (1, b"")


def test_a_file_as_input_and_output_works(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(ONE_SHOT)
    ran = shell(f"<{tmp_path}/in >{tmp_path}/out")
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert (tmp_path / "out").read_bytes().count(b"\n") == 1


def test_what_operations_and_their_children_print_goes_to_stderr(peer: ExtensionHost) -> None:
    outputs = peer.outputs("talk", {"command": ["sh", "-c", "echo from the child; cat; exit 3"]})
    assert outputs == {"exitCode": "3"}
    assert peer.call("shutdown")["result"] == {}
    assert peer.rest() == []
    assert peer.exit_code() == 0
    assert peer.stderr.splitlines() == ["printed", "written", "from the child"]


def test_a_child_reads_none_of_the_hosts_messages(peer: ExtensionHost) -> None:
    peer.send(execute(1, "talk", {"command": ["cat"]}), execute(2, "echo", {"text": "for the extension"}))
    answers = {answer["id"]: answer["result"] for answer in (peer.message(), peer.message())}
    assert isinstance(answers[2], dict)
    assert answers[2]["message"] == "for the extension"


def test_a_child_has_no_descriptor_of_the_wire(peer: ExtensionHost) -> None:
    program = "import os\nfor number in range(256):\n    try: os.write(number, b'junk\\n')\n    except OSError: pass\n"
    assert peer.outputs("talk", {"command": [sys.executable, "-c", program]}) == {"exitCode": "0"}
    peer.send(request("end", "shutdown"))
    assert [answer["id"] for answer in peer.rest()] == ["end"]


# --- Lines that fit ---

TEXTS = {
    "letters": "x",
    "NUL": "\0",
    "emoji": "😀",
    "two bytes": "ä",
    "quotation marks": '"\\',
    "lone surrogates": "\ud800",
    "lines": "line\r\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_line_is_longer_than_a_host_can_read(peer: ExtensionHost, tmp_path: Path, text: str) -> None:
    """ExtensionHost refuses a line of more than 65,535 bytes."""
    times = 300_000
    peer.initialize({"artifacts": str(tmp_path)})
    for to in ("message", "error", "output", "log", "data", "exception"):
        peer.send(execute(to, "spill", {"to": to, "text": text, "times": times}))
        messages = [peer.message()]
        while messages[-1].get("id") != to:
            messages.append(peer.message())
        assert "characters left out" in str(messages), to
    whole = {path.name: path.read_bytes().decode() for path in sorted(tmp_path.iterdir())}
    expected = (text * times).encode("utf-8", "backslashreplace").decode()
    assert whole == {"001-message.txt": expected, "002-error.txt": expected, "003-text.txt": expected}


def test_a_text_that_was_cut_is_kept_whole_and_its_file_named(peer: ExtensionHost, tmp_path: Path) -> None:
    peer.initialize({"artifacts": str(tmp_path)})
    result = peer.result("spill", {"to": "output", "text": "0123456789", "times": 50_000})
    outputs = result["outputs"]
    assert isinstance(outputs, dict)
    assert set(outputs) == {"text", "textFile", "short"}
    assert outputs["short"] == "short"
    assert outputs["text"].startswith("0123456789")
    assert outputs["text"].endswith("0123456789")
    assert "of 500000 characters left out" in outputs["text"]
    path = Path(outputs["textFile"])
    assert path.read_text() == "0123456789" * 50_000
    assert path.stat().st_mode & 0o777 == 0o600


def test_files_of_long_texts_outlive_the_extension(tmp_path: Path) -> None:
    with ExtensionHost(env={"TMPDIR": str(tmp_path)}) as peer:
        outputs = peer.outputs("spill", {"to": "output", "times": 100_000})
        peer.call("shutdown")
        peer.exit_code()
    path = Path(outputs["textFile"])
    assert path.is_relative_to(tmp_path)
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.read_text() == "x" * 100_000


def test_where_no_file_can_be_written_the_answer_says_so(peer: ExtensionHost, tmp_path: Path) -> None:
    peer.initialize({"artifacts": str(tmp_path / "file" / "directory")})
    (tmp_path / "file").touch()
    outputs = peer.outputs("spill", {"to": "output", "times": 100_000})
    assert outputs["textFile"].startswith("(could not be written: ")


# --- Secrets ---


def test_a_secret_is_in_no_message_and_in_no_file(tmp_path: Path) -> None:
    secret = "hunter2-correct-horse"
    with ExtensionHost(env={"PROBE_TOKEN": secret}) as peer:
        peer.initialize({"artifacts": str(tmp_path)})
        for to in ("message", "error", "output", "log", "data", "exception"):
            peer.send(execute(to, "spill", {"to": to, "text": f"{secret} ", "times": 10_000}))
            answer: Message = {}
            while answer.get("id") != to:
                answer = peer.message()
                assert "hunter2" not in str(answer)
                assert "correct" not in str(answer)
    files = [path.read_text() for path in tmp_path.iterdir()]
    assert len(files) == 3
    assert set(files) == {"[redacted:env.PROBE_TOKEN#1] " * 10_000}


def test_a_secret_that_an_operation_tells_is_hidden_from_then_on(peer: ExtensionHost) -> None:
    peer.send(execute(1, "hide", {"text": "open sesame"}))
    log, answer = peer.message(), peer.message()
    assert log["params"] == {
        "level": "info",
        "message": "it is [redacted:told#1]",
        "data": {"value": "[redacted:told#1]"},
    }
    assert answer["result"] == {
        "success": True,
        "message": "it is [redacted:told#1]",
        "outputs": {"value": "[redacted:told#1]"},
    }
    assert peer.outputs("echo", {"text": "open sesame"})["text"] == "[redacted:told#1]"


def test_a_secret_output_is_for_later_operations_alone(peer: ExtensionHost) -> None:
    result = peer.result("mint", {"text": "s3cr3t-value", "as": "login"})
    assert result == {"success": True, "message": "made", "outputs": {"public": "yes"}}
    outputs = peer.outputs("echo", {"text": "${login.token}"})
    assert outputs["length"] == "12"
    assert "s3cr3t" not in str(outputs)


@pytest.mark.parametrize("secret", ["1234", "32603", "code", "info", "level", "string", "object", "data", "text"])
def test_a_secret_that_is_a_word_of_the_protocol_breaks_no_message(secret: str) -> None:
    with ExtensionHost(env={"PROBE_SECRET": secret}) as peer:
        manifest = peer.initialize()["result"]
        assert isinstance(manifest, dict)
        assert manifest["operations"]["echo"]["params"]["properties"]["text"]["type"] == "string"
        peer.send(execute(1234, "end-badly", {"how": "boom"}))
        answer = peer.message()
        assert answer["id"] == 1234
        assert shown(answer["error"])[0] == -32603
        peer.send(execute("1234", "log", {"text": secret}))
        messages = [peer.message() for _ in range(5)]
        assert [log.get("method") for log in messages] == ["log"] * 4 + [None]
        levels = [log["params"]["level"] for log in messages[:4] if isinstance(log["params"], dict)]
        assert levels == ["debug", "info", "warn", "error"]
        assert messages[4]["id"] == "1234"
        assert set(peer.outputs("echo", {"text": "x"})) == {"text", "length", "empty"}
