"""Known APIs: which parts of their requests do not count, and which do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ext_recorder.http import known_apis as module
from ext_recorder.http.interaction import Body, Interaction
from ext_recorder.http.interaction_store import InteractionStore
from ext_recorder.http.known_apis import FILE, known_apis
from ext_recorder.http.request_matching import RequestRules, Subject
from ext_sdk.core.wire.json_pointer import parts

ENTRIES: list[dict[str, Any]] = yaml.safe_load(Path(module.__file__).with_name(FILE).read_text("utf-8"))
KEYS = {"api", "about", "path", "host", "header", "query", "has", "volatile", "repeats", "pieces"}


def request(
    path: str, body: object = None, headers: dict[str, str] | None = None, *, method: str = "POST", server: str = "h"
) -> Interaction:
    data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
    kind = {"content-type": "application/json"} | (headers or {})
    return Interaction(method, f"http://{server}{path}", list(kind.items()), Body(data))


def same(one: Interaction, other: Interaction, **rules: Any) -> bool:
    matching = RequestRules(**rules)
    return Subject(one, matching).key() == Subject(other, matching).key()


def test_the_file_is_of_its_form() -> None:
    for entry in ENTRIES:
        assert set(entry) <= KEYS, entry["api"]
        assert {"api", "about", "volatile"} <= set(entry)
        for volatile in entry["volatile"]:
            assert set(volatile) <= {"at", "text", "unless", "path", "why"}
            assert volatile["why"]
            for pointer in volatile["at"]:
                assert parts(pointer)[0] in {"headers", "query", "path", "body"}, pointer


CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
CODEX = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
CALL, RESULT = {"name": "ls", "args": {"dir": "."}}, {"name": "ls", "response": {"output": "a"}}
CLAUDE = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
BILLING = "x-anthropic-billing-header: cc_version=2.1.{0}; cc_entrypoint=cli; cch=0{0};"
LEASE = {"kind": "Lease", "metadata": {"name": "a"}, "spec": {"leaseDurationSeconds": 15}}
EVENT = {"kind": "Event", "metadata": {"namespace": "x"}, "reason": "Started"}
HELM = {"kind": "Secret", "type": "helm.sh/release.v1", "metadata": {"name": "r", "labels": {"status": "deployed"}}}
AWS = {"amz-sdk-invocation-id": "a"}
JSONRPC = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
# Requests of two runs, of which only `{}` differs: path, body, headers.
VOLATILE: dict[str, tuple[str, object, dict[str, str]]] = {
    "anthropic, user": ("/v1/messages?beta=true", CLAUDE | {"metadata": {"user_id": "user_{}"}}, {}),
    "anthropic, base url": ("/team/proxy/v1/messages/count_tokens", CLAUDE | {"metadata": {"user_id": "{}"}}, {}),
    "anthropic, version": ("/v1/messages", CLAUDE | {"system": [{"type": "text", "text": BILLING}]}, {}),
    "anthropic, system as a text": ("/v1/messages", CLAUDE | {"system": BILLING + "\nBe brief."}, {}),
    "bedrock": (
        "/model/anthropic.claude/invoke",
        {"anthropic_version": "v", "messages": [], "metadata": {"user_id": "{}"}},
        {},
    ),
    "openai, user": ("/v1/chat/completions", CHAT | {"user": "{}", "safety_identifier": "{}"}, {}),
    "openai, cache and labels": (
        "/v1/responses",
        {"model": "m", "prompt_cache_key": "{}", "metadata": {"r": "{}"}},
        {},
    ),
    "openai, items of codex": (
        "/v1/responses",
        {"model": "m", "input": [{"id": "msg_{}", **CODEX}], "client_metadata": {"turn_id": "{}"}},
        {},
    ),
    "azure": ("/openai/deployments/d/chat/completions?api-version=1", {"messages": [], "user": "{}"}, {}),
    "gemini, calls": (
        "/v1beta/models/m:streamGenerateContent?alt=sse",
        {
            "contents": [
                {"role": "model", "parts": [{"functionCall": {"id": "ls_{}", **CALL}}]},
                {"role": "user", "parts": [{"functionResponse": {"id": "ls_{}", **RESULT}}]},
            ]
        },
        {},
    ),
    "gemini, code assist": (
        "/v1internal:generateContent",
        {"model": "m", "user_prompt_id": "{}", "request": {"session_id": "{}"}},
        {},
    ),
    "aws, json": ("/async-invoke", {"modelId": "m", "clientRequestToken": "{}"}, AWS),
    "aws, form": (
        "/",
        b"Action=RunInstances&ClientToken={}&ImageId=i",
        AWS | {"content-type": "application/x-www-form-urlencoded"},
    ),
    "presigned": ("/key?X-Amz-Signature={}&X-Amz-Date=2026{}&X-Amz-Credential=a%2F{}&partNumber=1", None, {}),
    "kubernetes, watch": ("/k/api/v1/namespaces/a/pods?watch=true&resourceVersion=7&timeoutSeconds=3{}", None, {}),
    "kubernetes, restart": (
        "/apis/apps/v1/namespaces/a/deployments/d",
        {"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "{}"}}}}},
        {},
    ),
    "kubernetes, lease": (
        "/apis/coordination.k8s.io/v1/namespaces/a/leases/b",
        LEASE | {"spec": {"leaseDurationSeconds": 15, "renewTime": "{}", "holderIdentity": "h_{}"}},
        {},
    ),
    "kubernetes, event": (
        "/api/v1/namespaces/a/events",
        EVENT | {"metadata": {"namespace": "x", "name": "pod.18{}"}, "lastTimestamp": "{}"},
        {},
    ),
    "kubernetes, repeated event": ("/api/v1/namespaces/a/events/pod.187a0000000000{}", {"count": 2}, {}),
    "helm": (
        "/api/v1/namespaces/a/secrets",
        HELM | {"data": {"release": "H4{}"}, "metadata": {"name": "r", "labels": {"modifiedAt": "17{}"}}},
        {},
    ),
    "mcp": ("/mcp", JSONRPC | {"params": {"name": "t", "_meta": {"progressToken": "{}"}}}, {}),
    "mcp, start": ("/mcp", JSONRPC | {"method": "initialize", "params": {"clientInfo": {"version": "{}"}}}, {}),
    "telemetry": ("/v1/traces", {"resourceSpans": [{"traceId": "{}"}]}, {}),
    "telemetry in protocol buffers": ("/v1/metrics", b"\xff\x00{}", {"content-type": "application/x-protobuf"}),
}


def made(name: str, number: str) -> Interaction:
    path, body, headers = VOLATILE[name]
    if isinstance(body, bytes):
        body = body.replace(b"{}", number.encode())
    elif body is not None:
        text = json.dumps(body).replace(json.dumps(BILLING)[1:-1], BILLING.format(number))
        body = json.loads(text.replace("{}", number))
    return request(path.replace("{}", number), body, headers)


@pytest.mark.parametrize("name", VOLATILE)
def test_what_a_client_generates_does_not_count_unless_all_is_compared(name: str) -> None:
    one, other = made(name, "10"), made(name, "27")
    assert same(one, other)
    assert same(one, other, ignore=["/query/other"])  # with rules of the user
    assert not same(one, other, exact=True)
    assert not same(one, other, exact=True, ignore=["/query/other"])


DIFFERENT: dict[str, tuple[Interaction, Interaction]] = {
    "a prompt": (request("/v1/messages", CLAUDE), request("/v1/messages", CLAUDE | {"system": "Be brief."})),
    "an id that the server gave": (
        request("/v1/chat/completions", {"model": "m", "messages": [{"role": "tool", "tool_call_id": "call_1"}]}),
        request("/v1/chat/completions", {"model": "m", "messages": [{"role": "tool", "tool_call_id": "call_2"}]}),
    ),
    "a reference to an item": (
        request("/v1/responses", {"model": "m", "input": [{"type": "item_reference", "id": "rs_1"}]}),
        request("/v1/responses", {"model": "m", "input": [{"type": "item_reference", "id": "rs_2"}]}),
    ),
    "the version of an object": (
        request("/api/v1/pods?watch=1&resourceVersion=1", method="GET"),
        request("/api/v1/pods?watch=1&resourceVersion=2", method="GET"),
    ),
    "the user of another API": (
        request("/api/responses", {"user": "ada"}),
        request("/api/responses", {"user": "bob"}),
    ),
    "a message of another API": (
        request("/rooms/1/messages", {"metadata": {"user_id": "ada"}}),
        request("/rooms/1/messages", {"metadata": {"user_id": "bob"}}),
    ),
    "a secret that is not of Helm": (
        request("/api/v1/namespaces/a/secrets", {"type": "Opaque", "data": {"release": "a"}}),
        request("/api/v1/namespaces/a/secrets", {"type": "Opaque", "data": {"release": "b"}}),
    ),
    "the name of a pod": (
        request("/api/v1/namespaces/a/pods", {"kind": "Pod", "metadata": {"name": "a"}}),
        request("/api/v1/namespaces/a/pods", {"kind": "Pod", "metadata": {"name": "b"}}),
    ),
    "logs of another API": (request("/v1/logs", {"line": 1}), request("/v1/logs", {"line": 2})),
    "the id of a JSON-RPC request": (request("/mcp", JSONRPC), request("/mcp", JSONRPC | {"id": 2})),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_everything_else_counts(name: str) -> None:
    assert not same(*DIFFERENT[name])


def test_volatile_headers_do_not_count_if_headers_are_compared() -> None:
    words = ["method", "uri", "headers"]
    one = request("/v1/x", {}, {"x-stainless-runtime-version": "3.11", "user-agent": "a/1", "x-tenant": "t"})
    other = request("/v1/x", {}, {"x-stainless-runtime-version": "3.12", "user-agent": "a/2", "x-tenant": "t"})
    assert same(one, other, match_on=words)
    assert not same(one, other, match_on=words, exact=True)
    assert not same(one, request("/v1/x", {}, {"user-agent": "a/1", "x-tenant": "u"}), match_on=words)


def test_a_part_that_match_on_names_counts() -> None:
    one, other = made("anthropic, user", "1"), made("anthropic, user", "2")
    assert not same(one, other, match_on=["method", "params", "/body/metadata/user_id"])
    agents = request("/v1/x", {}, {"user-agent": "a"}), request("/v1/x", {}, {"user-agent": "b"})
    assert not same(*agents, match_on=["method", "/headers/user-agent"])


def test_a_recorded_request_is_not_changed() -> None:
    recorded = made("openai, items of codex", "1")
    before = recorded.request_body.whole() if recorded.request_body else b""
    Subject(recorded, RequestRules())
    assert recorded.request_body is not None
    assert recorded.request_body.whole() == before


def test_neither_the_number_nor_the_content_of_telemetry_counts() -> None:
    def events(number: int) -> Interaction:
        return request("/v1/traces", {"resourceSpans": [number]})

    store = InteractionStore([events(1), events(2)], {}, {}, RequestRules())
    taken = [store.take(Subject(events(number), RequestRules()), None) for number in (7, 8, 9)]
    assert all(isinstance(found, Interaction) for found in taken)
    unsent = InteractionStore([events(1), events(2)], {}, {}, RequestRules())
    assert unsent.never_played() == []


def test_a_server_that_only_receives_telemetry_is_known_by_its_name() -> None:
    def log(server: str, number: int) -> Interaction:
        return request("/log", {"n": number}, server=server)

    assert same(log("play.googleapis.com", 1), log("play.googleapis.com", 2))
    assert not same(log("play.example.com", 1), log("play.example.com", 2))


def test_the_file_is_read_once() -> None:
    assert known_apis() is known_apis()
    assert [api.name for api in known_apis().apis] == [entry["api"] for entry in ENTRIES]
