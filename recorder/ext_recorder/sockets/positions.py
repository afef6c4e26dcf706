"""How far each connection has come: what one of them says may have to wait for another one."""

from __future__ import annotations

from ext_recorder.strict import StrictPlayer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ext_recorder.player import Player

    from .recorded import Connection


class Positions:
    """Lines of the cassette by connection; of those that are over there are none.

    Args:
        recorded: the connections, none of which is made yet.
    """

    def __init__(self, recorded: Iterable[Connection]) -> None:
        self._known: dict[int, Player | int] = {one.number: one.line for one in recorded}

    def begin(self, number: int, player: Player) -> None:
        """A connection is made, and this plays it."""
        self._known[number] = player

    def end(self, number: int) -> None:
        """It is over."""
        del self._known[number]

    def arrived(self, line: int) -> bool:
        """Has everything come that the clients said down to this line?"""
        return all(_position(each) > line for each in self._known.values())

    def all(self) -> list[int]:
        """All of them."""
        return [_position(each) for each in self._known.values()]


def _position(player: Player | int) -> int:
    """All that this client said above this line has come."""
    if isinstance(player, int):
        return player
    # In any order nobody can say what has not come yet: what depends on it waits for the connection's end.
    return player.next_line() if isinstance(player, StrictPlayer) else 0
