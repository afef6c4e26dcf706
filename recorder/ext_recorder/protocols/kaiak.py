"""Kaiak's agent API (spec 4): three commands of LSP's `workspace/executeCommand`, seven stream notifications."""

from __future__ import annotations

from .dialect import Dialect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .rules import Rules, Schema

COMMAND = "workspace/executeCommand"
_SESSION = "/params/arguments/0/session_id"
STREAMS = ("progress", "ai_response", "tool_call", "user_interaction", "file_modification", "error", "system")

DIALECT = Dialect(
    "kaiak",
    "content-length",
    "Kaiak's agent API",
    bound={COMMAND: {"workspace": "/params/arguments/0/configuration/workspace/working_dir"}},
    volatile={
        COMMAND: (
            "/result/timestamp", "/result/completed_at", "/result/deleted_at", "/result/created_at",
            "/error/data/in_use_since",
        ),
        "*": ("/params/timestamp", "/params/message_id"),
        "kaiak/client/user_message": ("/params/timestamp", "/result/notification_id"),
        "kaiak/stream/ai_response": ("/params/content/text", "/params/content/tokens", "/params/content/confidence"),
        "kaiak/stream/tool_call": ("/params/content/result/execution_time",),
        "kaiak/stream/file_modification": ("/params/content/diff",),
    },
    # The client or the server generates the id of a session; the server generates those of requests, interactions and
    # proposals.
    client_generated={COMMAND: (_SESSION,)},
    names={
        "": ("/result/session_id", "/result/request_id", "/error/data/session_id"),
        COMMAND: (_SESSION,),
        "kaiak/stream/user_interaction": ("/params/content/interaction_id", "/params/content/proposal_id"),
        "kaiak/stream/file_modification": ("/params/content/proposal_id",),
        "kaiak/client/user_message": ("/params/payload/request_id",),
        "*": ("/params/session_id", "/params/request_id"),
    },
    session_scoped={COMMAND: (_SESSION,)},
    controls={"kaiak/client/user_message": ("/params/payload/request_id",)},
    subject={COMMAND: "/params/command"},
    final=("exit",),  # of servers that support this part of LSP
)  # fmt: skip


