"""Meaning of HTTP requests for people: the kind of server, the call of a cluster, the conversation with a model.

`view`, `stats` and `diff` use it. Matching and replay do not depend on it. The responses of models have one form here,
independent of the API, and streams are assembled.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs, urlsplit

from ext_recorder.http.interaction import CONNECT, ENCODINGS, decoded
from ext_recorder.http.traffic_counts import is_model_call, traffic_of
from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.json_codec import dumps, loads
from ext_sdk.core.wire.json_pointer import MISSING, resolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ext_recorder.http.interaction import Body, Headers, Interaction

    Part = dict[str, object]  # of a message: one of text, thinking, call and input, result, other

ROLES = ("host", "agent", "model", "mcp", "extension", "child", "cluster", "service")  # in the order of the lanes
BY_PROTOCOL = {"acp": "agent", "pi": "agent", "mcp": "mcp", "gevals": "extension", "http": "service"}
_FAILED = 400  # the first status that is an error
LARGEST_BODY = 4_000_000  # bytes; a longer one is not read as JSON

# Paths of the APIs of models; a name in the path is the model.
_MODEL_PATHS = tuple(
    (re.compile(pattern), api)
    for pattern, api in (
        (r"/v1/messages(?:/\w+)*$", "anthropic"),
        (r"/(?:chat/)?completions$|/responses$", "openai"),
        (r"/(?:v1|openai)/(?:embeddings|models|moderations)(?:/[^/:]+)?$", "openai"),
        (r"/models/(?P<model>[^/:]+):\w+$", "gemini"),
        (r"/v1(?:beta|alpha)/models(?:/[^/:]+)?$", "gemini"),
        (r"/api/(?:chat|generate|tags|show|embed|embeddings|pull|ps)$", "ollama"),
        (r"/model/(?P<model>[^/]+)/(?:converse|invoke)(?:-\w+)*$", "bedrock"),
    )
)
_NAMED = tuple(pattern for pattern, _ in _MODEL_PATHS if "model" in pattern.groupindex)
# Members of requests and responses of these APIs, by JSON pointer: the first that exists.
_SYSTEM = ("/system", "/instructions", "/systemInstruction", "/system_instruction")
_MESSAGES = ("/messages", "/input", "/contents", "/prompt")
_REPLY = (
    "/choices/0/message",
    "/candidates/0/content",
    "/output/message",
    "/output",
    "/message",
    "/content",
    "/response",
)
_PIECES = ("/candidates/0/content", "/message", "/response")
_STOP = (
    "/stop_reason",
    "/choices/0/finish_reason",
    "/candidates/0/finishReason",
    "/stopReason",
    "/done_reason",
    "/status",
)
_CACHED = (
    "/usage/cache_read_input_tokens", "/usage/prompt_tokens_details/cached_tokens",
    "/usage/input_tokens_details/cached_tokens", "/usageMetadata/cachedContentTokenCount",
)  # fmt: skip
_MODEL = ("/model", "/modelVersion")
_ERROR = ("/error/message", "/error", "/message")

_OBJECTS = re.compile(
    r"^(?:/k8s/clusters/[^/]+)?/(?:api/v1|apis/[\w.-]+/v\d\w*)(?:/watch)?"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/.))?(?:/(?P<resource>[a-z0-9]+)(?:/(?P<name>[^/]+)(?:/(?P<sub>.+))?)?)?/?$"
)
_DISCOVERY = re.compile(r"^/(?:api|apis|openapi|version|healthz|livez|readyz)(?:/|$)")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}


class Endpoint(NamedTuple):
    """Kind of a request.

    Attributes:
        role: model, mcp, cluster or service.
        server: host and port.
        method: what is called: `POST /v1/messages`, `create pods`, `tools/call`.
        subject: the object, or the path.
        is_chat: the request is a turn of a conversation with a model.
    """

    role: str
    server: str
    method: str
    subject: str
    is_chat: bool = False


class Endpoints:
    """Classifier of requests. A server that has Kubernetes objects is a cluster in all its requests.

    Args:
        interactions: all of them; only their addresses are read.
    """

    def __init__(self, interactions: Iterable[Interaction] = ()) -> None:
        self._clusters = set()
        for item in interactions:
            address = urlsplit(item.uri)
            if (found := _OBJECTS.match(address.path)) and found["resource"]:
                self._clusters.add(address.netloc)

    def of(self, item: Interaction) -> Endpoint:
        """Return the kind of a request."""
        address = urlsplit(item.uri)
        path = address.path or "/"
        if item.method == CONNECT:
            role = "cluster" if address.netloc in self._clusters else "service"
            return Endpoint(role, address.netloc, "connect", address.netloc)
        api = next((api for pattern, api in _MODEL_PATHS if pattern.search(path)), "")
        if api or is_model_call(item):
            return Endpoint("model", address.netloc, api or "model", path, is_model_call(item))
        if address.netloc in self._clusters:
            found = _OBJECTS.match(path)
            if found and found["resource"]:
                return Endpoint("cluster", address.netloc, *_call(item, found, address.query))
            if _DISCOVERY.match(path):
                return Endpoint("cluster", address.netloc, "discover", path)
        if method := _rpc_method(item):
            return Endpoint("mcp", address.netloc, method, path)
        query = f"?{address.query}" if address.query else ""
        return Endpoint("service", address.netloc, f"{item.method} {address.netloc}", path + query)


def _call(item: Interaction, found: re.Match[str], query: str) -> tuple[str, str]:
    """Return the verb with the resource, and the object, of a request to a cluster."""
    verb, resource = _VERBS.get(item.method, item.method.lower()), found["resource"]
    values = parse_qs(query)
    if found["sub"] and found["sub"].split("/")[0] in {"exec", "attach", "portforward"}:
        verb = "connect"
    elif not found["name"] and verb == "get":
        verb = "watch" if values.get("watch", ["0"])[0] in {"1", "true"} else "list"
    elif not found["name"] and verb == "delete":
        verb = "deletecollection"
    elif verb == "patch" and "apply-patch" in header_of(item.request_headers, "content-type"):
        verb = "apply"
    name = found["name"] or ""
    if not name and verb == "create" and isinstance(created := json_of(item.request_headers, item.request_body), dict):
        name = str(_first(created, ("/metadata/name", "/metadata/generateName")) or "")
    sub = f"/{found['sub']}" if found["sub"] else ""
    subject = "/".join(filter(None, (found["namespace"], name)))
    if not name and (selected := values.get("fieldSelector") or values.get("labelSelector")):
        subject = f"{subject} {selected[0]}".strip()
    return f"{verb} {resource}{sub}", subject


def _rpc_method(item: Interaction) -> str:
    """Return the method of a JSON-RPC request of MCP; "" of any other request."""
    has_session = bool(header_of(item.request_headers, "mcp-session-id"))
    accepts = header_of(item.request_headers, "accept")
    if not has_session and not ("text/event-stream" in accepts and "application/json" in accepts):
        return ""
    value = json_of(item.request_headers, item.request_body)
    if isinstance(value, dict) and value.get("jsonrpc") == "2.0":
        return str(value.get("method") or "response")
    return f"{item.method} of the session" if has_session else ""


def outcome_of(item: Interaction) -> tuple[str, bool]:
    """Return the outcome of a request in a few words, and True if it failed.

    A client that stops reading, as one of a watch does when it has seen enough, has not failed.
    """
    status = f"{item.status} {item.reason}".strip() if item.status else "no response"
    if item.error is not None and not (item.cut and 0 < item.status < _FAILED):
        return str(item.error.get("type") or status), True
    return status, not 0 < item.status < _FAILED


def header_of(headers: Headers, name: str) -> str:
    """Return the value of a header in lower case; "" if it is missing."""
    return next((value.lower() for key, value in headers if key.lower() == name), "")


def content_of(headers: Headers, body: Body | None, most: int = LARGEST_BODY) -> bytes | None:
    """Return a body without its Content-Encoding; None if it is longer, or in another encoding."""
    if body is None or body.size > most:
        return None
    encoding, data = header_of(headers, "content-encoding"), b""
    if encoding in {"", "identity"}:
        return body.whole()
    try:
        for piece in decoded(body.pieces(), encoding) if encoding in ENCODINGS else ():
            data += piece
            if len(data) > most:
                return None
    except ValueError:
        return None
    return data if encoding in ENCODINGS else None


def json_of(headers: Headers, body: Body | None) -> object:
    """Return a body as a JSON value; None if it is not JSON."""
    data = content_of(headers, body)
    with suppress(MessageError, UnicodeDecodeError):
        return loads(data.decode()) if data else None
    return None


class Chat(NamedTuple):
    """One turn of a conversation with a model.

    Attributes:
        model: its name.
        system: the instructions.
        earlier: number of messages before the new ones.
        messages: those after the last message of the model: role and parts.
        reply: parts of the response.
        stop: the reason of its end.
        input, output: numbers of tokens; 0 if the response does not have them.
        cached: number of the former that were cached; None if the response does not have it.
        problem: message of an error.
    """

    model: str
    system: str
    earlier: int
    messages: list[tuple[str, list[Part]]]
    reply: list[Part]
    stop: str = ""
    input: int = 0
    output: int = 0
    cached: int | None = None
    problem: str = ""

    def as_json(self) -> dict[str, object]:
        """Return the turn as the page draws it."""
        messages = [{"role": role, "parts": parts} for role, parts in self.messages]
        return {**self._asdict(), "messages": messages}

    @property
    def asked(self) -> str:
        """Return the newest message on one line."""
        return summary(self.messages[-1][1]) if self.messages else ""

    @property
    def answered(self) -> str:
        """Return the response on one line."""
        return summary(self.reply) or self.problem


def chat_of(item: Interaction) -> Chat | None:
    """Return the turn of a conversation; None if the request is not JSON."""
    request = json_of(item.request_headers, item.request_body)
    if not isinstance(request, dict):
        return None
    response, counts = _response(item), traffic_of(item)
    named = next((found["model"] for pattern in _NAMED if (found := pattern.search(urlsplit(item.uri).path))), "")
    listed = _messages(_first(request, _MESSAGES))
    system = [parts for role, parts in listed if role in {"system", "developer"}]
    listed = [(role, parts) for role, parts in listed if role not in {"system", "developer"}]
    start = max((number for number, (role, _) in enumerate(listed, 1) if role in {"assistant", "model"}), default=0)
    problem = _first(response, _ERROR) if item.status >= _FAILED or item.error is not None else None
    reply = None if problem else _first(response, _REPLY)
    if isinstance(reply, (str, list)):
        reply = [{"role": "assistant", "content": reply}]
    cached = _first(response, _CACHED)
    return Chat(
        str(request.get("model") or named or _first(response, _MODEL) or ""),
        summary([*parts_of(_first(request, _SYSTEM)), *(part for parts in system for part in parts)], 100_000),
        start,
        listed[start:],
        [part for _, parts in _messages(reply) for part in parts],
        _text(_first(response, _STOP)),
        counts.input_tokens,
        counts.output_tokens,
        cached if isinstance(cached, int) else None,
        _text(problem) or str((item.error or {}).get("message") or ""),
    )


def _response(item: Interaction) -> object:
    """Return the response as one JSON value; a stream is assembled."""
    data = content_of(item.headers, item.body)
    if not data:
        return None
    text, kind = data.decode("utf-8", "replace"), header_of(item.headers, "content-type")
    if "event-stream" in kind:
        return assembled(_json_of_lines(line[5:] for line in text.splitlines() if line.startswith("data:")))
    if "ndjson" in kind or "jsonl" in kind:
        return assembled(_json_of_lines(text.splitlines()))
    with suppress(MessageError):
        value = loads(text)
        return assembled(each for each in value if isinstance(each, dict)) if isinstance(value, list) else value
    return None


def _json_of_lines(lines: Iterable[str]) -> Iterator[dict[str, object]]:
    for line in lines:
        with suppress(MessageError):
            if isinstance(value := loads(line), dict):
                yield value


def assembled(events: Iterable[dict[str, object]]) -> dict[str, object]:
    """Return the response that the events of a stream are.

    The members of an event distinguish the APIs: complete responses (OpenAI responses), blocks with their number
    (Anthropic), pieces of the first choice (OpenAI chat), and parts that follow one another (Gemini, Ollama).
    """
    whole: dict[str, object] = {}
    blocks: dict[object, Part] = {}  # by their position
    for event in events:
        kind, delta, choices = str(event.get("type", "")), event.get("delta"), event.get("choices")
        inner = event.get("message" if kind == "message_start" else "response")
        if kind and isinstance(inner, dict):
            whole |= inner
        elif kind == "content_block_start" and isinstance(block := event.get("content_block"), dict):
            blocks[event.get("index")] = dict(block)
        elif kind == "response.output_text.delta":
            _extend(blocks.setdefault(event.get("output_index", 0), {}), {"text": delta})
        elif isinstance(delta, dict):
            _add_delta(blocks, event.get("index"), delta, whole)
        elif isinstance(choices, list):
            _add_choice(blocks, choices[0] if choices and isinstance(choices[0], dict) else {}, whole)
        elif not kind:
            _add_pieces(blocks, event, whole)
        if isinstance(usage := event.get("usage"), dict):
            before = whole.get("usage")
            whole["usage"] = (before if isinstance(before, dict) else {}) | usage
    if blocks and not whole.get("output"):
        whole["content"] = [blocks[key] for key in blocks]
    return whole


def _add_delta(
    blocks: dict[object, Part], index: object, delta: Mapping[str, object], whole: dict[str, object]
) -> None:
    if index is not None:
        _extend(blocks.setdefault(index, {}), delta)
    if delta.get("stop_reason"):
        whole["stop_reason"] = delta["stop_reason"]


def _add_pieces(blocks: dict[object, Part], event: Mapping[str, object], whole: dict[str, object]) -> None:
    for _, parts in _messages(_first(event, _PIECES)):
        for part in parts:
            last = blocks.get(len(blocks) - 1)
            if last is not None and last.keys() == part.keys() == {"text"}:
                _extend(last, part)
            else:
                blocks[len(blocks)] = part
    whole |= {name: value for name, value in event.items() if name not in {"candidates", "message", "response"}}
    if reason := _first(event, ("/candidates/0/finishReason",)):
        whole["stop_reason"] = reason


def _add_choice(blocks: dict[object, Part], choice: Mapping[str, object], whole: dict[str, object]) -> None:
    delta = choice.get("delta")
    if isinstance(delta, dict):
        if isinstance(text := delta.get("content"), str) and text:
            _extend(blocks.setdefault("text", {}), {"text": text})
        if isinstance(text := delta.get("reasoning_content"), str) and text:
            _extend(blocks.setdefault("thinking", {}), {"thinking": text})
        for call in delta.get("tool_calls") or ():
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict):
                block = blocks.setdefault(call.get("index", 0), {"type": "function_call"})
                _extend(block, {name: value for name, value in function.items() if isinstance(value, str)})
    if choice.get("finish_reason"):
        whole["stop_reason"] = choice["finish_reason"]


def _extend(block: Part, delta: Mapping[str, object]) -> None:
    """Append the texts of a piece to those of its block."""
    for name, value in delta.items():
        if isinstance(value, str) and name not in {"type", "stop_reason", "stop_sequence"}:
            before = block.get(name)
            block[name] = (before if isinstance(before, str) else "") + value


def _messages(value: object) -> list[tuple[str, list[Part]]]:
    """Return role and parts of the messages of a request or response."""
    if isinstance(value, str):
        return [("user", [{"text": value}])]
    found = []
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, dict):
            continue
        kind = item.get("type")
        role = str(item.get("role") or ("assistant" if kind in {"function_call", "reasoning"} else "user"))
        parts = parts_of(item.get("content") or item.get("parts")) if "role" in item else parts_of(item)
        if role == "tool":
            parts = [{"result": summary(parts, LONGEST_RESULT)}]
        names = [name for name in ("reasoning_content", "thinking") if "role" in item and item.get(name)]
        thoughts: list[Part] = [{"thinking": str(item[name])} for name in names]
        found.append((role, [*thoughts, *parts, *parts_of(item.get("tool_calls"))]))
    return found


LONGEST_RESULT = 20_000  # characters of the result of a tool


def parts_of(content: object) -> list[Part]:
    """Return the parts of a message's content in any API: texts, thoughts, calls of tools and their results."""
    if isinstance(content, str):
        return [{"text": content}] if content else []
    if isinstance(content, list):
        return [part for item in content for part in parts_of(item)]
    if not isinstance(content, dict):
        return []
    if content and content.keys() <= _NEUTRAL:
        return [content]
    kind = str(content.get("type", ""))
    if kind in {"message", "content"} or isinstance(content.get("parts"), list):
        return parts_of(content.get("content") or content.get("parts"))
    part = _tool_part(content, kind) or _thought(content, kind)
    if part:
        return [part]
    if isinstance(text := content.get("text"), str):
        return [{"text": text}] if text else []
    return [{"other": kind or ", ".join(list(content)[:3])}]


