"""The Model Context Protocol over stdio: operations are tools. Revisions with a handshake, and 2026-07-28 without one.

A failed operation is a result with `isError`, as are arguments that its schema refuses: a model reads these, and tries
again. Errors of JSON-RPC are for requests that no model writes.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ext_sdk.args import rules_text
from ext_sdk.core.gevals_spec import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from ext_sdk.core.text import LONGEST_NAME, suggest
from ext_sdk.core.wire.errors import MessageError, RpcError
from ext_sdk.core.wire.json_codec import dumps, loads
from ext_sdk.core.wire.jsonrpc import ErrorResponse, Notification, Request, Response, encode, parse

from .line_limit import id_fits, readable
from .manifest import extract_definitions
from .schema import params_schema
from .server import Adapter
from .serving import (
    ADDITIVE,
    AGENT,
    CAPABILITIES_KEY,
    DESTRUCTIVE,
    HANDSHAKE_VERSIONS,
    MODERN_VERSIONS,
    READ_ONLY,
    VERSION_KEY,
    first_result,
    pi_positions,
)
from .session import NEVER, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ext_sdk.args import Schema
    from ext_sdk.core.wire.errors import Id
    from ext_sdk.definition import Definition
    from ext_sdk.operation import Operation
    from ext_sdk.result import Result

    from .server import InitialIO, Server
    from .serving import Serving, Tools
    from .session import Call

Members = dict[str, object]

LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
UNSUPPORTED_VERSION = -32022

# Levels of RFC 5424, which MCP uses, by weight; of these the SDK's logs use four.
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
NO_LOGS = len(LEVELS)
DEFAULT_LEVEL = LEVELS.index("info")  # until the client sets one

BATCHES = HANDSHAKE_VERSIONS.index("2025-03-26")  # the only revision with batches
STRUCTURED_SINCE = HANDSHAKE_VERSIONS.index("2025-06-18")  # results with structuredContent, tools with outputSchema
ANNOTATED_SINCE = HANDSHAKE_VERSIONS.index("2025-03-26")  # tools with annotations
TOOLS_TTL_MILLISECONDS = 3_600_000  # the tools of a process do not change
ROOTS_SECONDS = 5.0  # for a client to list its roots, after which calls use the current directory

INSTRUCTIONS = (
    "{}. Relative paths start at the first root of the client, or at the directory that the server was started with. "
    "`as: NAME` keeps the outputs of a call; later arguments refer to them by ${{NAME.key}}."
)


def build_tools(extension: Definition) -> bytes:
    """Return the operations of an extension as tools, without aliases: lines of JSON, first the head."""
    operations = [operation for operation in extension.operations.values() if not operation.same_as]
    for operation in operations:
        if operation.needs not in {"", AGENT, *extension.operations}:
            text = f"expected {AGENT!r} or the name of an operation, found {operation.needs!r}"
            raise TypeError(
                f"operation {operation.name!r}: needs: {text}; {suggest(operation.needs, extension.operations)}"
            )
    server: Schema = {"name": f"ext-{extension.name}", "version": extension.version}
    if extension.description:
        server["description"] = extension.description
    described: Schema = {
        "capabilities": {"tools": {}, "logging": {}},
        "serverInfo": server,
        "instructions": INSTRUCTIONS.format(extension.description.rstrip(".") or f"Operations of {extension.name}"),
    }
    discovered: Schema = {
        "resultType": "complete",
        "supportedVersions": [*MODERN_VERSIONS, *reversed(HANDSHAKE_VERSIONS)],
        **{name: described[name] for name in ("capabilities", "instructions")},
        "ttlMs": TOOLS_TTL_MILLISECONDS,
        "cacheScope": "private",
        "_meta": {SERVER_KEY: server},
    }
    tools = [dumps(_tool(operation)) for operation in operations]
    head = {
        "name": extension.name,
        "version": extension.version,
        "description": extension.description,
        "operations": {
            operation.name: READ_ONLY if operation.read_only else DESTRUCTIVE if operation.destructive else ADDITIVE
            for operation in operations
        },
        "summaries": {operation.name: operation.description.partition("\n")[0] for operation in operations},
        "needs": {operation.name: operation.needs for operation in operations if operation.needs},
        "aliases": {alias.name: alias.same_as for alias in extension.operations.values() if alias.same_as},
        "host_capabilities": list(extension.host_capabilities),
        "initialize": dumps(described)[1:],  # the first member is the version
        "discover": dumps(discovered),
        "pi": {operation.name: pi_positions(tool) for operation, tool in zip(operations, tools, strict=True)},
    }
    return b"".join(line.encode() + b"\n" for line in (dumps(head), *tools))


def _tool(operation: Operation) -> Schema:
    """Return an operation as a tool.

    Model providers refuse tools whose schema has alternatives at its root, so these are a sentence of the description;
    calls are checked in any case. A failure may lack outputs, so the schema of results requires none.
    """
    declared = {
        name.rstrip("?"): text for name, text in (operation.outputs or {}).items() if name.rstrip("?") != "NAME"
    }
    outputs: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
    if declared:
        outputs["properties"] = {name: {"type": "string", "description": text} for name, text in declared.items()}
    rules = rules_text(operation.args_type)
    schema = {
        key: value for key, value in params_schema(operation.args_type).items() if key not in {"oneOf", "anyOf", "not"}
    }
    return {
        "name": operation.name,
        "title": operation.title,
        "description": operation.description + (f"\n\nRequires {rules}." if rules else ""),
        "inputSchema": extract_definitions(schema),
        "outputSchema": {
            "type": "object",
            "properties": {
                "success": {"type": "boolean"},
                "message": {"type": "string", "description": "Summary"},
                "error": {"type": "string", "description": "Of a failure: expected, found, place and remedy"},
                "outputs": outputs,
            },
            "required": ["success"],
            "additionalProperties": False,
        },
        "annotations": {
            "title": operation.title,
            "readOnlyHint": operation.read_only,
            "destructiveHint": operation.destructive,
            "idempotentHint": operation.idempotent,
            "openWorldHint": operation.open_world,
        },
    }


class _OpenCall:
    """Request of the client that a call belongs to.

    Attributes:
        modern: the request describes itself, and its result must, too.
        structured: the result has structuredContent.
        level: index of the lowest level whose logs are sent.
        token: of progress notifications; None for none.
        progress: the number of progress notifications.
    """

    __slots__ = ("level", "modern", "progress", "structured", "token")

    def __init__(self, *, modern: bool, structured: bool, level: int, token: object) -> None:
        self.modern = modern
        self.structured = structured
        self.level = level
        self.token = token
        self.progress = 0


class McpAdapter(Adapter):
    """Adapter of MCP: tools, logs, progress, cancellation, and roots as the working directory."""

    def __init__(self, server: Server, serving: Serving, tools: Tools) -> None:
        super().__init__(server)
        self._tools = tools
        self._fixed = bool(serving.workdir)
        self._start = os.path.abspath(serving.workdir or ".")  # noqa: PTH100
        self._workdir = self._start
        self._answered = False  # the first request was, before the server started
        self._compare: Callable[[], str] | None = None
        self._begun = self._initialized = False
        self._version = len(HANDSHAKE_VERSIONS) - 1
        self._level = DEFAULT_LEVEL
        self._has_roots = False
        self._roots_id = 0  # of the last request for roots
        self._waiting: dict[tuple[type, Id], tuple[Request, bytes]] = {}  # calls until the roots are known
        self._open: dict[tuple[type, Id], _OpenCall] = {}
        self._handlers: dict[str, Callable[[Request, Members, Members, bytes], None]] = {
            "tools/call": self._call,
            "tools/list": self._list,
            "initialize": self._begin,
            "server/discover": self._begin,
            "ping": self._ping,
            "logging/setLevel": self._set_level,
        }

    def opening(self, initial: InitialIO) -> bytes:
        self._answered, self._compare = initial.manifest_sent, initial.compare
        return b""

    # Messages of the client

    def receive(self, payload: bytes) -> None:
        if self._version != BATCHES or payload.lstrip()[:1] != b"[":
            super().receive(payload)
            return
        try:
            batch = parse(payload, batches=True)
        except MessageError as error:
            self.handle(error, payload)
            return
        for message in batch if isinstance(batch, list) else [batch]:  # responses are written as they are available
            self.handle(message, payload)

    def request(self, request: Request, payload: bytes) -> None:
        if request.id is None:
            raise RpcError(INVALID_REQUEST, "expected an id that is a string or a number, found null")
        params = {} if request.params is None else request.params
        if not isinstance(params, dict):
            raise RpcError(INVALID_PARAMS, "params: expected an object, found an array")
        meta = params.get("_meta", {})
        if not isinstance(meta, dict):
            raise RpcError(INVALID_PARAMS, f"_meta: expected an object, found {shown(meta)}")
        if VERSION_KEY in meta:
            _check_version(meta)
        if handler := self._handlers.get(request.method):
            handler(request, params, meta, payload)
        else:
            text = f"unknown method: {request.method[:LONGEST_NAME]}"
            raise RpcError(METHOD_NOT_FOUND, f"{text}; {suggest(request.method, self._handlers)}")

    def notification(self, notification: Notification) -> None:
        params = notification.params if isinstance(notification.params, dict) else {}
        if notification.method == "notifications/cancelled":
            id = params.get("requestId")
            if not isinstance(id, (str, int, float)):
                return
            self._open.pop((type(id), id), None)  # its logs are dropped
            if self._waiting.pop((type(id), id), None) is None:
                self.server.cancel(id)
        elif notification.method in {"notifications/initialized", "notifications/roots/list_changed"} and (
            self._has_roots and not self._fixed
        ):
            self._roots_id += 1
            self.deadline = time.monotonic() + ROOTS_SECONDS
            self.server.write(encode(Request(f"roots-{self._roots_id}", "roots/list")) + b"\n")

    def response(self, response: Response | ErrorResponse) -> None:
        if response.id == f"roots-{self._roots_id}" and self.deadline != NEVER:
            result = response.result if isinstance(response, Response) else None
            self._workdir = self._root(result, response.error.message if isinstance(response, ErrorResponse) else "")
            self._stop_waiting()

    def _root(self, result: object, refusal: str = "") -> str:
        """Return the first root of the client; without a usable one, warn unless it listed none, and return the start.

        Args:
            result: of `roots/list`.
            refusal: message of the error response in place of the result.
        """
        if root := _first_root(result):
            return root
        if not (isinstance(result, dict) and result.get("roots") == []):
            reason = (
                f"refused to list its roots: {refusal[:LONGEST_NAME]}" if refusal else "listed no file URI as a root"
            )
            self._warn_of_roots(reason, self._start)
        return self._start

    def _warn_of_roots(self, reason: str, folder: str) -> None:
        self.server.warn(f"the client {reason}; relative paths start at {folder} (--workdir DIR sets another folder)")

    def expired(self) -> None:
        self._warn_of_roots(f"did not list its roots within {ROOTS_SECONDS:g} s", self._workdir)
        self._stop_waiting()

    def end_of_input(self) -> None:
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        """Begin the calls that wait for the roots of the client."""
        self.deadline = NEVER
        waiting, self._waiting = self._waiting, {}
        for request, payload in waiting.values():
            self.answer(request, payload)

    # Requests: each handler gets the request, its params, their `_meta`, and the payload

    def _ping(self, request: Request, params: Members, meta: Members, payload: bytes) -> None:
        self._write_result(request.id, {}, modern=VERSION_KEY in meta)

    def _set_level(self, request: Request, params: Members, meta: Members, payload: bytes) -> None:
        self._level = _level(params.get("level"), "level")
        self._write_result(request.id, {}, modern=VERSION_KEY in meta)

    def _begin(self, request: Request, params: Members, meta: Members, payload: bytes) -> None:
        if self._initialized and request.method == "initialize":
            raise RpcError(INVALID_REQUEST, "initialize was sent already; send it once, at the start")
        result = first_result(request, self._tools)
        if result is None and request.method == "initialize":
            for name, kind in (("protocolVersion", str), ("capabilities", dict), ("clientInfo", dict)):
                if not isinstance(params.get(name, {} if kind is dict else None), kind):
                    expected = "an object" if kind is dict else "a string"
                    raise RpcError(INVALID_PARAMS, f"{name}: expected {expected}, found {shown(params.get(name))}")
        if result is None:
            raise RpcError(INVALID_PARAMS, f"_meta: expected a member {VERSION_KEY!r}, found none")
        if self._answered:
            self._answered = False
        else:
            encoded = dumps(request.id).encode("utf-8", "backslashreplace")
            self.server.write(b'{"jsonrpc":"2.0","id":' + encoded + b',"result":' + result.encode() + b"}\n")
        if request.method == "initialize":
            self._initialized = True
            with suppress(ValueError):
                self._version = HANDSHAKE_VERSIONS.index(str(params["protocolVersion"]))
            capabilities = params.get("capabilities")
            self._has_roots = isinstance(capabilities, dict) and isinstance(capabilities.get("roots"), dict)
        if not self._begun:
            self._begun = True
            self.server.warm_up(self._compare)

    def _list(self, request: Request, params: Members, meta: Members, payload: bytes) -> None:
        modern = VERSION_KEY in meta
        if params.get("cursor") is not None:
            raise RpcError(
                INVALID_PARAMS, f"cursor: expected none, found {shown(params['cursor'])}; all tools are listed"
            )
        lines = list(self._tools.lines.values())
        if not modern and self._version < STRUCTURED_SINCE:
            left = {"name", "description", "inputSchema"} | (
                {"annotations"} if self._version >= ANNOTATED_SINCE else set()
            )
            tools = [loads(line.decode()) for line in lines]
            shorter = [{key: tool[key] for key in tool if key in left} for tool in tools if isinstance(tool, dict)]
            lines = [dumps(tool).encode() for tool in shorter]
        more = f'"ttlMs":{TOOLS_TTL_MILLISECONDS},"cacheScope":"private",' if modern else ""
        begin = f'{{"jsonrpc":"2.0","id":{dumps(request.id)},"result":{{{more}"tools":['
        end = b"]}}\n" if not modern else b"]," + dumps(self._described())[1:].encode() + b"}\n"
        self.server.write(begin.encode("utf-8", "backslashreplace") + b",".join(lines) + end)

    def _call(self, request: Request, params: Members, meta: Members, payload: bytes) -> None:
        name, arguments, modern = params.get("name"), params.get("arguments"), VERSION_KEY in meta
        if not isinstance(name, str):
            raise RpcError(INVALID_PARAMS, f"name: expected the name of a tool, found {shown(name)}")
        if name not in self._tools.lines:
            raise RpcError(INVALID_PARAMS, self._tools.refusal(name, self.server.extension.operations))
        if live := self.server.extension.operations.get(name):
            self._tools.check(live)
        if arguments is not None and not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, f"arguments: expected an object, found {shown(arguments)}")
        if (workdir := self._workdir_of(request, params, meta, payload)) is None:
            return
        token, level = meta.get("progressToken"), self._level
        if token is not None and (isinstance(token, bool) or not isinstance(token, (str, int))):
            found = shown(token)
            raise RpcError(INVALID_PARAMS, f"_meta.progressToken: expected a string or an integer, found {found}")
        if modern:
            level = _level(meta[LOG_LEVEL_KEY], f"_meta.{LOG_LEVEL_KEY}") if LOG_LEVEL_KEY in meta else NO_LOGS
        structured = modern or self._version >= STRUCTURED_SINCE
        call = _OpenCall(modern=modern, structured=structured, level=level, token=token)
        self._open[type(request.id), request.id] = call
        # The payload shows a reference `${NAME.key}`, unless one of its characters is escaped.
        references = b"${" in payload or b"\\u" in payload
        gevals = {"operation": name, "args": arguments, "context": {"workdir": workdir}}
        self.server.execute(request.id, gevals, references=references)

    def _workdir_of(self, request: Request, params: Members, meta: Members, payload: bytes) -> str | None:
        """Return the working directory of a call; None if the client must list its roots first."""
        if self._fixed:
            return self._start
        if VERSION_KEY not in meta:
            if self.deadline == NEVER:
                return self._workdir
            key = (type(request.id), request.id)
            if key in self._waiting:
                raise RpcError(INVALID_REQUEST, f"id {request.id!r} is still in use by a call that waits for the roots")
            self._waiting[key] = (request, payload)
            return None
        capabilities, responses = meta[CAPABILITIES_KEY], params.get("inputResponses")
        if not isinstance(capabilities, dict) or not isinstance(capabilities.get("roots"), dict):
            return self._start
        if isinstance(responses, dict) and "roots" in responses:
            return self._root(responses["roots"])
        requests: dict[str, object] = {"roots": {"method": "roots/list", "params": {}}}  # the SDK for Go reads `params`
        self._write_result(request.id, {"resultType": "input_required", "inputRequests": requests}, modern=True)
        return None

    # Messages to the client

    def result(self, call: Call, result: Result) -> bytes:
        return self._tool_result(call.id, self.server.limiter.members(result))

    def error(self, id: Id, error: RpcError) -> bytes:
        text = self.server.limiter.text(error.message)
        if (type(id), id) in self._open:
            return self._tool_result(id, {"success": False, "message": text, "error": text})
        shown_id = id if id_fits(id) else None
        return encode(ErrorResponse(shown_id, RpcError(error.code, text, error.data))) + b"\n"

    def log(self, id: Id, level: str, message: str, data: Mapping[str, object]) -> bytes:
        call = self._open.get((type(id), id))
        if call is None:
            return b""
        weight = LEVELS.index({"warn": "warning"}.get(level, level))
        if weight < call.level and call.token is None:
            return b""
        params = self.server.limiter.log_params(level, message, data)
        notifications = []
        if weight >= call.level:
            more = params.get("data")
            logged = {"message": params["message"], **more} if isinstance(more, dict) else params["message"]
            entry = {"level": LEVELS[weight], "logger": self._tools.name, "data": logged}
            notifications.append(Notification("notifications/message", entry))
        if call.token is not None:
            call.progress += 1
            progress = {"progressToken": call.token, "progress": call.progress, "message": params["message"]}
            notifications.append(Notification("notifications/progress", progress))
        return b"".join(encode(notification) + b"\n" for notification in notifications)

    def _tool_result(self, id: Id, members: dict[str, object]) -> bytes:
        """Return the response to a call. Structured content is repeated as text of JSON, as MCP advises."""
        call = self._open.pop((type(id), id), None)
        failed = not members["success"]
        structured = call is not None and call.structured
        text = dumps(members) if structured and not failed else readable(members)
        result: dict[str, object] = {"content": [{"type": "text", "text": text}], "isError": failed}
        if structured:
            result["structuredContent"] = members
        if call is not None and call.modern:
            result |= self._described()
        return encode(Response(id, result)) + b"\n"

    def _write_result(self, id: Id, result: dict[str, object], *, modern: bool) -> None:
        self.server.write(encode(Response(id, self._described() | result if modern else result)) + b"\n")

    def _described(self) -> dict[str, object]:
        """Return the members that every result of a self-describing request has."""
        server = {"name": f"ext-{self._tools.name}", "version": self._tools.version}
        return {"resultType": "complete", "_meta": {SERVER_KEY: server}}


def _check_version(meta: Members) -> None:
    """Raise RpcError if the `_meta` of a request is incomplete, or names a revision that is not supported."""
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, f"_meta.{VERSION_KEY}: expected a string, found {shown(version)}")
    if version not in MODERN_VERSIONS:
        text = f"unsupported protocol version: {shown(version)} (expected {', '.join(MODERN_VERSIONS)})"
        data = {"supported": [*MODERN_VERSIONS, *reversed(HANDSHAKE_VERSIONS)], "requested": version[:LONGEST_NAME]}
        raise RpcError(UNSUPPORTED_VERSION, text, data)
    if not isinstance(meta.get(CAPABILITIES_KEY), dict):
        found = shown(meta.get(CAPABILITIES_KEY))
        raise RpcError(INVALID_PARAMS, f"_meta.{CAPABILITIES_KEY}: expected an object, found {found}")


def _level(value: object, path: str) -> int:
    """Return the index of a level. Raises RpcError, INVALID_PARAMS."""
    if not isinstance(value, str) or value not in LEVELS:
        raise RpcError(INVALID_PARAMS, f"{path}: expected one of {', '.join(LEVELS)}, found {shown(value)}")
    return LEVELS.index(value)


def _first_root(result: object) -> str:
    """Return the path of the first root that is a file URI in the result of `roots/list`; "" if there is none."""
    roots = result.get("roots") if isinstance(result, dict) else None
    for root in roots if isinstance(roots, list) else []:
        uri = root.get("uri") if isinstance(root, dict) else None
        if isinstance(uri, str) and uri.startswith("file:///"):
            from urllib.parse import unquote

            path = unquote(uri.removeprefix("file://"), errors="surrogateescape")
            if "\0" not in path:
                return path
    return ""
