"""Kaiak's agent API as of its later server: three methods, and one notification for everything that it streams."""

from __future__ import annotations

from .dialect import Dialect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .rules import Rules, Schema

_SESSION = "/params/session_id"

DIALECT = Dialect(
    "kaiak-head",
    "content-length",
    "Kaiak's agent API, in the form of its later server",
    bound={"kaiak/generate_fix": {"workspace": "/params/agent_config/workspace/working_dir"}},
    volatile={
        "kaiak/generate_fix": ("/result/created_at",),
        "kaiak/delete_session": ("/result/deleted_at", "/result/cleanup_results"),
        "kaiak/client/user_message": ("/params/timestamp", "/result/notification_id"),
        "kaiak/generate_fix/data": ("/params/timestamp", "/params/message_id", "/params/payload"),
    },
    client_generated={"kaiak/generate_fix": (_SESSION,), "kaiak/delete_session": (_SESSION,)},
    names={
        "": ("/result/session_id", "/result/request_id", "/error/data/session_id"),
        "kaiak/generate_fix/data": ("/params/payload/id",),
        "*": (_SESSION, "/params/request_id", "/params/payload/request_id"),
    },
    session_scoped={"kaiak/generate_fix": (_SESSION,)},
    controls={"kaiak/client/user_message": ("/params/payload/request_id",)},
    subject={"kaiak/generate_fix/data": "/params/kind", "kaiak/client/user_message": "/params/kind"},
)


def rules() -> Rules:
    """Return the rules of the specification."""
    from .rules import (
        ANY,
        COUNT,
        FLAG,
        INSTANT,
        OBJECT,
        TEXT,
        TEXTS,
        VERSION_2,
        Clause,
        OnlyWhileOpen,
        Rules,
        StateMachine,
        both,
        either,
        one_of,
        record,
    )

    fix, delete, reply = "kaiak/generate_fix", "kaiak/delete_session", "kaiak/client/user_message"
    data = "kaiak/generate_fix/data"
    null: Schema = {"type": "null"}
    incident = record(id=TEXT, uri=TEXT, message=TEXT, description=TEXT, effort_=TEXT, severity_=TEXT)
    cleanup = record(
        session_removed=FLAG, temp_files_cleaned=FLAG, logs_preserved=FLAG, warnings=TEXTS, files_removed=COUNT
    )
    kinds = ("ai_message", "tool_call", "tool_response", "user_interaction", "thinking", "error", "system")
    payloads: dict[str, Schema] = {
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
    replies: dict[str, Schema] = {
        "tool_confirmation": record(request_id=TEXT, action=one_of("allow_once", "always_allow", "deny")),
        "elicitation_response": record(request_id=TEXT, user_data=ANY),
        "user_input": ANY,
        "control_signal": ANY,
    }
    asked, confirmed = f"< {data}:user_interaction", f"> {reply}:tool_confirmation"
    answered = f"> {reply}:elicitation_response"
    deleted = f"< = {delete}:deleted"

    def data_(payload: Schema) -> Schema:
        return record(request_id=TEXT, session_id=TEXT, kind=one_of(*kinds), payload=payload)

    def reply_(payload: Schema) -> Schema:
        return record(session_id=TEXT, kind=one_of(*replies), timestamp=INSTANT, payload_=payload)

    return Rules(
        "Kaiak's later server",
        {
            "fix": Clause(fix, "incidents and agent_config; the answer has request_id, session_id and created_at."),
            "delete": Clause(delete, "session_id; the answer has status, cleanup_results and deleted_at."),
            "reply": Clause(reply, "session_id, one of four kinds, timestamp; the answer has success."),
            "data": Clause(data, "request_id, session_id, one of seven kinds, and its payload."),
            "no-id": Clause(data, "It is a notification."),
            "during": Clause(data, "It is sent during a fix, and not after its answer."),
            "session": Clause(delete, "The server sends no message about a deleted session."),
            "interaction": Clause(reply, "It names, once, an interaction that was asked for."),
            "methods": Clause("methods", "There are three methods of the client, and one notification of the server."),
        },
        envelope=VERSION_2,
        envelope_clause="version-2",
        messages={
            f"> {fix}": (
                "fix",
                record(
                    session_id_=either(TEXT, null),
                    incidents={"type": "array", "minItems": 1, "maxItems": 1000, "items": incident},
                    migration_context_=ANY,
                    # Its code has the path, its documentation the object.
                    agent_config=record(workspace=either(TEXT, record(working_dir=TEXT))),
                ),
            ),
            f"< = {fix}": ("fix", record(request_id=TEXT, session_id=TEXT, created_at=INSTANT)),
            f"> {delete}": ("delete", record(session_id=TEXT, cleanup_options_=either(OBJECT, null))),
            f"< = {delete}": (
                "delete",
                record(
                    session_id=TEXT,
                    status=one_of("deleted", "not_found", "active", "failed", "in_progress"),
                    cleanup_results=cleanup,
                    deleted_at=INSTANT,
                ),
            ),
            f"> {reply}": ("reply", reply_(ANY)),
            **{
                f"> {reply}:{kind}": ("reply", both(reply_(payload), record(payload=ANY) if payload else ANY))
                for kind, payload in replies.items()
            },
            f"< = {reply}": ("reply", record(success=FLAG, message=TEXT, notification_id_=TEXT)),
            f"< {data}": ("data", data_(ANY)),
            **{f"< {data}:{kind}": ("data", data_(payload)) for kind, payload in payloads.items()},
        },
        machines=(
            StateMachine(
                "session",
                "there",
                {
                    "there": {f"< {data}": "there", f"< = {fix}": "there", deleted: "gone"},
                    "gone": {deleted: "gone"},
                },
                key=("/params/session_id", "/result/session_id"),
            ),
            StateMachine(
                "during",
                "processing",
                {"processing": {f"< {data}": "processing", f"< = {fix}": "answered"}, "answered": {}},
                key=("/params/request_id", "/result/request_id"),
            ),
            StateMachine(
                "interaction",
                "not asked for",
                {
                    "not asked for": {asked: "asked for"},
                    "asked for": {confirmed: "answered", answered: "answered"},
                    "answered": {},
                },
                key=("/params/payload/request_id", "/params/payload/id"),
            ),
        ),
        during=(OnlyWhileOpen("during", (f"< {data}",), (fix,)),),
        split={f"< {data}": "/params/kind", f"> {reply}": "/params/kind", f"< = {delete}": "/result/status"},
        closed="methods",
        notifications={data: "no-id"},
    )
