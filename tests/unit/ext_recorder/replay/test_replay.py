"""Replay as a process: beside real hosts, on real pipes and files, and after a real recording."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ext_recorder.replay.event_loop import EXIT_CANNOT_PLAY
from ext_recorder.replay.player import EXIT_DIFFERS
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS
from tests.support.host import PATIENCE_S, HostProcess, read
from tests.support.player_host import END, cassette
from tests.support.recorder_process import RECORDER, after_headline, python, run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ONE_CALL = """
    - {t: 0.1, in: '{"jsonrpc":"2.0","id":1,"method":"a"}'}
    - {t: 0.2, err: 'working'}
    - {t: 0.3, out: '{"jsonrpc":"2.0","id":1,"result":1}'}
    """
CALL = b'{"jsonrpc":"2.0","id":"x","method":"a"}\n'
ANSWER = b'{"jsonrpc":"2.0","id":"x","result":1}\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.yaml"


def replayer(path: Path, *options: str) -> list[str]:
    return [*RECORDER, "replay", *options, str(path)]


def replay(path: Path, *options: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(replayer(path, *options), input=stdin, capture_output=True, timeout=PATIENCE_S, check=False)


def start(command: Sequence[str]) -> HostProcess:
    return HostProcess(command)


# --- The process ----------------------------------------------------------------------------------------------------


def test_it_answers_and_ends_as_the_recorded_child(path: Path) -> None:
    done = replay(cassette(path, ONE_CALL + END.replace("exit: 0", "exit: 7")), stdin=CALL)

    assert (done.stdout, after_headline(done.stderr), done.returncode) == (ANSWER, b"working\n", 7)


def test_a_host_that_has_said_all_before_the_last_answer_takes_nothing_from_stderr(path: Path) -> None:
    session = """
    - {t: 0.1, in: '{"jsonrpc":"2.0","id":1,"method":"shutdown"}'}
    - {t: 0.2, eof: in}
    - {t: 0.3, err: 'ending'}
    - {t: 0.4, out: '{"jsonrpc":"2.0","id":1,"result":{}}'}
    - {t: 0.5, eof: out}
    - {t: 0.6, eof: err}
    - {t: 0.7, exit: 0}
    """
    done = replay(cassette(path, session), stdin=b'{"jsonrpc":"2.0","id":"x","method":"shutdown"}\n')

    answer = b'{"jsonrpc":"2.0","id":"x","result":{}}\n'
    assert (done.stdout, after_headline(done.stderr), done.returncode) == (answer, b"ending\n", 0)


@pytest.mark.parametrize("order", ["strict", "any"])
def test_the_report_is_written_before_the_last_answer(path: Path, order: str) -> None:
    # mcpchecker kills an extension whose answer to `shutdown` is an error.
    report = path.with_name("report.ndjson")
    command = replayer(cassette(path, ONE_CALL + END), "--order", order, "--report", str(report))
    with start(command) as host:
        host.write(b'{"jsonrpc":"2.0","id":1,"method":"shutdown","params":{}}\n')
        assert b"never recorded" in host.read_line()
        *_, line = report.read_text().splitlines()
        assert json.loads(line)["exit"] == 3
        host.kill()


def test_it_answers_at_once_while_its_input_stays_open(path: Path) -> None:
    with start(replayer(cassette(path, ONE_CALL + END))) as host:
        host.write(CALL[:10])
        host.write(CALL[10:])
        assert host.read_line() == ANSWER
        assert host.end().code == 0


def test_what_the_child_said_first_needs_no_input(path: Path) -> None:
    with start(replayer(cassette(path, "- {t: 0.1, out: 'banner'}\n" + END))) as host:
        assert host.read_line() == b"banner\n"
        assert host.end().code == 0


def test_a_child_that_ends_by_itself_ends_while_its_input_is_open(path: Path) -> None:
    with start(replayer(cassette(path, ONE_CALL + "- {t: 1, eof: out}\n- {t: 1, exit: 5}"))) as host:
        host.write(CALL)
        assert host.read(1000) == ANSWER
        assert host.wait(PATIENCE_S) == 5


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGSEGV", "SIGABRT", "SIGPIPE"])
def test_a_child_that_was_ended_by_a_signal_is_ended_by_it(path: Path, name: str) -> None:
    done = replay(cassette(path, ONE_CALL + f"- {{t: 1, exit: {name}}}"), stdin=CALL)

    assert done.stdout == ANSWER
    assert done.returncode == -signal.Signals[name]


def test_a_recorded_signal_is_taken_as_the_recorded_child_took_it(path: Path) -> None:
    events = "- {t: 0.1, out: 'ready'}\n- {t: 1, signal: SIGTERM}\n- {t: 2, out: 'saved'}\n- {t: 3, exit: 0}"
    with start(replayer(cassette(path, events, protocol="raw"))) as host:
        assert host.read_line() == b"ready\n"
        host.send_signal(signal.SIGTERM)
        assert host.read_line() == b"saved\n"
        assert host.wait(PATIENCE_S) == 0


def test_a_signal_that_was_not_recorded_ends_it(path: Path) -> None:
    with start(replayer(cassette(path, "- {t: 0.1, out: 'ready'}\n" + END, protocol="raw"))) as host:
        assert host.read_line() == b"ready\n"
        host.send_signal(signal.SIGTERM)
        assert host.wait(PATIENCE_S) == -signal.SIGTERM


def test_stdout_is_closed_where_the_child_closed_it(path: Path) -> None:
    events = "- {t: 0.1, out: 'all'}\n- {t: 0.2, eof: out}\n" + END
    with start(replayer(cassette(path, events, protocol="raw"))) as host:
        assert host.read(1000) == b"all\n"  # up to the end of file, while the process lives
        assert host.poll() is None
        assert host.end().code == 0


def test_a_miss_is_told_and_makes_the_exit_code(path: Path) -> None:
    done = replay(cassette(path, ONE_CALL + END), stdin=CALL.replace(b'"a"', b'"b"'))

    assert b"never recorded" in done.stdout
    assert b'ext-recorder: request b (id "x"): never recorded' in done.stderr
    assert done.returncode == EXIT_DIFFERS


def test_order_and_pointers_come_from_the_command_line(path: Path) -> None:
    events = """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"a","params":{"seed":1}}'}
        - {t: 1, out: '{"jsonrpc":"2.0","id":1,"result":"a"}'}
        - {t: 2, in: '{"jsonrpc":"2.0","id":2,"method":"b"}'}
        - {t: 2, out: '{"jsonrpc":"2.0","id":2,"result":"b"}'}
        """
    live = b'{"jsonrpc":"2.0","id":1,"method":"b"}\n{"jsonrpc":"2.0","id":2,"method":"a","params":{"seed":2}}\n'

    done = replay(cassette(path, events + END), "--order", "any", "--ignore", "/params/seed", stdin=live)

    assert done.stdout == b'{"jsonrpc":"2.0","id":1,"result":"b"}\n{"jsonrpc":"2.0","id":2,"result":"a"}\n'
    assert done.returncode == 0


def test_at_the_recorded_pace_the_same_comes_in_the_same_order(path: Path) -> None:
    events = """
        - {t: 0.00, in: 'a'}
        - {t: 0.02, out: 'one'}
        - {t: 0.02, err: 'two'}
        - {t: 0.04, out: 'three'}
        - {t: 0.05, in: 'b'}
        - {t: 0.06, out: 'four'}
        """
    done = replay(cassette(path, events + END.replace("9.", "0."), protocol="raw"), "--speed", "2", stdin=b"a\nb\n")

    assert (done.stdout, after_headline(done.stderr), done.returncode) == (b"one\nthree\nfour\n", b"two\n", 0)


# --- Bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"\x00\xff", "not YAML"),
        (b"cassette: 9\nprotocol: x\nframing: ndjson\nevents:\n- {t: 1, exit: 0}\n", "expected format version 1"),
        (b"cassette: 1\nprotocol: x\nframing: ndjson\nevents:\n- {t: 1, exit: 0}\n", "gevals, pi, gassist"),
        (b"cassette: 1\nprotocol: raw\nframing: ndjson\nevents:\n- {t: 1, ", ":5: "),
    ],
)  # fmt: skip
def test_what_is_no_cassette_is_one_line_on_stderr_and_an_exit_code_of_its_own(
    path: Path, content: bytes, says: str
) -> None:
    path.write_bytes(content)

    done = replay(path)

    assert done.returncode == EXIT_CANNOT_PLAY
    assert done.stdout == b""
    *_, said = done.stderr.removesuffix(b"\n").split(b"\n")  # what can't be played may show after it was begun
    assert said.startswith(f"ext-recorder: {path}".encode())
    assert says in said.decode()


def test_a_missing_cassette_is_told_with_what_to_do(path: Path) -> None:
    done = replay(path)

    assert done.returncode == EXIT_CANNOT_PLAY
    assert b"no such file (record it first" in done.stderr


def test_what_was_played_before_a_broken_line_is_out(path: Path) -> None:
    cassette(path, ONE_CALL + "- {t: 3, in: 'next'}\n- {t: 4, out: 'broken\n" + END)

    done = replay(path, stdin=CALL + b"next\n")

    assert done.stdout == ANSWER
    assert done.returncode == EXIT_CANNOT_PLAY
    assert b"not YAML" in done.stderr


# --- Pipes and files ------------------------------------------------------------------------------------------------


def many(path: Path, count: int, size: int = 200) -> tuple[bytes, bytes]:
    """A cassette of many calls; what a host says and hears."""
    calls = [f'{{"jsonrpc":"2.0","id":{n},"method":"m","params":["{n}{"x" * size}"]}}' for n in range(count)]
    answers = [f'{{"jsonrpc":"2.0","id":{n},"result":"{n}{"y" * size}"}}' for n in range(count)]
    pairs = zip(calls, answers, strict=True)
    cassette(
        path, "\n".join(f"- {{t: 1, in: '{call}'}}\n- {{t: 1, out: '{answer}'}}" for call, answer in pairs) + "\n" + END
    )
    return "".join(f"{each}\n" for each in calls).encode(), "".join(f"{each}\n" for each in answers).encode()


def test_a_host_that_writes_long_before_it_reads_is_not_waited_for(path: Path) -> None:
    calls, answers = many(path, 10_000)  # 2.5 MB in each direction, where a pipe holds 64 KiB
    with start(replayer(path)) as host:
        host.write(calls)
        assert host.read(len(answers)) == answers
        assert host.end().code == 0


def test_memory_does_not_grow_with_the_cassette(path: Path) -> None:
    calls, answers = many(path, 50_000)
    with start(replayer(path)) as host:
        step = 100
        lines, replies = calls.splitlines(keepends=True), answers.splitlines(keepends=True)
        for at in range(0, len(lines), step):
            host.write(b"".join(lines[at : at + step]))
            expected = b"".join(replies[at : at + step])
            assert host.read(len(expected)) == expected
        assert peak_memory(host) < 40_000  # the cassette has 27,000
        assert host.end().code == 0


def test_what_a_child_said_at_great_length_is_not_held_in_memory(path: Path) -> None:
    line = '{"jsonrpc":"2.0","method":"log","params":"' + "x" * 1000 + '"}'
    count = 50_000  # 50 MB, all of it after one request
    call, _, answer = (each.strip() for each in ONE_CALL.strip().splitlines())
    cassette(path, "\n".join([call, *[f"- {{t: 1, out: '{line}'}}"] * count, answer, END]))
    with start(replayer(path)) as host:
        host.write(CALL + b'{"too":"early"}\n')
        assert host.stdout is not None
        left = count * (len(line) + 1)
        while left and (piece := read(host.stdout.fileno(), min(left, 65_536))):
            left -= len(piece)
        assert left == 0
        assert host.read(len(ANSWER)) == ANSWER
        assert peak_memory(host) < 40_000
        assert b'{"too":"early"}' in host.end().err


def peak_memory(host: HostProcess) -> int:
    """KiB."""
    with open(f"/proc/{host.pid}/status") as status:  # noqa: PTH123
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def test_a_host_that_is_gone_ends_it(path: Path) -> None:
    calls, _ = many(path, 10_000)
    with start(replayer(path)) as host:
        assert host.stdout is not None
        host.stdout.close()
        host.write(calls)
        assert host.stdin is not None
        host.stdin.close()
        assert host.wait(PATIENCE_S) == 0


def test_its_files_may_be_files(path: Path, tmp_path: Path) -> None:
    calls, answers = many(path, 100)
    (tmp_path / "in").write_bytes(calls)
    with open(tmp_path / "in", "rb") as stdin, open(tmp_path / "out", "wb") as stdout:  # noqa: PTH123
        done = subprocess.run(replayer(path), stdin=stdin, stdout=stdout, timeout=PATIENCE_S, check=False)

    assert done.returncode == 0
    assert (tmp_path / "out").read_bytes() == answers


def test_without_any_input_at_all_it_ends(path: Path) -> None:
    cassette(path, "- {t: 0.1, out: 'banner'}\n" + END, protocol="raw")
    command = ["sh", "-c", 'exec "$@" <&-', "sh", *replayer(path)]

    done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False)

    assert (done.stdout, done.returncode) == (b"banner\n", 0)


def test_it_needs_neither_the_extension_nor_what_that_needs(path: Path) -> None:
    cassette(path, ONE_CALL + END)
    program = (
        "import sys\n"
        "refused = {'ext_shell', 'msgspec', 'click', 'yaml', 'asyncio', 'threading', 'json', 're'}\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in refused: raise ImportError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "for name in refused & sys.modules.keys(): del sys.modules[name]\n"
        "from ext_recorder.replay.replay import run_replay\n"
        "sys.exit(run_replay(sys.argv[1]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], input=CALL, capture_output=True, timeout=PATIENCE_S, check=False
    )

    assert (done.stdout, after_headline(done.stderr), done.returncode) == (ANSWER, b"working\n", 0)


# --- Recorded, then replayed ----------------------------------------------------------------------------------------


def framed(framing: str, message: object) -> bytes:
    payload = json.dumps(message).encode()
    if framing == "content-length":
        return b"Content-Length: %d\r\n\r\n" % len(payload) + payload
    return len(payload).to_bytes(4, "big") + payload if framing == "uint32" else payload + b"\n"


# A child that speaks any framing by hand, answers calls in another order than they came, asks its host, and says
# more.
CHILD = """
import json, os, sys
framing, data = sys.argv[1], b""
def read():
    global data
    while True:
        if framing == "ndjson" and b"\\n" in data:
            line, _, data = data.partition(b"\\n")
            return json.loads(line)
        if framing == "content-length" and b"\\r\\n\\r\\n" in data:
            head, _, rest = data.partition(b"\\r\\n\\r\\n")
            length = int(head.rpartition(b":")[2])
            if len(rest) >= length:
                data = rest[length:]
                return json.loads(rest[:length])
        if framing == "uint32" and len(data) >= 4 and len(data) >= 4 + int.from_bytes(data[:4], "big"):
            length = int.from_bytes(data[:4], "big")
            message, data = data[4:4 + length], data[4 + length:]
            return json.loads(message)
        more = os.read(0, 4096)
        if not more:
            os.write(2, b"bye\\n")
            sys.exit(4)
        data += more
