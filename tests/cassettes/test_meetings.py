"""The cassettes of servers on sockets: two clients play them, and a real server says what it said."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from cassettes.peer_sessions import MEETINGS
from cassettes.record import FOLDER
from ext_recorder.tools.lint import lint
from tests.peers.conversations import Names, write_evals
from tests.peers.listeners import listening, recorder
from tests.support.host import PATIENCE_S, connected
from tests.support.recorder_process import RECORDER

if TYPE_CHECKING:
    from pathlib import Path

EACH = pytest.mark.parametrize("name", MEETINGS)


@EACH
@pytest.mark.parametrize("order", ["strict", "any"])
def test_two_clients_with_other_ids_names_and_folders_play_it(name: str, order: str, tmp_path: Path) -> None:
    meeting = MEETINGS[name]

    with recorder("replay", f"--order={order}", str(FOLDER / f"{name}.yaml")) as place:
        (one, first), (other, second) = (connected(place, meeting.framing) for _ in range(2))
        with one, other:
            meeting.meeting(first, second, Names(5000, "live-"), tmp_path)


@EACH
def test_a_real_server_says_what_it_said(name: str, tmp_path: Path) -> None:
    meeting = MEETINGS[name]
    write_evals(tmp_path)
    evals = {"eval": "functions", "eval-2": "storage"} if meeting.protocol == "waza" else {}
    binds = [f"--bind={each}={tmp_path}/evals/{folder}/eval.yaml" for each, folder in evals.items()]

    with listening(meeting.peer, meeting.address.format(folder=tmp_path, name="server")) as server:
        done = subprocess.run(
            [*RECORDER, "verify", f"--connect={server}", *binds, FOLDER / f"{name}.yaml"],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    assert (done.returncode, done.stderr) == (0, ""), done.stdout


@EACH
def test_it_is_what_its_specification_says_and_names_no_machine(name: str) -> None:
    path = FOLDER / f"{name}.yaml"

    assert lint(path, name).problems == ()
    assert str(FOLDER).encode() not in path.read_bytes()
    assert b"/tmp/tmp" not in path.read_bytes()
