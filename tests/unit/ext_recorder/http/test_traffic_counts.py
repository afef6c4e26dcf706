"""Counts of requests, of model calls and of their tokens."""

from __future__ import annotations

import gzip
import json

import pytest

from ext_recorder.http.interaction import Body, Interaction
from ext_recorder.http.traffic_counts import SHOWN, Traffic, Traffics, endpoint_lines, endpoint_of, traffic_of


def answered(path: str, body: bytes, *headers: tuple[str, str], method: str = "POST") -> Interaction:
    return Interaction(method, f"https://api.example.com{path}", body=Body(body), headers=list(headers))


def events(*values: object) -> bytes:
    return b"".join(b"event: x\ndata: " + json.dumps(value).encode() + b"\n\n" for value in values) + b"data: [DONE]\n"


@pytest.mark.parametrize(
    ("path", "body", "tokens"),
    [
        ("/v1/messages", json.dumps({"usage": {"input_tokens": 3, "output_tokens": 2}}, indent=1).encode(), (3, 2)),
        (
            "/v1/messages?beta=true",
            events(
                {"message": {"usage": {"input_tokens": 3, "cache_read_input_tokens": 40, "output_tokens": 1}}},
                {"usage": {"output_tokens": 25}},
            ),
            (43, 25),
        ),
        (
            "/openai/v1/chat/completions",
            events({"usage": None}, {"usage": {"prompt_tokens": 7, "completion_tokens": 9}}),
            (7, 9),
        ),
        ("/v1/responses", events({"response": {"usage": {"input_tokens": 5, "output_tokens": 6}}}), (5, 6)),
        (
            "/v1beta/models/gemini:streamGenerateContent?alt=sse",
            events(
                {"usageMetadata": {"promptTokenCount": 4, "candidatesTokenCount": 1}},
                {"usageMetadata": {"promptTokenCount": 4, "candidatesTokenCount": 8, "thoughtsTokenCount": 2}},
            ),
            (4, 10),
        ),
        ("/v1/models/g:generateContent", b'[{"usageMetadata": {"promptTokenCount": 4}}]', (4, 0)),
        ("/api/chat", b'{"done":false}\n{"done":true,"prompt_eval_count":11,"eval_count":12}\n', (11, 12)),
        ("/model/anthropic.claude/converse", b'{"usage": {"inputTokens": 1, "outputTokens": 2}}', (1, 2)),
        ("/model/anthropic.claude/invoke-with-response-stream", b"\0\0binary", (0, 0)),
        ("/v1/messages", b"<html>busy</html>", (0, 0)),
    ],
)  # fmt: skip
def test_calls_of_models_are_counted_with_the_tokens_that_their_responses_report(
    path: str, body: bytes, tokens: tuple[int, int]
) -> None:
    assert traffic_of(answered(path, body)) == Traffic(1, 1, *tokens)


def test_compressed_responses_are_read() -> None:
    body = gzip.compress(b'{"usage": {"prompt_tokens": 7, "completion_tokens": 9}}')
    packed = answered("/v1/chat/completions", body, ("Content-Encoding", "gzip"))
    assert traffic_of(packed) == Traffic(1, 1, 7, 9)
    assert traffic_of(answered("/v1/chat/completions", body[1:], ("Content-Encoding", "gzip"))) == Traffic(1, 1)


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/messages"), ("POST", "/v1/messages/1"), ("POST", "/")])
def test_other_requests_are_counted_alone(method: str, path: str) -> None:
    assert traffic_of(answered(path, b'{"usage": {"input_tokens": 3}}', method=method)) == Traffic(1)


@pytest.mark.parametrize(
    ("uri", "endpoint"),
    [
        ("https://API.example.com/v1?x=1", "https://api.example.com"),
        ("https://user@api.example.com:443", "https://api.example.com"),
        ("http://127.0.0.1:8080?x", "http://127.0.0.1:8080"),
        ("http://[::1]:80/", "http://[::1]"),
        ("wss://api.example.com:443/", "wss://api.example.com:443"),
    ],
)
def test_an_endpoint_has_no_port_of_its_scheme(uri: str, endpoint: str) -> None:
    assert endpoint_of(Interaction("GET", uri)) == endpoint


def test_the_text_of_a_count_names_what_a_replay_does_not_pay() -> None:
    total = sum([Traffic(2, 1, 1200, 30), Traffic(5), Traffic(1, 1, 1, 1)], Traffic())
    assert total == Traffic(8, 2, 1201, 31)
    assert total.model == "2 model calls with 1,201 + 31 tokens (input + output)"
    assert Traffic(1, 1).model == "1 model call"
    assert Traffic(3).model == ""


def test_endpoints_are_listed_by_their_number_of_requests() -> None:
    traffic = {
        "http://a": Traffics(Traffic(1)),
        "http://c": Traffics(Traffic(1), Traffic(), Traffic(1)),
        "https://b": Traffics(Traffic(1200, 2, 30, 4), Traffic(600, 1, 15, 2), Traffic(200)),
    }
    plain = {endpoint: Traffics(counts.recorded) for endpoint, counts in traffic.items()}
    assert endpoint_lines(plain, replayed=False) == [
        "https://b: 1,200 requests, 2 model calls with 30 + 4 tokens (input + output)",
        "http://a: 1 request",
        "http://c: 1 request",
    ]
    assert endpoint_lines(traffic, replayed=True) == [
        (
            "https://b: 600 of 1,000 requests, 1 model call with 15 + 2 tokens (input + output), "
            "200 requests by replayed children"
        ),
        "http://a: 0 of 1 request",
        "http://c: 1 request by replayed children",
    ]


def test_a_long_list_of_endpoints_is_cut() -> None:
    traffic = {f"http://{number}": Traffics(Traffic(1)) for number in range(SHOWN + 3)}
    assert endpoint_lines(traffic, replayed=False)[SHOWN:] == ["and 3 more endpoints"]
    del traffic["http://0"], traffic["http://1"], traffic["http://2"]
    assert len(endpoint_lines(traffic, replayed=False)) == SHOWN
