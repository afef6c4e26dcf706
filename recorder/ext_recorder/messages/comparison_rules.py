"""Comparison rules of users: ignored values (`--ignore`), masked parts of texts (`--mask`), names (`--name`).

The same forms apply on the command line and in project files, to `replay`, `verify` and `diff`.
"""

from __future__ import annotations

from ext_recorder.errors import PatternTooSlow, UsageError
from ext_sdk.core.wire.json_pointer import parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable
    from typing import Self, TypeVar

    from ext_sdk.core.regex import TimedSearch

    T = TypeVar("T")
    U = TypeVar("U")

# Mask for ports of loopback: hosts run servers of their own, at other ports each time.
OWN_PORTS = r"(?<=//127\.0\.0\.1:)\d+|(?<=//localhost:)\d+|(?<=//\[::1\]:)\d+"
# Mask for HTTP requests: mcpchecker starts each agent in a new temporary folder, which agents name in their prompts.
AGENT_FOLDERS = r"(?<=/mcpchecker-agent-)\d+"
_MASKED = "…"
_BUILT_IN = frozenset((OWN_PORTS, AGENT_FOLDERS))

# Limits for patterns of users and of recordings, in seconds of processor time.
MESSAGE_S = 1.0  # for one message
SLOW_S = 3.0  # for all slow messages together: a recording with many of them would take hours
_PROMPT_S, _PROMPT_CHARACTER_S = 0.05, 1e-6  # a message that takes longer than both together is slow

# --- Places -----------------------------------------------------------------------------------------------------------


class IgnoredPlaces:
    """JSON pointers within messages, for all messages or for those of a method.

    An entry is POINTER, 'METHOD POINTER' or 'METHOD SUBJECT POINTER', as 'tools/call get_time /params/arguments/seed'.
    A method includes its requests and notifications, and the responses to them; the subject is that of a call, for
    example a tool.

    Raises:
        UsageError: an entry is not of this form.
    """

    __slots__ = ("_by_topic", "_everywhere")

    def __init__(self, option: str, entries: Iterable[str] = ()) -> None:
        self._everywhere: tuple[str, ...] = ()
        self._by_topic: dict[str, tuple[str, ...]] = {}
        for entry in entries:
            topic, pointer = split(entry)
            try:
                parts(pointer)
            except ValueError as error:
                raise UsageError(f"--{option} {error}; or METHOD and a pointer: 'tools/call /params/name'") from None
            if topic:
                self._by_topic[topic] = (*self._by_topic.get(topic, ()), pointer)
            else:
                self._everywhere = (*self._everywhere, pointer)

    @property
    def by_method(self) -> bool:
        """Return True if some entries apply to one method only."""
        return bool(self._by_topic)

    def of(self, method: str, about: str = "") -> tuple[str, ...]:
        """Return the pointers for a message.

        Args:
            method: its own; of a response, that of its request.
            about: the subject of that request; "" if it has none.
        """
        if not self._by_topic:
            return self._everywhere
        return self._everywhere + self._by_topic.get(method, ()) + self._by_topic.get(f"{method} {about}", ())


def split(entry: str) -> tuple[str, str]:
    """Return the method, with the subject, and the pointer of an entry; "" if it has no method."""
    if entry.startswith("/"):
        return "", entry
    topic, slash, rest = entry.partition(" /")
    return (topic.strip(), f"/{rest}") if slash else ("", entry)


# --- Parts of texts ---------------------------------------------------------------------------------------------------


class Preset:
    """A pattern with a name, for values that differ from run to run.

    Attributes:
        form: of the values, for users.
        pattern: regular expression.
        numbers: it applies to JSON numbers, too.
    """

    __slots__ = ("form", "numbers", "pattern")

    def __init__(self, form: str, pattern: str, *, numbers: bool = False) -> None:
        self.form = form
        self.pattern = pattern
        self.numbers = numbers


_DATE = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d(?::(?:[0-5]\d|60)(?:[.,]\d{1,9})?)?"
_ZONE = r"(?: ?(?:Z|z|UTC|GMT|[+-](?:[01]\d|2[0-3]):?[0-5]\d))?"
_DAY, _MONTH = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)", "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_WEEKDAY = "(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|Mon|Tue|Wed|Thu|Fri|Sat|Sun),? "
_MONTH_NAME = (
    "(?:January|February|March|April|May|June|July|August|September|October|November|December"
    "|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
)
_UNIT = "(?:ns|us|µs|μs|ms|s|m|h)"
_UNITS = "(?:milli|micro|nano)?sec(?:ond)?s?|min(?:ute)?s?|h(?:ou)?rs?|ms|s"

