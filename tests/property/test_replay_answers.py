"""Replay for hosts that differ from the recorded one: each call gets one answer, or waits for what can still come."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ext_recorder.cassette.events import OWN_FILES, Data
from ext_recorder.cassette.reader import Reader
from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.replay.actions import ActionBuffer, Exit, Write
from ext_recorder.replay.player import EXIT_DIFFERS
from ext_recorder.replay.replay import Options, make_player
from ext_recorder.sockets.connections import ConnectionReader, connections
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS
from tests.property.test_any_order import SESSIONS, Session
from tests.support.player_host import END, cassette

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_recorder.cassette.events import Event
    from ext_recorder.protocols.dialect import ClassifiedMessage, Dialect
    from ext_sdk.core.wire.framing import Framing

CASSETTES = Path(__file__).parents[2] / "cassettes"
ALL = sorted(path for path in CASSETTES.glob("*/*.yaml") if not path.name.endswith(".http.yaml"))

CHANGES = ("drop", "change", "rename", "duplicate", "swap")
REPLIES = ("same", "same", "change", "error", "result", "unknown", "none", "twice")


class Recording(NamedTuple):
    """One connection of a cassette.

    Attributes:
        own: messages of the host's own accord.
        replies: responses of the host, by the id of the child's request, in their order, each in its pieces.
        answered: ids of the host's requests that have an answer.
        steering: whether a message of the host takes back, approves or releases a call.
    """

    path: Path
    conn: int
    sockets: bool
    own: list[bytes]
    replies: dict[bytes, list[list[bytes]]]
    answered: set[bytes]
    steering: bool


def recordings(path: Path) -> Iterator[Recording]:
    with Reader(path) as reader:
        dialect, framing = DIALECTS[reader.header.protocol], FRAMINGS[reader.header.framing]
        events = list(reader)
    sockets = any(event.kind == "open" for event in events)
    for conn in sorted({event.conn for event in events} - {OWN_FILES}):
        found = Recording(path, conn, sockets, [], {}, set(), steering=False)
        yield read(found, [each for each in events if each.conn == conn], dialect, framing)


def read(found: Recording, events: list[Event], dialect: Dialect, framing: Framing) -> Recording:
    asked: set[bytes] = set()
    steering = False
    for event in events:
        if not isinstance(event, Data) or event.kind == "err":
            continue
        for payload in event.payloads(framing):
            message = dialect.classify(payload)
            if event.kind == "out":
                if message.kind == "response" and message.key is not None and dialect.is_last(message):
                    found.answered.add(message.key)
                elif message.kind == "request" and message.key is not None:
                    asked.add(message.key)
            elif message.kind == "response" and message.key in asked:
                replies = found.replies.setdefault(message.key, [])
                if not replies or dialect.is_last(dialect.classify(replies[-1][-1])):
                    replies.append([])
                replies[-1].append(payload)
            else:
                found.own.append(payload)
                tables = (dialect.references, dialect.controls, dialect.unblocks)
                steering = steering or any(message.method in table for table in tables)
    return found._replace(steering=steering)


RECORDINGS = [each for path in ALL for each in recordings(path) if each.own]


class Run:
    """A host, and a player of one recording."""

    def __init__(self, recording: Recording, order: str, replies: Iterator[str]) -> None:
        self._recording = recording
        self._replies = replies
        closed = {each.number: each.closed for each in connections(str(recording.path))} if recording.sockets else {}
        conn = recording.conn
        self._reader = (
            ConnectionReader(str(recording.path), conn, closed=closed[conn])
            if recording.sockets
            else Reader(recording.path)
        )
        header = self._reader.header
        self._dialect, self._framing = DIALECTS[header.protocol], FRAMINGS[header.framing]
        self._decoder = self._framing.decoder()
        self._stage = ActionBuffer()
        self._player = make_player(self._reader, self._stage, Options(order=order), {})
        self._answers = {key: list(replies) for key, replies in recording.replies.items()}
        self.status: int | str | None = None
        self.err = ""
        self.sent: Counter[bytes] = Counter()  # requests by their ids
        self.since: dict[bytes, int] = {}  # misses before the last of them
        self.answers: Counter[bytes] = Counter()
        self.silent = False  # the host has left a request of the child without a response
        self.calm = True  # the host has sent nothing that was not recorded like this

    def __enter__(self) -> Self:
        self._player.start()
        self._take()
        return self

    def __exit__(self, *exception: object) -> None:
        self._reader.close()

    @property
    def misses(self) -> int:
        return self.err.count("ext-recorder: ")

    def send(self, payload: bytes) -> None:
        if self.status is not None:
            return
        message = self._dialect.classify(payload)
        if message.kind == "request" and message.key is not None:
            self.sent[message.key] += 1
            self.since[message.key] = self.misses
        self._player.receive_data(self._framing.encode(payload))
        self._take()

    def close(self) -> None:
        if self.status is None:
            self._player.receive_eof()
            self._take()

    def _take(self) -> None:
        asked: list[ClassifiedMessage] = []
        while True:
            for action in self._stage.take():
                if isinstance(action, Exit):
                    self.status = action.status
                elif isinstance(action, Write) and action.stream == "err":
                    self.err += action.data.decode("utf-8", "replace")
                elif isinstance(action, Write):
                    asked += self._hear(action.data)
            if not self._player.more:
                break
            self._player.proceed()
        for message in asked:
            self._reply(message)

    def _hear(self, data: bytes) -> Iterator[ClassifiedMessage]:
        self._decoder.receive_data(data)
        while item := self._decoder.next_event():
            if not isinstance(item, Frame):
                continue
            message = self._dialect.classify(item.payload)
            if message.kind == "response" and message.key is not None and self._dialect.is_last(message):
                self.answers[message.key] += 1
            elif message.kind == "request" and message.key is not None:
                yield message

    def _reply(self, asked: ClassifiedMessage) -> None:
        assert asked.key is not None
        left = self._answers.get(asked.key)
        if not left:
            return
        reply = left.pop(0)
        how = next(self._replies, "same")
        if how == "none":
            self.silent = True
            return
        for payload in reply * (2 if how == "twice" else 1):
            self.send(replied(payload, how, self._dialect))

    def unanswered(self) -> list[bytes]:
        found = []
        for key, count in self.sent.items():
            assert self.answers[key] <= count, f"{key!r} has {self.answers[key]} answers"
            if self.answers[key] < count and key in self._recording.answered:
                found.append(key)
        return found


def replied(payload: bytes, how: str, dialect: Dialect) -> bytes:
    """Return another response."""
    message = dialect.classify(payload)
    if how in {"same", "twice"}:
        return payload
    start, end = message.span
    if how == "unknown":
        return (message.text[:start] + '"no such"' + message.text[end:]).encode()
    value = json.loads(payload)
    content = next((name for name in message.form.content if name in value), "")
    other = {"error": "error", "result": "result"}.get(how, content)
    if content in {"result", "error"}:
        del value[content]
    value[other if content in {"result", "error"} else content] = {"changed": how}
    return again(value, message, dialect)


def again(value: dict[str, object], message: ClassifiedMessage, dialect: Dialect) -> bytes:
    """Return the message with other content, if it still is one of its kind with this id."""
    payload = json.dumps(value).encode()
    found = dialect.classify(payload)
    return payload if (found.kind, found.key) == (message.kind, message.key) else message.text.encode()


def changed(payload: bytes, how: str, dialect: Dialect) -> bytes:
    """Return another message of the host."""
    message = dialect.classify(payload)
    if message.kind not in {"request", "notification"}:
        return payload + b" "
    value = json.loads(payload)
    if how == "rename" and "method" in value:
        value["method"] = "no/such"
    elif message.form.content:
        name = message.form.content[0]
        value[name] = {**value[name], "changed": 1} if isinstance(value.get(name), dict) else {"changed": 1}
    return again(value, message, dialect)


def name_of(recording: Recording) -> str:
    return f"{recording.path.parent.name}-{recording.path.stem}-{recording.conn}"


CHANGED = st.lists(st.tuples(st.sampled_from(CHANGES), st.integers(0, 200)), max_size=4)
REPLIED = st.lists(st.sampled_from(REPLIES), max_size=4)


@pytest.mark.parametrize("order", ["strict", "any"])
@pytest.mark.parametrize("recording", RECORDINGS, ids=name_of)
@settings(max_examples=20)
@given(changes=CHANGED, replies=REPLIED)
def test_each_call_is_answered_whatever_the_host_sends(
    recording: Recording, order: str, changes: list[tuple[str, int]], replies: list[str]
) -> None:
    check(recording, order, changes, replies)


@pytest.mark.parametrize("order", ["strict", "any"])
@given(moves=SESSIONS, changes=CHANGED, replies=REPLIED)
def test_each_call_of_a_random_session_is_answered(
    tmp_path_factory: pytest.TempPathFactory,
    order: str,
    moves: list[tuple[str, int]],
    changes: list[tuple[str, int]],
    replies: list[str],
) -> None:
    session = Session()
    for kind, which in moves:
        if kind != "cancel":
            session.move(kind, which)
    session.end()
    lines = [f"- {{t: {at / 100:.6f}, {side}: '{spelled(said)}'}}" for at, (side, said) in enumerate(session.said)]
    path = tmp_path_factory.mktemp("answers") / "session.yaml"
    (recording,) = recordings(cassette(path, "\n".join([*lines, END]), protocol="jsonrpc"))
    check(recording, order, changes, replies)


def spelled(message: dict[str, object]) -> str:
    """Return a message in the form of most peers, which replay plays without events."""
    return json.dumps(message, separators=(",", ":"))


def check(recording: Recording, order: str, changes: list[tuple[str, int]], replies: list[str]) -> None:
    """Play a recording to a host that differs from the recorded one."""
    with Reader(recording.path) as reader:
        dialect = DIALECTS[reader.header.protocol]
    script = list(recording.own)
    missing = False
    for how, which in changes:
        if not script:
            break
        at = which % len(script)
        if how == "drop":
            del script[at]
        elif how == "duplicate":
            script.insert(at, script[at])
        elif how == "swap":
            script[at - 1], script[at] = script[at], script[at - 1]
        else:
            script[at] = changed(script[at], how, dialect)
        missing = missing or how != "duplicate"
    with Run(recording, order, iter(replies)) as run:
        for payload in script:
            run.send(payload)
        if run.status is None:
            for key in run.unanswered():
                # It waits for a message of the host that can still come: in its order, or one that concerns it.
                can_come = missing and (recording.steering or run.misses == run.since[key])
                assert can_come or run.silent, f"{key!r} waits; {run.err}"
        left = run.unanswered() if run.status is None else []
        before = run.answers.total()
        run.close()
        assert run.status is not None
        if left and run.silent and not missing:
            assert run.answers.total() > before
            assert run.status == EXIT_DIFFERS
        run.unanswered()