def rules() -> Rules:
    """Return the rules of the specification."""
    from .rules import (  # fmt: skip
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
        Clause,
        OnlyWhileOpen,
        Rules,
        StateMachine,
        either,
        list_of,
        map_of,
        one_of,
        record,
    )

    command = "workspace/executeCommand"
    null: Schema = {"type": "null"}
    fix, configure, delete = (f"{command}:kaiak/{name}" for name in ("generate_fix", "configure", "delete_session"))
    permissions = record(tool_permissions_=map_of(one_of("allow", "approve", "deny")))
    configuration = record(
        workspace_=record(working_dir_=TEXT, include_patterns_=TEXTS, exclude_patterns_=TEXTS),
        model_=OBJECT, tools_=OBJECT, session_=OBJECT, permissions_=permissions,
    )  # fmt: skip
    incident = record(id=TEXT, rule_id_=TEXT, message_=TEXT, description_=TEXT, effort_=TEXT, severity_=TEXT)

    def arguments(schema: Schema) -> Schema:
        return record(command=TEXT, arguments={"type": "array", "minItems": 1, "maxItems": 1, "items": schema})

    def stream(content: Schema) -> Schema:
        return record(session_id=TEXT, request_id=TEXT, message_id=TEXT, timestamp=TEXT, content=content)

    result = record(success=FLAG, output_=either(TEXT, null), error_=either(TEXT, null), execution_time_=NUMBER)
    streams: dict[str, Schema] = {
        "progress": record(percentage=NUMBER, phase=TEXT, description_=TEXT, current_step_=TEXT, total_steps_=COUNT),
        "ai_response": record(text=TEXT, partial_=FLAG, confidence_=NUMBER, tokens_=COUNT),
        "tool_call": record(
            tool_name=TEXT, operation_=TEXT, parameters_=OBJECT, status_=TEXT, result_=either(result, null)
        ),
        "user_interaction": record(
            interaction_id=TEXT,
            interaction_type=TEXT,
            prompt=TEXT,
            options_=LIST,
            default_response_=TEXT,
            timeout_=NUMBER,
        ),
        "file_modification": record(
            proposal_id=TEXT, file_path=TEXT, operation=TEXT, diff_=TEXT, risk_level_=TEXT, requires_approval_=FLAG
        ),
        "error": record(error_code=TEXT, message=TEXT, details_=TEXT, recoverable_=FLAG, suggested_action_=TEXT),
        "system": record(message=TEXT, level_=TEXT, component_=TEXT),
    }
    streamed = {f"< kaiak/stream/{name}": "processing" for name in streams}
    session = ("/params/arguments/0/session_id", "/params/session_id", "/result/session_id")
    return Rules(
        "Kaiak agent API",
        {
            "framing": Clause("Message Framing", "Every message follows Content-Length and an empty line."),
            "configure": Clause("1. configure", "One argument with a configuration; the answer has the applied one."),
            "fix": Clause(
                "2. generate_fix", "session_id and incidents; the answer has request_id, session_id, status."
            ),
            "delete": Clause("3. delete_session", "session_id; the answer has the result of the removal."),
            "stream": Clause("Streaming Notifications", "session_id, request_id, message_id, timestamp, content."),
            "no-id": Clause("Streaming Notifications", "They are sent without an id."),
            "during": Clause("Streaming Notifications", "They are sent during generate_fix processing."),
            "session": Clause(
                "Session Lifecycle", "Created by generate_fix, streamed, answered, then perhaps deleted."
            ),
            "in-use": Clause("Concurrent Access Control", "Only one client can use a session at a time."),
            "methods": Clause("API Methods", "Three commands, seven notifications, and the reply to an interaction."),
        },
        envelope=VERSION_2,
        envelope_clause="version-2",
        messages={
            f"> {configure}": ("configure", arguments(record(configuration=configuration, reset_existing_=FLAG))),
            f"< = {configure}": (
                "configure",
                record(status=TEXT, message_=TEXT, configuration_applied=OBJECT, warnings_=LIST, timestamp_=TEXT),
            ),
            f"> {fix}": (
                "fix",
                arguments(
                    record(session_id_=TEXT, incidents=list_of(incident), migration_context_=OBJECT, options_=OBJECT)
                ),
            ),
            f"< = {fix}": (
                "fix",
                record(request_id=TEXT, session_id=TEXT, status=TEXT, incident_count_=COUNT, completed_at_=TEXT),
            ),
            f"> {delete}": ("delete", arguments(record(session_id=TEXT, force_=FLAG, cleanup_files_=FLAG))),
            f"< = {delete}": (
                "delete",
                record(session_id=TEXT, status=TEXT, cleanup_summary_=OBJECT, deleted_at_=TEXT),
            ),
            **{f"< kaiak/stream/{name}": ("stream", stream(content)) for name, content in streams.items()},
            # "The specific method for responding is not part of the three-endpoint API": the server has this one.
            "> kaiak/client/user_message": ("methods", record(session_id=TEXT, payload=OBJECT)),
            # The handshake of LSP, for servers that support this part of it.
            "> initialize": ("methods", ANY),
            "> initialized": ("methods", ANY),
            "> shutdown": ("methods", ANY),
            "> exit": ("methods", ANY),
            f"< ! {fix}": ("error-object", record(code=WHOLE, message=TEXT, data_=OBJECT)),
        },
        machines=(
            StateMachine(
                "session",
                "free",
                {
                    # If the client sends no id, the server generates it, so its message may be the first of a session.
                    "free": {f"> {fix}": "processing", f"> {delete}": "free", f"< = {delete}": "free"} | streamed,
                    "processing": streamed
                    | {
                        f"< = {fix}": "free",
                        f"> {fix}": "processing",
                        "> kaiak/client/user_message": "processing",
                        f"> {delete}": "processing",
                        f"< = {delete}": "free",
                    },
                },
                key=session,
            ),
            StateMachine(
                "during",
                "processing",
                {"processing": streamed | {f"< = {fix}": "answered"}, "answered": {}},
                key=("/params/request_id", "/result/request_id"),
            ),
        ),
        during=(OnlyWhileOpen("during", tuple(streamed), (command,)),),
        split={f"> {command}": "/params/command"},
        closed="methods",
        junk="framing",
        notifications=dict.fromkeys((event[2:] for event in streamed), "no-id"),
    )


# Kaiak's agent API as of its later server: three methods, and one notification for everything that it streams.

_HEAD_SESSION = "/params/session_id"

HEAD_DIALECT = Dialect(
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
    client_generated={"kaiak/generate_fix": (_HEAD_SESSION,), "kaiak/delete_session": (_HEAD_SESSION,)},
    names={
        "": ("/result/session_id", "/result/request_id", "/error/data/session_id"),
        "kaiak/generate_fix/data": ("/params/payload/id",),
        "*": (_HEAD_SESSION, "/params/request_id", "/params/payload/request_id"),
    },
    session_scoped={"kaiak/generate_fix": (_HEAD_SESSION,)},
    controls={"kaiak/client/user_message": ("/params/payload/request_id",)},
    subject={"kaiak/generate_fix/data": "/params/kind", "kaiak/client/user_message": "/params/kind"},
)


def head_rules() -> Rules:
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
