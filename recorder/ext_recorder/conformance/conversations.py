"""Conversations as data: sessions of steps, and the expected responses.

Placeholders in messages: "$name" is an entry of the profile or a message that an `Await` has named, "$name/…" a value
in it, "$workdir" the folder of the session, "$session" a name that no child knows, and "$/result/runId" the value at
this pointer in the latest message that has it. A message is not sent if one of its placeholders has no value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from ext_recorder.protocols.rules import Clause
from ext_sdk.core.wire.json_pointer import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator

Message: TypeAlias = Mapping[str, object]
# Responses of the host to a message of the child, given that and the profile.
Reply: TypeAlias = Callable[[Message, Mapping[str, object]], Iterable[Message]]


@dataclass(frozen=True)
class ExpectedValue:
    """Expected value in a message.

    Args:
        clause: id of the clause that demands it.
        value: the value, or a placeholder; nothing is expected if that has no value.
        places: pointers; the first one that exists counts.
    """

    clause: str
    value: object
    places: tuple[str, ...]


def expect(clause: str, value: object, *places: str) -> ExpectedValue:
    """Return an expected value."""
    return ExpectedValue(clause, value, places)


def expect_error(clause: str, code: int) -> ExpectedValue:
    """Expect an error response with this code."""
    return ExpectedValue(clause, code, ("/error/code",))


@dataclass(frozen=True)
class Send:
    """Message to send.

    Args:
        message: JSON value with placeholders.
        waits: whether to wait for the last response to a request before the next step.
        client: number of the client that sends it: 1 or 2. On standard files there is only one.
        holds: whether the host responds to requests of the child only after that.
        clause: id of the clause that an error response, or none, violates; "" if it may fail.
    """

    message: Message
    expected: tuple[ExpectedValue, ...] = ()
    waits: bool = True
    client: int = 1
    holds: bool = False
    clause: str = ""


@dataclass(frozen=True)
class SendBytes:
    """Frame with an invalid message to send. An error without an id is expected."""

    payload: bytes
    expected: tuple[ExpectedValue, ...]


@dataclass(frozen=True)
class AwaitAnswer:
    """Last response to a previous request, to wait for. Skipped if that was not sent."""

    id: int | str
    expected: tuple[ExpectedValue, ...] = ()


@dataclass(frozen=True)
class Await:
    """Message that the child sends unprompted, to wait for.

    Args:
        after: id of the request that causes it: skipped if that was not sent or has failed. "": none.
        clause: id of the clause that is violated if it does not come; "": the response to the request ends the wait.
        name: placeholder for the message in later steps.
    """

    method: str
    after: int | str = ""
    clause: str = ""
    name: str = ""


@dataclass(frozen=True)
class Unanswered:
    """Check that each response belongs to a request."""

    clause: str


@dataclass(frozen=True)
class EndInput:
    """End of the input of the child."""


@dataclass(frozen=True)
class Ends:
    """Check that the child exits by itself, or that a socket server closes the connection."""

    clause: str


Step: TypeAlias = Send | SendBytes | AwaitAnswer | Await | Unanswered | EndInput | Ends


@dataclass(frozen=True)
class Session:
    """Messages to one child, or on one connection.

    Args:
        replies: {method of the child: responses of the host}. They are sent while the host waits.
        lingers: whether the host waits for unprompted messages at the end.
    """

    steps: tuple[Step, ...]
    replies: Mapping[str, Reply] = field(default_factory=dict)
    lingers: bool = False

    def clauses(self) -> set[str]:
        """Return the ids of the clauses that its steps check."""
        clauses = {step.clause for step in self.steps if isinstance(step, Send | Await | Unanswered | Ends)}
        for step in self.steps:
            if isinstance(step, Send | SendBytes | AwaitAnswer):
                clauses.update(value.clause for value in step.expected)
        return clauses - {""}


@dataclass(frozen=True)
class Conversation:
    """Sessions of one protocol.

    Args:
        profile: names and meanings of the entries of a profile.
        clauses: those that only steps check, by id.
    """

    profile: Mapping[str, str]
    clauses: Mapping[str, Clause]
    sessions: tuple[Session, ...]


# --- JSON-RPC 2.0 ----------------------------------------------------------------------------------------------------

PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
CODES = {
    "parse-error": Clause("Error Codes", "Invalid JSON is -32700; the error has the id null."),
    "invalid-request": Clause("Error Codes", "An invalid request is -32600; the error has the id null."),
    "unknown-method": Clause("Error Codes", "An unknown method is -32601."),
    "invalid-params": Clause("Error Codes", "Missing required params are -32602."),
    "unanswered": Clause("JSON-RPC 2.0, 4.1", "A notification gets no response, not even an unknown one."),
}
ODD_ID = "clé 🔑"  # an id may be any text in UTF-8


def call(id: int | str, method: str, **params: object) -> Message:
    """Return a request."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def note(method: str, **params: object) -> Message:
    """Return a notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def at_fault(*begin: Step, probe: Message) -> tuple[Session, ...]:
    """Return sessions with invalid messages, each with a new child, because a child may exit after one.

    Args:
        begin: first steps of every session.
        probe: a request that any child responds to.
    """

    def unreadable(clause: str, code: int, payload: bytes) -> Session:
        return Session((*begin, SendBytes(payload, (expect_error(clause, code), expect(clause, None, "/id")))))

    return (
        unreadable("parse-error", PARSE_ERROR, b'{"jsonrpc": "2.0", "id": 90, "method"'),
        unreadable("invalid-request", INVALID_REQUEST, b'{"jsonrpc": "2.0", "method": 1, "params": {}}'),
        Session((*begin, Send(note("no/such/method")), Send(probe), Unanswered("unanswered"))),
    )


# --- waza (spec 3) ----------------------------------------------------------------------------------------------------

WAZA_MISSING, WAZA_INVALID = -32000, -32001
_RUN = "$/result/runId"
_UNKNOWN_EVAL = call(ODD_ID, "eval.unknown")

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
                Send(call(1, "eval.list", directory="$directory"), clause="list"),
                Send(call(2, "eval.get", path="$eval"), clause="get"),
                Send(call(3, "eval.validate", path="$eval"), (expect("validate", True, "/result/valid"),)),  # noqa: FBT003
                Send(call(4, "eval.validate", path="$broken"), (expect("validate", False, "/result/valid"),)),  # noqa: FBT003
                Send(call(5, "task.list", path="$eval"), clause="tasks"),
                Send(call(6, "task.get", path="$eval", taskId="$task"), clause="task"),
                Send(
                    call(7, "eval.get", path="$workdir/no-such-eval.yaml"), (expect_error("not-found", WAZA_MISSING),)
                ),
                Send(call(8, "eval.run", path="$broken"), (expect_error("not-valid", WAZA_INVALID),)),
                Send(call(9, "eval.get"), (expect_error("invalid-params", INVALID_PARAMS),)),
                Send(_UNKNOWN_EVAL, (expect_error("unknown-method", UNKNOWN_METHOD),)),
                Send(call(11, "eval.run", path="$eval"), clause="run"),
                Await("eval.complete", after=11, clause="complete"),
                Send(call(12, "run.status", runId=_RUN), clause="status"),
                Send(call(13, "eval.run", path="$eval", executor="$executor")),
                Send(call(14, "run.cancel", runId=_RUN), clause="cancel"),
            ),
            lingers=True,
        ),
        Session(
            (
                Send(_UNKNOWN_EVAL, waits=False),
                EndInput(),
                AwaitAnswer(ODD_ID, (expect("end", ODD_ID, "/id"),)),
                Ends("end"),
            ),
        ),
        *at_fault(probe=_UNKNOWN_EVAL),
    ),
)


# --- G-Assist (spec 2) ------------------------------------------------------------------------------------------------

_NOW = 1_700_000_000
_HELLO = Send(
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
                Send(call(2, "ping", timestamp=_NOW), clause="ping"),
                Send(call(3, "execute", function="$function", arguments="$arguments"), clause="execute"),
                Send(call(4, "execute", function="no_such_function", arguments={})),
                Send(call(5, "execute", function="$failing", arguments={})),
                Send(call(6, "execute"), (expect("invalid-params", INVALID_PARAMS, "/error/code", "/params/code"),)),
                Send(call(ODD_ID, "no_such_method"), (expect_error("unknown-method", UNKNOWN_METHOD),)),
                Send(call(8, "execute", function="$asking", arguments="$asking-arguments"), waits=False),
                Send(call(9, "ping", timestamp=_NOW + 1), clause="ping"),  # a busy plugin responds to it, too
                AwaitAnswer(8, (_KEPT,)),
                Send(call(10, "input", content="$input", timestamp=_NOW + 2), clause="input"),
                Send(note("shutdown")),
                Ends("shutdown"),
            ),
        ),
        *at_fault(_HELLO, probe=call(2, "ping", timestamp=_NOW)),
    ),
)


# --- Kaiak (spec 4) ---------------------------------------------------------------------------------------------------

KAIAK_NOT_FOUND, KAIAK_CONFIGURATION, KAIAK_IN_USE = -32003, -32014, -32016
_COMMAND = "workspace/executeCommand"
_SESSION = "$session"
_ASKS = "kaiak/stream/user_interaction"
# The last notification, and the response after it.
_ABOUT = tuple(expect("about", f"$/params/{name}", f"/result/{name}") for name in ("session_id", "request_id"))
_UNKNOWN_COMMAND = call(ODD_ID, "no/such/method")


def command(id: int, name: str, **argument: object) -> Message:
    """Return a request for one of the three commands."""
    return call(id, _COMMAND, command=f"kaiak/{name}", arguments=[argument])


def configure(id: int, folder: str) -> Message:
    """Return a request to use a folder as workspace."""
    return command(id, "configure", configuration={"workspace": {"working_dir": folder}}, reset_existing=False)


def fix(id: int, session: str) -> Message:
    """Return a request to fix the incidents of the profile."""
    return command(id, "generate_fix", session_id=session, incidents="$incidents")


def approve(request: Message, _: Mapping[str, object]) -> Iterator[Message]:
    """Approve an interaction. The specification does not define the message; this is that of the real server."""
    session, interaction = (resolve(request, f"/params/{name}") for name in ("session_id", "content/interaction_id"))
    payload = {"request_id": interaction, "action": "allow_once"}
    if isinstance(session, str) and isinstance(interaction, str):
        id = f"reply to {interaction}"
        yield call(id, "kaiak/client/user_message", session_id=session, kind="approval", payload=payload)


KAIAK = Conversation(
    {"incidents": "incidents to fix, in the working directory"},
    CODES
    | {
        "configuration": Clause("1. configure", "A workspace directory that does not exist is -32014."),
        "created": Clause("Session Lifecycle", "generate_fix with an unknown session_id creates the session."),
        "about": Clause(
            "Streaming Notifications", "They name the session and the request of the call that they belong to."
        ),
        "in-use": Clause("Concurrent Access Control", "To use an active session is -32016."),
        "released": Clause("Concurrent Access Control", "A session is released after completion."),
        "not-found": Clause("3. delete_session", "To delete an unknown session is -32003."),
    },
    (
        Session(
            (
                Send(configure(1, "$workdir/no-such-folder"), (expect_error("configuration", KAIAK_CONFIGURATION),)),
                Send(configure(2, "$workdir"), clause="configure"),
                Send(
                    call(3, _COMMAND, command="kaiak/configure", arguments=[]),
                    (expect_error("invalid-params", INVALID_PARAMS),),
                ),
                Send(_UNKNOWN_COMMAND, (expect_error("unknown-method", UNKNOWN_METHOD),)),
                Send(fix(5, _SESSION), waits=False),
                Await(_ASKS, after=5, name="asked"),
                # The session is in use while the first request waits for its approval.
                Send(fix(6, "$asked/params/session_id"), (expect_error("in-use", KAIAK_IN_USE),), client=2, holds=True),
                AwaitAnswer(5, (expect("created", _SESSION, "/result/session_id"), *_ABOUT)),
                Send(fix(7, _SESSION), (expect("released", _SESSION, "/result/session_id"),), clause="fix"),
                Send(command(8, "delete_session", session_id=_SESSION, force=False), clause="delete"),
                Send(
                    command(9, "delete_session", session_id="no-such-session", force=False),
                    (expect_error("not-found", KAIAK_NOT_FOUND),),
                ),
            ),
            replies={_ASKS: approve},
            lingers=True,
        ),
        *at_fault(probe=_UNKNOWN_COMMAND),
    ),
)


# --- Pi (spec 1) ------------------------------------------------------------------------------------------------------


def envelope(id: str, type: str, **payload: object) -> Message:
    """Return a message."""
    return {"id": id, "version": "1.0", "type": type, "payload": payload}


def use(call_id: str, tool: str, input: object) -> Message:
    """Return a call of a tool."""
    return envelope(f"message {call_id}", "tool_call", call_id=call_id, name=tool, input=input)


def respond(request: Message, known: Mapping[str, object]) -> Iterator[Message]:
    """Yield the response of the profile to a call of the host: one output, or a list of outputs in chunks."""
    host, method = known.get("host"), resolve(request, "/payload/method")
    outputs = host.get(method) if isinstance(host, dict) and isinstance(method, str) else None
    if not outputs:
        yield from refuse(request, known)
    elif isinstance(outputs, list):
        for index, output in enumerate(outputs):
            chunk = {"index": index, "is_last": index == len(outputs) - 1}
            yield from _result(request, output=output, is_error=False, chunk=chunk)
    else:
        yield from _result(request, output=outputs, is_error=False)


def refuse(request: Message, _: Mapping[str, object]) -> Iterator[Message]:
    """Yield a response that denies the call."""
    error = {"code": "denied", "message": "not allowed"}
    yield from _result(request, output={}, is_error=True, error=error)


def _result(request: Message, **members: object) -> Iterator[Message]:
    call_id = resolve(request, "/payload/call_id")
    if isinstance(call_id, str):
        yield envelope(f"host_result:{call_id}", "host_result", call_id=call_id, **members)


_REGISTERS = Await("register", clause="order")

PI = Conversation(
    {
        "tool": "a tool",
        "input": "its input",
        "asking": "a tool that calls the host",
        "asking-input": "its input",
        "host": "responses of the host by method: an output, or a list of outputs, which are sent in chunks",
        "command": "a slash command",
        "event": "an event that it subscribes to",
    },
    {},
    (
        Session(
            (
                _REGISTERS,
                Send(use("call 1", "$tool", "$input")),
                Send(use("call 2", "no-such-tool", {})),
                Send(use("call 3", "$asking", "$asking-input"), waits=False),
                Send(use("call 4", "$tool", "$input")),  # calls in both directions overlap
                AwaitAnswer("call 3"),
                Send(envelope("message 5", "slash_command", name="$command", args=[])),
                Send(envelope("message 6", "event_hook", event="$event", data={})),
            ),
            replies={"host_call": respond},
            lingers=True,
        ),
        Session((_REGISTERS, Send(use("call 1", "$asking", "$asking-input"))), replies={"host_call": refuse}),
        # A call without required members: the extension may respond with an error.
        Session((_REGISTERS, Send(envelope("message 1", "tool_call"), waits=False))),
    ),
)


CONVERSATIONS: Mapping[str, Conversation] = {"waza": WAZA, "gassist": GASSIST, "kaiak": KAIAK, "pi": PI}
