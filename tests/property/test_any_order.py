"""Replay in any order, of random sessions: whatever order a host asks in, all that was said comes, and comes once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from ext_recorder.replay.replay import Options
from tests.support.player_host import END, Host, cassette

if TYPE_CHECKING:
    from random import Random

    import pytest

Message = dict[str, object]
MOVES = ("call", "tell", "ask", "answer", "say", "reply", "cancel")


def rpc(**members: object) -> Message:
    return {"jsonrpc": "2.0"} | members


class Session:
    """A session as it is made up: who said what, in its order.

    Attributes:
        said: ("in" or "out", message).
        own: what the host said of its own account.
        answers: its answers, by the id of the question.
    """

    def __init__(self) -> None:
        self.said: list[tuple[str, Message]] = []
        self.own: list[Message] = []
        self.answers: dict[object, Message] = {}
        self._calls: list[int] = []
        self._questions: list[int] = []
        self._count = 0

    def move(self, kind: str, which: int) -> None:
        """One more thing is said, if it can be now."""
        self._count += 1
        number = self._count
        if kind == "call":
            self._calls.append(number)
            self._host(rpc(id=number, method=f"call {which % 3}"))
        elif kind == "tell":
            self._host(rpc(method=f"tell {which % 3}"))
        elif kind == "cancel" and self._calls:
            self._host(rpc(method="$/cancelRequest", params={"id": self._calls[which % len(self._calls)]}))
        elif kind == "ask":
            self._questions.append(number)
            self.said.append(("out", rpc(id=number, method="ask")))
        elif kind == "answer" and self._calls:
            error = {"error": {"code": -32800, "message": str(number)}} if which % 5 == 0 else {"result": number}
            self.said.append(("out", rpc(id=self._calls.pop(which % len(self._calls)), **error)))
        elif kind == "reply" and self._questions:
            question = self._questions.pop(which % len(self._questions))
            self.answers[question] = rpc(id=question, result=question)
            self.said.append(("in", self.answers[question]))
        elif kind == "say":
            self.said.append(("out", rpc(method="said", params=[number])))

    def end(self) -> None:
        """Nothing is left open."""
        while self._questions:
            self.move("reply", 0)
        while self._calls:
            self.move("answer", 1)

    def _host(self, message: Message) -> None:
        self.own.append(message)
        self.said.append(("in", message))


SESSIONS = st.lists(st.tuples(st.sampled_from(MOVES), st.integers(0, 100)), max_size=40)


@given(SESSIONS, st.randoms(use_true_random=False), st.booleans())
def test_all_that_was_said_comes_once(
    tmp_path_factory: pytest.TempPathFactory, moves: list[tuple[str, int]], lot: Random, patient: bool
) -> None:
    session = Session()
    for kind, which in moves:
        session.move(kind, which)
    session.end()
    lines = [f"- {{t: {at / 100}, {side}: '{json.dumps(said)}'}}" for at, (side, said) in enumerate(session.said)]
    path = tmp_path_factory.mktemp("any") / "session.yaml"
    cassette(path, "\n".join([*lines, END]), protocol="jsonrpc")
    own = list(session.own)
    lot.shuffle(own)
    with Host(path, Options(order="any")) as host:
        heard = _heard(host.greeting.decode().splitlines())
        waiting = [message for message in heard if "method" in message and "id" in message]
        while own or waiting:
            said = session.answers[waiting.pop(0)["id"]] if waiting and (not own or not patient) else own.pop()
            new = _heard(host.say(json.dumps(said)))
            heard += new
            waiting += [message for message in new if "method" in message and "id" in message]
        host.close()
        assert (host.status, host.err) == (0, "")
    expected = [said for side, said in session.said if side == "out"]
    assert sorted(map(_content, heard)) == sorted(map(_content, expected))


def _heard(lines: list[str]) -> list[Message]:
    return [json.loads(line) for line in lines]


def _content(message: Message) -> str:
    """But for the id of an answer, which is that of the live call."""
    return json.dumps({name: value for name, value in message.items() if name != "id" or "method" in message})
