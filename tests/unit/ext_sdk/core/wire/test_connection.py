"""A connection: calls in both directions, known by direction and id, and whatever else comes in between."""

from __future__ import annotations

import pytest

from ext_sdk.core.wire.connection import Answer, Connection, Malformed
from ext_sdk.core.wire.errors import CallError, Id, MessageError, RpcError
from ext_sdk.core.wire.frames import Junk
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.jsonrpc import Notification, Request, encode

EVERY_TYPE_OF_ID: list[Id] = [0, 1, -1, 10**30, 1.0, 1.5, "", "1", "\ud800", "a" * 5000, None]


def new(framing: str = "ndjson", *, limit: int | None = None, batches: bool = False) -> Connection:
    return Connection(FRAMINGS[framing], limit=limit, batches=batches)


def received(connection: Connection, data: bytes | str) -> list[object]:
    connection.receive_data(data.encode() if isinstance(data, str) else data)
    events: list[object] = []
    while event := connection.next_event():
        events.append(event)
    return events


def told(event: object) -> tuple[str, object, str]:
    """What is in a Malformed: the class of its error, the id to answer with, the text."""
    assert isinstance(event, Malformed)
    return type(event.error).__name__, getattr(event.error, "id", None), str(event.error)


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_call_goes_from_one_side_to_the_other_and_its_answer_back(framing: str) -> None:
    host, child = new(framing), new(framing)
    id, call = host.request("execute", {"a": 1})
    assert received(child, call) == [Request(id, "execute", {"a": 1})]
    assert child.open_calls("received") == host.open_calls("sent") == [Request(id, "execute", {"a": 1})]
    (answer,) = received(host, child.response(id, {"b": 2}))
    assert isinstance(answer, Answer)
    assert (answer.request, answer.result, answer.error) == (Request(id, "execute", {"a": 1}), {"b": 2}, None)
    assert child.open_calls("received") == host.open_calls("sent") == []


def test_an_error_is_an_answer_too() -> None:
    host, child = new(), new()
    id, call = host.request("m")
    received(child, call)
    (answer,) = received(host, child.error(id, RpcError(-32601, "no such method", [1])))
    assert isinstance(answer, Answer)
    assert (answer.request, answer.result, answer.error) == (
        Request(id, "m"),
        None,
        RpcError(-32601, "no such method", [1]),
    )


def test_a_notification_opens_no_call() -> None:
    host, child = new(), new()
    assert received(child, host.notification("log", {"level": "info"})) == [Notification("log", {"level": "info"})]
    assert host.open_calls("sent") == child.open_calls("received") == []


def test_both_sides_may_use_the_same_id_at_the_same_time() -> None:
    host, child = new(), new()
    host_id, call = host.request("execute")
    child_id, question = child.request("ask")
    assert host_id == child_id == 1
    assert received(child, call) == [Request(1, "execute")]
    assert received(host, question) == [Request(1, "ask")]
    (at_child,) = received(child, host.response(1, "yes"))
    (at_host,) = received(host, child.response(1, "done"))
    assert isinstance(at_child, Answer)
    assert isinstance(at_host, Answer)
    assert (at_child.request.method, at_child.result) == ("ask", "yes")
    assert (at_host.request.method, at_host.result) == ("execute", "done")


def test_answers_may_come_in_any_order() -> None:
    host, child = new(), new()
    calls = [host.request(name) for name in ("a", "b", "c")]
    for _, line in calls:
        received(child, line)
    for id, _ in (calls[1], calls[2], calls[0]):
        (answer,) = received(host, child.response(id, id))
        assert isinstance(answer, Answer)
        assert answer.result == answer.request.id == id


def test_ids_of_every_type_are_calls_of_their_own() -> None:
    child = new()
    requests = [Request(id, "m") for id in EVERY_TYPE_OF_ID]
    for request in requests:
        assert received(child, encode(request) + b"\n") == [request]
    assert child.open_calls("received") == requests
    for id in EVERY_TYPE_OF_ID:
        child.response(id, None)
    assert child.open_calls("received") == []


def test_an_answer_with_an_id_of_another_type_answers_nothing() -> None:
    host = new()
    host.request("m", id=1)
    for spelled in ("1.0", '"1"', "null", "2"):
        (event,) = received(host, f'{{"jsonrpc":"2.0","id":{spelled},"result":0}}\n')
        kind, _, text = told(event)
        assert kind == "CallError"
        assert "for which no call is open" in text
    assert host.open_calls("sent") == [Request(1, "m")]


def test_a_second_answer_answers_nothing() -> None:
    host = new()
    host.request("m", id=1)
    first, second = received(host, '{"jsonrpc":"2.0","id":1,"result":0}\n' * 2)
    assert isinstance(first, Answer)
    assert told(second)[0] == "CallError"


def test_an_error_that_names_no_call_is_handed_over_as_such() -> None:
    (event,) = received(new(), '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not JSON"}}\n')
    assert told(event)[0] == "CallError"


