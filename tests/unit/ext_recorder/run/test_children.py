"""Claims on the sessions of a recording: each start of a child replays one that no other process replays."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ext_recorder.errors import UsageError
from ext_recorder.run.children import CLAIMS, Claim, join, name_of
from ext_sdk.core.wire.errors import RpcError
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.jsonrpc import ErrorResponse, Request, encode, parse
from tests.support.host import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

PROCESSES = 8


def test_no_two_processes_claim_one_session(tmp_path: Path) -> None:
    (tmp_path / CLAIMS).mkdir()
    cassettes = [f"/rec/children/c-{number}.yaml" for number in range(PROCESSES)]
    ready, go = os.pipe(), os.pipe()
    pids = []
    for _ in range(PROCESSES):
        pid = os.fork()
        if pid == 0:
            os.close(go[1])
            os.write(ready[1], b".")
            os.read(go[0], 1)  # its end, for all at once
            os._exit(cassettes.index(Claim(str(tmp_path), "c", cassettes).cassette))
        pids.append(pid)
    received = b""
    while len(received) < PROCESSES:
        received += os.read(ready[0], PROCESSES)
    for fd in (go[1], go[0], *ready):
        os.close(fd)
    claimed = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    assert sorted(claimed) == list(range(PROCESSES))
    with pytest.raises(UsageError, match=r"child c: started more often than recorded \(8 sessions\)"):
        Claim(str(tmp_path), "c", cassettes)


def test_claims_are_exchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / CLAIMS).mkdir()
    cassettes = ["/rec/a.yaml", "/rec/b.yaml", "/rec/c.yaml"]
    first = Claim(str(tmp_path), "c", cassettes)
    own, other = os.getpid(), os.getpid() + 1
    monkeypatch.setattr("os.getpid", lambda: other)
    second = Claim(str(tmp_path), "c", cassettes)
    assert (first.cassette, second.cassette) == ("/rec/a.yaml", "/rec/b.yaml")
    assert second.others() == ["/rec/c.yaml", "/rec/a.yaml"]  # the free one first
    second.choose("/rec/a.yaml")
    monkeypatch.setattr("os.getpid", lambda: own)
    assert (first.cassette, first.remaining()) == ("/rec/a.yaml", "/rec/b.yaml")
    assert first.others() == ["/rec/b.yaml", "/rec/c.yaml"]  # what the other process has left first
    first.choose("/rec/c.yaml")
    claims = {path.name: path.read_text() for path in (tmp_path / CLAIMS).iterdir()}
    assert claims == {"a.yaml": str(other), "c.yaml": str(own)}


def test_a_shim_outside_of_a_run_is_an_ordinary_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXT_RECORDER_RUN", str(tmp_path / "ended"))
    assert join("c", ("program",), -1) is None
    assert name_of("/cassettes/{args}-sum.yaml") == "sum"
    assert name_of("my cassette.yaml") == "my-cassette"
    assert name_of("{time}-{pid}.yaml") == "child"


@pytest.mark.parametrize("framing", ["ndjson", "content-length"])
def test_the_first_request_to_a_child_that_is_not_replayed_gets_an_error_with_the_reason(framing: str) -> None:
    code = "from ext_recorder.run.children import refuse; refuse('not recorded')"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        payload = encode(Request("a", "initialize", {}))
        child.stdin.write(FRAMINGS[framing].encode(payload))
        child.stdin.flush()  # and left open: some hosts wait for the response
        decoder = FRAMINGS[framing].decoder()
        decoder.receive_data(child.stdout.read())
        event = decoder.next_event()
        assert child.wait(PATIENCE_S) == 0
    assert isinstance(event, Frame)
    assert parse(event.payload) == ErrorResponse("a", RpcError(-32603, "ext-recorder: not recorded"))
