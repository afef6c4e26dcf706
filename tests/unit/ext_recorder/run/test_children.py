"""Claims on the sessions of a recording: each start of a child replays one that no other process replays."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from ext_recorder.errors import UsageError
from ext_recorder.run.children import CLAIMS, Claim, join, name_of

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
