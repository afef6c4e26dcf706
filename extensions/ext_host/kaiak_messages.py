"""Messages of Kaiak's agent API: error codes, params, contents of notifications, both dialects, and the prompt.

The module does no I/O. `kaiak_server` sends and receives the messages.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar, cast
from uuid import uuid4

import msgspec
from msgspec import Meta, Struct

from ext_sdk.core.wire.errors import INTERNAL_ERROR, INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Members = dict[str, object]


class Code:
    """Error codes of the specification."""

    SESSION_CREATION = -32001
    WORKSPACE = -32002
    SESSION_NOT_FOUND = -32003
    TERMINATED = -32004
    NOT_READY = -32005
    AGENT = -32006
    REQUEST_NOT_FOUND = -32007
    REQUEST_COMPLETED = -32008
    INTERACTION_NOT_FOUND = -32009
    RESPONDED = -32010
    INVALID_RESPONSE = -32011
    FILE_FAILED = -32012
    TIMEOUT = -32013
    CONFIGURATION = -32014
    EXHAUSTED = -32015
    IN_USE = -32016


# The later server has other numbers for these; the agent's own failures are TIMEOUT here.
HEAD_CODES = {Code.IN_USE: -32013, Code.AGENT: -32012, Code.WORKSPACE: -32011, Code.TIMEOUT: -32010}

STREAM = "kaiak/stream/"
HEAD_DATA = "kaiak/generate_fix/data"
USER_MESSAGE = "kaiak/client/user_message"
PERMISSIONS = {"always_allow": "allow", "ask_before": "approve", "never_allow": "deny"}  # of the later server
ACTIONS = {
    "allow_once": "approve",
    "always_allow": "always_allow",
    "approve": "approve",
    "deny": "deny",
    "edit": "edit",
}


# --- Messages --------------------------------------------------------------------------------------------------------


class WorkspaceSettings(Struct):
    """`workspace` of a configuration."""

    working_dir: str | None = None
    include_patterns: list[str] = []
    exclude_patterns: list[str] = msgspec.field(default_factory=lambda: [".git/**"])


class SessionSettings(Struct):
    """`session` of a configuration."""

    max_turns: Annotated[int, Meta(ge=1)] = 1000
    retry_config: dict[str, object] | None = None


class PermissionSettings(Struct):
    """`permissions` of a configuration."""

    tool_permissions: dict[str, Literal["allow", "approve", "deny"]] = {}


class Settings(Struct):
    """Configuration of a client."""

    workspace: WorkspaceSettings = msgspec.field(default_factory=WorkspaceSettings)
    model: dict[str, object] = {}
    tools: dict[str, object] = {}
    session: SessionSettings = msgspec.field(default_factory=SessionSettings)
    permissions: PermissionSettings = msgspec.field(default_factory=PermissionSettings)


class Configure(Struct):
    """Argument of kaiak/configure."""

    configuration: dict[str, object]
    reset_existing: bool = False


class Incident(Struct):
    """Incident; other members are passed to the command."""

    id: str
    rule_id: str | None = None
    uri: str | None = None
    message: str | None = None
    description: str | None = None
    effort: str | None = None
    severity: str | None = None


class Options(Struct):
    """`options` of kaiak/generate_fix."""

    auto_apply_safe_fixes: bool = False
    max_processing_time: Annotated[float, Meta(gt=0, le=86_400)] | None = None
    parallel_processing: bool = False
    include_explanations: bool = False


T = TypeVar("T", bound=Struct)
SessionId = Annotated[str, Meta(min_length=1, max_length=200)]


class GenerateFix(Struct):
    """Argument of kaiak/generate_fix."""

    incidents: Annotated[list[Incident], Meta(min_length=1, max_length=1000)]
    session_id: SessionId | None = None
    migration_context: dict[str, object] | None = None
    options: Options = msgspec.field(default_factory=Options)
    agent_config: dict[str, object] | None = None  # of the later dialect


class DeleteSession(Struct):
    """Argument of kaiak/delete_session; `cleanup_options` is of the later dialect."""

    session_id: SessionId
    force: bool = False
    cleanup_files: bool = True
    cleanup_options: dict[str, object] | None = None


class Command(Struct):
    """Params of workspace/executeCommand."""

    command: str
    arguments: Annotated[list[dict[str, object]], Meta(min_length=1, max_length=1)]


class UserMessage(Struct):
    """Params of kaiak/client/user_message. The command line of the later server sends `message_type`."""

    session_id: SessionId
    kind: str | None = None
    message_type: str | None = None
    payload: dict[str, object] | None = None


class Progress(Struct):
    """Content that a command may write as a line of JSON, below `kaiak/stream/progress`; so the next ones."""

    percentage: float
    phase: str
    description: str = ""
    current_step: str = ""
    total_steps: Annotated[int, Meta(ge=0)] = 0


class AiResponse(Struct):
    """Content of ai_response."""

    text: str
    partial: bool = False
    confidence: float = 0.0
    tokens: Annotated[int, Meta(ge=0)] = 0


class ToolResult(Struct):
    """`result` of a tool_call."""

    success: bool
    output: str | None = None
    error: str | None = None
    execution_time: float = 0


class ToolCall(Struct):
    """Content of tool_call."""

    tool_name: str
    operation: str = ""
    parameters: dict[str, object] = {}
    status: str = ""
    result: ToolResult | None = None


class StreamError(Struct):
    """Content of error."""

    error_code: str
    message: str
    details: str = ""
    recoverable: bool = False
    suggested_action: str = ""


class SystemMessage(Struct):
    """Content of system."""

    message: str
    level: str = ""
    component: str = ""


CONTENTS: dict[str, type[Struct]] = {
    "progress": Progress,
    "ai_response": AiResponse,
    "tool_call": ToolCall,
    "error": StreamError,
    "system": SystemMessage,
}


def parsed(value: object, type: type[T], code: int = INVALID_PARAMS, what: str = "Invalid params") -> T:
    """Return a value as a message. Raises RpcError with the member that is wrong."""
    try:
        return msgspec.convert(value, type)
    except UnicodeEncodeError:
        details = "a text has half of a surrogate pair"
        raise RpcError(code, f"{what}: {details}", {"field": "", "details": details}) from None
    except msgspec.ValidationError as error:
        details, _, path = str(error).partition(" - at `$")
        field = path.rstrip("`").removeprefix(".")
        text = f"{what}: {field}: {details}" if field else f"{what}: {details}"
        raise RpcError(code, text, {"field": field, "details": details}) from None


def merged(base: Mapping[str, object], changes: Mapping[str, object]) -> Members:
    """Return an object with the members of both; members that are objects in both are merged too."""
    result = dict(base)
    for name, value in changes.items():
        before = result.get(name)
        result[name] = merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return result


def internal_error(error: Exception) -> RpcError:
    """Return the error response to a defect."""
    return RpcError(INTERNAL_ERROR, f"Internal error: {type(error).__name__}: {error}")


def now() -> str:
    """Return a timestamp."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def head_payload(kind: str, content: Members, about: str) -> tuple[str, Members]:
    """Return kind and payload of a notification in the later dialect.

    Args:
        about: id of the tool call that the notification belongs to; "" for a new one.
    """
    about = about or f"call-{uuid4()}"
    if kind == "ai_response":
        return "ai_message", {"role": "Assistant", "text": content["text"]}
    if kind == "progress":
        return "system", {"notification_type": "Progress", **content, "message": content.get("description", "")}
    if kind == "system":
        return "system", {"notification_type": "InlineMessage", **content}
    if kind == "error":
        return "error", {"error": content["message"], **content}
    if kind == "user_interaction":
        tool = {"id": about, "tool_name": "write_file", "arguments": {"path": content["file_path"]}}
        return kind, {"interaction_type": "tool_confirmation", **tool, "prompt": content["prompt"]}
    if kind == "file_modification":
        arguments = {"path": content["file_path"], "operation": content["operation"], "diff": content["diff"]}
        return "tool_call", {"id": about, "tool_name": "write_file", "arguments": arguments}
    result = content.get("result")
    if isinstance(result, dict) and about.startswith("proposal-"):
        return "tool_response", {"id": about, "is_error": not result["success"], "content_count": 1}
    return "tool_call", {"id": about, "tool_name": content["tool_name"], "arguments": content.get("parameters", {})}