def test_a_request_with_an_id_in_use_is_told_with_no_id() -> None:
    child = new()
    first, second = received(child, '{"jsonrpc":"2.0","id":1,"method":"a"}\n{"jsonrpc":"2.0","id":1,"method":"b"}\n')
    assert first == Request(1, "a")
    assert told(second) == ("MessageError", None, "id 1 is still in use by a call of 'a'")
    child.response(1, None)
    assert received(child, '{"jsonrpc":"2.0","id":1,"method":"c"}\n') == [Request(1, "c")]


def test_an_id_of_ours_that_is_in_use_is_refused() -> None:
    host = new()
    host.request("a", id="x")
    with pytest.raises(CallError, match="'x' is still in use"):
        host.request("b", id="x")


def test_ids_are_counted_past_those_that_were_chosen() -> None:
    host = new()
    host.request("a", id=1)
    host.request("a", id=3)
    assert [host.request("b")[0] for _ in range(3)] == [2, 4, 5]


def test_what_was_not_asked_cannot_be_answered() -> None:
    child = new()
    with pytest.raises(CallError, match="id 1"):
        child.response(1, {})
    with pytest.raises(CallError, match="id 1"):
        child.error(1, RpcError(-32603, "m"))


def test_an_error_without_id_tells_of_what_could_not_be_read() -> None:
    assert new().error(None, RpcError(-32700, "m")) == (
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}\n'
    )


def test_an_error_without_id_answers_a_request_with_id_null() -> None:
    child = new()
    received(child, '{"jsonrpc":"2.0","id":null,"method":"m"}\n')
    child.error(None, RpcError(-32603, "m"))
    assert child.open_calls("received") == []


def test_settled_calls_are_answered() -> None:
    child = new()
    received(child, '{"jsonrpc":"2.0","id":1,"method":"m"}\n')
    child.settle(1)
    child.settle("never asked")
    assert child.open_calls("received") == []
    with pytest.raises(CallError):
        child.response(1, None)


def test_a_message_that_cannot_be_written_changes_nothing() -> None:
    child = new()
    received(child, '{"jsonrpc":"2.0","id":1,"method":"m"}\n')
    with pytest.raises(TypeError):
        child.response(1, object())
    with pytest.raises(ValueError, match="not JSON compliant"):
        child.error(1, RpcError(-1, "m", float("nan")))
    with pytest.raises(TypeError):
        child.request("m", object())
    assert child.open_calls("received") == [Request(1, "m")]
    assert child.open_calls("sent") == []
    assert child.response(1, {}) == b'{"jsonrpc":"2.0","id":1,"result":{}}\n'


def test_what_is_no_message_is_handed_over_and_the_session_goes_on() -> None:
    connection = new()
    events = received(connection, b'\n{"jsonrpc":"2.0","id":5}\nhello\n\xff\n{"jsonrpc":"2.0","id":1,"method":"m"}\n')
    blank, no_message, no_json, no_text, request = events
    assert blank == Junk(b"\n", "blank line")
    assert told(no_message)[:2] == ("MessageError", 5)
    assert isinstance(no_json, Malformed)
    assert no_json.payload == b"hello"
    assert isinstance(no_text, Malformed)
    assert isinstance(no_text.error, MessageError)
    assert no_text.error.code == -32700
    assert request == Request(1, "m")


def test_a_payload_over_the_limit_is_junk() -> None:
    connection = new(limit=45)
    junk, request = received(
        connection, '{"jsonrpc":"2.0","id":12345,"method":"longer"}\n{"jsonrpc":"2.0","id":1,"method":"m"}\n'
    )
    assert junk == Junk(b'{"jsonrpc":"2.0","id":12345,"method":"longer"}\n', "part of a line over 45 bytes")
    assert request == Request(1, "m")


def test_a_batch_is_refused_or_handed_over_piece_by_piece() -> None:
    batch = '[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"b"},8]\n'
    (refused,) = received(new(), batch)
    assert told(refused)[0] == "MessageError"
    connection = new(batches=True)
    request, notification, malformed = received(connection, batch)
    assert (request, notification) == (Request(1, "a"), Notification("b"))
    assert told(malformed)[0] == "MessageError"
    assert connection.open_calls("received") == [Request(1, "a")]


def test_what_is_left_at_the_end_is_junk() -> None:
    connection = new()
    assert received(connection, '{"jsonrpc":"2.0","id":1,"meth') == []
    connection.receive_eof()
    assert connection.next_event() == Junk(b'{"jsonrpc":"2.0","id":1,"meth', "unterminated line")
    assert connection.next_event() is None


def test_what_came_in_is_readable_in_a_log() -> None:
    host = new()
    _, call = host.request("m", id=1)
    (event,) = received(new(), "7\n")
    assert repr(event).startswith("Malformed(b'7', MessageError(")
    (answer,) = received(host, '{"jsonrpc":"2.0","id":1,"result":[]}\n')
    assert repr(answer) == "Answer(Request(id=1, method='m', params=None), [], None)"
    assert call