PRESETS = {
    "uuid": Preset(
        "8-4-4-4-12 hexadecimal digits, of any version",
        r"(?<![0-9A-Za-z])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9A-Za-z])",
    ),
    "ulid": Preset(
        "26 characters of Crockford's base 32, upper case, the first from 0 to 7",
        r"(?<![0-9A-Za-z])[0-7][0-9A-HJKMNP-TV-Z]{25}(?![0-9A-Za-z])",
    ),
    "time": Preset(
        "date and time in ISO 8601 or RFC 3339 (2026-11-22T23:34:35Z) or HTTP format (Sun, 22 Nov 2026 23:34:35 GMT)",
        rf"(?<!\d){_DATE}[Tt_ ]{_CLOCK}{_ZONE}(?!\d)"
        rf"|(?<![A-Za-z]){_DAY}, \d\d {_MONTH} \d{{4}} \d\d:\d\d:\d\d (?:GMT|UTC|[+-]\d{{4}})(?![0-9A-Za-z])",
    ),
    "date": Preset(
        "date in ISO 8601 (2026-11-22), in English (Sunday, November 22, 2026; Sun Nov 22 2026; 22 November 2026) or "
        "with slashes (11/22/2026)",
        rf"(?<!\d){_DATE}(?!\d)|(?<![A-Za-z])(?:{_WEEKDAY})?{_MONTH_NAME} \d{{1,2}},? \d{{4}}(?!\d)"
        rf"|(?<![\w,])(?:{_WEEKDAY})?\d{{1,2}} {_MONTH_NAME},? \d{{4}}(?!\d)"
        r"|(?<![\d/])\d{1,2}/\d{1,2}/\d{4}(?![\d/])",
    ),
    "epoch": Preset(
        "Unix time of the years 2001 to 2100, in s, ms, µs or ns, as a string or a number",
        r"(?<![\w.])(?:[1-3]\d{9}|4[01]\d{8})(?:\d{3}|\d{6}|\d{9}|\.\d{1,9})?(?![\w]|\.\d)",
        numbers=True,
    ),
    "duration": Preset(
        "number with a unit (1.5s, 2m30s, 12 ms, 0.3 seconds), ISO 8601 (PT1M30S), or clock format (0:00:01.5)",
        rf"(?<![\w.])(?:\d+(?:\.\d+)?{_UNIT})+(?!\w)|(?<![\w.])\d+(?:\.\d+)? (?:{_UNITS})(?!\w)"
        r"|(?<!\w)P(?=T?\d)(?:\d+D)?(?:T(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?(?!\w)"
        r"|(?<![\w:.])\d+:[0-5]\d:[0-5]\d(?:\.\d+)?(?![\w:])",
    ),
    "port": Preset(
        "number after localhost:, 127.0.0.1:, 0.0.0.0: or [::1]:, or after the word port",
        r"(?:(?<=\blocalhost:)|(?<=\b127\.0\.0\.1:)|(?<=\b0\.0\.0\.0:)|(?<=\[::1\]:)"
        r"|(?<=\b[Pp]ort[ =:])|(?<=\b[Pp]ort: ))\d{1,5}(?!\w)",
    ),
    "traceparent": Preset(
        "W3C trace context, such as 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        r"(?<![0-9A-Za-z])[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(?![0-9A-Za-z])",
    ),
    "tmp": Preset(
        "file or folder in /tmp, /var/tmp or /var/folders of macOS; the path below it is compared",
        r"(?:(?<![\w/.])(?:/private)?(?:/var)?/tmp/|(?<![\w/.])(?:/private)?/var/folders/[^/\s]+/[^/\s]+/T/)"
        r"[^/\s\"'`<>()\[\]{},;:|]*[^/\s\"'`<>()\[\]{},;:|.!?]",
    ),
}


class FilePattern(str):
    """Pattern of a file.

    Attributes:
        place: the file and the key, for errors.
    """

    __slots__ = ("place",)
    place: str

    def __new__(cls, text: str, place: str) -> Self:
        """Return a pattern with its place."""
        pattern = super().__new__(cls, text)
        pattern.place = place
        return pattern


def pattern_of(entry: str) -> re.Pattern[str]:
    """Return the pattern of a value of `--mask`: a regular expression, or a preset. Raises UsageError."""
    import re

    preset = PRESETS.get(entry[1:]) if entry.startswith("@") else None
    if entry.startswith("@") and preset is None:
        names = ", ".join(f"@{name}" for name in PRESETS)
        expected = f"expected a regular expression or one of {names}; for a text with @ write [@]"
        raise UsageError(f"--mask {entry}: {expected}")
    try:
        return re.compile(preset.pattern if preset else entry)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"--mask {entry}: not a regular expression: {error}") from None


