"""Rules of users for redaction: regular expressions, JSON pointers and globs of keys, and exceptions.

A regular expression is searched in the texts of a message with their escapes undone; in JSON it cannot replace more
than parts of strings, and numbers, so that the message stays JSON. It may take time that grows exponentially with the
text, so its time is limited: a message that could not be searched is not written, and the recording ends.
"""

from __future__ import annotations

import contextlib
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, NamedTuple

from ext_recorder.errors import PatternTooSlow, UsageError
from ext_sdk.core.redaction.escapes import undone
from ext_sdk.core.redaction.key_values import find_assignments, find_members
from ext_sdk.core.redaction.patterns import PLACEHOLDER, Names
from ext_sdk.core.redaction.spans import Finding, in_view, rule_name
from ext_sdk.core.regex import SearchFailed, TimedSearch
from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.json_codec import loads, scan, scan_value, skip_whitespace
from ext_sdk.core.wire.json_pointer import parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ext_sdk.core.redaction.escapes import View

PATTERN_S: Final = 1.0  # processor time for one message
_JSON_SCALAR: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_NUMBER: Final = re.compile(rb"-?[0-9][0-9.eE+-]*")
_UNSAFE: Final = re.compile(r'["\\\x00-\x1f\x7f\ud800-\udfff]')
_FORMS: Final = ("pattern", "pointer", "key", "value")
_KEYS: Final = frozenset(("pattern", "pointer", "key", "replacement", "name"))


class Rule(NamedTuple):
    """Redaction rule."""

    form: str  # "pattern", "pointer", "key", or "value" of an exception
    text: str  # the regular expression, JSON pointer, glob or value
    shown: str  # the option and its value, for messages
    replacement: str | None = None  # text that replaces the findings; None: a numbered placeholder
    name: str = ""  # of the placeholder; "" for that of the form


def read(option: str, entry: str) -> Rule:
    """Parse a value of an option. Raises UsageError."""
    shown = f"--{option} {entry}"
    if entry.startswith("{"):
        rule = _of_json(shown, entry)
    else:
        form, _, text = entry.partition(":")
        rule = Rule(form, text, shown)
    if not rule.text:
        raise UsageError(f"{shown}: expected text after {rule.form}:")
    if rule.form == "value" and option == "redact":
        raise UsageError(
            f"{shown}: other users can read command lines; put the value into an environment variable and name that"
        )
    try:
        if rule.form == "pattern" and re.compile(rule.text).fullmatch(""):
            raise UsageError(f"{shown}: the regular expression matches an empty text")
        if rule.form == "pointer" and not parts(rule.text):
            raise UsageError(f"{shown}: the complete message cannot be redacted")
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"{shown}: not a regular expression: {error}") from None
    except ValueError as error:
        raise UsageError(f"{shown}: {error}") from None
    if rule.form == "key" and not _core(rule.text):
        raise UsageError(f"{shown}: the glob matches every key; expected at least one letter, as in *_pin")
    if rule.replacement is not None and _UNSAFE.search(rule.replacement):
        raise UsageError(f"{shown}: replacement {rule.replacement!r} has a quote, a backslash or a control character")
    return rule


def _of_json(shown: str, entry: str) -> Rule:
    try:
        given = loads(entry)
    except MessageError as error:
        raise UsageError(f"{shown}: not valid JSON: {error}") from None
    assert isinstance(given, dict)
    if unknown := sorted(set(given) - _KEYS):
        raise UsageError(f"{shown}: unknown key {unknown[0]!r}; known: {', '.join(sorted(_KEYS))}")
    forms = [form for form in _FORMS if form in given]
    if len(forms) != 1:
        raise UsageError(f"{shown}: expected one of pattern, pointer and key, found {', '.join(forms) or 'none'}")
    for key, value in given.items():
        if not isinstance(value, str):
            raise UsageError(f"{shown}: {key}: expected a string")
    return Rule(forms[0], given[forms[0]], shown, given.get("replacement"), given.get("name", ""))


def _core(glob: str) -> str:
    """Return the longest literal text of a glob, in lower case."""
    return max(re.split(r"\[[^\]]*\]|[*?\[]", glob.lower()), key=len)


