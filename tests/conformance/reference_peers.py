"""The reference peers, and what may be asked of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ext_recorder.conformance.peer import ChildUnderTest
from ext_recorder.conformance.protocol_clauses import run_conversation
from ext_recorder.conformance.raw_host import json_object
from tests.peers.conversations import INCIDENT, write_evals

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ext_recorder.sockets.address import Address

ROOT = Path(__file__).parents[2]
PROFILES = Path(__file__).parent / "profiles"


def peer(protocol: str) -> list[str]:
    """The command of a peer without a fault."""
    return [sys.executable, "-m", f"tests.peers.{protocol}"]


def profile(protocol: str, folder: Path) -> dict[str, object]:
    """What may be asked of the reference peer; the files that it names are written."""
    if protocol == "kaiak":
        return {"incidents": [{"id": "incident-1"} | INCIDENT]}
    if protocol == "waza":
        write_evals(folder)
        evals = {name: str(folder / f"evals/{name}/eval.yaml") for name in ("functions", "broken")}
        files = {"directory": str(folder / "evals"), "eval": evals["functions"], "broken": evals["broken"]}
        return {**files, "task": "create", "executor": "never"}
    return json_object(json.loads((PROFILES / f"{protocol}.json").read_text()), protocol)


def verdicts(
    protocol: str,
    folder: Path,
    command: Sequence[str],
    *,
    only: Collection[str] = (),
    patience: float = 60.0,
    address: Address | None = None,
) -> dict[str, tuple[str, str]]:
    """The verdict on each clause: (word, reason)."""
    known = {"workdir": str(folder), "session": "conformance", **profile(protocol, folder)}
    with ChildUnderTest(command, folder, address) as asked:
        return run_conversation(asked, protocol, known, only, patience)
