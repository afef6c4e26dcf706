"""Kinds of HTTP requests, and conversations with models in the forms of their APIs."""

from __future__ import annotations

import gzip
import json

import pytest

from ext_recorder.http.interaction import Body, Interaction
from ext_recorder.tools.endpoints import Endpoints, chat_of, outcome_of, parts_of, summary, text_of

JSON_TYPE = [("Content-Type", "application/json")]
SSE, LINES = "text/event-stream", "application/x-ndjson"


def asked(
    uri: str, request: object = None, response: object = None, kind: str = "application/json", *, method: str = "POST"
) -> Interaction:
    data = response if isinstance(response, bytes) else json.dumps(response).encode()
    body = Body(b"" if request is None else json.dumps(request).encode())
    return Interaction(method, uri, list(JSON_TYPE), body, 200, "OK", [("Content-Type", kind)], Body(data))


def events(*values: object) -> bytes:
    return (
        b"".join(b"event: x\ndata: " + json.dumps(value).encode() + b"\n\n" for value in values) + b"data: [DONE]\n\n"
    )


CALL = {"call": "run", "input": {"a": 2}}
ANTHROPIC = asked(
    "https://api.anthropic.com/v1/messages",
    {
        "model": "m",
        "system": [{"type": "text", "text": "Be brief"}],
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [{"type": "tool_use", "name": "ls", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "new"}]}]},
        ],
    },
    events(
        {
            "type": "message_start",
            "message": {"content": [], "usage": {"input_tokens": 10, "cache_read_input_tokens": 4}},
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lo"}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "name": "run", "input": {}}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a":'}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "2}"}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
    ),
    SSE,
)
CHAT = asked(
    "https://api.openai.com/v1/chat/completions",
    {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief"},
            {"role": "assistant", "tool_calls": [{"function": {"name": "ls", "arguments": "{}"}}]},
            {"role": "tool", "content": "new"},
        ],
    },
    events(
        {"choices": [{"delta": {"role": "assistant", "content": "Hel"}}]},
        {"choices": [{"delta": {"content": "lo"}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": "run", "arguments": '{"a"'}}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": ":2}"}}]}}]},
        {"choices": [{"delta": {}, "finish_reason": "tool_use"}]},
        {
            "choices": [],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}},
        },
    ),
    SSE,
)
RESPONSES = asked(
    "https://api.openai.com/v1/responses",
    {
        "model": "m",
        "instructions": "Be brief",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
            {"type": "function_call", "name": "ls", "arguments": "{}"},
            {"type": "function_call_output", "output": "new"},
        ],
    },
    events(
        {"type": "response.created", "response": {"output": []}},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "Hel"},
        {
            "type": "response.completed",
            "response": {
                "status": "tool_use",
                "output": [
                    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]},
                    {"type": "function_call", "name": "run", "arguments": '{"a":2}'},
                ],
                "usage": {"input_tokens": 10, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 4}},
            },
        },
    ),
    SSE,
)
GEMINI = asked(
    "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse",
    {
        "systemInstruction": {"role": "system", "parts": [{"text": "Be brief"}]},
        "contents": [
            {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": "new"}}]},
        ],
    },
    events(
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hel"}]}}]},
        {
            "candidates": [
                {
                    "content": {"parts": [{"text": "lo"}, {"functionCall": {"name": "run", "args": {"a": 2}}}]},
                    "finishReason": "tool_use",
                }
            ],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "cachedContentTokenCount": 4},
        },
    ),
    SSE,
)
OLLAMA = asked(
    "http://127.0.0.1:11434/api/chat",
    {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief"},
            {"role": "assistant", "content": ""},
            {"role": "tool", "content": "new"},
        ],
    },
    b'{"message":{"role":"assistant","content":"Hel"},"done":false}\n'
    b'{"message":{"role":"assistant","content":"lo","tool_calls":[{"function":{"name":"run","arguments":{"a":2}}}]}}\n'
    b'{"message":{"role":"assistant","content":""},"done":true,"done_reason":"tool_use","prompt_eval_count":10,'
    b'"eval_count":5}\n',
    LINES,
)
BEDROCK = asked(
    "https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/converse",
    {
        "system": [{"text": "Be brief"}],
        "messages": [
            {"role": "assistant", "content": [{"toolUse": {"name": "ls", "input": {}}}]},
            {"role": "user", "content": [{"toolResult": {"content": [{"text": "new"}]}}]},
        ],
    },
    {
        "output": {
            "message": {
                "role": "assistant",
                "content": [{"text": "Hello"}, {"toolUse": {"name": "run", "input": {"a": 2}}}],
            }
        },
        "stopReason": "tool_use",
        "usage": {"inputTokens": 10, "outputTokens": 5},
    },
)


@pytest.mark.parametrize(
    ("item", "cached"),
    [(ANTHROPIC, 4), (CHAT, 4), (RESPONSES, 4), (GEMINI, 4), (OLLAMA, None), (BEDROCK, None)],
    ids=["anthropic", "chat", "responses", "gemini", "ollama", "bedrock"],
)
def test_all_apis_give_the_same_turn(item: Interaction, cached: int | None) -> None:
    assert Endpoints().of(item).is_chat
    chat = chat_of(item)
    assert chat is not None
    assert (chat.model, chat.system, chat.stop) == ("m", "Be brief", "tool_use")
    assert [parts for _, parts in chat.messages] == [[{"result": "new"}]]
    assert chat.reply == [{"text": "Hello"}, CALL]
    # Anthropic counts cached tokens separately.
    assert (chat.input, chat.output, chat.cached) == (14 if item is ANTHROPIC else 10, 5, cached)
    assert (chat.asked, chat.answered) == ("new", "Hello · run(a: 2)")
    json.dumps(chat.as_json())


