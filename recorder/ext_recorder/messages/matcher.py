"""Comparison of live messages with recorded ones: `Matcher` for replay, `MessageComparison` for verify and diff.

Two messages of the host match when they are of one kind (request, notification, response) and have the same
method and params (for a response: the same result or error), apart from

- ids, which the host chooses; a response to a request of the child must have the id of that request,
- bindings (see `path_bindings`), and values that the dialect lists as volatile, client-generated or references,
- secrets: the live message is redacted as the recorded one was, and placeholders stand for each other,
- what `--ignore` names, and within texts what `--mask` matches (see `comparison_rules`); or everything but what
  `--match-on` names.

Values are compared as JSON values: key order, white space and escapes do not count, types do. true is not 1,
"1" is not 1. Numbers are equal when their values are: 1, 1.0 and 1e0 match, integers of any length are exact,
and other numbers are what an IEEE double makes of them. Of a name given twice the last counts. What is no
JSON has to be equal byte for byte.
"""

from __future__ import annotations

from ext_recorder.errors import UsageError
from ext_recorder.protocols.dialect import id_key, pointers_of
from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.json_codec import loads
from ext_sdk.core.wire.json_pointer import MISSING, parts, resolve

from .comparison_rules import IgnoredPlaces, Mask
from .json_values import differences, places, without

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ext_recorder.protocols.dialect import ClassifiedMessage, Dialect

    from .id_map import IdMap
    from .name_map import NameMap
    from .path_bindings import ReplayBindings


MATCH_ON = ("method", "params")
_PLACEHOLDER = "[redacted:"


def check_match_on(words: Iterable[str]) -> None:
    """Raise UsageError if a value of `--match-on` is neither a word nor a JSON pointer."""
    for pointer in [word for word in words if word not in MATCH_ON]:
        try:
            parts(pointer)
        except ValueError as error:
            raise UsageError(f"--match-on: expected {', '.join(MATCH_ON)} or a JSON pointer; {error}") from None


class Difference:
    """One difference between two messages.

    Attributes:
        pointer: JSON pointer within the message; "" for the whole of it.
        recorded: the value there, or MISSING.
        live: the same of the live message.
    """

    __slots__ = ("live", "pointer", "recorded")

    def __init__(self, pointer: str, recorded: object, live: object) -> None:
        self.pointer = pointer
        self.recorded = recorded
        self.live = live


