"""The Debug Adapter Protocol: its envelope and its initialization."""

from __future__ import annotations

from .rule import Clause, Machine, Rules
from .schema import FLAG, TEXT, WHOLE, one_of, record

_EVENT = {"if": {"properties": {"type": {"const": "event"}}}, "then": record(event=TEXT)}
_REQUEST = {"if": {"properties": {"type": {"const": "request"}}}, "then": record(command=TEXT)}
_RESPONSE = {
    "if": {"properties": {"type": {"const": "response"}}},
    "then": record(request_seq=WHOLE, success=FLAG, command=TEXT, message_=TEXT),
}
_READY = (
    "> launch", "> attach", "> setBreakpoints", "> configurationDone", "> threads", "> disconnect", "< initialized",
    "< stopped", "< output",
)  # fmt: skip

RULES = Rules(
    "Debug Adapter Protocol",
    {
        "base": Clause("Base Protocol", "seq and type; what each type needs: command, event, request_seq, success."),
        "initialize": Clause("Requests, Initialize", "The first request; adapterID is required."),
        "initialized": Clause("Events, Initialized", "Sent after the answer to initialize."),
        "configuration": Clause("Requests, ConfigurationDone", "Asked for once initialized, to end configuration."),
        "output": Clause("Events, Output", "output is a text."),
        "stopped": Clause("Events, Stopped", "A reason is given."),
    },
    envelope={"allOf": [record(seq=WHOLE, type=one_of("request", "response", "event")), _EVENT, _REQUEST, _RESPONSE]},
    envelope_clause="base",
    messages={
        "> initialize": ("initialize", record(adapterID=TEXT)),
        "< output": ("output", record(output=TEXT, category_=TEXT)),
        "< stopped": ("stopped", record(reason=TEXT, threadId_=WHOLE)),
    },
    machines=(
        Machine(
            "initialize",
            "started",
            {
                "started": {"> initialize": "initializing", "< output": "started"},
                "initializing": {"< = initialize": "ready", "< ! initialize": "started", "< output": "initializing"},
                "ready": dict.fromkeys(_READY, "ready"),
            },
        ),
        Machine(
            "configuration",
            "not initialized",
            {
                "not initialized": {"< initialized": "configuring"},
                "configuring": {"> configurationDone": "done", "> setBreakpoints": "configuring"},
                "done": {"> setBreakpoints": "done"},
            },
        ),
    ),
)  # fmt: skip
