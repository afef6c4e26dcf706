"""`conformance --protocol`: the reference peers conform, and a peer with one fault breaks that clause."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ext_recorder.conformance.conversations import CONVERSATIONS
from ext_recorder.conformance.ruled import clauses_of
from ext_sdk.protocols.dialect import DIALECTS
from tests.conformance.altering import ALTERATIONS
from tests.peers.conversations import INCIDENT, write_evals

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120.0
# About what a child may say and the reference peers don't, in these conversations.
UNSAID = {"gassist:error", "pi:host-call", "pi:error", "pi:error-object"}


def profile(protocol: str, folder: Path) -> dict[str, object]:
    """What may be asked of the reference peer."""
    write_evals(folder)
    profiles: dict[str, dict[str, object]] = {
        "waza": {
            "directory": str(folder / "evals"),
            "eval": str(folder / "evals/functions/eval.yaml"),
            "task": "create",
            "executor": "never",
        },
        "gassist": {
            "function": "add",
            "arguments": {"a": 1, "b": 2},
            "asking": "search",
            "asking-arguments": {"query": "x"},
            "input": "more",
        },
        "kaiak": {"incidents": [{"id": "incident-1"} | INCIDENT]},
        "pi": {"tool": "shout", "input": {"text": "hi"}, "command": "hello", "event": "turn_end"},
    }
    return profiles[protocol]


def asked(protocol: str, folder: Path, *words: str, clause: str = "") -> tuple[int, dict[str, dict[str, object]]]:
    """The exit code, and the verdicts by clause."""
    (folder / "profile.json").write_text(json.dumps(profile(protocol, folder)))
    peer = [sys.executable, "-m", f"tests.peers.{protocol}"]
    altering = [sys.executable, "-m", "tests.conformance.altering", clause, DIALECTS[protocol].framing]
    done = subprocess.run(
        [
            sys.executable, "-P", "-m", "ext_recorder", "conformance", "--json", f"--protocol={protocol}",
            f"--profile={folder / 'profile.json'}", *words, "--", *(altering if clause else []), *peer,
        ],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, {line["clause"]: line for line in lines}


@pytest.mark.parametrize("protocol", CONVERSATIONS)
def test_the_reference_peer_conforms_and_is_asked_for_nearly_all(protocol: str, tmp_path: Path) -> None:
    code, verdicts = asked(protocol, tmp_path)
    assert code == 0, verdicts
    assert list(verdicts) == [clause.id for clause in clauses_of(protocol)]
    assert {id for id, verdict in verdicts.items() if verdict["verdict"] == "skipped"} <= UNSAID


@pytest.mark.parametrize("clause", ALTERATIONS)
def test_a_peer_that_breaks_a_clause_is_told(clause: str, tmp_path: Path) -> None:
    code, verdicts = asked(clause.partition(":")[0], tmp_path, clause=clause)
    assert code == 1
    assert verdicts[clause]["verdict"] == "violated", verdicts[clause]


def test_one_clause_may_be_asked_for(tmp_path: Path) -> None:
    code, verdicts = asked("pi", tmp_path, "--only=pi:tool")
    assert (code, list(verdicts)) == (0, ["pi:tool"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only=spec:"], "--only spec:: no clause has such an id; --only pi: are for all of one kind"),
        (["--profile=none.json"], "--profile none.json: can't be read"),
        (["--profile=odd.json"], "expected an object with entries of tool, input, command, event"),
        (["--profile=broken.json"], "--profile broken.json: no JSON"),
    ],
)
def test_what_is_wrong_with_the_command_line_is_told(words: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text('{"eval": 1}')
    (tmp_path / "broken.json").write_text("{")
    command = [sys.executable, "-P", "-m", "ext_recorder", "conformance", "--protocol=pi", *words, "--", "true"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_child_that_says_nothing_violates(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "ext_recorder", "conformance", "--protocol=waza", "--", "true"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 1
    assert "VIOLATED" in done.stdout
