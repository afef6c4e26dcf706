"""`ext-host agent` conforms to Kaiak's agent API, on stdio and on a socket."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_recorder.conformance.protocol_clauses import clauses_of
from ext_recorder.sockets.address import Address
from tests.conformance.reference_peers import verdicts
from tests.support.kaiak import AGENT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("on_socket", [False, True])
def test_all_clauses_of_kaiak_are_met(on_socket: bool, tmp_path: Path) -> None:
    address = Address.parse(f"unix:{tmp_path}/server.sock", "--connect") if on_socket else None
    command = [*AGENT, *([f"--socket={tmp_path}/server.sock"] if address else []), "--", "sh", "-c", "echo x >> a"]
    expected = {clause.id: ("met", "") for clause in clauses_of("kaiak")}
    assert verdicts("kaiak", tmp_path, command, address=address) == expected
