"""`--report`: what is in the file when the host kills the replay, at any step."""

from __future__ import annotations

import json
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from ext_recorder.replay.report import MOST, Report
from tests.support.host import PATIENCE_S, HostProcess
from tests.support.http_child import record
from tests.support.http_stub import Stub
from tests.support.player_host import END, cassette
from tests.support.recorder_process import RECORDER, python, run, start
from tests.unit.ext_recorder.sockets.test_server import Client, running

if TYPE_CHECKING:
    from pathlib import Path

SESSION = """
    - {t: 0.1, in: '{"jsonrpc":"2.0","id":1,"method":"a"}'}
    - {t: 0.2, out: '{"jsonrpc":"2.0","id":1,"result":1}'}
    """
KNOWN = b'{"jsonrpc":"2.0","id":1,"method":"a"}\n'
UNKNOWN = b'{"jsonrpc":"2.0","id":2,"method":"b"}\n'


@pytest.fixture
def report(tmp_path: Path) -> Path:
    return tmp_path / "report.jsonl"


def lines(report: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in report.read_text().splitlines()]


def replayer(*words: str) -> HostProcess:
    return HostProcess([*RECORDER, "replay", *words])


def kill(host: HostProcess) -> None:
    host.kill()
    host.communicate(timeout=PATIENCE_S)


@pytest.mark.parametrize("order", ["strict", "any"])
def test_a_killed_replay_has_reported_all_that_its_host_has_received(tmp_path: Path, report: Path, order: str) -> None:
    path = cassette(tmp_path / "session.yaml", SESSION + END)
    host = replayer(str(path), f"--order={order}", f"--report={report}")
    host.write(KNOWN)
    host.read_line()
    (begun,) = lines(report)
    assert (begun["cassette"], begun["exit"], begun["told"]) == (str(path), None, [])
    host.write(UNKNOWN)
    assert b"never recorded" in host.read_line()
    *_, last = lines(report)
    assert (last["session"], last["exit"]) == (begun["session"], None)
    assert "never recorded" in str(last["told"])
    kill(host)
    assert lines(report)[-1] == last


def test_the_last_line_of_each_session_has_everything(tmp_path: Path, report: Path) -> None:
    path = cassette(tmp_path / "session.yaml", SESSION + END)
    for said in (KNOWN, UNKNOWN):
        host = replayer(str(path), f"--report={report}")
        host.write(said)
        host.end()
    sessions = {line["session"]: line for line in lines(report)}
    first, second = sessions.values()
    assert (first["exit"], first["told"]) == (0, [])
    assert second["exit"] == 3
    assert "never recorded" in str(second["told"])
    assert "never played" in str(second["told"])


def test_over_sockets(tmp_path: Path, report: Path) -> None:
    path = cassette(tmp_path / "session.yaml", SESSION, protocol="jsonrpc")
    with running("replay", str(path), f"--report={report}") as relay, Client(relay.address) as client:
        (begun,) = lines(report)
        assert begun["exit"] is None
        client.socket.sendall(KNOWN + UNKNOWN)
        client.hear()
        assert "error" in client.hear()
        relay.end(signal.SIGKILL)
    assert "never recorded" in str(lines(report)[-1]["told"])
    assert lines(report)[-1]["exit"] is None


def test_with_http_traffic(tmp_path: Path, report: Path) -> None:
    program = (
        "import sys, urllib.request\n"
        "for line in sys.stdin:\n"
        "    try:\n"
        "        print(urllib.request.urlopen(line.strip()).status, flush=True)\n"
        "    except OSError:\n"
        "        print('refused', flush=True)\n"
    )
    path = tmp_path / "session.yaml"
    assert record(path, [sys.executable, "-c", program]).code == 0
    with Stub() as server:
        url = server.origin.encode()
        host = replayer("--http", f"--report={report}", str(path), "--", sys.executable, "-c", program)
        host.write(b"%b/count/1\n" % url)
        assert host.read_line() == b"refused\n"
        *_, last = lines(report)
        assert last["exit"] is None
        assert f"{path.with_name('session.http.yaml')}: " in str(last["told"])
        assert "never recorded" in str(last["told"])
        kill(host)


def test_new_episodes_report_the_end_of_the_live_session(cassette: Path, report: Path) -> None:
    child = python(
        "import sys\n"
        "for line in sys.stdin:\n"
        "    print(line.replace('method', 'result').replace('}', ',\"x\":1}').strip(), flush=True)\n"
        "sys.exit(7)"
    )
    run(cassette, child, "--protocol=jsonrpc", stdin=KNOWN)
    host = start(cassette, child, "--protocol=jsonrpc", "--mode=new_episodes", f"--report={report}")
    host.write(KNOWN)
    host.read_line()
    host.write(UNKNOWN)
    host.read_line()
    assert lines(report)[-1]["exit"] is None
    assert host.end().code == 7
    assert lines(report)[-1]["exit"] == 7


def test_a_report_that_cannot_be_written_is_refused_before_the_session(tmp_path: Path) -> None:
    path = cassette(tmp_path / "session.yaml", SESSION + END)
    for place in (tmp_path, tmp_path / "none" / "report.jsonl"):
        done = replayer(str(path), f"--report={place}").end()
        assert (done.code, done.out) == (2, b"")
        assert f"--report {place}: can't be written: ".encode() in done.err


def test_a_host_that_is_lost_does_not_fill_the_file(report: Path) -> None:
    one = Report(str(report), "c.yaml")
    one.begin()
    for number in range(MOST + 50):
        one.differences.append(f"miss {number}")
    one.end(3)
    assert len(lines(report)) == MOST + 2
    assert lines(report)[-1]["told"] == [f"miss {number}" for number in range(MOST + 50)]
