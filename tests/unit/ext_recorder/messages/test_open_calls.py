"""Open calls: responses and their requests, recorded and live ids."""

from __future__ import annotations

from ext_recorder.cassette.events import Data, Stream
from ext_recorder.messages.open_calls import CallTracker, IdMap, OpenCalls
from ext_recorder.protocols.dialect import DIALECTS


def test_an_id_is_that_of_the_open_call_and_afterwards_that_of_the_latest_one() -> None:
    calls = IdMap()
    assert calls.live(b"1") == b"1"
    calls.begin(b"1", b"7")
    assert (calls.is_open(b"1"), calls.live(b"1"), len(calls)) == (True, b"7", 1)
    assert calls.end(b"1") == b"7"
    assert (bool(calls), calls.live(b"1"), calls.end(b"1")) == (False, b"7", None)


def test_calls_with_the_same_id_are_answered_in_their_order() -> None:
    calls = IdMap()
    for live in (b"7", b"8", b"9"):
        calls.begin(b"1", live)
    assert len(calls) == 3
    assert [calls.end(b"1") for _ in range(4)] == [b"7", b"8", b"9", None]


def test_a_response_without_an_id_ends_the_oldest_call() -> None:
    calls = IdMap()
    calls.end_oldest()
    calls.begin(b"2", b"8")
    calls.begin(b"1", b"7")
    calls.end_oldest()
    assert (calls.is_open(b"2"), calls.is_open(b"1")) == (False, True)


def test_only_the_latest_answered_calls_are_kept() -> None:
    calls = IdMap()
    calls.ended([(b"%d" % number, b"live") for number in range(1_000)])
    assert (calls.live(b"0"), calls.live(b"999")) == (b"0", b"live")
    for number in range(1_000, 2_000):
        calls.begin(b"%d" % number, b"live")
        calls.end(b"%d" % number)
    assert (calls.live(b"999"), calls.live(b"1999")) == (b"999", b"live")


def test_the_values_that_a_response_repeats_are_given_once() -> None:
    calls = IdMap()
    calls.begin(b"1", b"7")
    calls.expect(b"1", {"/result/name": (b'"a"', b'"b"')})
    assert calls.echoes(None) == {}
    assert calls.echoes(b"1") == {"/result/name": (b'"a"', b'"b"')}
    assert calls.echoes(b"1") == {}


GEVALS, GASSIST, PI = DIALECTS["gevals"], DIALECTS["gassist"], DIALECTS["pi"]


def request(calls: CallTracker[str], call: str, text: str, kind: Stream = "in", conn: int = 1) -> None:
    event = Data(kind, 0.0, text.encode(), conn=conn)
    calls.request(event, calls.dialect.classify(event.payload), call)


def response(calls: CallTracker[str], text: str, kind: Stream = "out", conn: int = 1) -> str | None:
    event = Data(kind, 0.0, text.encode(), conn=conn)
    return calls.response(event, calls.dialect.classify(event.payload))


def test_a_response_belongs_to_the_oldest_request_with_its_id() -> None:
    calls: CallTracker[str] = CallTracker(GEVALS)
    request(calls, "first", '{"id":1,"method":"m"}')
    request(calls, "second", '{"id":1.0,"method":"m"}')
    request(calls, "other", '{"id":"1","method":"m"}')
    assert [response(calls, '{"id":1,"result":{}}') for _ in range(3)] == ["first", "second", None]
    assert list(calls.values()) == [["other"]]


def test_calls_of_each_side_and_connection_are_apart() -> None:
    calls: CallTracker[str] = CallTracker(GEVALS)
    request(calls, "host", '{"id":1,"method":"m"}')
    request(calls, "child", '{"id":1,"method":"m"}', "out")
    request(calls, "second client", '{"id":1,"method":"m"}', conn=2)
    assert response(calls, '{"id":1,"result":{}}', "in") == "child"
    assert response(calls, '{"id":1,"result":{}}', conn=2) == "second client"
    assert response(calls, '{"id":1,"result":{}}') == "host"
    assert not calls


def test_notifications_and_requests_without_an_id_begin_no_call() -> None:
    calls: CallTracker[str] = CallTracker(GEVALS)
    request(calls, "notification", '{"method":"m"}')
    request(calls, "no message", "[]")
    assert not calls
    assert response(calls, '{"result":{}}') is None


def test_only_the_last_response_ends_a_call() -> None:
    calls: CallTracker[str] = CallTracker(PI)
    request(calls, "tool", '{"type":"tool_call","payload":{"call_id":"c"}}')
    part = '{"type":"tool_result","payload":{"call_id":"c","chunk":{"is_last":false}}}'
    last = part.replace("false", "true")
    assert [response(calls, text) for text in (part, part, last, last)] == ["tool", "tool", "tool", None]


def test_a_response_with_a_method_but_no_id_ends_the_oldest_call_of_its_connection() -> None:
    calls: CallTracker[str] = CallTracker(GASSIST)
    request(calls, "elsewhere", '{"jsonrpc":"2.0","id":1,"method":"execute","params":{}}', conn=2)
    request(calls, "oldest", '{"jsonrpc":"2.0","id":2,"method":"execute","params":{}}')
    request(calls, "latest", '{"jsonrpc":"2.0","id":3,"method":"execute","params":{}}')
    assert response(calls, '{"jsonrpc":"2.0","method":"complete","params":{}}') == "oldest"
    assert list(calls.values()) == [["elsewhere"], ["latest"]]


def test_open_calls_are_kept_by_any_key() -> None:
    calls: OpenCalls[bytes, int] = OpenCalls()
    calls.begin(b"a", 1)
    calls.begin(b"a", 2)
    assert (calls.first(b"a"), calls.end(b"a"), calls.first(b"a"), calls.end(b"b")) == (1, 1, 2, None)
