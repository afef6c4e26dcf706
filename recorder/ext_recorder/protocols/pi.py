"""Pi extension protocol 1.0 (spec 1): an envelope with a type, and calls in both directions.

The specification names no transport; Pi's own RPC mode sends one message per line. The `call_id` in the payload
identifies a call; a slash command has none, so the `id` of its envelope is used.
"""

from __future__ import annotations

from .dialect import Dialect, Form

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .rules import Rules, Schema

_CALL_ID = "/payload/call_id"
_PAYLOAD = ("payload",)

DIALECT = Dialect(
    "pi",
    "ndjson",
    "the Pi extension protocol",
    tag="type",
    forms={
        "register": Form("notification", "/type", "", _PAYLOAD),
        "tool_call": Form("request", "/type", _CALL_ID, _PAYLOAD),
        "tool_result": Form("response", "/type", _CALL_ID, _PAYLOAD),
        "slash_command": Form("request", "/type", "/id", _PAYLOAD),
        "slash_result": Form("response", "/type", "/id", _PAYLOAD),
        "event_hook": Form("notification", "/type", "", _PAYLOAD),
        "host_call": Form("request", "/type", _CALL_ID, _PAYLOAD),
        "host_result": Form("response", "/type", _CALL_ID, _PAYLOAD),
        "log": Form("notification", "/type", "", _PAYLOAD),
        "error": Form("notification", "/type", "", _PAYLOAD),
    },
    bound={"tool_call": {"cwd": "/payload/context/cwd"}},
    volatile={
        "log": (
            "/payload/ts", "/payload/source/pid", "/payload/source/host", "/payload/correlation/run_id",
            "/payload/correlation/session_id", "/payload/correlation/artifact_id", "/payload/correlation/trace_id",
            "/payload/correlation/span_id",
        ),
        "host_call": ("/payload/timeout_ms",),  # what is left of the time of an operation
        "*": ("/id", "/payload/cancel_token"),
    },
    # `id`: "Correlation id for request/response". An answer, or the report of an error, may repeat it.
    client_generated={"*": ("/id",)},
    echoed_names={"tool_result": ("/id",), "slash_result": ("/id",), "error": ("/id",)},
    references={"event_hook": ("/payload/data/call_id",)},  # `tool_call_cancel`
    mentions={
        "log": ("/payload/correlation/tool_call_id", "/payload/correlation/slash_command_id"),
        "error": ("/payload/details/call_id",),
    },
    unfinished={"/payload/chunk/is_last": False},
    failed={"/payload/is_error": True},
    subject={
        "tool_call": "/payload/name", "slash_command": "/payload/name", "host_call": "/payload/method",
        "event_hook": "/payload/event",
    },
    refusals={
        "tool_call": '{"id":%(/id)s,"version":"1.0","type":"tool_result","payload":{"call_id":%(/payload/call_id)s,'
        '"output":{"error":%(message)s,"data":%(data)s},"is_error":true}}',
        "slash_command": '{"id":%(/id)s,"version":"1.0","type":"slash_result","payload":'
        '{"output":{"error":%(message)s,"data":%(data)s},"is_error":true}}',
    },
)  # fmt: skip


