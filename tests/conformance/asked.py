"""The reference peers, and what may be asked of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ext_recorder.conformance.links import Peer
from ext_recorder.conformance.ruled import ask
from tests.peers.conversations import INCIDENT, write_evals

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ext_recorder.sockets.address import Address

ROOT = Path(__file__).parents[2]


def peer(protocol: str) -> list[str]:
    """The command of a peer without a fault."""
    return [sys.executable, "-m", f"tests.peers.{protocol}"]


def profile(protocol: str, folder: Path) -> dict[str, object]:
    """What may be asked of the reference peer; the files that it names are written."""
    write_evals(folder)
    profiles: dict[str, dict[str, object]] = {
        "waza": {
            "directory": str(folder / "evals"),
            "eval": str(folder / "evals/functions/eval.yaml"),
            "broken": str(folder / "evals/broken/eval.yaml"),
            "task": "create",
            "executor": "never",
        },
        "gassist": {
            "function": "add",
            "arguments": {"a": 1, "b": 2},
            "failing": "limited",
            "asking": "search",
            "asking-arguments": {"query": "x"},
            "input": "more",
        },
        "kaiak": {"incidents": [{"id": "incident-1"} | INCIDENT]},
        "pi": {
            "tool": "shout",
            "input": {"text": "hi"},
            "asking": "count-lines",
            "asking-input": {"path": "notes.txt"},
            "host": {"tool": [{"text": "one\n"}, {"text": "two\n"}]},
            "command": "hello",
            "event": "turn_end",
        },
    }
    return profiles[protocol]


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
    with Peer(command, folder, address) as asked:
        return ask(asked, protocol, known, only, patience)
