"""Ids and names that stand for each other in two sessions: a run is `run-1` in one, and `run-7` in the other.

Where the dialect says that a message names something that one side has made up, the first two names that meet are
counterparts from then on: each of them stands for the other, and for nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_sdk.protocols.dialect import id_key
from ext_sdk.protocols.places import parts, resolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ext_sdk.protocols.dialect import Classified

_MOST = 100_000  # names that are remembered; a session with more of them forgets its oldest


class Counterparts:
    """Names of the recorded session and of the live one."""

    __slots__ = ("_live", "_recorded")

    def __init__(self) -> None:
        self._live: dict[bytes, object] = {}  # by the recorded name
        self._recorded: dict[bytes, object] = {}  # by the live one

    def live(self, recorded: bytes) -> object:
        """The live name for a recorded one, by its key; None where they are the same."""
        return self._live.get(recorded)

    def translated(self, recorded: object, live: object, pointers: Iterable[str]) -> object:
        """The live value with the recorded names in it, where they stand for each other or may come to do so.

        Args:
            recorded: a JSON value.
            live: another; it is changed.
            pointers: where names stand.
        """
        for pointer in pointers:
            one, other = resolve(recorded, pointer), resolve(live, pointer)
            if _is_name(one) and _is_name(other) and one != other and self._agree(one, other):
                _put(live, parts(pointer), one)
        return live

    def learn(self, recorded: Classified, live: Classified, pointers: Iterable[str]) -> None:
        """These two messages are each other's: so are the names in them."""
        for pointer in pointers:
            one, other = recorded.at(pointer), live.at(pointer)
            if _is_name(one) and _is_name(other) and self._agree(one, other):
                self._live[_key(one)] = other
                self._recorded[_key(other)] = one
                for names in (self._live, self._recorded):
                    if len(names) > _MOST:
                        del names[next(iter(names))]

    def _agree(self, recorded: object, live: object) -> bool:
        """Do they stand for each other, or for nothing yet?"""
        known, meant = self._live.get(_key(recorded)), self._recorded.get(_key(live))
        return (known is None and meant is None) or (known == live and meant == recorded)


def _is_name(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _key(value: object) -> bytes:
    return id_key(value, "")


def _put(value: object, tokens: list[str], new: object) -> None:
    for holder, token in _steps(value, tokens):
        if isinstance(holder, dict):
            holder[token] = new
        elif isinstance(holder, list):
            holder[int(token)] = new


def _steps(value: object, tokens: list[str]) -> Iterator[tuple[object, str]]:
    """The innermost holder of a value, and the token for it there."""
    for token in tokens[:-1]:
        value = value[token] if isinstance(value, dict) else value[int(token)] if isinstance(value, list) else None
    yield value, tokens[-1]
