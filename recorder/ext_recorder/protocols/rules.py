"""Rules of a protocol (clauses, schemas of messages, state machines), and shorthands for JSON Schema 2020-12."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    Schema: TypeAlias = Mapping[str, object]

ANY: Schema = {}
TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
LIST: Schema = {"type": "array"}
TEXTS: Schema = {"type": "array", "items": TEXT}

# RFC 3339. The schema of Pi requires it by `format`, which validators may ignore.
INSTANT: Schema = {
    "type": "string",
    "pattern": r"^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$",
}


def record(**fields: Schema) -> Schema:
    """Return the schema of an object with these members; names that end with an underscore are optional."""
    return {
        "type": "object",
        "required": [name for name in fields if not name.endswith("_")],
        "properties": {name.removesuffix("_"): schema for name, schema in fields.items()},
    }


def list_of(schema: Schema) -> Schema:
    """Return the schema of an array with such items."""
    return {"type": "array", "items": schema}


def map_of(schema: Schema) -> Schema:
    """Return the schema of an object whose members all match a schema."""
    return {"type": "object", "additionalProperties": schema}


def one_of(*values: object) -> Schema:
    """Return the schema of a value that is one of these."""
    return {"enum": list(values)}


def either(*schemas: Schema) -> Schema:
    """Return the schema of a value that matches at least one of these schemas."""
    return {"anyOf": list(schemas)}


def both(*schemas: Schema) -> Schema:
    """Return the schema of a value that matches all of these schemas."""
    return {"allOf": list(schemas)}


# JSON-RPC 2.0, section 5.1.
ERROR = record(code=WHOLE, message=TEXT, data_=ANY)
VERSION_2 = record(jsonrpc={"const": "2.0"})


class Clause(NamedTuple):
    """Requirement of a specification.

    Attributes:
        text: the requirement in one sentence.
    """

    section: str
    text: str


@dataclass(frozen=True)
class StateMachine:
    """States, and the events that are allowed in each of them. Events that it does not name are ignored.

    Attributes:
        clause: the id of the clause.
        moves: {state: {event: next state}}.
        key: pointers to the name of the run, session or call: each has its own machine. The first pointer that exists
            in a message is used; `#` is the id of the call. (): one machine for the entire session.
    """

    clause: str
    start: str
    moves: Mapping[str, Mapping[str, str]]
    key: tuple[str, ...] = ()

    @cached_property
    def events(self) -> frozenset[str]:
        """All events that it names."""
        return frozenset(event for row in self.moves.values() for event in row)


class OnlyWhileOpen(NamedTuple):
    """Messages that are sent only while calls of certain methods are open.

    Attributes:
        clause: the id of the clause.
        events: the messages.
        calls: methods of the host.
    """

    clause: str
    events: tuple[str, ...]
    calls: tuple[str, ...]


@dataclass
class Rules:
    """Rules of one protocol.

    Attributes:
        specification: its name, for users.
        envelope: the schema of every message.
        envelope_clause: the clause that a message without this schema violates.
        messages: {event: (clause, schema of its content)}: of `params`, `result`, `error`, or the member of the
            dialect's form that corresponds to them.
        during: messages that are sent only while certain calls are open.
        split: {event: pointer}: the value there is part of the name of the event, as in `< complete:true`.
        closed: the clause that messages without an entry in `messages` violate; "" if they are allowed.
        junk: the clause that bytes between messages violate; "" if they are allowed.
        silent: methods whose requests need no response.
        excuses: notifications that name a request of their own side (see `Dialect.references`), which needs no response
            after them.
        notifications: {method: clause}: notifications of the child; with an id they violate this clause.
        limits: {method: clause}: clauses of the dialect's timeouts.
        echoes: {method: clause}: clauses of the dialect's echoes.
    """

    specification: str
    clauses: dict[str, Clause]
    _: KW_ONLY
    envelope: Schema
    envelope_clause: str
    messages: Mapping[str, tuple[str, Schema]]
    machines: tuple[StateMachine, ...] = ()
    during: tuple[OnlyWhileOpen, ...] = ()
    split: Mapping[str, str] = field(default_factory=dict)
    closed: str = ""
    junk: str = ""
    silent: tuple[str, ...] = ()
    excuses: tuple[str, ...] = ()
    notifications: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    echoes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clauses = JSON_RPC | self.clauses


# Clauses that apply to all protocols with calls. Protocols that are not JSON-RPC replace some of them by their own.
JSON_RPC = {
    "version-2": Clause("JSON-RPC 2.0, 4 and 5", 'Every message says "jsonrpc": "2.0".'),
    "error-object": Clause("JSON-RPC 2.0, 5.1", "An error has a code, a whole number, and a message, a text."),
    "answer-known": Clause("JSON-RPC 2.0, 5", "An answer has the id of the request that it answers."),
    "answer-each": Clause("JSON-RPC 2.0, 5", "Every request is answered, once."),
    "either": Clause("JSON-RPC 2.0, 5", "An answer has a result or an error, never both."),
    "message": Clause("JSON-RPC 2.0, 4 and 5", "A message is a request, a notification or an answer."),
}


# All protocols of child processes, except raw, which has no messages.
WITH_RULES = (
    "gevals", "pi", "gassist", "waza", "waza-go", "kaiak", "kaiak-head", "mcp", "lsp", "dap", "acp", "jsonrpc",
)  # fmt: skip


def rules_of(protocol: str) -> Rules | None:
    """Create the rules of a protocol; None if it has none."""
    if protocol not in WITH_RULES:
        return None
    base, _, variant = protocol.partition("-")
    module = __import__(f"ext_recorder.protocols.{base}", fromlist=["rules"])
    rules: Rules = getattr(module, f"{variant}_rules" if variant else "rules")()
    return rules
