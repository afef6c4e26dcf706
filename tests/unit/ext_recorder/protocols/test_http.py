"""HTTP as a dialect: requests, responses and what of them counts."""

from __future__ import annotations

import pytest

from ext_recorder.protocols.dialect import DIALECTS
from ext_sdk.core.wire.json_pointer import MISSING

HTTP = DIALECTS["http"]


@pytest.mark.parametrize(
    ("payload", "kind", "method", "body"),
    [
        (b'POST /mcp {"a":1}', "request", "POST /mcp", {"a": 1}),
        (b"GET / ", "request", "GET /", MISSING),
        (b"PUT /a plain text", "request", "PUT /a", "plain text"),
        (b"200 [1]", "response", "", [1]),
        (b"204", "response", "", MISSING),
        (b"data: 1", "other", "", MISSING),
        (b"get / x", "other", "", MISSING),
        (b"\xff", "other", "", MISSING),
    ],
)
def test_a_payload_is_a_request_a_response_or_a_part_of_a_body(
    payload: bytes, kind: str, method: str, body: object
) -> None:
    message = HTTP.classify(payload)
    assert (message.kind, message.method, message.at("/body")) == (kind, method, body)


def test_the_status_decides_whether_a_response_is_final_and_whether_it_is_a_failure() -> None:
    statuses = [HTTP.classify(payload) for payload in (b"100", b"200 {}", b"404 {}")]
    assert [HTTP.is_last(message) for message in statuses] == [False, True, True]
    assert [HTTP.is_failure(message) for message in statuses] == [False, False, True]
    assert statuses[2].at("/status") == 404


def test_what_differs_between_clients_of_mcp_is_not_part_of_a_body() -> None:
    payload = b'POST /mcp {"jsonrpc":"2.0","method":"initialize","params":{"_meta":1,"clientInfo":2,"other":3}}'
    assert HTTP.classify(payload).at("/body/params") == {"other": 3}
    payload = b'POST /mcp {"jsonrpc":"2.0","method":"a","params":{"_meta":1,"clientInfo":2}}'
    assert HTTP.classify(payload).at("/body/params") == {"clientInfo": 2}


def test_a_request_without_a_response_gets_an_error_that_no_server_sends() -> None:
    assert HTTP.refusal(HTTP.classify(b"GET / "), "why", {"n": 1}) == b'499 {"error":"why","n":1}'
