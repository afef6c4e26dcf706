"""The host's open calls: by which id each goes in the cassette, and by which one here.

Ids are compared by `id_key`. An id may come back once its call is answered, and some hosts do not even wait
for that: calls of one id are answered in the order in which they were made.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    # By the place in the answer: the recorded name there, as a key, and its live spelling.
    Echoes: TypeAlias = dict[str, tuple[bytes, bytes]]

# A message that cancels a call may come after its answer; so many renamed calls are remembered for that.
_REMEMBERED = 256


class IdMap:
    """Recorded ids to live ones, for the calls of one side.

    Attributes:
        spared: recorded ids, as keys, of calls that came without one here, and want no answer.
    """

    __slots__ = ("_echoes", "_later", "_open", "_past", "spared")

    def __init__(self) -> None:
        self.spared: set[bytes] = set()
        self._open: dict[bytes, bytes] = {}
        self._later: dict[bytes, list[bytes]] = {}  # further calls by an id that is open
        self._past: dict[bytes, bytes] = {}
        self._echoes: dict[bytes, Echoes] = {}

    def begin(self, recorded: bytes, live: bytes) -> None:
        """A request.

        Args:
            recorded: its id in the cassette, as a key.
            live: its id here, as it is spelled.
        """
        if self._echoes:
            self._echoes.pop(recorded, None)
        if recorded in self._open:
            self._later.setdefault(recorded, []).append(live)
        else:
            self._open[recorded] = live

    def expect(self, recorded: bytes, echoes: Echoes) -> None:
        """What the answer to the call just begun will repeat."""
        if echoes:
            self._echoes[recorded] = echoes

    def echoes(self, recorded: bytes | None) -> Echoes:
        """What the answer to this call repeats. To be asked for before its end."""
        return self._echoes.pop(recorded, {}) if self._echoes and recorded is not None else {}

    def end_oldest(self) -> None:
        """An answer that does not say to which call, of a child that serves one after the other."""
        if self._open:
            self.end(next(iter(self._open)))

    def end(self, recorded: bytes) -> bytes | None:
        """An answer: the spelling of the live id; None where no call of this id is open."""
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
        """Is any call without its answer?"""
        return bool(self._open)

    def __len__(self) -> int:
        return len(self._open) + sum(map(len, self._later.values()))

    def is_open(self, recorded: bytes) -> bool:
        """Return whether a call of this recorded id has no answer yet."""
        return recorded in self._open

    def live(self, recorded: bytes) -> bytes:
        """How the id of a call, open or lately answered, is spelled here."""
        return self._open.get(recorded) or self._past.get(recorded) or recorded
