"""Exchanges that are played by their bytes, beside the same session played event by event."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from ext_recorder.cassette.events import mark_line, text_line
from ext_recorder.cassette.header import Header, encode_header, encode_trailer
from ext_recorder.cassette.reader import Reader
from ext_recorder.replay.actions import Close, Write
from ext_recorder.replay.replay import MAX, Options, make_action_buffer, make_player
from ext_recorder.replay.strict import StrictPlayer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ext_recorder.replay.actions import Action

# How peers write a message: compact, as Python's json does, with the id at the end, with another member before it.
FORMS = (
    '{{"jsonrpc":"2.0","id":{id},{members}}}',
    '{{"jsonrpc": "2.0", "id": {id}, {members}}}',
    '{{{members},"jsonrpc":"2.0","id":{id}}}',
    '{{"id":{id},"jsonrpc":"2.0",{members}}}',
)
RECORDED_IDS = ("1", "2", "3", '"a-1"', "0", "07", '"1"', "1.5", "null")
LIVE_IDS = (*RECORDED_IDS, "4711", '"b"', '"é"', '"a,b"', "[]", "")
CALL = '"method":"tools/call","params":{{"name":"{name}","arguments":{{"path":"/tmp/data/{name}"{more}}}}}'
METHODS = ('"method":"ping"', '"method":"subscriptions/listen","params":{}', '"method":"exit"')
RESULTS = (
    '"result":{"content":[{"type":"text","text":"/tmp/data/out"}]}',
    '"error":{"code":-32601,"message":"no"}',
    '"result":{"id":1}',
    '"result":"' + "long " * 2_000 + '"',
)
NOTIFICATIONS = (
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"/tmp/data"}}',
    "not a message",
    "it's",
)
CANCELLED = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}'
QUESTION = '{"jsonrpc":"2.0","id":1,"method":"roots/list"}'
ANSWER = '{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}'

names = st.sampled_from(["a", "b", "c"])
calls = st.builds(
    lambda name, more: CALL.format(name=name, more=more),
    names,
    st.sampled_from([""] * 8 + [',"id":7', ',"text":"\\n"']),
)
requests = st.integers(0, 15).flatmap(lambda lot: calls if lot else st.sampled_from(METHODS))
ids = st.sampled_from(RECORDED_IDS[:4] * 6 + RECORDED_IDS)
forms = st.sampled_from(FORMS[:3] * 4 + FORMS)
results = st.sampled_from(RESULTS[:2] * 4 + RESULTS)


@st.composite
def recorded(draw: st.DrawFn) -> list[tuple[str, str]]:
    """What host and child wrote, most of it requests and their responses."""
    events: list[tuple[str, str]] = []
    for kind in draw(st.lists(st.sampled_from("p" * 24 + "ncsq!e"), min_size=6, max_size=30)):
        id = draw(ids)
        if kind == "p":
            events.append(("in", draw(forms).format(id=id, members=draw(requests))))
            events.append(
                ("out", draw(forms).format(id=draw(st.sampled_from([id] * 9 + ["9"])), members=draw(results)))
            )
        elif kind == "n":
            events.append((draw(st.sampled_from(["in", "out"])), draw(st.sampled_from(NOTIFICATIONS))))
        elif kind == "c":
            events.append(("in", CANCELLED % id))
        elif kind == "s":
            events.append(("err", "a line"))
        elif kind == "q":
            events += [("out", QUESTION), ("in", ANSWER)]
        elif kind == "!":
            events.append(("in", FORMS[0].format(id=id, members=draw(requests))))  # its answer comes later, or never
        else:
            events.append(("out", FORMS[0].format(id=id, members=draw(results))))
    return events


@st.composite
def lived(draw: st.DrawFn, events: Sequence[tuple[str, str]]) -> bytes:
    """What a host writes that repeats most of it."""
    said = []
    for kind, text in events:
        if kind != "in":
            continue
        change = draw(st.sampled_from("=" * 16 + "iiiiiiiixrs"))
        live = text.replace("/tmp/data", "/srv/live")
        if change == "i":
            live = _renamed(live, draw(st.sampled_from(LIVE_IDS)))
        elif change == "x":
            live = live.replace("call", "list")
        if change != "s":
            said += [live] * (2 if change == "r" else 1)
    return "".join(f"{line}\n" for line in said).encode()


def _renamed(text: str, id: str) -> str:
    for name in ('"id":', '"id": '):
        before, found, after = text.partition(name)
        end = min((at for at in (after.find(","), after.find("}")) if at >= 0), default=-1)
        if found and end > 0:
            return before + found + id + after[end:]
    return text


sessions = recorded().flatmap(lambda events: st.tuples(st.just(events), lived(events)))


@given(sessions, st.sampled_from(["mcp", "jsonrpc"]), st.lists(st.integers(1, 400), max_size=12), st.booleans())
def test_a_session_is_the_same_with_and_without_them(
    session: tuple[list[tuple[str, str]], bytes], protocol: str, cuts: list[int], is_apart: bool
) -> None:
    events, said = session
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session.yaml"
        path.write_bytes(b"".join(_lines(events, protocol)))
        options = Options(speed=0.0 if is_apart else MAX, bind={"data": "/srv/live"})
        by_bytes, by_events = (list(_played(path, options, said, cuts, plain=plain)) for plain in (True, False))
    assert by_bytes == by_events


def _lines(events: Sequence[tuple[str, str]], protocol: str) -> Iterator[bytes]:
    yield encode_header(Header(protocol, "ndjson", bindings={"data": "/tmp/data"}))
    for number, (kind, text) in enumerate(events):
        line = text_line(kind, number / 10, text.encode())  # type: ignore[arg-type]
        assert line is not None
        yield line
    yield mark_line("eof", 100.0, "in") + mark_line("exit", 100.0, 0)
    yield encode_trailer(())


def _played(path: Path, options: Options, said: bytes, cuts: Sequence[int], *, plain: bool) -> Iterator[object]:
    with Reader(path) as reader:
        stage = make_action_buffer(reader.header, options)
        player = make_player(reader, stage, options, {})
        assert isinstance(player, StrictPlayer)
        if not plain:
            player._exchanges = None
        player.start()
        for size in [*cuts, len(said)]:
            piece, said = said[:size], said[size:]
            player.receive_data(piece)
            yield [_shown(action) for action in stage.take()]
            while player.more:
                player.proceed()
                yield [_shown(action) for action in stage.take()]
        player.receive_eof()
        yield [_shown(action) for action in stage.take()]
        yield player.differences, player.played_to, reader.line, player.unconsumed_input()


def _shown(action: Action) -> tuple[object, ...]:
    if isinstance(action, Write):
        return action.stream, action.data, action.apart
    return ("close", action.stream) if isinstance(action, Close) else ("exit", getattr(action, "status", None))