class Matcher:
    """Comparison of the live host's messages with recorded ones.

    Args:
        dialect: what is volatile, bound, minted, a reference.
        bindings: the session's.
        calls: the session's.
        ignore: ignored values, see `comparison_rules.IgnoredPlaces`; `*` in a pointer is every member or item.
        mask: parts of texts that are set aside, see `comparison_rules.Mask`.
        match_on: "method", "params", or JSON pointers.
        names: lasting names, recorded key to live spelling; filled elsewhere.

    Attributes:
        ignore: see above.
        mask: see above; None: nothing.
        asked: requests of the child by id, with what they are about: filled elsewhere, if `ignore` is by method.

    Raises:
        UsageError: a rule is not of its form.
    """

    def __init__(
        self,
        dialect: Dialect,
        bindings: ReplayBindings,
        calls: IdMap,
        *,
        ignore: tuple[str, ...] = (),
        mask: tuple[str, ...] = (),
        match_on: tuple[str, ...] = MATCH_ON,
        names: Mapping[bytes, bytes] | None = None,
    ) -> None:
        check_match_on(match_on)
        self._dialect = dialect
        self._bindings = bindings
        self._calls = calls
        self.ignore = IgnoredPlaces("ignore", ignore)
        self.mask = Mask.of(mask)
        self.asked: dict[bytes, tuple[str, str]] = {}
        self._match_on = match_on
        self._names = {} if names is None else names

    def same(self, recorded: ClassifiedMessage, live: ClassifiedMessage) -> bool:
        """Return True if the messages match."""
        return next(iter(self.differences(recorded, live, most=1)), None) is None

    def differences(self, recorded: ClassifiedMessage, live: ClassifiedMessage, *, most: int) -> list[Difference]:
        """Return up to `most` differences."""
        if recorded.kind != live.kind and not self._is_loose(recorded, live):
            return [Difference("", recorded.kind, live.kind)]
        if recorded.kind == "response" and recorded.key != live.key:
            return [Difference("/id", _spelled_id(recorded), _spelled_id(live))]
        left, right = self._compared(recorded), self._compared(live)
        found: list[Difference] = []
        secrets: list[Difference] = []
        for pointer in differences(left, right):
            each = Difference(pointer, resolve(left, pointer), resolve(right, pointer))
            if _may_be_secret(each):
                secrets.append(each)
            elif not self._set_apart(recorded.method, each):
                found.append(each)
                if len(found) >= most:
                    return found
        return found if _same_secrets(secrets) else (found + secrets)[:most]

    def same_line(self, recorded: bytes, live: bytes) -> bool:
        """Return True if two lines that are not messages differ only in what is masked."""
        if not self.mask:
            return False
        one, other = (self.mask.text(line.decode("utf-8", "surrogateescape")) for line in (recorded, live))
        return one == other

    def key(self, message: ClassifiedMessage) -> str:
        """Return a text that is equal for messages that match. `same` makes the decision."""
        held = [
            *pointers_of(self._dialect.references, message.method),
            *pointers_of(self._dialect.client_generated, message.method),
            *pointers_of(self._dialect.names, message.method),
            *self._dialect.bound.get(message.method, {}).values(),
        ]
        kind = "notification" if message.method in self._dialect.optional_id else message.kind
        try:
            return f"{kind} {_canonical(without(self._compared(message), held))}"
        except RecursionError:
            return kind

    def _is_loose(self, recorded: ClassifiedMessage, live: ClassifiedMessage) -> bool:
        """Return True if they differ only in having an id, and the dialect permits that."""
        return recorded.method == live.method in self._dialect.optional_id and "response" not in {
            recorded.kind,
            live.kind,
        }

    def _compared(self, message: ClassifiedMessage) -> object:
        """Return the part of a message that counts."""
        found = self._counted(message)
        return self.mask.value(found) if self.mask else found

    def _ignored(self, message: ClassifiedMessage) -> tuple[str, ...]:
        if not self.ignore.by_method:
            return self.ignore.of("")
        topic = self.asked.get(message.key or b"") if message.kind == "response" else None
        return self.ignore.of(*(topic or (message.method, self._dialect.about(message))))

    def _counted(self, message: ClassifiedMessage) -> object:
        if message.kind == "other":
            try:
                return loads(message.text)
            except MessageError:
                return {"": message.text}  # compared as text
        members, form = message.members, message.form
        wanted = form.content if message.kind == "response" or "params" in self._match_on else ()
        kept = {name: members[name] for name in wanted if name in members}
        if message.kind != "response":
            if "method" in self._match_on and form.method:
                kept[form.method[1:]] = message.method
            if kept.get("params", MISSING) is None:
                kept.pop("params", None)  # Go writes null for absent params
            kept |= {pointer: resolve(members, pointer) for pointer in self._match_on if pointer.startswith("/")}
        apart = [*pointers_of(self._dialect.volatile, message.method), *self._ignored(message)]
        return without(kept, [*apart, form.id] if form.id.count("/") > 1 else apart)  # else it is not among these

    def _set_apart(self, method: str, each: Difference) -> bool:
        """Return True if the dialect permits this difference."""
        recorded, live = each.recorded, each.live
        if each.pointer in pointers_of(self._dialect.names, method):
            return self._same_name(each, made_up=each.pointer in pointers_of(self._dialect.client_generated, method))
        if each.pointer in pointers_of(self._dialect.client_generated, method):
            return recorded is not MISSING and live is not MISSING
        if each.pointer in pointers_of(self._dialect.references, method):
            return self._calls.live(id_key(recorded, "")) == id_key(live, "")
        places = self._dialect.bound.get(method, {})
        if each.pointer not in places.values() or not isinstance(recorded, str) or not isinstance(live, str):
            return False
        # Two live values of one placeholder would confuse two folders; any other value is only another path.
        return self._bindings.live(recorded) is None or recorded.rstrip("/") == live.rstrip("/")

    def _same_name(self, each: Difference, *, made_up: bool) -> bool:
        """Return True if two names refer to the same object: as before, or both for the first time."""
        if each.recorded is MISSING or each.live is MISSING:
            return False
        known, live = self._names.get(id_key(each.recorded, "")), id_key(each.live, "")
        return made_up and live not in self._names.values() if known is None else known == live


def _may_be_secret(each: Difference) -> bool:
    recorded, live = each.recorded, each.live
    return isinstance(recorded, str) and isinstance(live, str) and _PLACEHOLDER in recorded and _PLACEHOLDER in live


def _same_secrets(found: list[Difference]) -> bool:
    """Return True if the placeholders of both sides correspond, throughout the message."""
    if not found:
        return True
    from ext_sdk.core.redaction.patterns import same_but_for_numbers

    return same_but_for_numbers(
        "\n".join(str(each.recorded) for each in found), "\n".join(str(each.live) for each in found)
    )


