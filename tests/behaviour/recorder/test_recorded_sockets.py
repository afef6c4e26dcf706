"""Conversations with servers on sockets: recorded by a relay that finds out what is spoken, and replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.cassette.reader import Reader
from tests.peers.conversations import Names, write_evals
from tests.peers.listeners import every_listener, listening, recorder
from tests.support.host import connected

if TYPE_CHECKING:
    from pathlib import Path

    from tests.peers.conversations import Conversation


@every_listener
def test_a_conversation_on_a_socket_is_recorded_and_replayed_under_other_names(
    peer: str, address: str, framing: str, conversation: Conversation, tmp_path: Path
) -> None:
    cassette = tmp_path / "session.yaml"
    write_evals(tmp_path)
    with (
        listening(peer, address.format(folder=tmp_path)) as server,
        recorder("record", f"--connect={server}", str(cassette)) as place,
    ):
        link, host = connected(place, framing)
        with link:
            conversation(host, Names(), tmp_path)

    with Reader(cassette) as reader:
        assert (reader.header.protocol, reader.header.framing) == (peer.replace("_", "-"), framing)
    with recorder("replay", str(cassette)) as place:
        link, host = connected(place, framing)
        with link:
            conversation(host, Names(1000, "live-"), tmp_path / "elsewhere")
