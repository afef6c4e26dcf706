"""The Debug Adapter Protocol: messages are numbered by `seq`, answers name the number by `request_seq`."""

from __future__ import annotations

from .dialect import NOT_RECORDED, Dialect, Form

_OUTCOME = ("body", "message", "success")
# What `initialize` says of a client. How it counts lines and spells paths is not among it: responses depend on that.
_CLIENT = (
    "clientID",
    "clientName",
    "locale",
    "supportsVariableType",
    "supportsVariablePaging",
    "supportsRunInTerminalRequest",
    "supportsMemoryReferences",
    "supportsProgressReporting",
    "supportsInvalidatedEvent",
    "supportsMemoryEvent",
    "supportsArgsCanBeInterpretedByShell",
    "supportsStartDebuggingRequest",
    "supportsANSIStyling",
)

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
        "launch": {"cwd": "/arguments/cwd", "program": "/arguments/program"},  # which most often lies in it
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
    releases={"configurationDone": ("launch", "attach")},  # whose answers come after it
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
