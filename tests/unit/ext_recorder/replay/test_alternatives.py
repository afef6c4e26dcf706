"""Choice between sessions that begin alike: the messages of the host decide, and what it knows stays valid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.reader import Reader
from ext_recorder.replay.alternatives import Choice, LoggedActions
from ext_recorder.replay.player import Divergence, Player
from ext_recorder.replay.replay import Options, make_player
from tests.support.player_host import cassette

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

OPEN = '{"jsonrpc":"2.0","id":%s,"method":"open"}'
ASK = '{"jsonrpc":"2.0","id":%s,"method":"ask","params":{"of":"%s","what":"%s"}}'


def session(token: str, what: str, greeting: str = "hello there") -> str:
    """Return a session with a token, and a request that only it has."""
    events = [
        ("in", OPEN % 1),
        ("out", f'{{"jsonrpc":"2.0","id":1,"result":{{"token":"{token}","text":"{greeting}"}}}}'),
        ("in", ASK % (2, token, what)),
        ("out", f'{{"jsonrpc":"2.0","id":2,"result":"{token} says {what}"}}'),
        ("in", ASK % (3, token, "end")),
        ("out", '{"jsonrpc":"2.0","id":3,"result":"over"}'),
    ]
    return "".join(f"- {{t: 0.{at}, {kind}: '{text}'}}\n" for at, (kind, text) in enumerate(events))


class Sessions:
    """The alternatives, as files, and a host."""

    def __init__(self, folder: Path, *sessions: str) -> None:
        self.readers: list[Reader] = []
        self.chosen: list[str] = []
        self.settled: list[Player] = []
        self.paths = [str(folder / f"{number}.yaml") for number in range(len(sessions))]
        for path, events in zip(self.paths, sessions, strict=True):
            cassette(folder / path, events, protocol="jsonrpc")
        self.choice = Choice(
            self.paths[0],
            self,
            opened=self.open,
            framing="ndjson",
            settled=lambda _, player: self.settled.append(player),
        )
        self.player, self.actions = self.choice.player, self.choice.actions
        self.player.start()

    def open(self, path: str) -> tuple[Player, LoggedActions]:
        self.readers.append(Reader(path))
        actions = LoggedActions()
        player = make_player(self.readers[-1], actions, Options(order="any"))
        player.chooses = True
        return player, actions

    def others(self) -> Sequence[str]:
        return [path for path in self.paths if path != (self.chosen or self.paths)[-1 if self.chosen else 0]]

    def choose(self, cassette: str) -> None:
        self.chosen.append(cassette)

    def remaining(self) -> str:
        return self.paths[-1]

    def send(self, data: str) -> str:
        """Return the child's output."""
        try:
            if received := self.choice.received(data.encode()):
                self.player.receive_data(received)
        except Divergence:
            written = self.written()
            self.player, self.actions = self.choice.other(ended=False)
            return written + self.written()
        return self.written()

    def written(self) -> str:
        return "".join(getattr(action, "data", b"").decode() for action in self.actions.take())


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Sessions]:
    sessions = Sessions(
        tmp_path, session("aaaa1111", "x"), session("bbbb2222", "y", "good day sir"), session("cccc3333", "y")
    )
    yield sessions
    for reader in sessions.readers:
        reader.close()


def test_the_session_that_has_the_message_replaces_the_first(opened: Sessions) -> None:
    assert '"aaaa1111"' in opened.send(OPEN % 7 + "\n")
    first = ASK % (8, "aaaa1111", "y")
    assert opened.send(first[:20]) == ""
    # The second session greets in another way, so it is not the one.
    assert opened.send(first[20:] + "\n") == '{"jsonrpc":"2.0","id":8,"result":"aaaa1111 says y"}\n'
    assert opened.chosen == opened.paths[2:]
    assert opened.send(ASK % (9, "aaaa1111", "end") + "\n") == '{"jsonrpc":"2.0","id":9,"result":"over"}\n'


def test_several_messages_at_once(opened: Sessions) -> None:
    said = opened.send(
        "".join(f"{line}\n" for line in (OPEN % 1, ASK % (2, "aaaa1111", "y"), ASK % (3, "aaaa1111", "end")))
    )
    assert [line[17:26] for line in said.splitlines()] == ['"id":1,"r', '"id":2,"r', '"id":3,"r']
    assert opened.chosen == opened.paths[2:]


def test_a_long_session_is_final(opened: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ext_recorder.replay.alternatives.MOST_BYTES", 100)
    opened.send(OPEN % 1 + "\n")
    assert '"error"' in opened.send(ASK % (2, "aaaa1111", "y") + "\n")
    assert (opened.chosen, opened.actions.log) == ([], [])


def test_a_message_that_no_session_has_is_a_miss_of_one_that_is_left(opened: Sessions) -> None:
    opened.send(OPEN % 1 + "\n")
    assert '"error"' in opened.send(ASK % (2, "aaaa1111", "z") + "\n")
    assert opened.chosen == opened.paths[2:]  # the first is of another child by now
    (_, player) = opened.settled
    assert "request ask" in player.differences[0]
    assert opened.send(ASK % (3, "aaaa1111", "y") + "\n") == '{"jsonrpc":"2.0","id":3,"result":"aaaa1111 says y"}\n'