class OwnRules:
    """Rules and exceptions of users.

    Args:
        redact: values of `--redact` that are rules.
        excepted: values of `--redact-except` that are rules.

    Raises:
        UsageError: a value is not valid.
    """

    def __init__(self, redact: Iterable[str], excepted: Iterable[str]) -> None:
        rules = [read("redact", entry) for entry in redact]
        exceptions = [read("redact-except", entry) for entry in excepted]
        self._patterns = [(re.compile(rule.text), rule) for rule in rules if rule.form == "pattern"]
        self._pointers = [(parts(rule.text), rule) for rule in rules if rule.form == "pointer"]
        self._keys = [(_core(rule.text).encode(), _names(rule.text), rule) for rule in rules if rule.form == "key"]
        self._needed = [_needed(tokens) for tokens, _ in self._pointers]
        self._spared = {rule.text.encode() for rule in exceptions if rule.form == "value"}
        self._spared_patterns = [(re.compile(rule.text), rule) for rule in exceptions if rule.form == "pattern"]
        self._spared_keys = [rule.text.lower() for rule in exceptions if rule.form == "key"]
        self._spared_pointers = [parts(rule.text) for rule in exceptions if rule.form == "pointer"]

    def may_find(self, lowered: str) -> bool:
        """Return True if a rule may find something in a text in lower case, as Latin-1."""
        if self._patterns:
            return True
        return any(core.decode("latin-1") in lowered for core, _, _ in self._keys) or any(
            "\\u" in lowered or all(text in lowered for text in needed) for needed in self._needed
        )

    def find(self, message: bytes, seen: View, *, json: bool) -> Iterator[Finding]:
        """Yield the findings of all rules.

        Args:
            json: the message is valid JSON.

        Raises:
            PatternTooSlow: a regular expression took too long.
        """
        for pattern, rule in self._patterns:
            with _limited(rule, len(message)) as search:
                findings = list(_matches(search, pattern, seen, json=json))
            for finding in findings:
                yield _finding(rule, finding, "pattern")
        for core, names, rule in self._keys:
            lowered = message.lower()
            if core in lowered or b"\\u" in lowered:
                for finding in (*find_members(message, lowered, names), *find_assignments(seen, names)):
                    yield _finding(rule, finding, finding.rule)
        if json:
            text = message.decode("latin-1")  # one character for each byte
            for tokens, rule in self._pointers:
                for start, end in _places(text, tokens):
                    for finding in _leaves(message, text, start, end):
                        yield _finding(rule, finding, f"pointer.{rule_name(tokens[-1])}")

    def spares(self, finding: Finding) -> bool:
        """Return True if a finding must not be replaced. Raises PatternTooSlow."""
        if finding.value in self._spared:
            return True
        name = finding.rule.removeprefix("key.") if finding.rule.startswith("key.") else ""
        if name and any(fnmatchcase(name.lower(), glob) for glob in self._spared_keys):
            return True
        value = finding.value.decode("utf-8", "replace")
        for pattern, rule in self._spared_patterns:
            with _limited(rule, len(value)) as search:
                if search.matches(pattern, value):
                    return True
        return False

    def spared(self, message: bytes, *, json: bool) -> list[tuple[int, int]]:
        """Return the parts of a message that are left as they are."""
        if not json or not self._spared_pointers:
            return []
        text = message.decode("latin-1")
        return [place for tokens in self._spared_pointers for place in _places(text, tokens)]


def _finding(rule: Rule, finding: Finding, name: str) -> Finding:
    finding.rule = rule_name(rule.name) if rule.name else name
    if rule.replacement is not None:
        finding.replacement = rule.replacement.encode()
        if finding.quote and _JSON_SCALAR.fullmatch(rule.replacement):
            finding.quote = b""
    return finding


def _names(glob: str) -> Names:
    """Return the names that a glob matches, in any case."""
    glob = glob.lower()
    return Names(re.escape(_core(glob).encode()), lambda name: fnmatchcase(name.lower().lstrip("-"), glob), _NUMBER)


def _needed(tokens: list[str]) -> list[str]:
    """Return texts that a message contains if it has a value at this pointer, as Latin-1 in lower case."""
    plain = [token for token in tokens if token.isascii() and token.isprintable() and not set(token) & set('"\\/*')]
    return [f'"{token.lower()}"' for token in plain if not token.isdigit()]


