"""Model APIs on loopback: OpenAI (chat, responses), Anthropic and Gemini, with streaming and tool calls.

Each answer contains a random word, so that a replay can't be confused with a second answer of the server.
"""

from __future__ import annotations

import json
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.support.http_stub import Stub

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Iterator

    from tests.support.http_stub import Asked, Handler

TOOL, ARGUMENTS = "get_weather", '{"city": "Oslo"}'


def stream(handler: Handler, events: Iterable[tuple[str, object]]) -> None:
    """Send server-sent events, each in a chunk of its own."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream; charset=utf-8")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for name, data in events:
        text = data if isinstance(data, str) else json.dumps(data)
        event = (f"event: {name}\n" if name else "") + f"data: {text}\n\n"
        handler.wfile.write(b"%x\r\n%b\r\n" % (len(event.encode()), event.encode()))
    handler.wfile.write(b"0\r\n\r\n")


def _chat(handler: Handler, asked: Asked) -> None:
    request, word = json.loads(asked.body), uuid.uuid4().hex[:8]
    base = {"id": f"chatcmpl-{word}", "created": 1, "model": request["model"]}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    call = {"id": f"call_{word}", "type": "function", "function": {"name": TOOL, "arguments": ARGUMENTS}}
    wants_tool = "tools" in request and request["messages"][-1]["role"] != "tool"
    if request.get("stream"):
        if wants_tool:
            parts: list[dict[str, object]] = [{"function": {"arguments": part}} for part in ('{"city": ', '"Oslo"}')]
            parts.insert(0, {**call, "function": {"name": TOOL, "arguments": ""}})
            pieces: list[dict[str, object]] = [{"tool_calls": [{"index": 0, **part}]} for part in parts]
        else:
            pieces = [{"role": "assistant", "content": ""}, {"content": "Hello "}, {"content": word}]
        chunks = [
            ("", {**base, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": piece}]})
            for piece in pieces
        ]
        stream(handler, [*chunks, ("", "[DONE]")])
        return
    message: dict[str, object] = {"role": "assistant", "content": None if wants_tool else f"Hello {word}"}
    message |= {"tool_calls": [call]} if wants_tool else {}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if wants_tool else "stop"}
    handler.json({**base, "object": "chat.completion", "choices": [choice], "usage": usage})


def _responses(handler: Handler, asked: Asked) -> None:
    request, word = json.loads(asked.body), uuid.uuid4().hex[:8]
    text = {"type": "output_text", "text": f"Hello {word}", "annotations": []}
    item = {"id": f"msg_{word}", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    response = {
        "id": f"resp_{word}", "object": "response", "created_at": 1, "model": request["model"], "status": "completed",
        "output": [item], "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    }  # fmt: skip
    if not request.get("stream"):
        handler.json(response)
        return
    about = {"item_id": item["id"], "output_index": 0, "content_index": 0, "logprobs": []}
    events: list[dict[str, object]] = [
        {"type": "response.created", "response": {**response, "output": [], "status": "in_progress"}},
        *({"type": "response.output_text.delta", "delta": part, **about} for part in ("Hello ", word)),
        {"type": "response.completed", "response": response},
    ]
    stream(handler, [(str(event["type"]), {**event, "sequence_number": n}) for n, event in enumerate(events)])


def _messages(handler: Handler, asked: Asked) -> None:
    request, word = json.loads(asked.body), uuid.uuid4().hex[:8]
    last = request["messages"][-1]["content"]
    is_result = isinstance(last, list) and last[0]["type"] == "tool_result"
    wants_tool = "tools" in request and not is_result
    block: dict[str, object] = {"type": "text", "text": f"Hello {word}"}
    if wants_tool:
        block = {"type": "tool_use", "id": f"toolu_{word}", "name": TOOL, "input": json.loads(ARGUMENTS)}
    message = {
        "id": f"msg_{word}", "type": "message", "role": "assistant", "model": request["model"], "content": [block],
        "stop_reason": "tool_use" if wants_tool else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }  # fmt: skip
    if not request.get("stream"):
        handler.json(message)
        return
    empty = {**block, "input": {}} if wants_tool else {**block, "text": ""}
    parts = ('{"city": ', '"Oslo"}') if wants_tool else ("Hello ", word)
    kind, key = ("input_json_delta", "partial_json") if wants_tool else ("text_delta", "text")
    events: list[dict[str, object]] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "ping"},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": kind, key: part}} for part in parts),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
            "usage": {"output_tokens": 2},
        },
        {"type": "message_stop"},
    ]
    stream(handler, [(str(event["type"]), event) for event in events])


ROUTES = {
    "/v1/chat/completions": _chat,
    "/v1/responses": _responses,
    "/v1/messages": _messages,
    "/v1/models": lambda handler, _: handler.json({"object": "list", "data": [{"id": uuid.uuid4().hex}]}),
}


@contextmanager
def model_api(context: ssl.SSLContext | None = None) -> Iterator[Stub]:
    """Serve the APIs; with TLS if there is a context."""
    with Stub(context) as server:
        server.routes |= ROUTES
        yield server
