"""Host and child out of one cassette: `verify` and `replay` agree on every session of every protocol."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from ext_recorder.cassette.reader import Reader
from ext_recorder.verify.session import VerifyOptions
from ext_recorder.verify.verify import verify
from tests.peers.conversations import write_evals
from tests.support.host import PATIENCE_S
from tests.support.recorder_process import RECORDER

ROOT = Path(__file__).parents[3]
ALL = (path for path in (ROOT / "cassettes").rglob("*.yaml") if not path.name.endswith(".http.yaml"))
# Those over sockets are verified in test_meetings.
COMMITTED = sorted(path for path in ALL if b", open: in}" not in path.read_bytes())
# Peers of four specifications, that are ours; what they make up, and what they were recorded with, differs each time.
PEERS = {
    "pi/tools": ["tests.peers.pi"],
    "gassist/search": ["tests.peers.gassist"],
    "gassist/notified": ["tests.peers.gassist"],
    "gassist/like-sdk": ["tests.peers.gassist", "--like", "sdk"],
    "kaiak/fix": ["tests.peers.kaiak"],
    "kaiak/greeted": ["tests.peers.kaiak"],
    "kaiak-head/fix": ["tests.peers.kaiak_head"],
    "jsonrpc/calls": ["tests.peers.calls"],
    "mcp/discovered": ["tests.peers.mcp"],
}


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", COMMITTED, ids=name)
def test_a_replayed_child_says_what_the_recorded_one_said(path: Path) -> None:
    case = verify(path, name(path), VerifyOptions([*RECORDER, "replay", str(path)], timeout=PATIENCE_S))
    assert [problem.text for problem in case.problems] == []


@pytest.mark.parametrize("path", [path for path in COMMITTED if name(path) in PEERS], ids=name)
def test_a_real_peer_says_what_it_said(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    bind = {"workspace": str(tmp_path)} if path.parent.name == "kaiak" else {}
    # A plugin of G-Assist pings and works side by side: which of the two speaks first is chance.
    in_order = path.parent.name != "gassist"
    options = VerifyOptions(
        [sys.executable, "-m", *PEERS[name(path)]], bind=bind, in_order=in_order, timeout=PATIENCE_S
    )
    case = verify(path, name(path), options)
    assert [problem.text for problem in case.problems] == []


@pytest.mark.parametrize(
    ("cassette", "bound", "peer"),
    [
        ("waza/runs", "evals", ["waza"]),
        ("waza/like-python", "eval", ["waza", "--like", "python"]),
        ("waza-go/runs", "evals", ["waza_go"]),
    ],
)
def test_runs_that_go_on_at_once_may_interleave_as_they_like(
    cassette: str, bound: str, peer: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    write_evals(tmp_path)
    places = {"evals": str(tmp_path / "evals"), "eval": str(tmp_path / "evals" / "functions" / "eval.yaml")}
    command = [sys.executable, "-m", f"tests.peers.{peer[0]}", *peer[1:]]
    options = VerifyOptions(command, bind={bound: places[bound]}, timeout=PATIENCE_S)
    case = verify(ROOT / "cassettes" / f"{cassette}.yaml", cassette, options)
    assert [problem.text for problem in case.problems] == []


def test_every_protocol_is_among_them() -> None:
    protocols = set()
    for path in COMMITTED:
        with Reader(path) as reader:
            protocols.add(reader.header.protocol)
    assert {"gevals", "pi", "gassist", "waza", "kaiak", "mcp", "lsp", "dap", "acp", "jsonrpc", "raw"} <= protocols


def test_a_child_that_says_something_else_is_told_apart(tmp_path: Path) -> None:
    path = ROOT / "cassettes" / "kaiak" / "fix.yaml"
    changed = tmp_path / "changed.yaml"
    changed.write_text(re.sub(r'"status":"\w+"', '"status":"odd"', path.read_text()))
    case = verify(path, "fix", VerifyOptions([*RECORDER, "replay", str(changed)], timeout=PATIENCE_S))
    assert case.problems
    assert {problem.data["found"] for problem in case.problems} == {"odd"}
