"""Conversation with a server of spec 3 (waza)."""

from __future__ import annotations

from ext_recorder.protocols.rules import Clause

from .steps import (
    CODES,
    INVALID_PARAMS,
    ODD_ID,
    UNKNOWN_METHOD,
    Await,
    AwaitAnswer,
    Conversation,
    EndInput,
    Ends,
    Say,
    Session,
    at_fault,
    call,
    expect,
    expect_error,
)

NOT_FOUND, NOT_VALID = -32000, -32001
_RUN = "$/result/runId"
_UNKNOWN = call(ODD_ID, "eval.unknown")

WAZA = Conversation(
    {
        "directory": "a folder with evals",
        "eval": "the file of an eval",
        "broken": "the file of an eval that is not valid",
        "task": "the id of a task in the first",
        "executor": "an executor that takes long, for a run that is cancelled",
    },
    CODES
    | {
        "not-found": Clause("Error Codes", "An eval file that does not exist is -32000."),
        "not-valid": Clause("Error Codes", "To run an eval that is not valid is -32001."),
        "end": Clause("Testing", "What comes right before the end of the input is answered; then the server ends."),
    },
    (
        Session(
            (
                Say(call(1, "eval.list", directory="$directory"), clause="list"),
                Say(call(2, "eval.get", path="$eval"), clause="get"),
                Say(call(3, "eval.validate", path="$eval"), (expect("validate", True, "/result/valid"),)),  # noqa: FBT003
                Say(call(4, "eval.validate", path="$broken"), (expect("validate", False, "/result/valid"),)),  # noqa: FBT003
                Say(call(5, "task.list", path="$eval"), clause="tasks"),
                Say(call(6, "task.get", path="$eval", taskId="$task"), clause="task"),
                Say(call(7, "eval.get", path="$workdir/no-such-eval.yaml"), (expect_error("not-found", NOT_FOUND),)),
                Say(call(8, "eval.run", path="$broken"), (expect_error("not-valid", NOT_VALID),)),
                Say(call(9, "eval.get"), (expect_error("invalid-params", INVALID_PARAMS),)),
                Say(_UNKNOWN, (expect_error("unknown-method", UNKNOWN_METHOD),)),
                Say(call(11, "eval.run", path="$eval"), clause="run"),
                Await("eval.complete", after=11, clause="complete"),
                Say(call(12, "run.status", runId=_RUN), clause="status"),
                Say(call(13, "eval.run", path="$eval", executor="$executor")),
                Say(call(14, "run.cancel", runId=_RUN), clause="cancel"),
            ),
            lingers=True,
        ),
        Session(
            (
                Say(_UNKNOWN, waits=False),
                EndInput(),
                AwaitAnswer(ODD_ID, (expect("end", ODD_ID, "/id"),)),
                Ends("end"),
            ),
        ),
        *at_fault(probe=_UNKNOWN),
    ),
)