# --- Regular expressions ----------------------------------------------------------------------------------------------


def _matches(search: TimedSearch, pattern: re.Pattern[str], seen: View, *, json: bool) -> Iterator[Finding]:
    data = seen.text.replace(b"\0", b'"') if json else seen.text
    text = data.decode("utf-8", "surrogateescape")
    offsets = None if text.isascii() else _Offsets(text)
    for whole, *groups in search.find_all(pattern, text):
        start, end = groups[0] if groups and groups[0][0] >= 0 else whole
        if offsets:
            start, end = offsets.of(start), offsets.of(end)
        if start < end:
            yield from _within_strings(seen, start, end) if json else [in_view(seen, start, end, "")]


class _Offsets:
    """Positions of characters in the UTF-8 of a text; requested in order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._known = (0, 0)

    def of(self, character: int) -> int:
        at, offset = self._known if self._known[0] <= character else (0, 0)
        offset += len(self._text[at:character].encode("utf-8", "surrogateescape"))
        self._known = (character, offset)
        return offset


def _within_strings(seen: View, start: int, end: int) -> Iterator[Finding]:
    """Yield the parts of a stretch of JSON that are in strings, and the numbers that it touches."""
    at = start
    for piece in seen.text[start:end].split(b"\0"):
        first, last = at, at + len(piece)
        at = last + 1
        if not piece:
            continue
        if seen.inside(first):
            yield in_view(seen, first, last, "")
            continue
        begin = first  # of the number that the piece may begin in
        while begin > 0 and seen.text[begin - 1] in b"0123456789.eE+-":
            begin -= 1
        for number in _NUMBER.finditer(seen.text, begin):
            if number.start() >= last:
                break
            yield Finding(*seen.origin(*number.span()), "", number[0], quote=b'"')


@contextlib.contextmanager
def _limited(rule: Rule, size: int) -> Iterator[TimedSearch]:
    """Limit the time of a regular expression on a message of this size."""
    try:
        with TimedSearch(PATTERN_S, f"a message of {size} bytes, which is not written") as search:
            yield search
    except SearchFailed as failed:
        raise PatternTooSlow(f"{rule.shown}: {failed}") from None


# --- JSON pointers ----------------------------------------------------------------------------------------------------


def _places(text: str, tokens: list[str]) -> Iterator[tuple[int, int]]:
    """Yield where the values at a pointer are in a JSON text; `*` is every member or item."""
    places = [(skip_whitespace(text, 0), len(text))]
    for token in tokens:
        holders, places = places, []
        for start, end in holders:
            with contextlib.suppress(MessageError, RecursionError):
                for name, first, last in _members(text, start, end):
                    if token in {"*", name}:
                        places.append((first, last))
    yield from places


def _members(text: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Yield the members or items of a JSON value: name, and where the value is."""
    if text[start : start + 1] == "{":
        for name, member in scan(text[start:end]).members.items():
            yield name.encode("latin-1", "replace").decode("utf-8", "replace"), start + member.start, start + member.end
    elif text[start : start + 1] == "[":
        at, number = skip_whitespace(text, start + 1), 0
        while text[at] != "]":
            _, last = scan_value(text, at)
            yield str(number), at, last
            number += 1
            at = skip_whitespace(text, last)
            if text[at] == ",":
                at = skip_whitespace(text, at + 1)


def _leaves(message: bytes, text: str, start: int, end: int) -> Iterator[Finding]:
    """Yield the strings and numbers of a JSON value."""
    first = text[start : start + 1]
    if first in {"{", "["}:
        with contextlib.suppress(MessageError, RecursionError):
            for _, below, last in list(_members(text, start, end)):
                yield from _leaves(message, text, below, last)
    elif first == '"':
        if end - start > len('""') and not PLACEHOLDER.fullmatch(message[start + 1 : end - 1]):
            yield Finding(start + 1, end - 1, "", undone(message[start + 1 : end - 1]))
    elif first in "-0123456789":
        yield Finding(start, end, "", message[start:end], quote=b'"')
