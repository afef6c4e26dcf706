"""Every protocol: a conversation with a real peer is recorded, and held again with the recording, under other names.

The conversations assert what a host has to hear: its own ids, its own time in a pong, its own session. So a replay that
gave recorded ones would fail in them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from ext_recorder.cassette.events import Data
from ext_recorder.cassette.reader import Reader
from tests.peers import conversations
from tests.peers.conversations import Names, write_evals
from tests.support.host import MessageHost

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
EACH = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name, scope="module")


class Recorded(NamedTuple):
    """A recorded conversation of one row."""

    cassette: Path
    folder: Path
    received: list[dict[str, object]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Create the folder of the host's files."""
    return folder_in(tmp_path)


def folder_in(parent: Path) -> Path:
    folder = parent / "there"
    folder.mkdir()
    write_evals(folder)
    return folder


@pytest.fixture(scope="module")
def recorded(row: Row, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Record the conversation of a row once for all tests."""
    parent = tmp_path_factory.mktemp(row.protocol)
    folder, cassette = folder_in(parent), parent / "session.yaml"
    return Recorded(cassette, folder, record(row, cassette, folder, "--protocol", row.protocol))


def hold(row: Row, command: list[str], names: Names, folder: Path) -> tuple[int, str, list[dict[str, object]]]:
    """Hold the conversation. Returns the exit code, stderr, and what was heard."""
    with MessageHost(command, row.framing, os.environ | {"PYTHONPATH": str(ROOT)}) as host:
        row.conversation(host, names, folder)
        code = host.end()
        return code, host.err.decode(), host.received


def record(row: Row, cassette: Path, folder: Path, *options: str) -> list[dict[str, object]]:
    command = [*RECORDER, "record", *options, str(cassette), "--", *row.command]
    code, err, heard = hold(row, command, Names(), folder)
    assert (code, err) == (0, "")
    return heard


@EACH
def test_the_same_conversation_is_held_with_the_peer_its_recorder_and_a_replay_with_other_names(
    row: Row, recorded: Recorded, folder: Path, tmp_path: Path
) -> None:
    code, err, received = hold(row, row.command, Names(), folder)
    assert (code, err) == (0, "")
    assert len(recorded.received) == len(received)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    command = [*RECORDER, "replay", "--quiet", str(recorded.cassette)]

    code, err, again = hold(row, command, Names(1000, "live-"), elsewhere)

    assert (code, err) == (0, "")
    assert len(again) == len(received)
    if row.protocol != "pi":
        assert "/there" not in str(again)


@EACH
def test_auto_detects_the_protocol(row: Row, folder: Path, cassette: Path) -> None:

    record(row, cassette, folder)

    with Reader(cassette) as reader:
        assert (reader.header.protocol, reader.header.framing) == (row.protocol, row.framing)


@EACH
def test_a_cassette_names_no_folder_of_the_machine(recorded: Recorded) -> None:
    with Reader(recorded.cassette) as reader:
        sent = b"".join(event.payload for event in reader if isinstance(event, Data))
    assert str(recorded.folder).encode() not in sent


@EACH
def test_in_any_order_the_conversation_is_the_same(row: Row, recorded: Recorded, folder: Path) -> None:
    command = [*RECORDER, "replay", "--quiet", "--order", "any", str(recorded.cassette)]

    code, err, again = hold(row, command, Names(1000, "live-"), folder)

    assert (code, err) == (0, "")
    assert len(again) == len(recorded.received)
