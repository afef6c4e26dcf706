"""Every clause of every protocol can fail: there is a peer that breaks just that one, and the check notices."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from ext_recorder.conformance.conversations import CONVERSATIONS
from ext_recorder.conformance.protocol_clauses import clauses_of
from tests.conformance.faulty_peer import FAULTS
from tests.conformance.reference_peers import ROOT, verdicts

if TYPE_CHECKING:
    from pathlib import Path

# Of peers that owe something, in seconds: what never comes need not be waited for longer.
LONG, SHORT = 60.0, 1.0
OWING = (
    "waza:answer-each", "gassist:answer-each", "kaiak:answer-each", "pi:answer-each", "pi:answer-each/deaf",
    "gassist:utf-8", "waza:end", "waza:complete/never", "pi:order/never", "gassist:shutdown",
)  # fmt: skip


def clause_of(fault: str) -> str:
    return fault.partition("/")[0]


def test_every_clause_of_every_protocol_has_a_faulty_peer() -> None:
    clauses = {clause.id for protocol in CONVERSATIONS for clause in clauses_of(protocol)}
    assert {clause_of(fault) for fault in FAULTS} == clauses


@pytest.mark.parametrize("fault", FAULTS)
def test_a_peer_that_breaks_a_clause_is_told(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    command = [sys.executable, "-m", "tests.conformance.faulty_peer", fault]
    clause = clause_of(fault)
    patience = SHORT if fault in OWING else LONG
    found = verdicts(clause.partition(":")[0], tmp_path, command, only={clause}, patience=patience)
    assert found[clause][0] == "violated", found
