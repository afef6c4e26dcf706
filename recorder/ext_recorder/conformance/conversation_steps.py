"""Conversations as data: sessions of steps, and the expected responses.

Placeholders in messages: "$name" is an entry of the profile or a message that an `Await` has named, "$name/…" a value
in it, "$workdir" the folder of the session, "$session" a name that no child knows, and "$/result/runId" the value at
this pointer in the latest message that has it. A message is not sent if one of its placeholders has no value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ext_recorder.protocols.rules import Clause

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