def write(text):
    payload = text.encode()
    head = b"Content-Type: x\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(payload)
    frames = {"ndjson": payload + b"\\n", "content-length": head + payload}
    os.write(1, frames.get(framing) or len(payload).to_bytes(4, "big") + payload)
if framing != "uint32":
    os.write(1, b"\\x1b[1mstarting\\x1b[0m\\n")
while True:
    first = read()
    if first["method"] == "crash":
        os.write(2, b"no line feed")
        os.abort()
    write('{"jsonrpc":"2.0","method":"log","params":{"n":1.0}}')
    write('{"jsonrpc":"2.0","id":1,"method":"ask","params":["\\u2028"]}')
    reply = read()
    second = read()
    os.write(2, ("got " + reply["result"] + "\\n").encode())
    for call in (second, first):
        result = '{"jsonrpc": "2.0", "result": {"big":12345678901234567890123, "f": 1.0}, "id": '
        write(result + json.dumps(call["id"]) + "}")
    write('{"jsonrpc":"2.0","method":"log","params":"after"}')
"""


def frames(host: HostProcess, framing: str, count: int) -> bytes:
    """Read so many frames, and what is between them."""
    assert host.stdout is not None
    decoder = FRAMINGS[framing].decoder()
    wire = b""
    while count:
        item = decoder.next_event()
        if item is None:
            byte = read(host.stdout.fileno(), 1)
            assert byte, f"the child has ended after {wire!r}"
            decoder.receive_data(byte)
        else:
            wire += item.wire
            count -= isinstance(item, Frame)
    return wire


def converse(host: HostProcess, framing: str, ids: tuple[object, object], last: str) -> tuple[bytes, bytes, int]:
    """Be the host of CHILD: all that it said, and how it ended."""
    out = b""
    for turn in range(2):
        first = {"jsonrpc": "2.0", "id": ids[0], "method": "run", "params": {"turn": turn}}
        host.write(framed(framing, first))
        greeting = 1 if framing == "ndjson" and turn == 0 else 0  # a line that is no message is a frame nevertheless
        out += frames(host, framing, greeting + 2)
        host.write(framed(framing, {"jsonrpc": "2.0", "id": 1, "result": "yes"}))
        host.write(framed(framing, {"jsonrpc": "2.0", "id": ids[1], "method": "run", "params": {}}))
        out += frames(host, framing, 3)
    if last:
        host.write(framed(framing, {"jsonrpc": "2.0", "method": last}))
    done = host.end()
    return out + done.out, done.err, done.code


@pytest.mark.parametrize("order", ["strict", "any"])
@pytest.mark.parametrize(("last", "code"), [("", 4), ("crash", -signal.SIGABRT)])
@pytest.mark.parametrize("framing", sorted(FRAMINGS))
def test_a_recorded_session_plays_byte_for_byte_and_with_other_ids(
    path: Path, framing: str, last: str, code: int, order: str
) -> None:
    options = ["--protocol", "jsonrpc", "--framing", framing]
    with start([*RECORDER, "record", *options, str(path), "--", *python(CHILD), framing]) as recorded:
        real = converse(recorded, framing, (1, "two"), last)
    with start(replayer(path, "--order", order, "--quiet")) as replayed:
        again = converse(replayed, framing, (1, "two"), last)
    with start(replayer(path, "--order", order, "--quiet")) as replayed:
        other = converse(replayed, framing, (40, 41), last)

    assert real[2] == code
    # In any order an answer need not wait for a call that it does not depend on: its place may be another.
    assert sorted(again[0]) == sorted(real[0]) if order == "any" else again[0] == real[0]
    assert again[1:] == real[1:]
    assert other[1:] == real[1:]
    if order == "strict":
        lengthened = real[0].replace(b'"id": 1}', b'"id": 40}').replace(b'"id": "two"}', b'"id": 41}')
        assert unlengthened(other[0]) == unlengthened(lengthened)


def unlengthened(wire: bytes) -> bytes:
    """Bytes without what says how long the frames are, which differs where the ids do."""
    return re.sub(rb"Content-Length: \d+|\x00\x00\x00.", b"", wire, flags=re.DOTALL)


def test_a_one_shot_session_is_recorded_and_replayed(path: Path) -> None:
    child = python("import sys; text = sys.stdin.read(); print(text.upper(), end=''); sys.exit(2)")
    request = b'{"jsonrpc":"2.0","id":1,"method":"execute","params":{}}'

    real = run(path, child, stdin=request)
    done = replay(path, stdin=request)

    assert (done.stdout, after_headline(done.stderr), done.returncode) == (real.out, real.err, real.code)
    assert real.code == 2


def test_a_secret_of_the_recording_is_not_needed_to_play_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child = python(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    call = json.loads(line)\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': call['id'], 'result': call['params']}), flush=True)\n"
    )
    call = '{{"jsonrpc":"2.0","id":{},"method":"execute","params":{{"args":{{"header":"Bearer {}","key":"{}"}}}}}}\n'
    recorded = call.format(1, "abcdef0123456789abcdef", "of-the-recording-1") * 2
    monkeypatch.setenv("SERVICE_API_KEY", "of-the-recording-1")
    assert run(path, child, stdin=recorded.encode()).code == 0
    monkeypatch.setenv("SERVICE_API_KEY", "of-the-replay-22")

    done = replay(path, stdin=(call.format(1, "0123456789abcdefabcdef", "of-the-replay-22") * 2).encode())

    assert b"of-the-recording-1" not in path.read_bytes()
    assert b"abcdef" not in path.read_bytes()
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(b"[redacted:env.SERVICE_API_KEY#1]") == 2


def test_a_session_of_one_folder_plays_in_another(path: Path, tmp_path: Path) -> None:
    child = python(
        "import json, os, sys\n"
        "for line in sys.stdin:\n"
        "    call = json.loads(line)\n"
        "    folder = call['params']['context']['workdir']\n"
        "    open(os.path.join(folder, 'made'), 'w').close()\n"
        "    result = {'message': f'made {folder}/made'}\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': call['id'], 'result': result}), flush=True)\n"
    )
    call = '{"jsonrpc":"2.0","id":1,"method":"execute","params":{"args":null,"context":{"workdir":"%s"}}}\n'
    here, there = tmp_path / "recorded here", tmp_path / "ünd there"
    here.mkdir()
    real = run(path, child, stdin=(call % here).encode())

    done = replay(path, stdin=(call % there).encode())

    assert str(tmp_path).encode() not in path.read_bytes()
    assert json.loads(done.stdout)["result"]["message"] == f"made {there}/made"
    assert done.returncode == real.code == 0