def _spelled_id(message: ClassifiedMessage) -> str:
    return message.text[slice(*message.span)] or "none"


def _canonical(value: object) -> str:
    """Return text that is equal for equal values; placeholders are without their number."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key!r}:{_canonical(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_canonical(item) for item in value) + "]"
    if isinstance(value, str):
        return repr(_without_numbers(value) if _PLACEHOLDER in value else value)
    if isinstance(value, float) and value == value // 1:
        return str(int(value))
    return str(value)


def _without_numbers(text: str) -> str:
    first, *pieces = text.split(_PLACEHOLDER)
    return _PLACEHOLDER.join([first, *(piece.partition("]")[2] for piece in pieces)])


_REDACTED = "[redacted:"


class MessageComparison:
    """Comparison of messages of one protocol as JSON values, without what rules and the dialect ignore.

    Args:
        dialect: what is volatile, and where names stand.
        ignore: ignored values, see `comparison_rules.IgnoredPlaces`; `*` in a pointer is every member or item.
        mask: parts of texts that are set aside, see `comparison_rules.Mask`.
        name: where values are handed out, in addition to those of the dialect; see `comparison_rules.IgnoredPlaces`.

    Raises:
        UsageError: a rule is not of its form.
    """

    def __init__(
        self, dialect: Dialect, ignore: Iterable[str] = (), mask: Iterable[str] = (), name: Iterable[str] = ()
    ) -> None:
        self.dialect = dialect
        self._name = IgnoredPlaces("name", name)
        self._ignore = IgnoredPlaces("ignore", ignore)
        self._mask = Mask.of(mask)
        self._about_counts = self._ignore.by_method or self._name.by_method

    def value(self, message: ClassifiedMessage, answered: str = "", about: str = "") -> object:
        """Return the part of a message that is compared.

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
            del found["params"]  # Go writes null for absent params
        apart = {**dict.fromkeys(self._volatile(message.method)), **dict.fromkeys(self._volatile(answered))}
        found = without(found, [*apart, *self._ignore.of(*self._topic(message, answered, about))])
        return self._mask.value(found) if self._mask else found

    def _topic(self, message: ClassifiedMessage, answered: str, about: str) -> tuple[str, str]:
        """Return the method and the subject of the call that a message belongs to."""
        if message.kind == "response":
            return answered or message.method, about
        return message.method, self.dialect.about(message) if self._about_counts else ""

    def differences(
        self,
        recorded: ClassifiedMessage,
        live: ClassifiedMessage,
        counterparts: NameMap,
        *,
        answered: str = "",
        about: str = "",
        most: int = 1,
    ) -> list[Difference]:
        """Return up to `most` differences of two messages.

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
        if not secrets:
            return found
        from ext_sdk.core.redaction.patterns import same_but_for_numbers

        if not same_but_for_numbers(*("\n".join(side) for side in zip(*secrets, strict=True))):
            found += [Difference(*each) for each in secret_places]
        return found[:most]

    def names(self, message: ClassifiedMessage) -> tuple[str, ...]:
        """Return pointers to names that one of the two sides generated."""
        dialect = self.dialect
        return pointers_of(dialect.names, message.method) + pointers_of(dialect.references, message.method)

    def handed(self, message: ClassifiedMessage, answered: str = "", about: str = "") -> tuple[str, ...]:
        """Return pointers to values that later messages repeat.

        Args:
            message: any.
            answered: of a response: the method of its request.
            about: of a response: what its request is about.
        """
        method, subject = self._topic(message, answered, about)
        return pointers_of(self.dialect.handed, method) + self._name.of(method, subject)

    def subjects(self, message: ClassifiedMessage) -> tuple[frozenset[bytes], frozenset[bytes]]:
        """Return the calls that a message belongs to, and the names of its runs, sessions and the like."""
        answered = {message.key} if message.kind == "response" and message.key is not None else set()
        mentioned = _keys(message, pointers_of(self.dialect.mentions, message.method))
        return frozenset(answered) | mentioned, _keys(message, pointers_of(self.dialect.names, message.method))

    def _volatile(self, method: str) -> tuple[str, ...]:
        return pointers_of(self.dialect.volatile, method)


def _keys(message: ClassifiedMessage, pointers: Iterable[str]) -> frozenset[bytes]:
    values = (message.at(pointer) for pointer in pointers)
    return frozenset(id_key(value, "") for value in values if isinstance(value, (str, int)))


def _is_secret(value: object) -> bool:
    return isinstance(value, str) and _REDACTED in value


def _without_id(message: ClassifiedMessage) -> str:
    start, end = message.span
    return f"{message.text[:start]}0{message.text[end:]}" if end else message.text
