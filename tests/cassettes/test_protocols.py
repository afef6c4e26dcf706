"""The cassettes of all other protocols: they play byte for byte, and to a host that makes up other names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cassettes.peer_sessions import SESSIONS
from ext_recorder.cassette.events import Data
from ext_recorder.cassette.reader import Reader
from ext_recorder.protocols.detection import Detector
from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.replay.replay import ORDERS
from ext_recorder.tools.lint import lint
from ext_sdk.core.wire.framing import FRAMINGS
from tests.peers.conversations import Names
from tests.support.host import PATIENCE_S, MessageHost

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "cassettes"
REPLAY = [sys.executable, "-P", "-m", "ext_recorder", "replay", "--quiet"]
EACH = pytest.mark.parametrize("name", SESSIONS)
# What is wrong with them on purpose: (clause, how often). The servers that there are do otherwise than they should.
FINDINGS = {
    "waza/runs": {"methods": 1},
    "waza/served": {"run": 1},
    "waza/like-python": {"progress": 5, "named": 5},
    "waza-go/runs": {"list": 1},
    "gassist/like-sdk": {"complete": 1, "error": 1},
}


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.yaml"


def said(path: Path, kind: str) -> bytes:
    """All bytes of one stream."""
    with Reader(path) as reader:
        framing = FRAMINGS["ndjson" if kind == "err" else reader.header.framing]
        events = [event for event in reader if isinstance(event, Data) and event.kind == kind]
    return b"".join(event.payload if event.raw else framing.encode(event.payload, event.head) for event in events)


def test_each_protocol_has_a_folder_with_cassettes() -> None:
    assert {name.partition("/")[0] for name in SESSIONS} | {"gevals"} == set(DIALECTS)


@EACH
def test_the_recorded_session_tells_what_was_spoken(name: str) -> None:
    with Reader(path_of(name)) as reader:
        framing = FRAMINGS[reader.header.framing]
        detector = Detector()
        for event in reader:
            if isinstance(event, Data) and event.kind != "err":
                wire = event.payload if event.raw else framing.encode(event.payload, event.head)
                detector.receive("in" if event.kind == "in" else "out", wire)

    assert detector.settle() == (SESSIONS[name].protocol, SESSIONS[name].framing)


@EACH
def test_a_cassette_plays_byte_for_byte(name: str) -> None:
    path = path_of(name)

    played = subprocess.run(
        [*REPLAY, path], input=said(path, "in"), capture_output=True, timeout=PATIENCE_S, check=False, env={}
    )

    assert (played.stdout, played.stderr) == (said(path, "out"), said(path, "err"))
    assert played.returncode == 0


@EACH
@pytest.mark.parametrize("order", ORDERS)
def test_a_cassette_plays_to_a_host_with_other_ids_names_and_folders(name: str, order: str, tmp_path: Path) -> None:
    session, path = SESSIONS[name], path_of(name)

    with MessageHost([*REPLAY, f"--order={order}", str(path)], session.framing, os.environ) as host:
        session.conversation(host, Names(5000, "live-"), tmp_path)
        code = host.end()

    assert (code, host.err) == (0, said(path, "err"))


@EACH
def test_a_cassette_says_nothing_of_the_machine_that_recorded_it(name: str) -> None:
    text = path_of(name).read_bytes() + said(path_of(name), "out") + said(path_of(name), "err")

    assert not re.search(rb"/(root|home|Users|work|usr|opt)/(?!user\b|greet\.py)", text)
    assert set(re.findall(rb'"(?:port|systemProcessId|pid)": ?(\d+)', text)) <= {b"5678", b"1234"}


@EACH
def test_a_cassette_is_yaml_for_everybody(name: str) -> None:
    loaded = yaml.safe_load(path_of(name).read_text(encoding="utf-8"))

    assert (loaded["protocol"], loaded["framing"]) == (SESSIONS[name].protocol, SESSIONS[name].framing)
    assert loaded["events"][-1].keys() == {"t", "exit"}


@EACH
def test_a_cassette_is_what_its_specification_says_but_for_what_is_known(name: str) -> None:
    case = lint(path_of(name), name)

    found = [problem.kind for problem in case.problems]
    assert {clause: found.count(clause) for clause in found} == FINDINGS.get(name, {})