def prompt_of(argument: Mapping[str, object]) -> str:
    """Return the prompt for the incidents of a request."""
    lines = ["Fix these incidents, which an analysis has found in the project in the current directory.", ""]
    for number, incident in enumerate(cast("list[Members]", argument["incidents"]), 1):
        about = [str(incident[name]) for name in ("severity", "effort") if incident.get(name)]
        name = f"{incident.get('rule_id') or incident['id']}" + (f" ({', '.join(about)})" if about else "")
        lines.append(f"{number}. {name}: {incident.get('message') or 'no message'}")
        place = incident.get("uri") or incident.get("file_path")
        line = incident.get("line_number") or incident.get("line")
        lines += [f"   {incident['description']}"] if incident.get("description") else []
        lines += [f"   File: {place}" + (f", line {line}" if line else "")] if place else []
    context = argument.get("migration_context")
    for name, value in context.items() if isinstance(context, dict) else ():
        title = name.replace("_", " ").capitalize()
        if value in (None, "", [], {}):
            continue
        if isinstance(value, list):
            lines += ["", f"{title}:", *(f"- {each}" for each in value)]
        elif isinstance(value, dict):
            lines += ["", f"{title}:", *(f"- {key}: {each}" for key, each in value.items())]
        else:
            lines += ["", f"{title}: {value}"]
    options = argument.get("options")
    if isinstance(options, dict) and options.get("include_explanations"):
        lines += ["", "Explain each change."]
    return "\n".join(lines) + "\n"


