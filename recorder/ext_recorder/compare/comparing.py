"""Two messages of one protocol, compared as JSON values.

Key order, white space and escapes do not count, types do: true is not 1, "1" is not 1. Numbers are equal when their
values are: 1, 1.0 and 1e0 are one number, and integers of any length are exact. Of a name given twice the last counts.
What is no JSON has to be equal byte for byte.

Set aside are the id of the call, what the dialect calls volatile, what `--ignore` names, and which number a placeholder
of a secret has. `--mask` sets aside parts of texts: of `after 12ms`, say, what `[0-9]+ms` matches. `--name` marks
values that the child hands out, such as tokens and cursors: see `counterparts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.matching import Difference
from ext_recorder.pointers import differences, places, without
from ext_recorder.rules import Mask, Places
from ext_sdk.core.redaction.patterns import same_but_for_numbers
from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.json_codec import loads
from ext_sdk.core.wire.json_pointer import MISSING, resolve
from ext_sdk.protocols.dialect import id_key, pointers_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ext_sdk.protocols.dialect import Classified, Dialect

    from .counterparts import Counterparts

_PLACEHOLDER = "[redacted:"


class Comparison:
    """What counts in messages of one protocol.

    Args:
        dialect: what is volatile, and where names stand.
        ignore: places that are set aside, see `rules.Places`; `*` in a pointer is every member or item.
        mask: parts of texts that are set aside, see `rules.Mask`.
        name: where values are handed out, in addition to those of the dialect; see `rules.Places`.

    Raises:
        UsageError: a rule is not of its form.
    """

    def __init__(
        self, dialect: Dialect, ignore: Iterable[str] = (), mask: Iterable[str] = (), name: Iterable[str] = ()
    ) -> None:
        self.dialect = dialect
        self._name = Places("name", name)
        self._ignore = Places("ignore", ignore)
        self._mask = Mask.of(mask)
        self._about_counts = self._ignore.by_method or self._name.by_method

    def value(self, message: Classified, answered: str = "", about: str = "") -> object:
        """Return what counts of a message.

        Args:
            message: any.
            answered: of a response: the method of its request.
            about: of a response: what its request is about.
        """
        try:
            found = loads(_without_id(message))
        except MessageError:
            found = message.text
        if isinstance(found, dict) and found.get("params", MISSING) is None:
            del found["params"]  # Go's way to have none
        apart = {**dict.fromkeys(self._volatile(message.method)), **dict.fromkeys(self._volatile(answered))}
        found = without(found, [*apart, *self._ignore.of(*self._topic(message, answered, about))])
        return self._mask.value(found) if self._mask else found

    def _topic(self, message: Classified, answered: str, about: str) -> tuple[str, str]:
        """Return the method and the subject of the call that a message belongs to."""
        if message.kind == "response":
            return answered or message.method, about
        return message.method, self.dialect.about(message) if self._about_counts else ""

    def differences(
        self,
        recorded: Classified,
        live: Classified,
        counterparts: Counterparts,
        *,
        answered: str = "",
        about: str = "",
        most: int = 1,
    ) -> list[Difference]:
        """Where two messages differ, at most so many places.

        Args:
            recorded: the one.
            live: the other.
            counterparts: names of one session by those of the other.
            answered: of responses: the method of their request.
            about: of responses: what their request is about.
            most: places.
        """
        if recorded.kind != live.kind:
            return [Difference("", recorded.text, live.text)]
        if recorded.text == live.text:
            return []
        left = self.value(recorded, answered, about)
        handed = list(places(left, self.handed(recorded, answered, about)))
        right = counterparts.translated(left, self.value(live, answered, about), self.names(recorded), handed)
        found: list[Difference] = []
        secrets: list[tuple[str, str]] = []
        secret_places: list[tuple[str, str, str]] = []
        for pointer in differences(left, right):
            each = Difference(pointer, resolve(left, pointer), resolve(right, pointer))
            if _is_secret(each.recorded) and _is_secret(each.live):
                secrets.append((str(each.recorded), str(each.live)))
                secret_places.append((pointer, *secrets[-1]))
            else:
                found.append(each)
            if len(found) >= most:
                return found
        if secrets and not same_but_for_numbers(*("\n".join(side) for side in zip(*secrets, strict=True))):
            found += [Difference(*each) for each in secret_places]
        return found[:most]

    def names(self, message: Classified) -> tuple[str, ...]:
        """Where a message has names that one of the two sides made up."""
        dialect = self.dialect
        return pointers_of(dialect.names, message.method) + pointers_of(dialect.references, message.method)

    def handed(self, message: Classified, answered: str = "", about: str = "") -> tuple[str, ...]:
        """Return where a message hands out values that later messages repeat.

        Args:
            message: any.
            answered: of a response: the method of its request.
            about: of a response: what its request is about.
        """
        method, subject = self._topic(message, answered, about)
        return pointers_of(self.dialect.handed, method) + self._name.of(method, subject)

    def subjects(self, message: Classified) -> tuple[frozenset[bytes], frozenset[bytes]]:
        """What a message belongs to: calls, as their answer or by naming them; runs, sessions and the like."""
        answered = {message.key} if message.kind == "response" and message.key is not None else set()
        mentioned = _keys(message, pointers_of(self.dialect.mentions, message.method))
        return frozenset(answered) | mentioned, _keys(message, pointers_of(self.dialect.names, message.method))

    def _volatile(self, method: str) -> tuple[str, ...]:
        return pointers_of(self.dialect.volatile, method)


def _keys(message: Classified, pointers: Iterable[str]) -> frozenset[bytes]:
    values = (message.at(pointer) for pointer in pointers)
    return frozenset(id_key(value, "") for value in values if isinstance(value, (str, int)))


def _is_secret(value: object) -> bool:
    return isinstance(value, str) and _PLACEHOLDER in value


def _without_id(message: Classified) -> str:
    start, end = message.span
    return f"{message.text[:start]}0{message.text[end:]}" if end else message.text
