"""What may come when: the machines of the rules, fed with events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_sdk.protocols.dialect import id_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_sdk.protocols.rules.rule import Machine, Rules

    from .naming import Named

_ID = "#"  # in the key of a machine: the id of the call


class States:
    """The states of one connection."""

    def __init__(self, rules: Rules) -> None:
        self._machines = rules.machines
        self._states: dict[tuple[int, bytes], str] = {}

    def feed(self, named: Named) -> Iterator[tuple[str, str]]:
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


def _key(machine: Machine, named: Named) -> bytes | None:
    if not machine.key:
        return b""
    for pointer in machine.key:
        if pointer == _ID:
            if named.message.key is not None:
                return named.message.key
        elif isinstance(value := named.message.at(pointer), (str, int)):
            return id_key(value, "")
    return None


def _told(machine: Machine, state: str, event: str) -> str:
    expected = ", ".join(f"`{each}`" for each in machine.moves[state]) or "nothing more"
    return f"`{event}` comes in the state {state!r}, where this is expected: {expected}"
