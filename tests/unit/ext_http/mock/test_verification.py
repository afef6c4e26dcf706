"""What a mock was asked: counts, order, parts of requests; waiting until it was; what a failure shows."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ext_sdk
from ext_http.operations.mock import RESERVED, MockVerify
from ext_sdk.server.validation import validate
from tests.support.mocks import MockMaker

if TYPE_CHECKING:
    from tests.support.mocks import Started
    from tests.support.ports import NewPort

ORDERS = {"name": "order", "method": "POST", "path": "/orders/{id}", "answer": {"status": 201}}
STOCK = {"name": "stock", "method": "GET", "path": "/stock", "answer": {"json": {"lamp": 3}}}


@pytest.fixture
def shop(mocks: MockMaker, new_port: NewPort) -> Started:
    """A mock that was asked for its stock, for two orders, and for what it does not know."""
    mock = mocks(ORDERS, STOCK, port=new_port())
    mock.ask("/stock?kind=lamp")
    mock.ask("/orders/7", "POST", '{"qty": 2, "tags": ["a", "b"]}', {"Content-Type": "application/json"})
    mock.ask("/orders/8", "POST", '{"qty": "2"}', {"X-Trace": "abc"})
    mock.ask("/nothing", "DELETE")
    return mock


@pytest.mark.parametrize(
    "args",
    [
        {"calls": [{"route": "order"}]},
        {"calls": [{"route": "order", "exactly": 2}, {"route": "stock", "exactly": 1}]},
        {"calls": [{"route": "order", "atLeast": 2, "atMost": 3}]},
        {"calls": [{"method": ["PUT", "PATCH"], "never": True}]},
        {"calls": [{"method": "PUT", "exactly": 0}]},
        {"calls": [{"exactly": 4}]},
        {"calls": [{"path": "/orders/{any}", "exactly": 2}]},
        {"calls": [{"pathMatches": "^/orders/7$"}]},
        {"calls": [{"route": "stock", "query": {"kind": "lamp"}}]},
        {"calls": [{"headers": {"x-trace": {"startsWith": "a"}}, "exactly": 1}]},
        {"calls": [{"body": {"jsonContains": {"qty": 2}}, "exactly": 1}]},
        {"calls": [{"body": {"jsonContains": {"tags": ["b", "a"]}, "lists": "unordered"}, "exactly": 1}]},
        {"calls": [{"body": {"jsonSchema": {"properties": {"qty": {"type": "string"}}, "required": ["qty"]}}}]},
        {"calls": [{"route": "order", "body": {"json": [{"path": "$.qty", "type": "integer"}]}, "exactly": 1}]},
        {"calls": [{"route": "stock"}, {"route": "order", "exactly": 2}, {"method": "DELETE"}], "inOrder": True},
        {"calls": [{"route": "stock"}, {"path": "/orders/8"}], "inOrder": True},
        {"unmatched": 1},
        {"unmatched": {"lte": 1}},
    ],
    ids=json.dumps,
)
def test_calls_are_as_expected(shop: Started, args: dict[str, object]) -> None:
    result = shop.verify(**args)
    assert result.success, result
    assert "passed" in result.message
    assert (result.outputs["calls"], result.outputs["unmatched"]) == ("4", "1")


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (
            {"calls": [{"route": "order", "exactly": 1}]},
            "calls of route order: expected exactly 1, got 2:\n  #2 POST /orders/7 got 201 from order\n    body: ",
        ),
        (
            {"calls": [{"route": "order", "atLeast": 3}]},
            "expected at least 3, got 2; the nearest:\n  #1 GET /stock?kind=lamp got 200 from stock\n    method: ",
        ),
        (
            {"calls": [{"route": "stock", "never": True}]},
            "calls of route stock: expected none, got 1:\n  #1 GET /stock",
        ),
        ({"calls": [{"exactly": 5}]}, "calls of any kind: expected exactly 5, got 4"),
        ({"calls": [{"route": "stock", "atLeast": 2, "atMost": 3}]}, "expected between 2 and 3, got 1"),
        (
            {"calls": [{"method": "POST", "path": "/orders/{id}", "body": {"json": [{"path": "$.qty", "equals": 3}]}}]},
            'from order\n    body at $.qty: expected to equal 3, got "2" (string)\n    body: "{\\"qty\\": \\"2\\"}"',
        ),
        (
            {"calls": [{"route": "order"}, {"route": "stock"}], "inOrder": True},
            "calls: expected to come in this order, got no route stock after #2: #1 route stock, #2 route order, #3",
        ),
        (
            {"calls": [{"path": "/orders/7", "exactly": 1}, {"route": "order", "exactly": 2}], "inOrder": True},
            "got no route order after #3",
        ),
        (
            {"unmatched": 0},
            "to equal 0, got 1:\n  #4 DELETE /nothing got 404 from no route\n    nearest route: order\n    method: ",
        ),
    ],
)
def test_a_failure_shows_the_calls_that_are_nearest(shop: Started, args: dict[str, object], told: str) -> None:
    result = shop.verify(**args)
    assert not result.success
    assert told in result.error
    assert f"mock 'mock' received 4 requests, see {shop.outputs['journalFile']}" in result.error


def test_that_no_call_came_where_none_had_to_is_told(shop: Started) -> None:
    at_most = {"path": "/ordres/{id}", "atMost": 3}
    result = shop.verify(calls=[at_most, {"route": "stock", "atMost": 2}, {"method": "PUT", "never": True}])
    assert result.success
    told = "no call of any method /ordres/{id}: atMost permits that, atLeast: 1 would not"
    assert result.message == f"mock 'mock': 3 checks passed; {told}"


def test_a_mock_that_was_not_asked_at_all_is_told_so(mocks: MockMaker) -> None:
    result = mocks(STOCK).verify(calls=[{"route": "stock"}])
    assert "calls of route stock: expected at least 1, got 0: no requests were received" in result.error


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({}, "expected at least one of calls, unmatched and state, found none"),
        ({"calls": []}, "expected at least one of calls, unmatched and state, found none"),
        ({"calls": [{}]}, "this checks nothing; give at least one of route, method"),
        ({"calls": [{"route": "a", "exactly": 1, "atLeast": 1}]}, "exactly and never exclude other numbers"),
        ({"calls": [{"route": "a", "never": True, "exactly": 0}]}, "exactly and never exclude other numbers"),
        ({"calls": [{"route": "a", "atLeast": 3, "atMost": 2}]}, "expected atLeast not over atMost"),
        ({"calls": [{"route": "a", "atLeast": 0}]}, "atLeast"),
        ({"calls": [{"route": "a", "atMos": 0}]}, "did you mean 'atMost'?"),
        ({"calls": [{"route": "a"}], "inOrder": True}, "inOrder: expected two or more calls"),
        ({"calls": [{"body": {}}]}, "this checks nothing"),
    ],
)
def test_what_checks_nothing_is_refused(args: dict[str, object], told: str) -> None:
    with pytest.raises(ext_sdk.InvalidArgs) as refused:
        validate(MockVerify, args)
    assert told in str(refused.value)


def test_a_route_or_a_mock_that_is_not_there_is_named_with_the_nearest_one(shop: Started, mocks: MockMaker) -> None:
    with pytest.raises(ext_sdk.InvalidArgs, match="did you mean 'order'"):
        shop.verify(calls=[{"route": "ordr"}])
    shop.name = "mok"
    with pytest.raises(ext_sdk.OperationFailed) as failed:
        shop.verify(unmatched=0)
    assert "found 'mok'; did you mean 'mock'?" in failed.value.error
    with pytest.raises(ext_sdk.OperationFailed) as failed:
        shop.stop()
    assert "found 'mok'; did you mean 'mock'?" in failed.value.error
    mocks.close()
    with pytest.raises(ext_sdk.OperationFailed) as failed:
        shop.verify(unmatched=0)
    assert "none was started, or all were stopped" in failed.value.error


def test_a_call_that_comes_later_is_waited_for(mocks: MockMaker) -> None:
    mock = mocks(STOCK)
    later = threading.Thread(target=lambda: [mock.ask("/stock") for _ in range(3)])
    later.start()
    assert mock.verify(calls=[{"route": "stock", "exactly": 3}], timeout="20s").success
    later.join()


def test_a_call_too_many_ends_the_waiting_at_once(shop: Started) -> None:
    result = shop.verify(calls=[{"route": "stock", "exactly": 2}, {"route": "order", "atMost": 1}], timeout="1000h")
    assert "calls of route order: expected at most 1, got 2" in result.error


def test_the_end_of_the_extension_ends_the_waiting(mocks: MockMaker) -> None:
    mock = mocks(STOCK)
    results: list[ext_sdk.Result] = []
    waiting = threading.Thread(target=lambda: results.append(mock.verify(calls=[{"route": "stock"}], timeout="1000h")))
    waiting.start()
    mocks.context.deadline.stopped.set()
    waiting.join()
    assert not results[0].success


def test_a_wait_that_is_over_fails_with_what_came(shop: Started, mocks: MockMaker) -> None:
    mocks.context.deadline = ext_sdk.Deadline(0.05)
    result = shop.verify(calls=[{"route": "order", "exactly": 3}], timeout="50ms")
    assert "calls of route order: expected exactly 3, got 2; the nearest:" in result.error


def test_stopping_tells_how_often_each_route_was_asked(shop: Started) -> None:
    result = shop.stop()
    assert json.loads(result.outputs.pop("routes")) == {"order": 2, "stock": 1}
    assert (result.outputs["calls"], result.outputs["unmatched"]) == ("4", "1")
    with pytest.raises(OSError, match="refused"):
        shop.ask("/stock")


def journal(mock: Started) -> list[dict[str, object]]:
    return [json.loads(line) for line in Path(mock.outputs["journalFile"]).read_text().splitlines()]


def test_the_journal_is_a_private_file_with_a_line_for_each_call(shop: Started) -> None:
    lines = journal(shop)
    assert [(line["n"], line["method"], line["target"], line["route"], line["answer"]) for line in lines] == [
        (1, "GET", "/stock?kind=lamp", "stock", "200"),
        (2, "POST", "/orders/7", "order", "201"),
        (3, "POST", "/orders/8", "order", "201"),
        (4, "DELETE", "/nothing", None, "404"),
    ]
    assert lines[1]["body"] == '{"qty": 2, "tags": ["a", "b"]}'
    assert (lines[3]["nearest"], lines[3]["differences"]) == (
        "order",
        ["method: expected to be POST, got DELETE", 'path: expected to be "/orders/{id}", got "/nothing"'],
    )
    assert Path(shop.outputs["journalFile"]).stat().st_mode & 0o777 == 0o600


def test_what_was_no_request_is_in_the_journal_and_in_failures_but_no_call(mocks: MockMaker) -> None:
    mock = mocks(STOCK)
    assert b" 400 " in mock.raw(b"NOT HTTP\r\n\r\n")
    assert "not HTTP/1.1: illegal request line" in str(journal(mock)[0]["problem"])
    assert mock.verify(unmatched=0).success
    assert "received bytes that were not valid requests: not HTTP/1.1" in mock.verify(calls=[{"route": "stock"}]).error


def test_a_call_that_its_route_did_not_take_is_shown_with_what_the_route_expects(mocks: MockMaker) -> None:
    token = {
        "name": "token",
        "method": "POST",
        "path": "/token",
        "headers": {"Authorization": "Basic cmlnaHQ6b25l"},
        "body": {"json": [{"path": "$.scope", "equals": "trips"}]},
        "answer": {},
    }
    mock = mocks({"name": "refused", "path": "/refused", "answer": {}}, token, {"path": "/{any}", "answer": {}})
    body = json.dumps({"scope": "all", "pad": "x " * 2000})
    mock.ask("/token", "POST", body, {"Authorization": "Basic d3Jvbmc6b25l", "Content-Type": "application/json"})
    mock.ask("/token/", "POST", body)
    error = mock.verify(calls=[{"route": "token"}], unmatched=0).error
    lines = error.splitlines()
    at = lines.index("  #1 POST /token got 200 from any method /{any}")
    assert lines[at + 1].startswith("    header Authorization: expected to be exactly ")
    assert lines[at + 2] == '    body at $.scope: expected to equal "trips", got "all" (string)'
    assert lines[at + 3].startswith("    body: ")
    assert max(map(len, lines)) < 400
    assert "d3Jvbmc6b25l" not in error
    assert "cmlnaHQ6b25l" not in error
    assert "\n    nearest route: refused\n    path: expected" in error


def test_a_call_that_an_earlier_route_took_is_shown_with_that_route(mocks: MockMaker) -> None:
    mock = mocks({"name": "all", "answer": {}}, STOCK)
    mock.ask("/stock")
    assert (
        "    route: expected to be stock, got all, which precedes it" in mock.verify(calls=[{"route": "stock"}]).error
    )


def test_an_answer_that_failed_is_told_by_a_verification_that_passes(mocks: MockMaker) -> None:
    mock = mocks({"name": "echo", "answer": {"text": "${request.query.q}"}})
    for _ in range(2):
        assert mock.ask("/").text == "Internal Server Error\n"
    result = mock.verify(calls=[{"route": "echo", "exactly": 2}])
    assert result.success
    reason = "the request has no value for ${request.query.q}; set a default with ${request.query.q|TEXT}"
    told = f"2 responses failed, first #1: {reason}"
    assert result.message == f"mock 'mock': 1 check passed; {told}"
    assert journal(mock)[0]["problem"] == told.partition(": ")[2]


def test_many_calls_are_cut_and_counted(mocks: MockMaker) -> None:
    mock = mocks(STOCK)
    for _ in range(8):
        mock.ask("/nothing?" + "q" * 5000)
    error = mock.verify(calls=[{"route": "stock"}], unmatched=0).error
    assert error.count("\n  and 3 more\n") == 2
    assert max(map(len, error.splitlines())) < 400


def test_no_secret_is_in_the_journal_or_in_a_failure(tmp_path: Path) -> None:
    known, bearer, password = "the-known-secret-1", "eyJhbGciOi.unknown.bearer", "hunter2-unknown-password"
    maker = MockMaker(tmp_path, {"token": known})
    mock = maker({"name": "a", "path": "/{x}", "answer": {}}, {"name": "b", "method": "PUT", "answer": {}})
    body = json.dumps({"password": password, "note": known, "pad": "x" * 9000})
    headers = {"Authorization": f"Bearer {bearer}", "X-Note": known, "Cookie": f"session={password}"}
    mock.ask(f"/{known}?api_key={password}", "POST", body, headers)
    mock.ask("/a/b/c", "POST", body, headers)
    result = mock.verify(
        calls=[
            {"route": "b", "headers": {"Authorization": "Bearer other-token-123456", "Cookie": "a=b"}},
            {"route": "a", "never": True},
            {"method": "POST", "body": {"jsonEquals": {"password": "x"}, "notContains": known}},
            {"pathMatches": "^/z$", "headers": {"X-Note": {"values": "any", "equals": "z"}}},
        ],
        unmatched=0,
    )
    assert not result.success
    text = result.error + result.message + Path(mock.outputs["journalFile"]).read_text()
    for secret in (known, bearer, password):
        assert secret not in text
    assert len(Path(mock.outputs["journalFile"]).read_text()) < 12_000
    assert mock.verify(calls=[{"headers": {"Authorization": f"Bearer {bearer}"}, "exactly": 2}]).success
    maker.close()


def test_what_an_agent_sent_can_be_captured(shop: Started) -> None:
    order = {
        "route": "order",
        "capture": {
            "quantity": {"json": "$.qty"},
            "first": {"json": "$.qty", "call": 1},
            "id": {"from": "path", "path": "id"},
            "target": {"from": "url", "regex": "[0-9]+"},
            "trace": {"from": "header", "header": "X-Trace"},
            "method": {"from": "method"},
            "none": {"from": "header", "header": "X-None", "default": "-"},
        },
    }
    stock = {"route": "stock", "capture": {"kind": {"from": "query", "query": "kind"}, "path": {"from": "path"}}}
    result = shop.verify(calls=[order, stock])
    assert result.success, result
    captured = {name: value for name, value in result.outputs.items() if name not in RESERVED}
    assert captured == {
        "quantity": "2",
        "first": "2",
        "id": "8",
        "target": "8",
        "trace": "abc",
        "method": "POST",
        "none": "-",
        "kind": "lamp",
        "path": "/stock",
    }


@pytest.mark.parametrize(
    ("capture", "problem"),
    [
        ({"call": 3}, "expected to be found, got 2 matching requests, where number 3 is needed"),
        ({"from": "header", "header": "X-No"}, "no header X-No, in:\n  #3 POST /orders/8"),
        ({"from": "path", "path": "name"}, "no path parameter name, in:\n  #3 POST"),
        ({"json": "$.none"}, "0 values at"),
        ({"regex": "user=(.*)"}, "matches 'user=(.*)', in:\n  #3 POST /orders/8 got 201 from order\n    body: "),
        ({"regex": "user=(.*)", "secret": True}, "matches 'user=(.*)' in #3"),
    ],
)
def test_what_can_not_be_captured_fails(shop: Started, capture: dict[str, object], problem: str) -> None:
    result = shop.verify(calls=[{"route": "order", "capture": {"a": capture}}])
    assert not result.success
    assert problem in result.error
    assert ("    body: " in result.error) == (", in:" in result.error)


def test_secrets_that_an_agent_sent_reach_later_steps_only(mocks: MockMaker) -> None:
    mock = mocks(ORDERS)
    mock.ask("/orders/7", "POST", '{"pin": "correct horse"}')
    capture = {"pin": {"json": "$.pin", "secret": True}}
    result = mock.verify(calls=[{"route": "order", "capture": capture}])
    assert result.secret_outputs == {"pin": "correct horse"}
    assert "pin" not in result.outputs
    mock.ask("/orders/8", "POST", "correct horse")
    journal = Path(result.outputs["journalFile"]).read_text()
    assert "correct horse" not in journal
    assert [json.loads(line)["n"] for line in journal.splitlines()] == [1, 2]


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ({"route": "order", "never": True, "capture": {"a": {}}}, "no request is expected"),
        ({"route": "order", "capture": {"a": {"from": "query"}}}, "require each other"),
        ({"route": "order", "capture": {"a": {"path": "id"}}}, "path requires `from: path`"),
        ({"route": "order", "capture": {"a": {"call": 0}}}, "expected 1 for the first request"),
        ({"route": "order", "capture": {"calls": {}}}, "another output has this name"),
    ],
)
def test_captures_that_make_no_sense_are_refused(shop: Started, call: dict[str, object], problem: str) -> None:
    with pytest.raises(ext_sdk.InvalidArgs, match=problem):
        shop.verify(calls=[call])


def test_a_check_may_go_on_in_the_next_step_unless_there_is_a_request_too_many(shop: Started) -> None:
    waiting: dict[str, object] = {"calls": [{"route": "order", "exactly": 3}], "unmatched": 1, "onTimeout": "ok"}
    first = shop.verify(**waiting, timeout="10ms")
    assert first.success
    assert first.outputs["done"] == "false"
    assert first.message.startswith("Not done yet: mock ")
    shop.ask("/nothing")
    failed = shop.verify(**waiting, timeout="1000h")
    assert not failed.success
    assert failed.outputs["done"] == "false"
    done = shop.verify(calls=[{"route": "order", "atMost": 5}], onTimeout="ok")
    assert (done.success, done.outputs["done"]) == (True, "true")
