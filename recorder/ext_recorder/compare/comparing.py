"""Two messages of one protocol, compared as JSON values.

Key order, white space and escapes do not count, types do: true is not 1, "1" is not 1. Numbers are equal when their
values are: 1, 1.0 and 1e0 are one number, and integers of any length are exact. Of a name given twice the last counts.
What is no JSON has to be equal byte for byte.

Set aside are the id of the call, what the dialect calls volatile, what `--ignore` names, and which number a placeholder
of a secret has. `--mask` sets aside parts of texts: of `after 12ms`, say, what `[0-9]+ms` matches.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ext_recorder.errors import UsageError
from ext_recorder.matching import Difference
from ext_recorder.pointers import differences, without
from ext_sdk.protocols.dialect import id_key, pointers_of
from ext_sdk.protocols.places import MISSING, parts, resolve
from ext_sdk.redaction import same_but_for_numbers
from ext_sdk.wire.errors import MessageError
from ext_sdk.wire.json_text import loads

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ext_sdk.protocols.dialect import Classified, Dialect

    from .counterparts import Counterparts

_PLACEHOLDER = "[redacted:"
_MASKED = "…"


class Comparison:
    """What counts in messages of one protocol.

    Args:
        dialect: what is volatile, and where names stand.
        ignore: JSON pointers within the message, such as "/result/message"; `*` is every member or item.
        mask: regular expressions; what they match in texts is set aside.

    Raises:
        UsageError: what is given is no JSON pointer, or no regular expression.
    """

    def __init__(self, dialect: Dialect, ignore: Iterable[str] = (), mask: Sequence[str] = ()) -> None:
        self.dialect = dialect
        self._ignore = tuple(ignore)
        self._mask = _pattern(mask)
        for pointer in self._ignore:
            try:
                parts(pointer)
            except ValueError as error:
                raise UsageError(f"--ignore {error}") from None

    def value(self, message: Classified, answered: str = "") -> object:
        """What counts of a message.

        Args:
            message: any.
            answered: of an answer: the method that it answers.
        """
        try:
            found = loads(_without_id(message))
        except MessageError:
            found = message.text
        if isinstance(found, dict) and found.get("params", MISSING) is None:
            del found["params"]  # Go's way to have none
        apart = {**dict.fromkeys(self._volatile(message.method)), **dict.fromkeys(self._volatile(answered))}
        found = without(found, [*apart, *self._ignore])
        return self._masked(found) if self._mask else found

    def differences(
        self,
        recorded: Classified,
        live: Classified,
        counterparts: Counterparts,
        *,
        answered: str = "",
        most: int = 1,
    ) -> list[Difference]:
        """Where two messages differ, at most so many places.

        Args:
            recorded: the one.
            live: the other.
            counterparts: names of one session by those of the other.
            answered: of answers: the method that they answer.
            most: places.
        """
        if recorded.kind != live.kind:
            return [Difference("", recorded.text, live.text)]
        if recorded.text == live.text:
            return []
        left = self.value(recorded, answered)
        right = counterparts.translated(left, self.value(live, answered), self.names(recorded))
        found: list[Difference] = []
        secrets: list[tuple[str, str]] = []
        places: list[tuple[str, str, str]] = []
        for pointer in differences(left, right):
            each = Difference(pointer, resolve(left, pointer), resolve(right, pointer))
            if _is_secret(each.recorded) and _is_secret(each.live):
                secrets.append((str(each.recorded), str(each.live)))
                places.append((pointer, *secrets[-1]))
            else:
                found.append(each)
            if len(found) >= most:
                return found
        if secrets and not same_but_for_numbers(*("\n".join(side) for side in zip(*secrets, strict=True))):
            found += [Difference(*each) for each in places]
        return found[:most]

    def names(self, message: Classified) -> tuple[str, ...]:
        """Where a message has names that one of the two sides made up."""
        dialect = self.dialect
        return pointers_of(dialect.names, message.method) + pointers_of(dialect.references, message.method)

    def subjects(self, message: Classified) -> tuple[frozenset[bytes], frozenset[bytes]]:
        """What a message belongs to: calls, as their answer or by naming them; runs, sessions and the like."""
        answered = {message.key} if message.kind == "response" and message.key is not None else set()
        mentioned = _keys(message, pointers_of(self.dialect.mentions, message.method))
        return frozenset(answered) | mentioned, _keys(message, pointers_of(self.dialect.names, message.method))

    def _masked(self, value: object) -> object:
        """The value with its texts masked."""
        assert self._mask is not None
        if isinstance(value, str):
            return self._mask.sub(_MASKED, value)
        if isinstance(value, list):
            return [self._masked(item) for item in value]
        if isinstance(value, dict):
            return {key: self._masked(item) for key, item in value.items()}
        return value

    def _volatile(self, method: str) -> tuple[str, ...]:
        return pointers_of(self.dialect.volatile, method)


def _pattern(mask: Sequence[str]) -> re.Pattern[str] | None:
    for each in mask:
        try:
            re.compile(each)
        except re.error as error:
            raise UsageError(f"--mask {each}: no regular expression: {error}") from None
    return re.compile("|".join(f"(?:{each})" for each in mask)) if mask else None


def _keys(message: Classified, pointers: Iterable[str]) -> frozenset[bytes]:
    values = (message.at(pointer) for pointer in pointers)
    return frozenset(id_key(value, "") for value in values if isinstance(value, (str, int)))


def _is_secret(value: object) -> bool:
    return isinstance(value, str) and _PLACEHOLDER in value


def _without_id(message: Classified) -> str:
    start, end = message.span
    return f"{message.text[:start]}0{message.text[end:]}" if end else message.text
