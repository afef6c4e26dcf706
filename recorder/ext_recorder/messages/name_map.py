"""Ids and names that correspond in two sessions: a run is `run-1` in one, and `run-7` in the other.

If the dialect says that a message has a name that one side generated, the first two names that are compared
correspond from then on: each of them to the other, and to no other name.

A value that a message hands out is a name, too, in all later messages that repeat it: as a string of its own, or, from
eight characters on, within a string, as a token does in "Bearer …".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ext_recorder.protocols.dialect import id_key
from ext_sdk.core.wire.json_codec import dumps, loads
from ext_sdk.core.wire.json_pointer import parts, resolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ext_recorder.protocols.dialect import ClassifiedMessage

_MOST = 100_000  # names; of a session with more names, the oldest are removed
_MOST_HANDED = 1_000  # the same for values that are handed out, which are searched for in all texts
_STRING = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?')  # in a JSON text; with the colon it is a name of a member
_WITHIN = 8  # characters of a value that is searched for within strings


class NameMap:
    """Names of the recorded session and of the live one."""

    __slots__ = ("_live", "_recorded", "_renamed", "_sent")

    def __init__(self) -> None:
        self._renamed = _Texts()  # live values that were handed out, by which the recorded ones were
        self._sent = _Texts()  # recorded values, by the live ones with their secrets
        self._live: dict[bytes, object] = {}  # live names by the recorded name
        self._recorded: dict[bytes, object] = {}  # recorded names by the live name

    def live(self, recorded: bytes) -> object:
        """Return the live name for a recorded name's key; None if they are the same."""
        return self._live.get(recorded)

    def translated(self, recorded: object, live: object, pointers: Iterable[str], handed: Sequence[str] = ()) -> object:
        """Return the live value with recorded names in place of their counterparts, known or possible.

        Args:
            recorded: a JSON value.
            live: another JSON value; it is changed.
            pointers: of names.
            handed: pointers of values that are handed out, which the message may have elsewhere, too.
        """
        new = _Texts()
        for pointer in (*pointers, *handed):
            expected, found = resolve(recorded, pointer), resolve(live, pointer)
            if _is_name(expected) and _is_name(found) and expected != found and self._agree(expected, found):
                holder = resolve(live, pointer.rpartition("/")[0])
                if isinstance(holder, dict):
                    holder[parts(pointer)[-1]] = expected
                elif isinstance(holder, list):
                    holder[int(parts(pointer)[-1])] = expected
                if pointer in handed and isinstance(expected, str) and isinstance(found, str):
                    new.add(found, expected)
        for texts in (self._renamed, new):
            live = texts.value(live) if texts else live
        return live

    def hand_out(
        self, recorded: ClassifiedMessage, live: ClassifiedMessage, secret: ClassifiedMessage, pointers: Iterable[str]
    ) -> None:
        """Store the corresponding values that two messages hand out.

        Args:
            live: the live message, redacted.
            secret: the live message, not redacted.
        """
        for pointer in pointers:
            expected, found, sent = recorded.at(pointer), live.at(pointer), secret.at(pointer)
            if isinstance(expected, str) and isinstance(found, str) and isinstance(sent, str) and expected:
                self._renamed.add(found, expected)
                self._sent.add(expected, sent)

    def sent(self, text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
        """Yield where recorded values that were handed out are in a JSON text: (start, end, the live text)."""
        return self._sent.changes(text, start, end)

    def learn(self, recorded: ClassifiedMessage, live: ClassifiedMessage, pointers: Iterable[str]) -> None:
        """Store the names of two corresponding messages."""
        for pointer in pointers:
            expected, found = recorded.at(pointer), live.at(pointer)
            if _is_name(expected) and _is_name(found) and self._agree(expected, found):
                self._live[_key(expected)] = found
                self._recorded[_key(found)] = expected
                for names in (self._live, self._recorded):
                    if len(names) > _MOST:
                        del names[next(iter(names))]

    def _agree(self, recorded: object, live: object) -> bool:
        """Return True if the names correspond, or neither has a counterpart yet."""
        known, meant = self._live.get(_key(recorded)), self._recorded.get(_key(live))
        return (known is None and meant is None) or (known == live and meant == recorded)


class _Texts:
    """Strings with their replacements, wherever they are."""

    __slots__ = ("_others", "_pattern")

    def __init__(self) -> None:
        self._others: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    def __len__(self) -> int:
        return len(self._others)

    def add(self, text: str, other: str) -> None:
        """Replace a text by another one from now on."""
        self._others.pop(text, None)
        if text != other:
            self._others[text] = other
        if len(self._others) > _MOST_HANDED:
            del self._others[next(iter(self._others))]
        self._pattern = None

    def value(self, value: object) -> object:
        """Return a JSON value with its strings replaced."""
        if isinstance(value, str):
            if other := self._others.get(value):
                return other
            if self._pattern is None:
                long = sorted((text for text in self._others if len(text) >= _WITHIN), key=len, reverse=True)
                self._pattern = re.compile("|".join(map(re.escape, long)) or "(?!)")
            return self._pattern.sub(lambda match: self._others[match[0]], value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {key: self.value(item) for key, item in value.items()}
        return value

    def changes(self, text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
        """Yield the changes to the strings of a JSON text, between two positions."""
        for match in _STRING.finditer(text, start, end) if self else ():
            value = None if match[2] else loads(match[1])
            if isinstance(value, str) and (new := self.value(value)) != value:
                yield *match.span(1), dumps(new)


def _is_name(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _key(value: object) -> bytes:
    return id_key(value, "")
