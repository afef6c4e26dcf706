"""Messages to events of the rules (see `ext_recorder.protocols.rules`), with the open calls of both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.protocols.dialect import id_key, pointers_of
from ext_sdk.core.wire.json_pointer import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_recorder.cassette.events import Data
    from ext_recorder.protocols.dialect import ClassifiedMessage, Dialect
    from ext_recorder.protocols.rules import Rules, StateMachine


_ARROWS = {"in": ">", "out": "<"}
_OTHER = {"in": "out", "out": "in"}


class Call:
    """A request that was made.

    Attributes:
        side: who made it: "in", the host, or "out".
        names: its event, the most general first, without the arrow.
        message: the request.
        time: when.
        line: where it stands.
        answered: whether anything has come yet.
        excused: it was cancelled, and needs no response.
        untimely: numbers of the machines that had not expected it.
    """

    __slots__ = ("answered", "excused", "line", "message", "names", "side", "time", "untimely")

    def __init__(self, side: str, names: tuple[str, ...], message: ClassifiedMessage, time: float, line: int) -> None:
        self.side = side
        self.names = names
        self.message = message
        self.time = time
        self.line = line
        self.answered = False
        self.excused = False
        self.untimely: set[int] = set()


class ClassifiedEvent:
    """A message, and which event it is.

    Attributes:
        names: of the event, the most general first; () for an answer to nothing.
        message: what it is.
        call: the call that it begins, or answers; None where it does neither.
        ends: it is the last answer to that.
    """

    __slots__ = ("call", "ends", "message", "names")

    def __init__(
        self, names: tuple[str, ...], message: ClassifiedMessage, call: Call | None = None, *, ends: bool = False
    ):
        self.names = names
        self.message = message
        self.call = call
        self.ends = ends


class EventClassifier:
    """Names messages in their order; knows the open calls.

    Attributes:
        open: the calls without their last answer, by (connection, side, id).
    """

    def __init__(self, dialect: Dialect, rules: Rules) -> None:
        self._dialect = dialect
        self._rules = rules
        self.open: dict[tuple[int, str, bytes], list[Call]] = {}

    def name(self, event: Data, message: ClassifiedMessage, line: int) -> ClassifiedEvent:
        """Which event a message is. A request is open from now on, an answer ends its call."""
        arrow = _ARROWS[event.kind]
        if message.kind == "response":
            return self._answer(event, message, arrow)
        names = self._names(f"{arrow} {message.method}", message)
        if message.method in self._rules.excuses:
            self._excuse(event, message)
        if message.kind == "request" and message.key is not None:
            call = Call(event.kind, tuple(name[2:] for name in names), message, event.time, line)
            self.open.setdefault((event.conn, event.kind, message.key), []).append(call)
            return ClassifiedEvent(names, message, call)
        return ClassifiedEvent(names, message)

    def calls(self, conn: int, side: str) -> list[Call]:
        """The open calls of one side of a connection."""
        return [call for key, calls in self.open.items() if key[:2] == (conn, side) for call in calls]

    def _excuse(self, event: Data, message: ClassifiedMessage) -> None:
        for pointer in pointers_of(self._dialect.references, message.method):
            value = message.at(pointer)
            for call in self.open.get((event.conn, event.kind, id_key(value, "")), ()):
                call.excused = True

    def _answer(self, event: Data, message: ClassifiedMessage, arrow: str) -> ClassifiedEvent:
        side = _OTHER[event.kind]
        key = message.key
        told = message.method and self._dialect.tag == "method"  # a notification that ends a call
        if key is None and told:
            key = next((each[2] for each in self.open if each[:2] == (event.conn, side)), None)
        calls = self.open.get((event.conn, side, key)) if key is not None else None
        call = calls[0] if calls else None
        ends = self._dialect.is_last(message)
        if calls and ends and key is not None:
            del calls[0]
            if not calls:
                del self.open[event.conn, side, key]
        if told:
            return ClassifiedEvent(self._names(f"{arrow} {message.method}", message), message, call, ends=ends)
        if call is None:
            return ClassifiedEvent((), message)
        sign = "!" if message.at("/error") is not MISSING or self._is_error(message) else "="
        names = [split for name in call.names for split in self._names(f"{arrow} {sign} {name}", message)]
        return ClassifiedEvent(tuple(names), message, call, ends=ends)

    def _is_error(self, message: ClassifiedMessage) -> bool:
        """An error in the form of a protocol without JSON-RPC's; elsewhere a failure is a result."""
        return self._dialect.tag != "method" and self._dialect.has_failed(message)

    def _names(self, name: str, message: ClassifiedMessage) -> tuple[str, ...]:
        pointer = self._rules.split.get(name)
        value = message.at(pointer) if pointer else MISSING
        if value is MISSING:
            return (name,)
        return name, f"{name}:{value if isinstance(value, str) else str(value).lower()}"


_ID = "#"  # in the key of a machine: the id of the call


class StateMachines:
    """The states of one connection."""

    def __init__(self, rules: Rules) -> None:
        self._machines = rules.machines
        self._states: dict[tuple[int, bytes], str] = {}

    def feed(self, named: ClassifiedEvent) -> Iterator[tuple[str, str]]:
        """Move on by an event: (clause, what is wrong) for each machine that had not expected it."""
        for number, machine in enumerate(self._machines):
            event = next((name for name in reversed(named.names) if name in machine.events), "")
            key = _key(machine, named) if event else None
            if key is None or (named.message.kind == "response" and named.call and number in named.call.untimely):
                continue
            state = self._states.get((number, key), machine.start)
            following = machine.moves[state].get(event)
            if following is None:
                if named.call:
                    named.call.untimely.add(number)
                yield machine.clause, _told(machine, state, event)
            else:
                self._states[number, key] = following


def _key(machine: StateMachine, named: ClassifiedEvent) -> bytes | None:
    if not machine.key:
        return b""
    for pointer in machine.key:
        if pointer == _ID:
            if named.message.key is not None:
                return named.message.key
        elif isinstance(value := named.message.at(pointer), (str, int)):
            return id_key(value, "")
    return None


def _told(machine: StateMachine, state: str, event: str) -> str:
    expected = ", ".join(f"`{each}`" for each in machine.moves[state]) or "nothing more"
    return f"`{event}` comes in the state {state!r}, where this is expected: {expected}"
