"""A store that has read the complete file and one that reads as far as it must make the same decisions."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from ext_recorder.http.interaction import TCP, TLS, Body, Interaction
from ext_recorder.http.interaction_file import InteractionFile
from ext_recorder.http.interaction_store import InteractionStore
from ext_recorder.http.request_matching import RequestRules, Subject
from ext_recorder.http.writer import Writer

if TYPE_CHECKING:
    from ext_recorder.http.interaction import Call

# Few values, so that requests, calls and addresses often are the same.
CALLS = st.sampled_from([None, 1, 2])
URIS = st.sampled_from(["http://h/a", "http://h/a", "http://g:81/a?x=1"])
BODIES = st.just(b"")
METHODS = st.sampled_from(["GET", "GET", "POST"])
ADDRESSES = st.sampled_from(["h:80", "h:80", "g:81", "192.0.2.1:80"])
KINDS = st.sampled_from([TCP, TCP, TLS])
FAILURES = st.tuples(st.just("CONNECT"), st.builds("{}{}".format, KINDS, ADDRESSES), st.just(b""))
STEPS = st.lists(
    st.one_of(
        st.tuples(METHODS, st.one_of(URIS, st.just("http://g:81/a?x=2")), BODIES, CALLS),
        st.tuples(KINDS, ADDRESSES),
        st.tuples(ADDRESSES),
        st.tuples(st.just("clock"), st.just(""), CALLS),
    ),
    max_size=12,
)


@st.composite
def recorded(draw: st.DrawFn) -> Interaction:
    method, uri, body = draw(st.one_of(st.tuples(METHODS, URIS, BODIES), FAILURES))
    made = Interaction(method, uri, [("Content-Type", "application/json")], Body(body))
    made.call, made.time = draw(CALLS), draw(st.sampled_from([0.0, 0.5, 1.0, 1.5]))
    made.peer, made.status = draw(st.sampled_from(["", "192.0.2.1:80"])), draw(st.sampled_from([200, 404]))
    made.body = Body(draw(st.sampled_from([b"yes", b"no"])))
    return made


def decision(store: InteractionStore, step: tuple[object, ...], matching: RequestRules | None) -> object:
    match step:
        case (str(method), str(uri), bytes(body), (None | int() | str()) as call):
            live = Interaction(method, uri, [("Content-Type", "application/json")], Body(body))
            found: object = store.take(Subject(live, matching), call)
        case ("clock", _, (None | int() | str()) as call):
            found = store.clock(call, "")
        case (str(kind), str(address)):
            found = store.refusal(kind, address)
        case (str(address),):
            found = store.serves(address)
        case _:
            raise AssertionError(step)
    if isinstance(found, Interaction):
        assert found.body is not None
        return found.method, found.uri, found.time, found.call, found.status, found.body.whole(), found.elapsed
    return found


@given(st.lists(recorded(), min_size=1, max_size=9), STEPS, st.lists(CALLS, max_size=2, unique=True), st.booleans())
def test_reading_ahead_does_not_change_a_decision(
    items: list[Interaction], steps: list[tuple[object, ...]], timed: list[Call], loose: bool
) -> None:
    matching = RequestRules(["/query/x"]) if loose else None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session.http.yaml"
        writer = Writer(path)
        writer.head({"seed": "x"})
        for number, item in enumerate(items):
            item.elapsed = number
            writer.append(item)
        writer.finish({"redacted": []}, [None] * len(writer.unclaimed))
        with InteractionFile(path) as file:
            clocks = {(call, ""): [[1]] for call in timed}
            eager = InteractionStore(sorted(items, key=lambda item: item.time), clocks, {}, matching)
            lazy = InteractionStore(file, clocks, {}, matching)
            assert eager.never_played() is not None  # reads everything
            for step in steps:
                assert decision(lazy, step, matching) == decision(eager, step, matching)
            assert lazy.addresses == eager.addresses
            assert lazy.never_played() == eager.never_played()
