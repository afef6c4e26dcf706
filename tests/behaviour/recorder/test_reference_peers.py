"""The reference peers on sockets: one session for each connection, state of the server shared where it says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.peers.conversations import Names, answers, command, inside, tells, write_evals
from tests.peers.listeners import every_listener, listening
from tests.support.host import connected

if TYPE_CHECKING:
    from pathlib import Path

    from tests.peers.conversations import Conversation


@every_listener
def test_a_conversation_is_held_on_a_socket_again_and_again(
    peer: str, address: str, framing: str, conversation: Conversation, tmp_path: Path
) -> None:
    write_evals(tmp_path)
    with listening(peer, address.format(folder=tmp_path)) as place:
        for _ in range(2):
            link, host = connected(place, framing)
            with link:
                conversation(host, Names(), tmp_path)


def test_a_session_that_another_client_uses_is_refused(tmp_path: Path) -> None:
    with listening("kaiak", f"unix:{tmp_path}/kaiak.sock") as place:
        (one, first), (other, second) = connected(place, "content-length"), connected(place, "content-length")
        with one, other:
            first.send(command(1, "generate_fix", session_id="s", incidents=[{"id": "1"}]))
            first.until(tells("kaiak/stream/user_interaction"))
            second.send(command(1, "generate_fix", session_id="s", incidents=[{"id": "1"}]))
            refused = second.until(answers(1))[-1]

    assert inside(refused, "error")["code"] == -32016
    assert inside(refused, "error", "data")["session_id"] == "s"
