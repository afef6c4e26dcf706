"""Classification of messages as events of the rules (see `protocols.rules`), with the open calls of both sides."""

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
    """A request.

    Attributes:
        side: its sender: "in", the host, or "out", the child.
        names: names of its event without the arrow, the most general first.
        message: the request.
        time: seconds since the start of the session.
        line: its line in the cassette.
        answered: a response, or a part of one, has been received.
        excused: it was cancelled, and needs no response.
        untimely: numbers of the state machines that did not expect it.
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
    """A message with its event.

    Attributes:
        names: names of the event, the most general first; () for a response without a request.
        message: the message.
        call: the call that it begins or answers; None if it does neither.
        ends: it is the last response to that call.
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
    """Classifier of messages, in their order.

    Attributes:
        open: calls without their last response, by (connection, side, id).
    """

    def __init__(self, dialect: Dialect, rules: Rules) -> None:
        self._dialect = dialect
        self._rules = rules
        self.open: dict[tuple[int, str, bytes], list[Call]] = {}

    def classify(self, event: Data, message: ClassifiedMessage, line: int) -> ClassifiedEvent:
        """Return the event of a message. A request opens a call, its last response closes it."""
        arrow = _ARROWS[event.kind]
        if message.kind == "response":
            return self._response(event, message, arrow)
        names = self._names(f"{arrow} {message.method}", message)
        if message.method in self._rules.excuses:
            for pointer in pointers_of(self._dialect.references, message.method):
                value = message.at(pointer)
                for call in self.open.get((event.conn, event.kind, id_key(value, "")), ()):
                    call.excused = True
        if message.kind == "request" and message.key is not None:
            call = Call(event.kind, tuple(name[2:] for name in names), message, event.time, line)
            self.open.setdefault((event.conn, event.kind, message.key), []).append(call)
            return ClassifiedEvent(names, message, call)
        return ClassifiedEvent(names, message)

    def calls(self, conn: int, side: str) -> list[Call]:
        """Return the open calls of one side of a connection."""
        return [call for key, calls in self.open.items() if key[:2] == (conn, side) for call in calls]

    def _response(self, event: Data, message: ClassifiedMessage, arrow: str) -> ClassifiedEvent:
        side = _OTHER[event.kind]
        key = message.key
        is_notification = message.method and self._dialect.tag == "method"  # it ends a call
        if key is None and is_notification:
            key = next((id for conn, requester, id in self.open if (conn, requester) == (event.conn, side)), None)
        calls = self.open.get((event.conn, side, key)) if key is not None else None
        call = calls[0] if calls else None
        ends = self._dialect.is_last(message)
        if calls and ends and key is not None:
            del calls[0]
            if not calls:
                del self.open[event.conn, side, key]
        if is_notification:
            return ClassifiedEvent(self._names(f"{arrow} {message.method}", message), message, call, ends=ends)
        if call is None:
            return ClassifiedEvent((), message)
        # A protocol without JSON-RPC has its own form of errors; in JSON-RPC a failure may be a result.
        failed = self._dialect.tag != "method" and self._dialect.has_failed(message)
        sign = "!" if message.at("/error") is not MISSING or failed else "="
        names = [split for name in call.names for split in self._names(f"{arrow} {sign} {name}", message)]
        return ClassifiedEvent(tuple(names), message, call, ends=ends)

    def _names(self, name: str, message: ClassifiedMessage) -> tuple[str, ...]:
        pointer = self._rules.split.get(name)
        value = message.at(pointer) if pointer else MISSING
        if value is MISSING:
            return (name,)
        return name, f"{name}:{value if isinstance(value, str) else str(value).lower()}"


_ID = "#"  # in the key of a state machine: the id of the call


class StateMachines:
    """State machines of one connection."""

    def __init__(self, rules: Rules) -> None:
        self._machines = rules.machines
        self._states: dict[tuple[int, bytes], str] = {}

    def feed(self, classified: ClassifiedEvent) -> Iterator[tuple[str, str]]:
        """Move each machine by an event. Yield clause and problem for each machine that did not expect it."""
        message, call = classified.message, classified.call
        for number, machine in enumerate(self._machines):
            event = next((name for name in reversed(classified.names) if name in machine.events), "")
            key = _key(machine, message) if event else None
            if key is None or (message.kind == "response" and call and number in call.untimely):
                continue
            state = self._states.get((number, key), machine.start)
            following = machine.moves[state].get(event)
            if following is None:
                if call:
                    call.untimely.add(number)
                expected = ", ".join(f"`{name}`" for name in machine.moves[state]) or "nothing more"
                yield machine.clause, f"`{event}` in the state {state!r}, in which this is expected: {expected}"
            else:
                self._states[number, key] = following


def _key(machine: StateMachine, message: ClassifiedMessage) -> bytes | None:
    """Return the key of the machine's instance that an event belongs to; None if it belongs to none."""
    if not machine.key:
        return b""
    for pointer in machine.key:
        if pointer == _ID:
            if message.key is not None:
                return message.key
        elif isinstance(value := message.at(pointer), (str, int)):
            return id_key(value, "")
    return None
