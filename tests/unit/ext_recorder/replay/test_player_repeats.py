"""Recorded requests that are played again: on request (`--repeat`), and after a fault."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ext_recorder.replay.replay import Options
from tests.support.host import PATIENCE_S
from tests.support.player_host import END, Host, cassette, message_of
from tests.support.recorder_process import RECORDER

LIST = '{"jsonrpc":"2.0","id":%s,"method":"tools/list"}'
CALL = '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"%s","_meta":{"progressToken":%s}}}'
EVENTS = f"""
    - {{t: 1, in: '{LIST % 1}'}}
    - {{t: 1, out: '{{"jsonrpc":"2.0","id":1,"result":"first"}}'}}
    - {{t: 2, in: '{CALL % (2, "add", 2)}'}}
    - {{t: 2, out: '{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":2}}}}'}}
    - {{t: 2, out: '{{"jsonrpc":"2.0","id":2,"result":"sum"}}'}}
    - {{t: 3, in: '{LIST % 3}'}}
    - {{t: 3, out: '{{"jsonrpc":"2.0","id":3,"result":"second"}}'}}
    - {{t: 4, in: '{CALL % (4, "sub", 4)}'}}
    - {{t: 4, out: '{{"jsonrpc":"2.0","id":4,"result":"rest"}}'}}
    """


@pytest.fixture(params=["strict", "any"])
def order(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return cassette(tmp_path / "session.yaml", EVENTS + END, protocol="mcp", bindings={})


def result(host: Host, text: str) -> object:
    """Send a request that is answered with a result, and nothing else."""
    (line,) = host.say(text)
    return json.loads(line).get("result", line)


def test_the_last_one_that_was_played_is_played_again(path: Path, order: str) -> None:
    with Host(path, Options(order=order, repeat=("tools/list",))) as host:
        assert result(host, LIST % 1) == "first"
        host.say(CALL % (2, "add", 2))
        if order == "strict":
            assert result(host, LIST % 30) == "second"
        else:
            assert [result(host, LIST % id) for id in (30, 31)] == ["second", "second"]
        assert host.say(LIST % '"x"') == ['{"jsonrpc":"2.0","id":"x","result":"second"}']
        assert result(host, CALL % (4, "sub", 4)) == "rest"
        assert result(host, LIST % 5) == "second"
        host.close()
        assert (host.status, host.err) == (0, "")
        assert host.repeated == (2 if order == "strict" else 3)


def test_what_belongs_to_it_comes_again_with_the_live_ids(path: Path, order: str) -> None:
    with Host(path, Options(order=order, repeat=("tools/call add",))) as host:
        host.say(LIST % 1, CALL % (2, "add", 2))
        assert host.say(CALL % ('"b"', "add", '"t"')) == [
            '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t"}}',
            '{"jsonrpc":"2.0","id":"b","result":"sum"}',
        ]
        host.say(LIST % 3)
        assert result(host, CALL % (4, "sub", 4)) == "rest"
        assert "used up" in message_of(host.say(CALL % (5, "sub", 5))[0])
        assert "(--repeat tools/call plays it again)" in host.err


def test_all_may_be_repeated_but_nothing_that_was_not_played(path: Path) -> None:
    with Host(path, Options(repeat=("all",))) as host:
        host.say(LIST % 1)
        assert result(host, LIST % 2) == "first"
        assert "out of turn" in message_of(host.say(CALL % (4, "sub", 4))[0])


ASKING = """
    - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"run"}'}
    - {t: 2, out: '{"jsonrpc":"2.0","id":7,"method":"ask"}'}
    - {t: 3, in: '{"jsonrpc":"2.0","id":7,"result":"yes"}'}
    - {t: 4, out: '{"jsonrpc":"2.0","id":1,"result":"done"}'}
    """


def test_the_requests_of_the_child_in_it_are_sent_again_and_need_the_recorded_response(
    tmp_path: Path, order: str
) -> None:
    path = cassette(tmp_path / "ask.yaml", ASKING + END)
    run = '{"jsonrpc":"2.0","id":%d,"method":"run"}'
    asked, yes = '{"jsonrpc":"2.0","id":7,"method":"ask"}', '{"jsonrpc":"2.0","id":7,"result":"yes"}'
    with Host(path, Options(order=order, repeat=("run",))) as host:
        for id in (1, 2):
            assert host.say(run % id) == [asked]
            assert result(host, yes) == "done"
        assert host.say(run % 3) == [asked]
        assert "response to the child's request ask (id 7)" in message_of(host.say(yes.replace("yes", "no"))[0])


@pytest.mark.parametrize("words", [["replay"], ["record", "--mode=none"]])
def test_the_report_counts_what_was_repeated(path: Path, tmp_path: Path, words: list[str]) -> None:
    report = tmp_path / "report.jsonl"
    said = "\n".join([LIST % 1, LIST % 9, CALL % (2, "add", 2), LIST % 3, CALL % (4, "sub", 4), ""])
    command = [*RECORDER, *words, "--repeat", "tools/list", f"--report={report}", str(path)]
    done = subprocess.run(command, input=said.encode(), capture_output=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0
    assert json.loads(report.read_text().splitlines()[-1])["repeated"] == 1


# --- After faults ----------------------------------------------------------------------------------------------------


def faulty(path: Path, order: str, *faults: str) -> Host:
    return Host(path, Options(order=order, faults=faults))


@pytest.mark.parametrize("fault", ["error=-32603", "drop", "delay=1ms", "duplicate", "oversized"])
def test_a_request_sent_again_after_a_fault_gets_the_recorded_response(path: Path, order: str, fault: str) -> None:
    with faulty(path, order, f"{fault}@method=tools/call,nth=1") as host:
        host.say(LIST % 1, CALL % (2, "add", 2))
        cancelled = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}'
        assert host.say(cancelled) == []
        assert json.loads(host.say(CALL % (3, "add", 3))[-1]) == {"jsonrpc": "2.0", "id": 3, "result": "sum"}
        assert result(host, LIST % 4) == "second"
        assert result(host, CALL % (5, "sub", 5)) == "rest"
        host.close()
        assert (host.status, host.err) == (0, "")


def test_a_request_sent_again_that_waits_behind_a_delay_may_be_cancelled_too(path: Path, order: str) -> None:
    cancelled = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}'
    with faulty(path, order, "delay=1ms@method=tools/call,nth=1") as host:
        host.say(LIST % 1, CALL % (2, "add", 2), cancelled % 2, CALL % (3, "add", 3), cancelled % 3)
        assert json.loads(host.say(CALL % (4, "add", 4))[-1])["result"] == "sum"
        assert host.err == ""


def test_another_request_is_no_retry_and_another_call_is_not_cancelled(path: Path, order: str) -> None:
    with faulty(path, order, "drop@method=tools/call,nth=1") as host:
        host.say(LIST % 1, CALL % (2, "add", 2))
        assert "used up" in message_of(host.say(LIST % 3, LIST % 4)[-1])
        host.say('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}')
        assert "never recorded" in host.err


def test_a_call_whose_child_request_was_dropped_is_sent_again(tmp_path: Path, order: str) -> None:
    path = cassette(tmp_path / "ask.yaml", ASKING + END)
    with faulty(path, order, "drop@method=ask,nth=1") as host:
        assert host.say('{"jsonrpc":"2.0","id":1,"method":"run"}') == []
        assert host.say('{"jsonrpc":"2.0","id":2,"method":"run"}') == ['{"jsonrpc":"2.0","id":7,"method":"ask"}']
        assert host.say('{"jsonrpc":"2.0","id":7,"result":"yes"}') == ['{"jsonrpc":"2.0","id":2,"result":"done"}']
        host.close()
        assert (host.status, host.err) == (0, "")


def test_a_cancel_that_is_a_request_is_answered(tmp_path: Path, order: str) -> None:
    events = """
        - {t: 1, in: '{"seq":1,"type":"request","command":"threads"}'}
        - {t: 1, out: '{"seq":1,"type":"response","request_seq":1,"success":true,"command":"threads"}'}
        """
    path = cassette(tmp_path / "d.yaml", events + END, protocol="dap", framing="ndjson", bindings={})
    with faulty(path, order, "drop") as host:
        host.say('{"seq":1,"type":"request","command":"threads"}')
    with faulty(path, order, "drop@nth=1") as host:
        host.say('{"seq":1,"type":"request","command":"threads"}')
        (line,) = host.say('{"seq":2,"type":"request","command":"cancel","arguments":{"requestId":1}}')
        assert (json.loads(line)["request_seq"], json.loads(line)["success"]) == (2, True)
        assert host.err == ""


def test_a_client_that_retries() -> None:
    """Run the example of the documentation."""
    root = Path(__file__).parents[4]
    session = root / "docs" / "examples" / "greeting.yaml"
    replay = [*RECORDER, "replay", "--fault", "error=-32603@method=execute,nth=1", str(session)]
    command = [sys.executable, "-m", "docs.examples.retrying", *replay]
    done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False, cwd=root)
    assert b"Hello, Ada!" in done.stdout
    assert done.returncode == 0
