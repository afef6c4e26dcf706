"""Conversations with servers on sockets: recorded by a relay that finds out what is spoken, and replayed."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, cast

from ext_recorder.cassette.reader import Reader
from tests.peers.conversations import Names, write_evals
from tests.peers.listening import every_listener, listening
from tests.peers.speaking import PATIENCE_S, connected

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.peers.conversations import Conversation


@contextmanager
def recorder(*words: str) -> Iterator[str]:
    """`ext-recorder` that listens: where; it is ended by a signal, and has to be content."""
    command = [sys.executable, "-P", "-m", "ext_recorder", words[0], "--listen=tcp:127.0.0.1:0", *words[1:]]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            said = cast("IO[bytes]", process.stderr).readline().decode()
            yield said.partition("listening on ")[2].partition(",")[0].strip()
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=PATIENCE_S)
            assert b"no match" not in err, err
        finally:
            process.kill()


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
