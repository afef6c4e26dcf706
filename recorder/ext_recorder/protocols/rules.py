"""Short ways to write JSON Schema (draft 2020-12)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TypeAlias

    Schema: TypeAlias = Mapping[str, object]
    Moves = Mapping[str, Mapping[str, str]]

ANY: Schema = {}
TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
LIST: Schema = {"type": "array"}
TEXTS: Schema = {"type": "array", "items": TEXT}

# RFC 3339. Pi asks for it by `format`, which validators are free not to look at.
INSTANT: Schema = {
    "type": "string",
    "pattern": r"^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$",
}


def record(**fields: Schema) -> Schema:
    """An object with these members; those whose name ends with an underscore may be missing. Others are allowed."""
    return {
        "type": "object",
        "required": [name for name in fields if not name.endswith("_")],
        "properties": {name.removesuffix("_"): schema for name, schema in fields.items()},
    }


def maybe(fields: Mapping[str, Schema]) -> Schema:
    """Return the schema of an object that may have these members, with names that are not identifiers."""
    return {"type": "object", "properties": dict(fields)}


def list_of(schema: Schema) -> Schema:
    """An array of these."""
    return {"type": "array", "items": schema}


def map_of(schema: Schema) -> Schema:
    """An object whose members all are this."""
    return {"type": "object", "additionalProperties": schema}


def one_of(*values: object) -> Schema:
    """One of these values."""
    return {"enum": list(values)}


def either(*schemas: Schema) -> Schema:
    """One of these, at least."""
    return {"anyOf": list(schemas)}


def both(*schemas: Schema) -> Schema:
    """All of these."""
    return {"allOf": list(schemas)}


# JSON-RPC 2.0, section 5.1.
ERROR = record(code=WHOLE, message=TEXT, data_=ANY)
VERSION_2 = record(jsonrpc={"const": "2.0"})


class Clause:
    """One thing that a specification demands.

    Attributes:
        section: where it says so.
        text: the demand, in short.
    """

    __slots__ = ("section", "text")

    def __init__(self, section: str, text: str) -> None:
        self.section = section
        self.text = text


class StateMachine:
    """States, and which event may come in which of them. Events that it does not name are not its business.

    Attributes:
        clause: the id of the clause.
        start: the first state.
        moves: {state: {event: next state}}.
        key: pointers to what it is kept apart by: there is one machine for each run, session, call. The first that is
            there counts; `#` is the id of the call. (): one for the whole session.
    """

    __slots__ = ("clause", "events", "key", "moves", "start")

    def __init__(self, clause: str, start: str, moves: Moves, key: tuple[str, ...] = ()) -> None:
        self.clause = clause
        self.start = start
        self.moves = moves
        self.key = key
        self.events = frozenset(event for row in moves.values() for event in row)


class OnlyWhileOpen:
    """Messages that are sent only while calls of certain methods are open.

    Attributes:
        clause: the id of the clause.
        events: what is said.
        calls: methods of the host.
    """

    __slots__ = ("calls", "clause", "events")

    def __init__(self, clause: str, events: tuple[str, ...], calls: tuple[str, ...]) -> None:
        self.clause = clause
        self.events = events
        self.calls = calls


class Rules:
    """Rules of one protocol.

    Attributes:
        specification: its name, for people.
        clauses: id to clause.
        envelope: the schema of every message; `envelope_clause` demands it.
        messages: {event: (clause, schema of what it says)}: of `params`, `result`, `error` or what the dialect's form
            has in their place.
        machines: states.
        during: what is said only while something goes on.
        split: {event: pointer}: see the module.
        closed: the clause by which other messages are wrong; "" where there may be others.
        junk: the clause by which bytes that are no message are wrong; "" where they are tolerated.
        silent: methods whose requests need no answer.
        excuses: notifications that name a request of their own side (see `Dialect.references`), which needs no response
            after them.
        notifications: {method: clause}: what the child only tells; with an id it is wrong by this clause.
        limits: {method: clause}: of the dialect's timeouts.
        echoes: {method: clause}: of the dialect's echoes.
    """

    __slots__ = (
        "clauses", "closed", "during", "echoes", "envelope", "envelope_clause", "excuses", "junk", "limits", "machines",
        "messages", "notifications", "silent", "specification", "split",
    )  # fmt: skip

    def __init__(
        self,
        specification: str,
        clauses: Mapping[str, Clause],
        *,
        envelope: Schema,
        envelope_clause: str,
        messages: Mapping[str, tuple[str, Schema]],
        machines: tuple[StateMachine, ...] = (),
        during: tuple[OnlyWhileOpen, ...] = (),
        split: Mapping[str, str] | None = None,
        closed: str = "",
        junk: str = "",
        silent: tuple[str, ...] = (),
        excuses: tuple[str, ...] = (),
        notifications: Mapping[str, str] | None = None,
        limits: Mapping[str, str] | None = None,
        echoes: Mapping[str, str] | None = None,
    ) -> None:
        self.specification = specification
        self.clauses = JSON_RPC | dict(clauses)
        self.envelope = envelope
        self.envelope_clause = envelope_clause
        self.messages = messages
        self.machines = machines
        self.during = during
        self.split = split or {}
        self.closed = closed
        self.junk = junk
        self.silent = silent
        self.excuses = excuses
        self.notifications = notifications or {}
        self.limits = limits or {}
        self.echoes = echoes or {}

    def cited(self) -> Iterator[str]:
        """The ids of all clauses that a rule names."""
        yield self.envelope_clause
        yield from (clause for clause, _ in self.messages.values())
        yield from (machine.clause for machine in self.machines)
        yield from (rule.clause for rule in self.during)
        yield from (*self.notifications.values(), *self.limits.values(), *self.echoes.values())
        yield from filter(None, (self.closed, self.junk))


# What every protocol of calls demands, in the words of JSON-RPC 2.0; one of another form has its own for some of them.
JSON_RPC = {
    "version-2": Clause("JSON-RPC 2.0, 4 and 5", 'Every message says "jsonrpc": "2.0".'),
    "error-object": Clause("JSON-RPC 2.0, 5.1", "An error has a code, a whole number, and a message, a text."),
    "answer-known": Clause("JSON-RPC 2.0, 5", "An answer has the id of the request that it answers."),
    "answer-each": Clause("JSON-RPC 2.0, 5", "Every request is answered, once."),
    "either": Clause("JSON-RPC 2.0, 5", "An answer has a result or an error, never both."),
    "message": Clause("JSON-RPC 2.0, 4 and 5", "A message is a request, a notification or an answer."),
}


class AllRules:
    """Rules by the name of their dialect, created on first use; None for a dialect without rules."""

    __slots__ = ()

    def get(self, name: str) -> Rules | None:
        """Return the rules of a dialect; None if it has none."""
        if name not in WITH_RULES:
            return None
        module = __import__(f"ext_recorder.protocols.{name.replace('-', '_')}", fromlist=["rules"])
        rules: Rules = module.rules()
        return rules


# All but lines without any further meaning, of which nothing is demanded.
WITH_RULES = (
    "gevals", "pi", "gassist", "waza", "waza-go", "kaiak", "kaiak-head", "mcp", "lsp", "dap", "acp", "jsonrpc",
)  # fmt: skip

RULES = AllRules()