_NEUTRAL = {"call", "input", "result", "failed", "thinking", "other"}
_INNER = ("functionCall", "toolUse", "function", "functionResponse", "toolResult")


def _tool_part(content: Part, kind: str) -> Part | None:
    """Return the call of a tool, or its result; None if the part is neither."""
    name = next((name for name in _INNER if isinstance(content.get(name), dict)), "")
    inner = content[name] if name else content
    value = inner if isinstance(inner, dict) else {}
    if "result" in kind or kind.endswith("_output") or name in {"functionResponse", "toolResult"}:
        result = next((value[name] for name in ("content", "output", "response") if name in value), "")
        shown = summary(parts_of(result), LONGEST_RESULT) if isinstance(result, (str, list)) else _text(result)
        return {"result": shown} | ({"failed": True} if value.get("is_error") else {})
    if not isinstance(value.get("name"), str) or not (name or "call" in kind or "tool_use" in kind):
        return None
    given: object = next(
        (value[name] for name in ("partial_json", "input", "arguments", "args") if value.get(name)), {}
    )
    if isinstance(given, str):
        with suppress(MessageError):
            given = loads(given)
    return {"call": value["name"], "input": given}


def _thought(content: Part, kind: str) -> Part | None:
    if isinstance(thought := content.get("thinking"), str):
        return {"thinking": thought}
    if content.get("thought") is True:
        return {"thinking": str(content.get("text", ""))}
    if kind == "reasoning":
        return {"thinking": summary(parts_of(content.get("summary")), LONGEST_RESULT)}
    return None