def test_an_error_is_the_problem_of_a_turn() -> None:
    item = asked(
        "https://a/v1/messages", {"messages": [{"role": "user", "content": "Hi"}]}, {"error": {"message": "busy"}}
    )
    item.status = 529
    chat = chat_of(item)
    assert chat is not None
    assert (chat.reply, chat.problem, chat.answered) == ([], "busy", "busy")


def test_a_stream_that_was_cut_gives_what_is_there() -> None:
    cut = asked("https://a/v1/messages", {"messages": []}, b"", SSE)
    assert ANTHROPIC.body is not None
    cut.body = Body(ANTHROPIC.body.whole()[:520])
    chat = chat_of(cut)
    assert chat is not None
    assert summary(chat.reply) == "Hello"[: len(summary(chat.reply))] != ""


def test_a_compressed_response_is_read() -> None:
    item = asked("https://a/v1/messages", {"messages": []}, {"content": [{"type": "text", "text": "Hello"}]})
    assert item.body is not None
    item.body = Body(gzip.compress(item.body.whole()))
    item.headers.append(("Content-Encoding", "gzip"))
    chat = chat_of(item)
    assert chat is not None
    assert chat.answered == "Hello"


@pytest.mark.parametrize(
    "body", ["", "x", "[1", "{}", '{"messages":7}', '{"messages":[7,{"role":{}}],"system":{"a":[[]]}}']
)
def test_other_bodies_do_not_fail(body: str) -> None:
    item = asked("https://a/v1/messages", None, b'data: {"delta":7}\n\ndata: {"choices":[7]}\n\ndata: {"type":{}}', SSE)
    item.request_body = Body(body.encode())
    chat = chat_of(item)
    assert (chat is None) == (body in {"", "x", "[1"})


def test_a_client_that_ends_a_watch_has_not_failed() -> None:
    item = asked("https://k/api/v1/pods?watch=1", method="GET")
    assert outcome_of(item) == ("200 OK", False)
    item.error, item.cut = {"type": "GaveUp"}, True
    assert outcome_of(item) == ("200 OK", False)
    item.cut = False
    assert outcome_of(item) == ("GaveUp", True)
    item.error, item.status = None, 0
    assert outcome_of(item) == ("no response", True)
    item.status, item.reason = 404, "Not Found"
    assert outcome_of(item) == ("404 Not Found", True)


K8S = "https://10.0.0.1:6443"


@pytest.mark.parametrize(
    ("method", "uri", "expected"),
    [
        ("GET", "/api/v1/namespaces/n/pods/p", ("cluster", "get pods", "n/p")),
        ("GET", "/api/v1/namespaces/n/pods/p/log?follow=true", ("cluster", "get pods/log", "n/p")),
        ("GET", "/api/v1/namespaces/n", ("cluster", "get namespaces", "n")),
        ("GET", "/apis/apps/v1/deployments?watch=1", ("cluster", "watch deployments", "")),
        ("GET", "/api/v1/pods?labelSelector=app%3Da", ("cluster", "list pods", "app=a")),
        ("POST", "/api/v1/namespaces/n/pods", ("cluster", "create pods", "n/made")),
        ("POST", "/api/v1/namespaces/n/pods/p/exec?command=ls", ("cluster", "connect pods/exec", "n/p")),
        ("DELETE", "/api/v1/namespaces/n/pods", ("cluster", "deletecollection pods", "n")),
        ("GET", "/version", ("cluster", "discover", "/version")),
        ("GET", "/metrics", ("service", "GET 10.0.0.1:6443", "/metrics")),
    ],
)
def test_requests_to_a_cluster_are_verbs_and_objects(method: str, uri: str, expected: tuple[str, str, str]) -> None:
    item = asked(K8S + uri, {"metadata": {"name": "made"}}, method=method)
    found = Endpoints([asked(f"{K8S}/api/v1/pods", method="GET"), item]).of(item)
    assert (found.role, found.method, found.subject) == expected


def test_a_server_without_objects_is_a_service() -> None:
    item = asked("http://127.0.0.1:8080/version?a=1", method="GET")
    assert Endpoints([item]).of(item)[:4] == ("service", "127.0.0.1:8080", "GET 127.0.0.1:8080", "/version?a=1")


def test_json_rpc_with_a_session_is_mcp() -> None:
    item = asked("http://127.0.0.1:9/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert Endpoints().of(item).role == "service"
    item.request_headers.append(("Mcp-Session-Id", "s"))
    assert Endpoints().of(item)[:3] == ("mcp", "127.0.0.1:9", "tools/list")


def test_a_summary_is_one_short_line() -> None:
    assert text_of({"b": [1, {"c": None}], "a": "x\n y"}) == 'b: [1,{"c":null}], a: x y'
    assert text_of([{"type": "text", "text": "one"}, {"type": "image", "data": "…"}]) == "one · [image]"
    assert len(text_of("word " * 1000)) == 200
    assert parts_of(None) == []
