"""Spec 1: the Pi extension protocol, version 1.0."""

from __future__ import annotations

from .rule import Clause, Machine, Rules
from .schema import COUNT, FLAG, INSTANT, OBJECT, TEXT, TEXTS, both, list_of, one_of, record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .schema import Schema

# "Capability key to evaluate and audit (must match core-derived requirement)": a call by one of these methods needs the
# capability of the same name. Tools and files have finer ones, by their parameters.
_OWN_CAPABILITY = ("exec", "http", "session", "ui", "events", "env", "log")

_SCOPE = record(paths_=TEXTS, hosts_=TEXTS, env_=TEXTS)
_MANIFEST = record(
    schema=one_of("pi.ext.cap.v1"),
    capabilities=list_of(record(capability=TEXT, methods_=TEXTS, scope_=_SCOPE)),
)
_REGISTER = record(
    name=TEXT, version=TEXT, api_version=TEXT, capabilities_=TEXTS, capability_manifest_=_MANIFEST,
    tools_=list_of(OBJECT), slash_commands_=list_of(OBJECT), event_hooks_=TEXTS,
)  # fmt: skip
_ERROR = record(
    code=one_of("timeout", "denied", "io", "invalid_request", "internal"),
    message=TEXT,
    details_=OBJECT,
    retryable_=FLAG,
)
_CHUNK = record(index=COUNT, is_last=FLAG, backpressure_=record(credits_=COUNT, delay_ms_=COUNT))
_HOST_RESULT = record(call_id=TEXT, output=OBJECT, is_error=FLAG, error_=_ERROR, chunk_=_CHUNK)
_CORRELATION = record(
    extension_id=TEXT, scenario_id=TEXT, session_id_=TEXT, run_id_=TEXT, artifact_id_=TEXT, tool_call_id_=TEXT,
    slash_command_id_=TEXT, event_id_=TEXT, host_call_id_=TEXT, rpc_id_=TEXT, trace_id_=TEXT, span_id_=TEXT,
)  # fmt: skip
_SOURCE = record(component=one_of("capture", "harness", "runtime", "extension"), host_=TEXT, pid_=COUNT)
_LOG = record(
    schema=one_of("pi.ext.log.v1"), ts=INSTANT, level=one_of("debug", "info", "warn", "error"), event=TEXT,
    message=TEXT, correlation=_CORRELATION, source_=_SOURCE, data_=OBJECT,
)  # fmt: skip


def _when(field: str, value: object, then: Schema) -> Schema:
    return {"if": {"properties": {field: {"const": value}}, "required": [field]}, "then": then}


_CAPABILITIES = [_when("method", name, {"properties": {"capability": {"const": name}}}) for name in _OWN_CAPABILITY]

_HOST_CALL = both(
    record(
        call_id=TEXT,
        capability=TEXT,
        method=TEXT,
        params=OBJECT,
        timeout_ms_=COUNT,
        cancel_token_=TEXT,
        context_=OBJECT,
    ),
    *_CAPABILITIES,
)

RULES = Rules(
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
        "host-call": Clause("$defs/host_call", "call_id, capability (the one that the method needs), method, params."),
        "host-result": Clause("$defs/host_result", "call_id, output, is_error; an error just where is_error is true."),
        "log": Clause("$defs/log", "schema, ts, level, event, message, correlation."),
        "error": Clause("$defs/error", "code and message."),
        "order": Clause("$defs/register", "An extension registers, once, before it is asked for anything."),
        "types": Clause("properties/type", "Who says what: calls of tools and commands are the host's."),
        "call": Clause("properties/id", "Correlation id for request/response: an answer names a call that is open."),
    },
    envelope=record(
        id=TEXT,
        version=one_of("1.0"),
        type=one_of(
            "register", "tool_call", "tool_result", "slash_command", "slash_result", "event_hook", "host_call",
            "host_result", "log", "error",
        ),
        payload=OBJECT,
    ),
    envelope_clause="envelope",
    messages={
        "< register": ("register", _REGISTER),
        "> tool_call": ("tool", record(call_id=TEXT, name=TEXT, input=OBJECT, context_=OBJECT)),
        "< = tool_call": ("tool", record(call_id=TEXT, output=OBJECT, is_error=FLAG)),
        "> slash_command": ("slash", record(name=TEXT, args_=TEXTS, input_=OBJECT)),
        "< = slash_command": ("slash", record(output=OBJECT, is_error=FLAG)),
        "> event_hook": ("hook", record(event=TEXT, data_=OBJECT)),
        "< host_call": ("host-call", _HOST_CALL),
        "> = host_call": ("host-result", both(_HOST_RESULT, {"not": {"required": ["error"]}})),
        "> ! host_call": ("host-result", both(_HOST_RESULT, {"required": ["error"]})),
        "< ! tool_call": ("tool", record(call_id=TEXT, output=OBJECT, is_error=FLAG)),
        "< ! slash_command": ("slash", record(output=OBJECT, is_error=FLAG)),
        "< log": ("log", _LOG),
        "> log": ("log", _LOG),
        "< error": ("error", record(code=TEXT, message=TEXT, details_=OBJECT)),
        "> error": ("error", record(code=TEXT, message=TEXT, details_=OBJECT)),
    },
    machines=(
        Machine(
            "order",
            "spawned",
            {
                "spawned": {"< register": "registered"},
                "registered": {
                    "> tool_call": "registered", "> slash_command": "registered", "> event_hook": "registered",
                    "< host_call": "registered",
                },
            },
        ),
    ),
    closed="types",
    junk="message",
)  # fmt: skip
