"""Kaiak's later dialect: what its server demands and gives, as it was read and seen."""

from __future__ import annotations

from .rule import Clause, During, Machine, Rules
from .schema import ANY, COUNT, FLAG, INSTANT, OBJECT, TEXT, TEXTS, VERSION_2, both, either, one_of, record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .schema import Schema

_FIX, _DELETE, _REPLY = "kaiak/generate_fix", "kaiak/delete_session", "kaiak/client/user_message"
_DATA = "kaiak/generate_fix/data"
_NULL: Schema = {"type": "null"}
_INCIDENT = record(id=TEXT, uri=TEXT, message=TEXT, description=TEXT, effort_=TEXT, severity_=TEXT)
_CLEANUP = record(
    session_removed=FLAG, temp_files_cleaned=FLAG, logs_preserved=FLAG, warnings=TEXTS, files_removed=COUNT
)
_KINDS = ("ai_message", "tool_call", "tool_response", "user_interaction", "thinking", "error", "system")
_PAYLOADS: dict[str, Schema] = {
    "ai_message": record(role=TEXT, text=TEXT),
    "thinking": record(thinking=TEXT),
    "tool_call": either(record(id=TEXT, tool_name=TEXT), record(id=TEXT, error=TEXT)),
    "tool_response": either(record(id=TEXT, content_count=COUNT), record(id=TEXT, error=TEXT)),
    "user_interaction": either(
        record(interaction_type={"const": "tool_confirmation"}, id=TEXT, tool_name=TEXT, arguments=OBJECT),
        record(interaction_type={"const": "elicitation"}, id=TEXT, message=TEXT, requested_schema=ANY),
    ),
    "error": record(error=TEXT),
    "system": either(record(event=TEXT), record(notification_type=TEXT, message=TEXT)),
}
_REPLIES: dict[str, Schema] = {
    "tool_confirmation": record(request_id=TEXT, action=one_of("allow_once", "always_allow", "deny")),
    "elicitation_response": record(request_id=TEXT, user_data=ANY),
    "user_input": ANY,
    "control_signal": ANY,
}
_ASKED, _CONFIRMED = f"< {_DATA}:user_interaction", f"> {_REPLY}:tool_confirmation"
_ANSWERED = f"> {_REPLY}:elicitation_response"
_DELETED = f"< = {_DELETE}:deleted"


def _data(payload: Schema) -> Schema:
    return record(request_id=TEXT, session_id=TEXT, kind=one_of(*_KINDS), payload=payload)


def _reply(payload: Schema) -> Schema:
    return record(session_id=TEXT, kind=one_of(*_REPLIES), timestamp=INSTANT, payload_=payload)


RULES = Rules(
    "Kaiak's later server",
    {
        "fix": Clause(_FIX, "incidents and agent_config; the answer has request_id, session_id and created_at."),
        "delete": Clause(_DELETE, "session_id; the answer has status, cleanup_results and deleted_at."),
        "reply": Clause(_REPLY, "session_id, one of four kinds, timestamp; the answer says whether it was a success."),
        "data": Clause(_DATA, "request_id, session_id, one of seven kinds, and its payload."),
        "no-id": Clause(_DATA, "It is a notification."),
        "during": Clause(_DATA, "It is sent while a fix goes on, and not after its answer."),
        "session": Clause(_DELETE, "A session that was deleted is told of no more."),
        "interaction": Clause(_REPLY, "It names, once, an interaction that was asked for."),
        "methods": Clause("methods", "There are three methods of the client, and one notification of the server."),
    },
    envelope=VERSION_2,
    envelope_clause="version-2",
    messages={
        f"> {_FIX}": (
            "fix",
            record(
                session_id_=either(TEXT, _NULL),
                incidents={"type": "array", "minItems": 1, "maxItems": 1000, "items": _INCIDENT},
                migration_context_=ANY,
                agent_config=record(workspace=record(working_dir=TEXT)),
            ),
        ),
        f"< = {_FIX}": ("fix", record(request_id=TEXT, session_id=TEXT, created_at=INSTANT)),
        f"> {_DELETE}": ("delete", record(session_id=TEXT, cleanup_options_=either(OBJECT, _NULL))),
        f"< = {_DELETE}": (
            "delete",
            record(
                session_id=TEXT,
                status=one_of("deleted", "not_found", "active", "failed", "in_progress"),
                cleanup_results=_CLEANUP,
                deleted_at=INSTANT,
            ),
        ),
        f"> {_REPLY}": ("reply", _reply(ANY)),
        **{
            f"> {_REPLY}:{kind}": ("reply", both(_reply(payload), record(payload=ANY) if payload else ANY))
            for kind, payload in _REPLIES.items()
        },
        f"< = {_REPLY}": ("reply", record(success=FLAG, message=TEXT, notification_id_=TEXT)),
        f"< {_DATA}": ("data", _data(ANY)),
        **{f"< {_DATA}:{kind}": ("data", _data(payload)) for kind, payload in _PAYLOADS.items()},
    },
    machines=(
        Machine(
            "session",
            "there",
            {
                "there": {f"< {_DATA}": "there", f"< = {_FIX}": "there", _DELETED: "gone"},
                "gone": {_DELETED: "gone"},
            },
            key=("/params/session_id", "/result/session_id"),
        ),
        Machine(
            "during",
            "processing",
            {"processing": {f"< {_DATA}": "processing", f"< = {_FIX}": "answered"}, "answered": {}},
            key=("/params/request_id", "/result/request_id"),
        ),
        Machine(
            "interaction",
            "not asked for",
            {
                "not asked for": {_ASKED: "asked for"},
                "asked for": {_CONFIRMED: "answered", _ANSWERED: "answered"},
                "answered": {},
            },
            key=("/params/payload/request_id", "/params/payload/id"),
        ),
    ),
    during=(During("during", (f"< {_DATA}",), (_FIX,)),),
    split={f"< {_DATA}": "/params/kind", f"> {_REPLY}": "/params/kind", f"< = {_DELETE}": "/result/status"},
    closed="methods",
    notifications={_DATA: "no-id"},
)
