"""Conversation with a plugin of spec 2 (G-Assist)."""

from __future__ import annotations

from ext_recorder.protocols.rules import Clause

from .steps import (
    CODES,
    INVALID_PARAMS,
    ODD_ID,
    UNKNOWN_METHOD,
    AwaitAnswer,
    Conversation,
    Ends,
    Say,
    Session,
    at_fault,
    call,
    expect,
    expect_error,
    note,
)

_NOW = 1_700_000_000
_HELLO = Say(
    call(1, "initialize", protocol_version="2.0", engine_version="1.0", capabilities=["streaming"]), clause="initialize"
)
_KEPT = expect("session", True, "/params/keep_session", "/result/keep_session")  # noqa: FBT003

GASSIST = Conversation(
    {
        "function": "a function that responds at once or by streaming",
        "arguments": "its arguments",
        "failing": "a function that fails, called without arguments",
        "asking": "a function that keeps the session",
        "asking-arguments": "its arguments",
        "input": "input for that session",
    },
    CODES | {"utf-8": Clause("Message Framing", "A message is encoded in UTF-8.")},
    (
        Session(
            (
                _HELLO,
                Say(call(2, "ping", timestamp=_NOW), clause="ping"),
                Say(call(3, "execute", function="$function", arguments="$arguments"), clause="execute"),
                Say(call(4, "execute", function="no_such_function", arguments={})),
                Say(call(5, "execute", function="$failing", arguments={})),
                Say(call(6, "execute"), (expect("invalid-params", INVALID_PARAMS, "/error/code", "/params/code"),)),
                Say(call(ODD_ID, "no_such_method"), (expect_error("unknown-method", UNKNOWN_METHOD),)),
                Say(call(8, "execute", function="$asking", arguments="$asking-arguments"), waits=False),
                Say(call(9, "ping", timestamp=_NOW + 1), clause="ping"),  # a busy plugin responds to it, too
                AwaitAnswer(8, (_KEPT,)),
                Say(call(10, "input", content="$input", timestamp=_NOW + 2), clause="input"),
                Say(note("shutdown")),
                Ends("shutdown"),
            ),
        ),
        *at_fault(_HELLO, probe=call(2, "ping", timestamp=_NOW)),
    ),
)