class LimitedPatterns:
    """Patterns that take limited time: presets, which are fast, and patterns of users and of recordings.

    Args:
        entries: values of `--mask`.

    Attributes:
        entries: as given.

    Raises:
        UsageError: an entry is neither a preset nor a regular expression.
    """

    __slots__ = ("_left", "_patterns", "_search", "entries")

    def __init__(self, entries: Iterable[str]) -> None:
        self.entries = tuple(entries)
        self._patterns = [(pattern_of(entry), entry[:1] == "@" or entry in _BUILT_IN) for entry in self.entries]
        self._left = SLOW_S
        self._search: TimedSearch | None = None
        if not all(is_fast for _, is_fast in self._patterns):
            from ext_sdk.core.regex import TimedSearch

            self._search = TimedSearch(MESSAGE_S)

    def limit(self, work: Callable[[T], U], message: T) -> U:
        """Return the result of a function that searches a message by the other methods. Raises PatternTooSlow."""
        search = self._search
        if search is None:
            return work(message)
        from ext_sdk.core.regex import SearchFailed

        try:
            with search:
                result = work(message)
        except SearchFailed as error:
            raise PatternTooSlow(f"{self._shown(search.pattern)}: {error}") from None
        if search.took > _PROMPT_S + _PROMPT_CHARACTER_S * search.characters:
            self._left -= search.took
            if self._left < 0:
                took = f"slow searches took more than {SLOW_S:g} s of processor time together"
                raise PatternTooSlow(
                    f"{self._shown(search.pattern)}: {took}; write a pattern in which no repetition is repeated"
                )
        return result

    def replaced(self, text: str) -> str:
        """Return a text with … in place of what the patterns match."""
        for pattern, is_fast in self._patterns:
            if self._search is None or is_fast:
                text = pattern.sub(_MASKED, text)
            else:
                text = self._search.replaced(pattern, _MASKED, text)
        return text

    def found(self, text: str) -> list[list[str]]:
        """Return what each pattern matches, or its first group, if that participates."""
        found = []
        for pattern, _ in self._patterns:
            spans = self._search.find_all(pattern, text) if self._search else (m.regs for m in pattern.finditer(text))
            parts = (groups[0] if groups and groups[0][0] >= 0 else whole for whole, *groups in spans)
            found.append([text[start:end] for start, end in parts])
        return found

    def _shown(self, pattern: str) -> str:
        entry = next(
            entry for entry, (each, _) in zip(self.entries, self._patterns, strict=True) if each.pattern == pattern
        )
        return f"{entry.place}: '{entry}'" if isinstance(entry, FilePattern) else f"--mask {entry}"


class Mask:
    """Ignored parts of texts: those that a regular expression or a preset (`@uuid`) matches.

    Args:
        entries: the values of `--mask`; at least one.

    Raises:
        UsageError: an entry is neither.
    """

    __slots__ = ("_numbers", "_patterns")

    def __init__(self, entries: Iterable[str]) -> None:
        self._patterns = LimitedPatterns(entries)
        self._numbers = [
            pattern_of(entry)
            for entry in self._patterns.entries
            if entry.startswith("@") and PRESETS[entry[1:]].numbers
        ]

    @classmethod
    def of(cls, entries: Iterable[str]) -> Mask | None:
        """Return the mask of these entries; None if there are none. Raises UsageError."""
        entries = tuple(entries)
        return cls(entries) if entries else None

    def text(self, text: str) -> str:
        """Return a text with … in place of its masked parts. Raises PatternTooSlow."""
        return self._patterns.limit(self._patterns.replaced, text)

    def value(self, value: object) -> object:
        """Return a JSON value with its texts masked, but not the names of its members. Raises PatternTooSlow."""
        return self._patterns.limit(self._value, value)

    def _value(self, value: object) -> object:
        if isinstance(value, str):
            return self._patterns.replaced(value)
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if isinstance(value, dict):
            return {key: self._value(item) for key, item in value.items()}
        is_number = isinstance(value, int | float) and any(pattern.fullmatch(repr(value)) for pattern in self._numbers)
        return _MASKED if is_number else value


def preset_of(pairs: Iterable[tuple[object, object]]) -> str:
    """Return the name of the preset, with @, under which the values of each pair are equal; "" if there is none."""
    pairs = list(pairs)
    for name in PRESETS:
        mask = Mask([f"@{name}"])
        if pairs and all(
            _MASKED in str(mask.value(left)) and mask.value(left) == mask.value(right) for left, right in pairs
        ):
            return f"@{name}"
    return ""
