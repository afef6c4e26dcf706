"""Comparison of live messages with recorded ones: `Matcher` for replay, `MessageComparison` for verify and diff.

Two messages of the host match when they are of one kind (request, notification, response) and have the same
method and params (for a response: the same result or error), apart from

- ids, which the host chooses; a response to a request of the child must have the id of that request,
- bindings (see `path_bindings`), and values that the dialect lists as volatile, client-generated or references,
- secrets: the live message is redacted as the recorded one was, and placeholders match each other,
- values that `--ignore` names, and parts of texts that `--mask` matches (see `comparison_rules`); or everything except
  the values that `--match-on` names.

Values are compared as JSON values: key order, white space and escapes do not matter, types do. true is not 1, "1" is
not 1. Numbers are equal if their values are: 1, 1.0 and 1e0 match, integers of any length are exact, other numbers are
IEEE doubles. If a name occurs twice, the last value counts. Text that is not JSON must be equal byte for byte.
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
    from collections.abc import Callable, Iterable, Mapping

    from ext_recorder.protocols.dialect import ClassifiedMessage, Dialect

    from .name_map import NameMap
    from .open_calls import IdMap
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
        recorded: the recorded value, or MISSING.
        live: the live value, or MISSING.
    """

    __slots__ = ("live", "pointer", "recorded")

    def __init__(self, pointer: str, recorded: object, live: object) -> None:
        self.pointer = pointer
        self.recorded = recorded
        self.live = live


class Matcher:
    """Comparison of the live host's messages with recorded ones.

    Args:
        ignore: ignored values, see `comparison_rules.IgnoredPlaces`; `*` in a pointer is every member or item.
        mask: parts of texts that are ignored, see `comparison_rules.Mask`.
        match_on: "method", "params", or JSON pointers.
        names: live names as JSON text, by the keys of the recorded ones; filled elsewhere.

    Attributes:
        ignore: see above.
        mask: see above; None if there is none.
        asked: method and subject of the child's requests, by id: filled elsewhere, if `ignore` is by method.

    Raises:
        UsageError: a rule is not valid.
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
        if recorded.kind != live.kind:
            # The id of some notifications is optional.
            has_optional_id = recorded.method == live.method in self._dialect.optional_id
            if not has_optional_id or "response" in {recorded.kind, live.kind}:
                return [Difference("", recorded.kind, live.kind)]
        if recorded.kind == "response" and recorded.key != live.key:
            return [Difference("/id", recorded.id or "none", live.id or "none")]
        left, right = self._compared(recorded), self._compared(live)
        return _differences(left, right, most, lambda difference: self._permits(recorded.method, difference))

    def same_line(self, recorded: bytes, live: bytes) -> bool:
        """Return True if two lines that are not messages differ only in what is masked."""
        if not self.mask:
            return False
        expected, actual = (self.mask.text(line.decode("utf-8", "surrogateescape")) for line in (recorded, live))
        return expected == actual

    def key(self, message: ClassifiedMessage) -> str:
        """Return a text that is equal for messages that match. `same` makes the decision."""
        permitted = [
            *pointers_of(self._dialect.references, message.method),
            *pointers_of(self._dialect.client_generated, message.method),
            *pointers_of(self._dialect.names, message.method),
            *self._dialect.bound.get(message.method, {}).values(),
        ]
        kind = "notification" if message.method in self._dialect.optional_id else message.kind
        try:
            return f"{kind} {_canonical(without(self._compared(message), permitted))}"
        except RecursionError:
            return kind

    def _compared(self, message: ClassifiedMessage) -> object:
        """Return the part of a message that is compared, masked."""
        value = self._content(message)
        return self.mask.value(value) if self.mask else value

    def _content(self, message: ClassifiedMessage) -> object:
        """Return the part of a message that is compared."""
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
        topic = (message.method, "")
        if self.ignore.by_method:
            request = self.asked.get(message.key or b"") if message.kind == "response" else None
            topic = request or (message.method, self._dialect.about(message))
        ignored = [*pointers_of(self._dialect.volatile, message.method), *self.ignore.of(*topic)]
        # An id in an outermost member is not part of the content.
        return without(kept, [*ignored, form.id] if form.id.count("/") > 1 else ignored)

    def _permits(self, method: str, difference: Difference) -> bool:
        """Return True if the dialect permits this difference."""
        recorded, live, pointer = difference.recorded, difference.live, difference.pointer
        is_generated = pointer in pointers_of(self._dialect.client_generated, method)
        if pointer in pointers_of(self._dialect.names, method):
            if recorded is MISSING or live is MISSING:
                return False
            # Two names refer to the same object if they did so before, or if both are new.
            known, name = self._names.get(id_key(recorded, "")), id_key(live, "")
            return is_generated and name not in self._names.values() if known is None else known == name
        if is_generated:
            return recorded is not MISSING and live is not MISSING
        if pointer in pointers_of(self._dialect.references, method):
            return self._calls.live(id_key(recorded, "")) == id_key(live, "")
        places = self._dialect.bound.get(method, {})
        if pointer not in places.values() or not isinstance(recorded, str) or not isinstance(live, str):
            return False
        # Two live values of one placeholder would confuse two folders; any other value is only another path.
        return self._bindings.live(recorded) is None or recorded.rstrip("/") == live.rstrip("/")


def _differences(
    left: object, right: object, most: int, permits: Callable[[Difference], bool] = lambda _: False
) -> list[Difference]:
    """Return up to `most` differences of two values, without those that are permitted.

    Texts with placeholders of secrets are equal if their placeholders correspond throughout the message.
    """
    different: list[Difference] = []
    secrets: list[Difference] = []
    for pointer in differences(left, right):
        difference = Difference(pointer, resolve(left, pointer), resolve(right, pointer))
        if all(isinstance(value, str) and _PLACEHOLDER in value for value in (difference.recorded, difference.live)):
            secrets.append(difference)
        elif not permits(difference):
            different.append(difference)
            if len(different) >= most:
                return different
    if secrets:
        from ext_sdk.core.redaction.patterns import same_but_for_numbers

        recorded, live = ("\n".join(str(getattr(item, side)) for item in secrets) for side in ("recorded", "live"))
        if not same_but_for_numbers(recorded, live):
            different += secrets
    return different[:most]


def _canonical(value: object) -> str:
    """Return a text that is equal for equal values; placeholders have no number in it."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key!r}:{_canonical(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_canonical(item) for item in value) + "]"
    if isinstance(value, str):
        first, *pieces = value.split(_PLACEHOLDER)
        return repr(_PLACEHOLDER.join([first, *(piece.partition("]")[2] for piece in pieces)]))
    if isinstance(value, float) and value == value // 1:
        return str(int(value))
    return str(value)