def replaced(value: object, replace: Callable[[str], str]) -> object:
    """Return a JSON value with its texts replaced, except names of members."""
    if isinstance(value, str):
        return replace(value)
    if isinstance(value, list):
        return [replaced(each, replace) for each in value]
    return {key: replaced(each, replace) for key, each in value.items()} if isinstance(value, dict) else value


def notification_of(line: str) -> tuple[str, Members] | None:
    """Return kind and content of a notification that a command has written; None if the line is something else."""
    with suppress(ValueError, msgspec.ValidationError, RecursionError):
        message = json.loads(line)
        if isinstance(message, dict) and len(message) == 1:
            ((name, content),) = message.items()
            if content_type := CONTENTS.get(name.removeprefix(STREAM)):
                msgspec.convert(content, content_type)
                return name.removeprefix(STREAM), content
    return None


def head_settings(request: GenerateFix, base: Settings) -> Settings:
    """Return the configuration that a request of the later dialect carries."""
    config = request.agent_config
    if config is None:
        details = {"field": "agent_config", "details": "Object missing required field `agent_config`"}
        raise RpcError(INVALID_PARAMS, "Invalid params: missing field `agent_config`", details)
    workspace = config.get("workspace")
    own = config.get("override_base_config")
    own = own if isinstance(own, dict) else {}
    permissions = own.get("tool_permissions", config.get("tool_permissions"))
    permissions = permissions if isinstance(permissions, dict) else {}
    known: Members = {
        "workspace": {"working_dir": workspace} if isinstance(workspace, str) else workspace,
        "session": config.get("session"),
        "model": own.get("model", config.get("model")),
        "permissions": {
            "tool_permissions": {name: PERMISSIONS.get(str(value), value) for name, value in permissions.items()}
        },
    }
    given = {name: value for name, value in known.items() if value is not None}
    return parsed(merged(msgspec.to_builtins(base), given), Settings, what="Invalid params: agent_config")
