"""G-Assist plugin protocol 2.0 (spec 2): JSON-RPC messages, each after four bytes with its length.

The result of `execute` and `input` is a notification `complete` or `error` that names the request, after any number of
`stream`; the response to `input` only acknowledges it. The result of `execute` may be a response as well.
"""

from __future__ import annotations

from .dialect import Dialect, Form

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .rules import Rules

_REQUEST_ID = "/params/request_id"
_END = Form("response", "/method", _REQUEST_ID, ("params",))

DIALECT = Dialect(
    "gassist",
    "uint32",
    "the G-Assist plugin protocol",
    forms={"complete": _END, "error": _END},
    volatile={
        "initialize": ("/params/engine_version",),
        "execute": ("/params/context", "/params/system_info"),
        "input": ("/params/timestamp",),
        "ping": ("/params/timestamp", "/result/timestamp"),
    },
    mentions={"stream": (_REQUEST_ID,), "log": (_REQUEST_ID,)},
    keepalives=("ping",),
    echoes={"ping": {"/params/timestamp": "/result/timestamp"}},
    unfinished={"/result/acknowledged": True},
    failed={"/result/success": False, "/params/success": False, "/method": "error"},
    subject={"execute": "/params/function"},
    # "No response expected", and it is a notification; the vendor's own engine emulator sends it as a request.
    optional_id={"shutdown": '{"jsonrpc":"2.0","id":%(/id)s,"result":{}}'},
    final=("shutdown",),
    # Timeouts: ping to pong, input to its acknowledgement, execute to complete.
    timeouts={"ping": 1.0, "input": 2.0, "execute": 30.0},
)


def rules() -> Rules:
    """Return the rules of the specification."""
    from .rules import (
        ANY,
        ERROR,
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
        one_of,
        record,
    )

    id_ = either(WHOLE, TEXT)
    of_calls = ("< stream", "< complete", "< error")
    call = ("#", "/params/request_id")  # `request_id` is the id of the call, so either names the same machine
    return Rules(
        "G-Assist plugin protocol 2.0",
        {
            "framing": Clause("Message Framing", "Every message follows its length in four bytes."),
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
            "< stream": ("stream", record(request_id=id_, data=TEXT)),
            "< complete": ("complete", record(request_id=id_, success=FLAG, data_=TEXT, keep_session_=FLAG)),
            "< error": ("error", record(request_id=id_, code=WHOLE, message=TEXT)),
            "< log": ("log", record(level=TEXT, message=TEXT)),
            "< ! initialize": ("error-object", ERROR),
        },
        machines=(
            StateMachine(
                "once",
                "spawned",
                {
                    "spawned": {"> initialize": "initializing", "> ping": "spawned", "> shutdown": "over"},
                    "initializing": {"< = initialize": "ready", "< ! initialize": "spawned", "> ping": "initializing"},
                    "ready": {"> ping": "ready", "> execute": "ready", "> input": "ready", "> shutdown": "over"}
                    | dict.fromkeys(of_calls, "ready"),
                    "over": dict.fromkeys(of_calls, "over"),
                },
            ),
            StateMachine(
                "session",
                "no session",
                {
                    "no session": {
                        "< complete:true": "session kept",
                        "< complete:false": "no session",
                        "< = execute:true": "session kept",
                        "< = execute:false": "no session",
                    },
                    "session kept": {
                        "> input": "session kept",
                        "< complete:true": "session kept",
                        "< complete:false": "no session",
                        "< = execute:true": "session kept",
                        "< = execute:false": "no session",
                    },
                },
            ),
            StateMachine(
                "input",
                "idle",
                {
                    "idle": {"> input": "to be acknowledged", "> execute": "running"},
                    "to be acknowledged": {"< = input": "running", "< ! input": "idle"},
                    "running": {
                        "< stream": "running",
                        "< complete": "idle",
                        "< error": "idle",
                        "< = execute": "idle",
                        "< ! execute": "idle",
                    },
                },
                key=call,
            ),
        ),
        during=(OnlyWhileOpen("running", of_calls, ("execute", "input")),),
        split={"< complete": "/params/keep_session", "< = execute": "/result/keep_session"},
        closed="methods",
        junk="framing",
        silent=("shutdown",),
        notifications=dict.fromkeys(("stream", "complete", "error", "log"), "no-id"),
        limits={"ping": "timeouts", "execute": "timeouts", "input": "timeouts"},
        echoes={"ping": "ping"},
    )
