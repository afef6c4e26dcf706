"""Debug Adapter Protocol: messages are numbered by `seq`, and a response names its request in `request_seq`."""

from __future__ import annotations

from .dialect import NOT_RECORDED, Dialect, Form

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .rules import Rules

_OUTCOME = ("body", "message", "success")
# Members of `initialize` that describe a client. The format of lines and paths is not one of them: responses depend on
# it.
_CLIENT = (
    "clientID", "clientName", "locale", "supportsVariableType", "supportsVariablePaging",
    "supportsRunInTerminalRequest", "supportsMemoryReferences", "supportsProgressReporting",
    "supportsInvalidatedEvent", "supportsMemoryEvent", "supportsArgsCanBeInterpretedByShell",
    "supportsStartDebuggingRequest", "supportsANSIStyling",
)  # fmt: skip

DIALECT = Dialect(
    "dap",
    "content-length",
    "the Debug Adapter Protocol",
    tag="type",
    forms={
        "request": Form("request", "/command", "/seq", ("arguments",)),
        "response": Form("response", "/command", "/request_seq", _OUTCOME),
        "event": Form("notification", "/event", "", ("body",)),
    },
    bound={
        "launch": {"cwd": "/arguments/cwd", "program": "/arguments/program"},  # usually within cwd
        "attach": {"cwd": "/arguments/cwd"},
    },
    volatile={
        "runInTerminal": ("/body/processId", "/body/shellProcessId"),
        "process": ("/body/systemProcessId", "/body/startMethod"),
        "initialize": tuple(f"/arguments/{member}" for member in _CLIENT),
        "output": ("/body/data",),
        "*": ("/seq",),
    },
    references={"cancel": ("/arguments/requestId",)},
    unblocks={"configurationDone": ("launch", "attach")},  # their responses follow it
    failed={"/success": False},
    refusals={
        "*": '{"seq":0,"type":"response","request_seq":%(/seq)s,"success":false,"command":%(/command)s,'
        '"message":%(message)s,"body":{"error":{"id":' + str(-NOT_RECORDED) + ',"format":%(message)s},'
        '"data":%(data)s}}',
    },
    cancellations={
        "cancel": '{"seq":0,"type":"response","request_seq":%(/seq)s,"success":true,"command":"cancel"}',
    },
    final=("disconnect",),
)


def rules() -> Rules:
    """Return the rules of the specification."""
    from .rules import FLAG, TEXT, WHOLE, Clause, Rules, StateMachine, one_of, record

    event = {"if": {"properties": {"type": {"const": "event"}}}, "then": record(event=TEXT)}
    request = {"if": {"properties": {"type": {"const": "request"}}}, "then": record(command=TEXT)}
    response = {
        "if": {"properties": {"type": {"const": "response"}}},
        "then": record(request_seq=WHOLE, success=FLAG, command=TEXT, message_=TEXT),
    }
    ready = (
        "> launch", "> attach", "> setBreakpoints", "> configurationDone", "> threads", "> disconnect", "< initialized",
        "< stopped", "< output",
    )  # fmt: skip
    return Rules(
        "Debug Adapter Protocol",
        {
            "base": Clause(
                "Base Protocol", "seq and type; what each type needs: command, event, request_seq, success."
            ),
            "initialize": Clause("Requests, Initialize", "The first request; adapterID is required."),
            "initialized": Clause("Events, Initialized", "Sent after the answer to initialize."),
            "configuration": Clause("Requests, ConfigurationDone", "Asked for once initialized, to end configuration."),
            "output": Clause("Events, Output", "output is a text."),
            "stopped": Clause("Events, Stopped", "A reason is given."),
        },
        envelope={"allOf": [record(seq=WHOLE, type=one_of("request", "response", "event")), event, request, response]},
        envelope_clause="base",
        messages={
            "> initialize": ("initialize", record(adapterID=TEXT)),
            "< output": ("output", record(output=TEXT, category_=TEXT)),
            "< stopped": ("stopped", record(reason=TEXT, threadId_=WHOLE)),
        },
        machines=(
            StateMachine(
                "initialize",
                "started",
                {
                    "started": {"> initialize": "initializing", "< output": "started"},
                    "initializing": {
                        "< = initialize": "ready",
                        "< ! initialize": "started",
                        "< output": "initializing",
                    },
                    "ready": dict.fromkeys(ready, "ready"),
                },
            ),
            StateMachine(
                "configuration",
                "not initialized",
                {
                    "not initialized": {"< initialized": "configuring"},
                    "configuring": {"> configurationDone": "done", "> setBreakpoints": "configuring"},
                    "done": {"> setBreakpoints": "done"},
                },
            ),
        ),
    )
