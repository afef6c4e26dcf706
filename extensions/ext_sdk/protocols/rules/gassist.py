"""Spec 2: the G-Assist plugin protocol, version 2."""

from __future__ import annotations

from .rule import Clause, During, Machine, Rules
from .schema import ANY, ERROR, FLAG, LIST, NUMBER, OBJECT, TEXT, TEXTS, VERSION_2, WHOLE, either, one_of, record

_ID = either(WHOLE, TEXT)
_OF_CALLS = ("< stream", "< complete", "< error")
_CALL = ("#", "/params/request_id")  # `request_id` is the id of the call, so either names the same machine

RULES = Rules(
    "G-Assist plugin protocol 2.0",
    {
        "framing": Clause("Message Framing", "Every message stands behind its length in four bytes."),
        "initialize": Clause("`initialize`", "protocol_version 2.0; the plugin answers its name and version."),
        "ping": Clause("`ping`", "The answer repeats the timestamp."),
        "execute": Clause("`execute`", "function and arguments; an answer has success and data."),
        "input": Clause("`input`", "content; the plugin acknowledges first, then sends stream and complete."),
        "shutdown": Clause("`shutdown`", "The plugin exits; nothing is asked of it any more."),
        "stream": Clause("`stream`", "request_id of the running call, and data."),
        "complete": Clause("`complete`", "request_id of the running call, success, data (a text), keep_session."),
        "error": Clause("`error`", "request_id of the running call, code and message."),
        "log": Clause("`log`", "level and message."),
        "no-id": Clause("Notification (No response expected)", "A notification has no id."),
        "once": Clause("`initialize`", "Called once when the plugin starts, before anything else."),
        "session": Clause("`input`", "Input comes during passthrough mode, which `keep_session` begins."),
        "running": Clause("Plugin → Engine (Notifications)", "Sent during an execution."),
        "timeouts": Clause("Timeouts", "ping 1 second, input to its acknowledgement 2, execute to complete 30."),
        "methods": Clause("Protocol Methods", "These are all methods, each in its direction."),
    },
    envelope=VERSION_2,
    envelope_clause="version-2",
    messages={
        "> initialize": (
            "initialize",
            record(protocol_version=one_of("2.0"), engine_version_=TEXT, capabilities_=TEXTS),
        ),
        "< = initialize": ("initialize", record(name=TEXT, version=TEXT, capabilities_=TEXTS)),
        "> ping": ("ping", record(timestamp=NUMBER)),
        "< = ping": ("ping", record(timestamp=NUMBER)),
        "> execute": ("execute", record(function=TEXT, arguments_=OBJECT, context_=LIST, system_info_=TEXT)),
        "< = execute": ("execute", record(success=FLAG, data_=TEXT, keep_session_=FLAG)),
        "> input": ("input", record(content=TEXT, timestamp_=NUMBER)),
        "< = input": ("input", record(acknowledged={"const": True})),
        "> shutdown": ("shutdown", ANY),
        "< = shutdown": ("shutdown", ANY),
        "< stream": ("stream", record(request_id=_ID, data=TEXT)),
        "< complete": ("complete", record(request_id=_ID, success=FLAG, data_=TEXT, keep_session_=FLAG)),
        "< error": ("error", record(request_id=_ID, code=WHOLE, message=TEXT)),
        "< log": ("log", record(level=TEXT, message=TEXT)),
        "< ! initialize": ("error-object", ERROR),
    },
    machines=(
        Machine(
            "once",
            "spawned",
            {
                "spawned": {"> initialize": "initializing", "> ping": "spawned", "> shutdown": "over"},
                "initializing": {"< = initialize": "ready", "< ! initialize": "spawned", "> ping": "initializing"},
                "ready": {"> ping": "ready", "> execute": "ready", "> input": "ready", "> shutdown": "over"}
                | dict.fromkeys(_OF_CALLS, "ready"),
                "over": dict.fromkeys(_OF_CALLS, "over"),
            },
        ),
        Machine(
            "session",
            "no session",
            {
                "no session": {"< complete:true": "session kept", "< complete:false": "no session",
                               "< = execute:true": "session kept", "< = execute:false": "no session"},
                "session kept": {"> input": "session kept", "< complete:true": "session kept",
                                 "< complete:false": "no session", "< = execute:true": "session kept",
                                 "< = execute:false": "no session"},
            },
        ),
        Machine(
            "input",
            "idle",
            {
                "idle": {"> input": "to be acknowledged", "> execute": "running"},
                "to be acknowledged": {"< = input": "running", "< ! input": "idle"},
                "running": {"< stream": "running", "< complete": "idle", "< error": "idle", "< = execute": "idle",
                            "< ! execute": "idle"},
            },
            key=_CALL,
        ),
    ),
    during=(During("running", _OF_CALLS, ("execute", "input")),),
    split={"< complete": "/params/keep_session", "< = execute": "/result/keep_session"},
    closed="methods",
    junk="framing",
    silent=("shutdown",),
    notifications=dict.fromkeys(("stream", "complete", "error", "log"), "no-id"),
    limits={"ping": "timeouts", "execute": "timeouts", "input": "timeouts"},
    echoes={"ping": "ping"},
)  # fmt: skip
