"""Spec 4: Kaiak's agent API."""

from __future__ import annotations

from .rule import Clause, During, Machine, Rules
from .schema import (
    ANY,
    COUNT,
    FLAG,
    LIST,
    NUMBER,
    OBJECT,
    TEXT,
    TEXTS,
    VERSION_2,
    WHOLE,
    either,
    list_of,
    map_of,
    one_of,
    record,
)  # fmt: skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .schema import Schema

_COMMAND = "workspace/executeCommand"
_NULL: Schema = {"type": "null"}
_FIX, _CONFIGURE, _DELETE = (f"{_COMMAND}:kaiak/{name}" for name in ("generate_fix", "configure", "delete_session"))
_PERMISSIONS = record(tool_permissions_=map_of(one_of("allow", "approve", "deny")))
_CONFIGURATION = record(
    workspace_=record(working_dir_=TEXT, include_patterns_=TEXTS, exclude_patterns_=TEXTS),
    model_=OBJECT, tools_=OBJECT, session_=OBJECT, permissions_=_PERMISSIONS,
)  # fmt: skip
_INCIDENT = record(id=TEXT, rule_id_=TEXT, message_=TEXT, description_=TEXT, effort_=TEXT, severity_=TEXT)


def _arguments(schema: Schema) -> Schema:
    return record(command=TEXT, arguments={"type": "array", "minItems": 1, "maxItems": 1, "items": schema})


def _stream(content: Schema) -> Schema:
    return record(session_id=TEXT, request_id=TEXT, message_id=TEXT, timestamp=TEXT, content=content)


_RESULT = record(success=FLAG, output_=either(TEXT, _NULL), error_=either(TEXT, _NULL), execution_time_=NUMBER)
_STREAMS: dict[str, Schema] = {
    "progress": record(percentage=NUMBER, phase=TEXT, description_=TEXT, current_step_=TEXT, total_steps_=COUNT),
    "ai_response": record(text=TEXT, partial_=FLAG, confidence_=NUMBER, tokens_=COUNT),
    "tool_call": record(
        tool_name=TEXT, operation_=TEXT, parameters_=OBJECT, status_=TEXT, result_=either(_RESULT, _NULL)
    ),
    "user_interaction": record(
        interaction_id=TEXT, interaction_type=TEXT, prompt=TEXT, options_=LIST, default_response_=TEXT, timeout_=NUMBER
    ),
    "file_modification": record(
        proposal_id=TEXT, file_path=TEXT, operation=TEXT, diff_=TEXT, risk_level_=TEXT, requires_approval_=FLAG
    ),
    "error": record(error_code=TEXT, message=TEXT, details_=TEXT, recoverable_=FLAG, suggested_action_=TEXT),
    "system": record(message=TEXT, level_=TEXT, component_=TEXT),
}
_TOLD = {f"< kaiak/stream/{name}": "processing" for name in _STREAMS}
_SESSION = ("/params/arguments/0/session_id", "/params/session_id", "/result/session_id")

RULES = Rules(
    "Kaiak agent API",
    {
        "framing": Clause("Message Framing", "Every message stands behind Content-Length, an empty line between."),
        "configure": Clause("1. configure", "One argument with a configuration; the answer has what was applied."),
        "fix": Clause("2. generate_fix", "session_id and incidents; the answer has request_id, session_id, status."),
        "delete": Clause("3. delete_session", "session_id; the answer says what was removed."),
        "stream": Clause("Streaming Notifications", "session_id, request_id, message_id, timestamp, content."),
        "no-id": Clause("Streaming Notifications", "They are sent without an id."),
        "during": Clause("Streaming Notifications", "They are sent during generate_fix processing."),
        "session": Clause("Session Lifecycle", "Created by generate_fix, streamed, answered, then perhaps deleted."),
        "in-use": Clause("Concurrent Access Control", "Only one client can use a session at a time."),
        "methods": Clause("API Methods", "Three commands, seven notifications, and the reply to an interaction."),
    },
    envelope=VERSION_2,
    envelope_clause="version-2",
    messages={
        f"> {_CONFIGURE}": ("configure", _arguments(record(configuration=_CONFIGURATION, reset_existing_=FLAG))),
        f"< = {_CONFIGURE}": (
            "configure",
            record(status=TEXT, message_=TEXT, configuration_applied=OBJECT, warnings_=LIST, timestamp_=TEXT),
        ),
        f"> {_FIX}": (
            "fix",
            _arguments(
                record(session_id_=TEXT, incidents=list_of(_INCIDENT), migration_context_=OBJECT, options_=OBJECT)
            ),
        ),
        f"< = {_FIX}": (
            "fix", record(request_id=TEXT, session_id=TEXT, status=TEXT, incident_count_=COUNT, completed_at_=TEXT)
        ),
        f"> {_DELETE}": ("delete", _arguments(record(session_id=TEXT, force_=FLAG, cleanup_files_=FLAG))),
        f"< = {_DELETE}": (
            "delete", record(session_id=TEXT, status=TEXT, cleanup_summary_=OBJECT, deleted_at_=TEXT)
        ),
        **{f"< kaiak/stream/{name}": ("stream", _stream(content)) for name, content in _STREAMS.items()},
        # "The specific method for responding is not part of the three-endpoint API": this is the one that there is.
        "> kaiak/client/user_message": ("methods", record(session_id=TEXT, payload=OBJECT)),
        # What LSP has around it, where a server follows it that far.
        "> initialize": ("methods", ANY),
        "> initialized": ("methods", ANY),
        "> shutdown": ("methods", ANY),
        "> exit": ("methods", ANY),
        f"< ! {_FIX}": ("error-object", record(code=WHOLE, message=TEXT, data_=OBJECT)),
    },
    machines=(
        Machine(
            "session",
            "free",
            {
                # The server makes up the id where the client brings none: the first word of a session may be its own.
                "free": {f"> {_FIX}": "processing", f"> {_DELETE}": "free", f"< = {_DELETE}": "free"} | _TOLD,
                "processing": _TOLD | {
                    f"< = {_FIX}": "free", f"> {_FIX}": "processing", "> kaiak/client/user_message": "processing",
                    f"> {_DELETE}": "processing", f"< = {_DELETE}": "free",
                },
            },
            key=_SESSION,
        ),
        Machine(
            "during",
            "processing",
            {"processing": _TOLD | {f"< = {_FIX}": "answered"}, "answered": {}},
            key=("/params/request_id", "/result/request_id"),
        ),
    ),
    during=(During("during", tuple(_TOLD), (_COMMAND,)),),
    split={f"> {_COMMAND}": "/params/command"},
    closed="methods",
    junk="framing",
    notifications=dict.fromkeys((event[2:] for event in _TOLD), "no-id"),
)  # fmt: skip
