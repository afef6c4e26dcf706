"""A conversation as data: sessions of steps, one after the other, and what has to come of each.

In a message, the text "$name" stands for an entry of the profile or for what an `Await` has named, "$name/…" for
something in it, "$workdir" for the folder of the session, "$session" for a name that no child knows, and
"$/result/runId" for what the latest message has there that has it. A message is left out where one of them means
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ext_recorder.protocols.rules import Clause

Message: TypeAlias = Mapping[str, object]
# What the host answers to a message of the child, which is given with the profile.
Reply: TypeAlias = Callable[[Message, Mapping[str, object]], Iterable[Message]]


@dataclass(frozen=True)
class Want:
    """What a message has to say.

    Args:
        clause: the id of the one that demands it.
        value: the value, which may be a placeholder: nothing is wanted where that means nothing,
        places: at the first of these pointers that is there.
    """

    clause: str
    value: object
    places: tuple[str, ...]


def want(clause: str, value: object, *places: str) -> Want:
    """See Want."""
    return Want(clause, value, places)


def want_error(clause: str, code: int) -> Want:
    """An error answer with this code."""
    return Want(clause, code, ("/error/code",))


@dataclass(frozen=True)
class Say:
    """The host says something.

    Args:
        message: what.
        wants: of its answer.
        waits: a request waits for its last answer before the next step.
        client: who says it: 1, or 2 for another client. On standard files there is only one, who says it all.
        holds: what the child asks of the host meanwhile is answered after that.
        clause: the one that is violated when it is answered by an error, or not at all. "": it may be.
    """

    message: Message
    wants: tuple[Want, ...] = ()
    waits: bool = True
    client: int = 1
    holds: bool = False
    clause: str = ""


@dataclass(frozen=True)
class SayBytes:
    """The host frames what is no message, or no valid one, and waits for an error without an id.

    Args:
        payload: of the frame.
        wants: of that error.
    """

    payload: bytes
    wants: tuple[Want, ...]


@dataclass(frozen=True)
class AwaitAnswer:
    """The last answer to a request that did not wait for it. Left out where that was not said.

    Args:
        id: of the request.
        wants: of the answer.
    """

    id: int | str
    wants: tuple[Want, ...] = ()


@dataclass(frozen=True)
class Await:
    """Something that the child says of its own has to come.

    Args:
        method: its method.
        after: the id of the request that brings it about: left out where that was not said, or has failed. "": none.
        clause: the one that is violated when it does not come. "": it need not, if the request is answered first.
        name: for what has come, in later steps.
    """

    method: str
    after: int | str = ""
    clause: str = ""
    name: str = ""


@dataclass(frozen=True)
class Unanswered:
    """No answer has come that belongs to no request. Args: the clause."""

    clause: str


@dataclass(frozen=True)
class EndInput:
    """The host has nothing more to say."""


@dataclass(frozen=True)
class Ends:
    """The child ends by itself; of a server on a socket, the connection. Args: the clause."""

    clause: str


Step: TypeAlias = Say | SayBytes | AwaitAnswer | Await | Unanswered | EndInput | Ends


@dataclass(frozen=True)
class Session:
    """What is said to one child, or on one connection.

    Args:
        steps: in their order.
        replies: {method of the child: what the host answers}. It answers while it waits for something.
        lingers: at the end the host listens for what the child says unasked.
    """

    steps: tuple[Step, ...]
    replies: Mapping[str, Reply] = field(default_factory=dict)
    lingers: bool = False

    def clauses(self) -> set[str]:
        """The ids of the clauses that its steps ask for."""
        wants = {
            want.clause for step in self.steps if isinstance(step, Say | SayBytes | AwaitAnswer) for want in step.wants
        }
        return wants | {step.clause for step in self.steps if isinstance(step, Say | Await | Unanswered | Ends)} - {""}


@dataclass(frozen=True)
class Conversation:
    """What is said in one protocol.

    Args:
        profile: the entries that its steps know, and what they are.
        clauses: those that steps ask for and no rule of the protocol has: id to clause.
        sessions: see Session.
    """

    profile: Mapping[str, str]
    clauses: Mapping[str, Clause]
    sessions: tuple[Session, ...]


# --- JSON-RPC 2.0 ----------------------------------------------------------------------------------------------------

PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
CODES = {
    "parse-error": Clause("Error Codes", "Invalid JSON is -32700; the error has the id null."),
    "invalid-request": Clause("Error Codes", "What is no request is -32600; the error has the id null."),
    "unknown-method": Clause("Error Codes", "An unknown method is -32601."),
    "invalid-params": Clause("Error Codes", "Params that lack what is required are -32602."),
    "unanswered": Clause("JSON-RPC 2.0, 4.1", "A notification is not answered, an unknown one neither."),
}
ODD_ID = "clé 🔑"  # an id may be any text, in UTF-8 like all of it


def call(id: int | str, method: str, **params: object) -> Message:
    """A request."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def note(method: str, **params: object) -> Message:
    """A notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def at_fault(*begin: Step, probe: Message) -> tuple[Session, ...]:
    """Sessions with what can't be read, each with a child of its own, for it need not go on after that.

    Args:
        begin: what every session begins with.
        probe: a request that any child answers.
    """

    def unreadable(clause: str, code: int, payload: bytes) -> Session:
        return Session((*begin, SayBytes(payload, (want_error(clause, code), want(clause, None, "/id")))))

    return (
        unreadable("parse-error", PARSE_ERROR, b'{"jsonrpc": "2.0", "id": 90, "method"'),
        unreadable("invalid-request", INVALID_REQUEST, b'{"jsonrpc": "2.0", "method": 1, "params": {}}'),
        Session((*begin, Say(note("no/such/method")), Say(probe), Unanswered("unanswered"))),
    )
