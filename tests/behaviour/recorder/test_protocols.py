"""Every protocol: a conversation with a real peer is recorded, and held again with the recording, under other names.

The conversations assert what a host has to hear: its own ids, its own time in a pong, its own session. So a replay that
gave recorded ones would fail in them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.events import Data
from ext_recorder.cassette.reader import Reader
from tests.peers import conversations
from tests.peers.conversations import Names, write_evals
from tests.support.session_host import Started

if TYPE_CHECKING:
    from tests.peers.conversations import Conversation

ROOT = Path(__file__).parents[3]
RECORDER = [sys.executable, "-P", "-m", "ext_recorder"]


class Row:
    """A protocol, its peer, and what is said to it."""

    def __init__(self, protocol: str, framing: str, peer: str, conversation: Conversation, *options: str) -> None:
        self.protocol = protocol
        self.framing = framing
        self.command = [sys.executable, "-m", f"tests.peers.{peer}", *options]
        self.conversation = conversation
        self.name = f"{protocol}{'-like-' + options[-1] if options else ''}-{conversation.__name__}"


ROWS = (
    Row("pi", "ndjson", "pi", conversations.pi),
    Row("pi", "ndjson", "pi", conversations.pi, "--like", "rust"),
    Row("gassist", "uint32", "gassist", conversations.gassist),
    Row("gassist", "uint32", "gassist", conversations.gassist_shutdown),
    Row("gassist", "uint32", "gassist", conversations.gassist_notified),
    Row("gassist", "uint32", "gassist", conversations.gassist_sdk, "--like", "sdk"),
    Row("waza", "ndjson", "waza", conversations.waza),
    Row("waza", "ndjson", "waza", conversations.waza_python, "--like", "python"),
    Row("waza-go", "ndjson", "waza_go", conversations.waza_go),
    Row("kaiak", "content-length", "kaiak", conversations.kaiak),
    Row("kaiak", "content-length", "kaiak", conversations.kaiak_greeted),
    Row("kaiak-head", "content-length", "kaiak_head", conversations.kaiak_head),
)
EACH = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a host lets its child work."""
    folder = tmp_path / "there"
    folder.mkdir()
    write_evals(folder)
    return folder


def hold(row: Row, command: list[str], names: Names, folder: Path) -> tuple[int, str, list[dict[str, object]]]:
    """Hold the conversation. Returns the exit code, stderr, and what was heard."""
    with Started(command, row.framing, os.environ | {"PYTHONPATH": str(ROOT)}) as host:
        row.conversation(host, names, folder)
        code = host.end()
        return code, host.err.decode(), host.heard


def record(row: Row, cassette: Path, folder: Path, *options: str) -> list[dict[str, object]]:
    command = [*RECORDER, "record", *options, str(cassette), "--", *row.command]
    code, err, heard = hold(row, command, Names(), folder)
    assert (code, err) == (0, "")
    return heard


@EACH
def test_the_same_conversation_is_held_with_the_peer_its_recorder_and_a_replay_with_other_names(
    row: Row, folder: Path, tmp_path: Path
) -> None:
    code, err, heard = hold(row, row.command, Names(), folder)
    assert (code, err) == (0, "")
    cassette = tmp_path / "session.yaml"
    record(row, cassette, folder, "--protocol", row.protocol)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    code, err, again = hold(row, [*RECORDER, "replay", "--quiet", str(cassette)], Names(1000, "live-"), elsewhere)

    assert (code, err) == (0, "")
    assert len(again) == len(heard)
    if row.protocol != "pi":
        assert "/there" not in str(again)


@EACH
def test_auto_finds_out_what_is_spoken(row: Row, folder: Path, tmp_path: Path) -> None:
    cassette = tmp_path / "session.yaml"

    record(row, cassette, folder)

    with Reader(cassette) as reader:
        assert (reader.header.protocol, reader.header.framing) == (row.protocol, row.framing)


@EACH
def test_a_cassette_names_no_folder_of_the_machine(row: Row, folder: Path, tmp_path: Path) -> None:
    cassette = tmp_path / "session.yaml"

    record(row, cassette, folder, "--protocol", row.protocol)

    with Reader(cassette) as reader:
        said = b"".join(event.payload for event in reader if isinstance(event, Data))
    assert str(folder).encode() not in said


@EACH
def test_in_any_order_the_conversation_is_held_as_well(row: Row, folder: Path, tmp_path: Path) -> None:
    cassette = tmp_path / "session.yaml"
    heard = record(row, cassette, folder, "--protocol", row.protocol)

    code, err, again = hold(
        row, [*RECORDER, "replay", "--quiet", "--order", "any", str(cassette)], Names(1000, "live-"), folder
    )

    assert (code, err) == (0, "")
    assert len(again) == len(heard)