def rules() -> Rules:
    """Return the rules of the specification."""
    from .rules import (
        COUNT,
        FLAG,
        INSTANT,
        OBJECT,
        TEXT,
        TEXTS,
        Clause,
        Rules,
        StateMachine,
        both,
        list_of,
        one_of,
        record,
    )

    # "Capability key to evaluate and audit (must match core-derived requirement)": a call by one of these methods
    # requires the capability of the same name. Tools and files have finer ones, by their parameters.
    own_capability = ("exec", "http", "session", "ui", "events", "env", "log")
    scope = record(paths_=TEXTS, hosts_=TEXTS, env_=TEXTS)
    manifest = record(
        schema=one_of("pi.ext.cap.v1"),
        capabilities=list_of(record(capability=TEXT, methods_=TEXTS, scope_=scope)),
    )
    register = record(
        name=TEXT, version=TEXT, api_version=TEXT, capabilities_=TEXTS, capability_manifest_=manifest,
        tools_=list_of(OBJECT), slash_commands_=list_of(OBJECT), event_hooks_=TEXTS,
    )  # fmt: skip
    error = record(
        code=one_of("timeout", "denied", "io", "invalid_request", "internal"),
        message=TEXT,
        details_=OBJECT,
        retryable_=FLAG,
    )
    chunk = record(index=COUNT, is_last=FLAG, backpressure_=record(credits_=COUNT, delay_ms_=COUNT))
    host_result = record(call_id=TEXT, output=OBJECT, is_error=FLAG, error_=error, chunk_=chunk)
    correlation = record(
        extension_id=TEXT, scenario_id=TEXT, session_id_=TEXT, run_id_=TEXT, artifact_id_=TEXT, tool_call_id_=TEXT,
        slash_command_id_=TEXT, event_id_=TEXT, host_call_id_=TEXT, rpc_id_=TEXT, trace_id_=TEXT, span_id_=TEXT,
    )  # fmt: skip
    source = record(component=one_of("capture", "harness", "runtime", "extension"), host_=TEXT, pid_=COUNT)
    log = record(
        schema=one_of("pi.ext.log.v1"), ts=INSTANT, level=one_of("debug", "info", "warn", "error"), event=TEXT,
        message=TEXT, correlation=correlation, source_=source, data_=OBJECT,
    )  # fmt: skip

    def when(field: str, value: object, then: Schema) -> Schema:
        return {"if": {"properties": {field: {"const": value}}, "required": [field]}, "then": then}

    capabilities = [when("method", name, {"properties": {"capability": {"const": name}}}) for name in own_capability]
    host_call = both(
        record(
            call_id=TEXT,
            capability=TEXT,
            method=TEXT,
            params=OBJECT,
            timeout_ms_=COUNT,
            cancel_token_=TEXT,
            context_=OBJECT,
        ),
        *capabilities,
    )
    return Rules(
        "Pi extension protocol 1.0",
        {
            "answer-known": Clause("properties/id, $defs/tool_result", "A result names the call that it is of."),
            "answer-each": Clause("properties/id", "Every call gets its result, once."),
            "message": Clause("properties/type", "A message is a JSON object of one of ten types."),
            "envelope": Clause("required, properties", "id, version 1.0, a known type and a payload."),
            "register": Clause("$defs/register", "name, version, api_version; capabilities as they are defined."),
            "tool": Clause("$defs/tool_call, $defs/tool_result", "call_id, name, input; call_id, output, is_error."),
            "slash": Clause("$defs/slash_command, $defs/slash_result", "name; output, is_error."),
            "hook": Clause("$defs/event_hook", "event."),
            "host-call": Clause(
                "$defs/host_call", "call_id, capability (the one that the method needs), method, params."
            ),
            "host-result": Clause(
                "$defs/host_result", "call_id, output, is_error; an error just where is_error is true."
            ),
            "log": Clause("$defs/log", "schema, ts, level, event, message, correlation."),
            "error": Clause("$defs/error", "code and message."),
            "order": Clause("$defs/register", "An extension registers, once, before it is asked for anything."),
            "types": Clause("properties/type", "Each type has a direction: the host calls tools and commands."),
            "call": Clause(
                "properties/id", "Correlation id for request/response: an answer names a call that is open."
            ),
        },
        envelope=record(
            id=TEXT,
            version=one_of("1.0"),
            type=one_of(*DIALECT.forms),
            payload=OBJECT,
        ),
        envelope_clause="envelope",
        messages={
            "< register": ("register", register),
            "> tool_call": ("tool", record(call_id=TEXT, name=TEXT, input=OBJECT, context_=OBJECT)),
            "< = tool_call": ("tool", record(call_id=TEXT, output=OBJECT, is_error=FLAG)),
            "> slash_command": ("slash", record(name=TEXT, args_=TEXTS, input_=OBJECT)),
            "< = slash_command": ("slash", record(output=OBJECT, is_error=FLAG)),
            "> event_hook": ("hook", record(event=TEXT, data_=OBJECT)),
            "< host_call": ("host-call", host_call),
            "> = host_call": ("host-result", both(host_result, {"not": {"required": ["error"]}})),
            "> ! host_call": ("host-result", both(host_result, {"required": ["error"]})),
            "< ! tool_call": ("tool", record(call_id=TEXT, output=OBJECT, is_error=FLAG)),
            "< ! slash_command": ("slash", record(output=OBJECT, is_error=FLAG)),
            "< log": ("log", log),
            "> log": ("log", log),
            "< error": ("error", record(code=TEXT, message=TEXT, details_=OBJECT)),
            "> error": ("error", record(code=TEXT, message=TEXT, details_=OBJECT)),
        },
        machines=(
            StateMachine(
                "order",
                "spawned",
                {
                    "spawned": {"< register": "registered"},
                    "registered": {
                        "> tool_call": "registered",
                        "> slash_command": "registered",
                        "> event_hook": "registered",
                        "< host_call": "registered",
                    },
                },
            ),
        ),
        closed="types",
        junk="message",
    )
