"""Recorded messages of the child, with the ids of the live session."""

from __future__ import annotations

from ext_recorder.cassette.events import Data
from ext_recorder.messages.open_calls import IdMap
from ext_recorder.messages.path_bindings import ReplayBindings
from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.replay.response_writer import ResponseWriter
from ext_sdk.core.wire.framing import FRAMINGS

RESPONSE = b'{"jsonrpc":"2.0", "id":1, "result":{"a":1.0}}'


def writer(protocol: str = "gevals", framing: str = "ndjson", **calls: str) -> tuple[ResponseWriter, IdMap]:
    ids = IdMap()
    for recorded, live in calls.items():
        ids.begin(recorded.removeprefix("id").encode(), live.encode())
    return ResponseWriter(DIALECTS[protocol], FRAMINGS[framing], ReplayBindings({}), ids), ids


def test_only_the_id_of_a_response_changes() -> None:
    responses, _ = writer(id1='"seven"')
    assert responses.out(Data("out", 0, RESPONSE)) == RESPONSE.replace(b'"id":1', b'"id":"seven"') + b"\n"
    assert responses.answers
    assert not responses.has_open_calls


def test_other_messages_are_written_unchanged() -> None:
    responses, ids = writer(id1="7")
    for payload in (b'{"jsonrpc":"2.0","id":1,"method":"ask"}', b'{"method":"news"}', b"not a message"):
        assert responses.out(Data("out", 0, payload)) == payload + b"\n"
        assert not responses.answers
    assert ids.is_open(b"1")


def test_exact_bytes_are_kept_but_for_the_messages_that_change() -> None:
    responses, _ = writer(framing="content-length", id1="77")
    first = b"Content-Length: 2\n\n{}"
    second = b"X: y\r\nContent-Length: 36\r\n\r\n" + b'{"jsonrpc":"2.0","id":1,"result":{}}'
    assert responses.out(Data("out", 0, first + second + b"junk", raw=True)) == (
        first + b"X: y\r\nContent-Length: 37\r\n\r\n" + b'{"jsonrpc":"2.0","id":77,"result":{}}' + b"junk"
    )


def test_a_stream_that_names_its_call_gets_the_live_id() -> None:
    responses, ids = writer("pi")
    ids.begin(b'"c1"', b'"live"')
    chunk = b'{"type":"tool_result","payload":{"call_id":"c1","chunk":{"is_last":false}}}'
    assert responses.out(Data("out", 0, chunk)) == chunk.replace(b"c1", b"live") + b"\n"
    assert responses.open_calls == 1
    responses.out(Data("out", 0, chunk.replace(b"false", b"true")))
    assert responses.open_calls == 0


def test_a_call_without_a_recorded_response_is_given_up_with_its_live_id() -> None:
    responses, _ = writer(id1="7")
    request = DIALECTS["gevals"].classify(b'{"jsonrpc":"2.0","id":1,"method":"execute"}')
    assert responses.owes_answer(request)
    given_up = responses.give_up(request)
    assert given_up is not None
    assert given_up.id == "7"
    assert responses.give_up(request) is None


def test_requests_of_the_child_are_noted_from_then_on() -> None:
    responses, _ = writer()
    asked: dict[bytes, tuple[str, str]] = {}
    responses.out(Data("out", 0, b'{"id":4,"method":"before"}'))
    responses.note_requests(asked)
    responses.out(Data("out", 0, b'{"id":5,"method":"ask"}'))
    assert asked == {b"5": ("ask", "")}


def test_lines_of_stderr_have_their_line_feed() -> None:
    responses, _ = writer()
    assert responses.err(Data("err", 0, b"warning")) == b"warning\n"
    assert responses.err(Data("err", 0, b"cut off", raw=True)) == b"cut off"
