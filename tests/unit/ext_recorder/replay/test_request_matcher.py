"""Live requests, and the recorded ones that they repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.events import Data, Mark
from ext_recorder.cassette.header import Header
from ext_recorder.replay.replay import Options, make_matcher_and_writer
from ext_recorder.replay.request_matcher import (
    LenientRequestMatcher,
    RecordedRequest,
    RequestMatcher,
    recorded_requests,
)
from ext_sdk.core.wire.framing import FRAMINGS

if TYPE_CHECKING:
    from ext_recorder.replay.response_writer import ResponseWriter

NDJSON = FRAMINGS["ndjson"]
CALL = b'{"jsonrpc":"2.0","id":1,"method":"execute","params":{"args":{"a":1}}}'


def session(protocol: str = "gevals", **bindings: str) -> tuple[RequestMatcher, ResponseWriter]:
    return make_matcher_and_writer("x.yaml", Header(protocol, "ndjson", bindings=bindings), Options(), {})


def test_the_messages_of_an_event_are_found_and_what_is_between_them() -> None:
    assert [item.payload for item in recorded_requests(Data("in", 0, CALL), 7, NDJSON)] == [CALL]
    raw = Data("in", 0, b"one\n" + b"two", raw=True)
    items = recorded_requests(raw, 7, NDJSON)
    assert [(item.payload, item.line, item.is_message) for item in items] == [(b"one", 7, True), (b"two", 7, True)]
    junk = recorded_requests(Data("in", 0, b"no header\r\n\r\n", raw=True), 7, FRAMINGS["content-length"])
    assert {item.is_message for item in junk} == {False}
    assert recorded_requests(Data("out", 0, CALL), 7, NDJSON) == []
    assert recorded_requests(Mark("eof", 0, "in"), 7, NDJSON) == []


@pytest.mark.parametrize(
    ("live", "matches"),
    [
        (CALL, True),
        (CALL.replace(b'"id":1', b'"id":"seven"'), True),
        (CALL.replace(b":", b": ").replace(b",", b", "), True),
        (CALL.replace(b'"a":1', b'"a":1.0'), True),
        (CALL.replace(b'"a":1', b'"a":2'), False),
        (CALL.replace(b"execute", b"initialize"), False),
        (b"[]", False),
    ],
)
def test_a_request_is_the_recorded_one_by_its_value(live: bytes, matches: bool) -> None:
    requests, responses = session()
    recorded = RecordedRequest(CALL, 7)
    assert requests.matches(recorded, live) is matches
    assert not responses.has_open_calls
    assert requests.accepts(recorded, live) is matches
    assert responses.owes_answer(recorded.message(requests.dialect)) is matches


def test_a_path_is_bound_by_the_first_request_that_has_it() -> None:
    requests, responses = session(workdir="/tmp/workdir")
    recorded = RecordedRequest(
        b'{"jsonrpc":"2.0","id":1,"method":"execute","params":{"context":{"workdir":"/tmp/workdir"}}}', 7
    )
    live = recorded.payload.replace(b"/tmp/workdir", b"/home/me/project")
    assert list(requests.unbound(live)) == [("workdir", "/home/me/project")]
    assert requests.matches(recorded, live)
    assert list(requests.unbound(live)) == [("workdir", "/home/me/project")]
    assert requests.accepts(recorded, live)
    assert list(requests.unbound(live)) == []
    assert requests.as_recorded(live).text.encode() == recorded.payload
    assert responses.out(Data("out", 0, b'{"jsonrpc":"2.0","id":1,"result":"/tmp/workdir/a"}')) == (
        b'{"jsonrpc":"2.0","id":1,"result":"/home/me/project/a"}\n'
    )


def test_secrets_match_placeholders_that_correspond() -> None:
    requests, _ = session()
    recorded = RecordedRequest(CALL.replace(b'"a":1', b'"password":"[redacted:key.password#3]"'), 7)
    assert requests.accepts(recorded, CALL.replace(b'"a":1', b'"password":"hunter2x"'))


def test_a_request_whose_id_is_optional_gets_a_response_of_its_own() -> None:
    requests, responses = session("gassist")
    assert isinstance(requests, LenientRequestMatcher)
    replies: list[bytes] = []
    requests.reply = replies.append
    recorded = RecordedRequest(b'{"jsonrpc":"2.0","method":"shutdown"}', 7)
    assert requests.accepts(recorded, b'{"jsonrpc":"2.0","id":5,"method":"shutdown"}')
    assert replies == [b'{"jsonrpc":"2.0","id":5,"result":{}}']
    assert not responses.has_open_calls