class MessageComparison:
    """Comparison of messages of one protocol as JSON values, without what rules and the dialect ignore.

    Args:
        ignore: ignored values, see `comparison_rules.IgnoredPlaces`; `*` in a pointer is every member or item.
        mask: parts of texts that are ignored, see `comparison_rules.Mask`.
        name: values that later messages repeat, in addition to those of the dialect; of the same form as `ignore`.

    Raises:
        UsageError: a rule is not valid.
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
            answered: of a response: the method of its request.
            about: of a response: the subject of its request.
        """
        start, end = message.span
        try:
            value = loads(f"{message.text[:start]}0{message.text[end:]}" if end else message.text)
        except MessageError:
            value = message.text
        if isinstance(value, dict) and value.get("params", MISSING) is None:
            del value["params"]  # Go writes null for absent params
        volatile = self.dialect.volatile
        ignored = dict.fromkeys((*pointers_of(volatile, message.method), *pointers_of(volatile, answered)))
        value = without(value, [*ignored, *self._ignore.of(*self._topic(message, answered, about))])
        return self._mask.value(value) if self._mask else value

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
            recorded: of the first session.
            live: of the second session.
            counterparts: names of one session by those of the other.
            answered: of responses: the method of their request.
            about: of responses: the subject of their request.
            most: maximum number of differences.
        """
        if recorded.kind != live.kind:
            return [Difference("", recorded.text, live.text)]
        if recorded.text == live.text:
            return []
        left = self.value(recorded, answered, about)
        handed = list(places(left, self.handed(recorded, answered, about)))
        right = counterparts.translated(left, self.value(live, answered, about), self.names(recorded), handed)
        return _differences(left, right, most)

    def names(self, message: ClassifiedMessage) -> tuple[str, ...]:
        """Return pointers to names that one of the two sides generated."""
        dialect = self.dialect
        return pointers_of(dialect.names, message.method) + pointers_of(dialect.references, message.method)

    def handed(self, message: ClassifiedMessage, answered: str = "", about: str = "") -> tuple[str, ...]:
        """Return pointers to values that later messages repeat.

        Args:
            answered: of a response: the method of its request.
            about: of a response: the subject of its request.
        """
        method, subject = self._topic(message, answered, about)
        return pointers_of(self.dialect.handed, method) + self._name.of(method, subject)

    def subjects(self, message: ClassifiedMessage) -> tuple[frozenset[bytes], frozenset[bytes]]:
        """Return the calls that a message belongs to, and the names of its runs, sessions and the like."""
        answered = {message.key} if message.kind == "response" and message.key is not None else set()
        mentioned = _keys(message, pointers_of(self.dialect.mentions, message.method))
        return frozenset(answered) | mentioned, _keys(message, pointers_of(self.dialect.names, message.method))


def _keys(message: ClassifiedMessage, pointers: Iterable[str]) -> frozenset[bytes]:
    values = (message.at(pointer) for pointer in pointers)
    return frozenset(id_key(value, "") for value in values if isinstance(value, (str, int)))
