"""Map from recorded to live ids, of the open calls of one side.

Ids are compared by `id_key`. As in `call_tracker`, calls with the same id are answered in the order of their requests.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    # By pointer into the response: the recorded name, as a key, and the live name as JSON text.
    Echoes: TypeAlias = dict[str, tuple[bytes, bytes]]

# A message that cancels a call may follow its response, so the latest closed calls are kept.
_REMEMBERED = 256


class IdMap:
    """Map from recorded to live ids of the open calls of one side.

    Attributes:
        spared: recorded ids, as keys, of calls that the live host sent without an id: it expects no response.
    """

    __slots__ = ("_echoes", "_later", "_open", "_past", "spared")

    def __init__(self) -> None:
        self.spared: set[bytes] = set()
        self._open: dict[bytes, bytes] = {}
        self._later: dict[bytes, list[bytes]] = {}  # further calls by an id that is open
        self._past: dict[bytes, bytes] = {}
        self._echoes: dict[bytes, Echoes] = {}

    def begin(self, recorded: bytes, live: bytes) -> None:
        """Add an open call.

        Args:
            recorded: its id in the cassette, as a key.
            live: its live id, as JSON text.
        """
        if self._echoes:
            self._echoes.pop(recorded, None)
        if recorded in self._open:
            self._later.setdefault(recorded, []).append(live)
        else:
            self._open[recorded] = live

    def expect(self, recorded: bytes, echoes: Echoes) -> None:
        """Store the values that the response to the latest call repeats."""
        if echoes:
            self._echoes[recorded] = echoes

    def echoes(self, recorded: bytes | None) -> Echoes:
        """Return the values that the response to a call repeats. Call this before `end`."""
        return self._echoes.pop(recorded, {}) if self._echoes and recorded is not None else {}

    def end_oldest(self) -> None:
        """Close the oldest call, for a response without an id of a child that serves one call after another."""
        if self._open:
            self.end(next(iter(self._open)))

    def end(self, recorded: bytes) -> bytes | None:
        """Close a call. Return its live id as JSON text; None if no call of this id is open."""
        live = self._open.pop(recorded, None)
        if live != recorded and live is not None:
            self._past[recorded] = live
            if len(self._past) > _REMEMBERED:
                del self._past[next(iter(self._past))]
        if self._later and (later := self._later.get(recorded)):
            self._open[recorded] = later.pop(0)
            if not later:
                del self._later[recorded]
        return live

    def ended(self, calls: list[tuple[bytes, bytes]]) -> None:
        """Remember calls that were answered, by their recorded and live ids."""
        past = self._past
        past.update(calls[-_REMEMBERED:])
        for recorded in list(past)[: max(0, len(past) - _REMEMBERED)]:
            del past[recorded]

    def __bool__(self) -> bool:
        """Return True if a call is open."""
        return bool(self._open)

    def __len__(self) -> int:
        return len(self._open) + sum(map(len, self._later.values()))

    def is_open(self, recorded: bytes) -> bool:
        """Return True if a call of this recorded id is open."""
        return recorded in self._open

    def live(self, recorded: bytes) -> bytes:
        """Return the live id, as JSON text, of a call that is open or was recently answered."""
        return self._open.get(recorded) or self._past.get(recorded) or recorded