SUMMARY = 200  # characters


def summary(parts: Iterable[Part], most: int = SUMMARY) -> str:
    """Return parts as text, on one line if it is short."""
    texts, length = [], 0
    for part in parts:
        text = str(part.get("text") or part.get("result") or "")
        if "call" in part:
            text = f"{part['call']}({_text(part['input'])})"
        elif "other" in part:
            text = f"[{part['other']}]"
        if text:
            texts.append(text)
            length += len(text)
            if length > most:
                break
    if most > SUMMARY:
        return "\n".join(texts)[:most]
    shown = " ".join(" · ".join(texts)[: 2 * most].split())
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def text_of(value: object) -> str:
    """Return a JSON value of a message on one line, for a list: the text of its content, or its members."""
    if isinstance(value, (dict, list)) and (parts := parts_of(value)) and not all("other" in part for part in parts):
        return summary(parts)
    return summary([{"text": _text(value)}])


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_text(item)}" for name, item in value.items())
    if value is None:
        return ""
    return value if isinstance(value, str) else dumps(value)


def _first(value: object, pointers: Iterable[str]) -> object:
    """Return the first member that exists and is not empty; None if none does."""
    for pointer in pointers:
        found = resolve(value, pointer)
        if found is not MISSING and found not in ("", None, [], {}):
            return found
    return None
