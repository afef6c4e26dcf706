"""Search for the secrets of one message: the slow path of the redactor, for texts that may hold one.

Rules guess, and skip bytes that are not text, and tokens that a protocol defines. In random bytes every short format
occurs sooner or later, and a replaced byte corrupts a file. A progress token or a cursor correlates messages and gives
no access. Known secrets are replaced in both, in bytes that are not text only if they are too long to occur by chance.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from itertools import chain
from json import loads
from typing import TYPE_CHECKING, Final

from ext_sdk.core.wire.json_pointer import locate

from .command_options import find_options
from .encodings import Secret
from .escapes import View, has_control, percent_view, plain_view, view
from .key_values import find_assignments, find_members, find_secret_data
from .known_values import find_known
from .patterns import PLACEHOLDER
from .spans import MARK, below, in_view, without_overlaps
from .token_finder import find_shapes
from .token_formats import BASE64_JSON

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .spans import CustomRules, Finding, Numbers


SHORTEST_IN_BINARY: Final = 8  # bytes of a known value
_NO_TEXT: Final = bytes(byte for byte in range(32) if byte not in b"\t\n\r\b\a\f\v\x1b") + b"\x7f"
_MARKS: Final = (b"\n", b"\r", b"\0")  # ends of a line, or of a list item as `env -0` writes it
_CONTEXT: Final = 4096  # bytes before and after a finding that are checked with it
_TOLERATED: Final = 8  # one byte in 8 may not be text: another encoding than UTF-8, a stray control character

# Bytes in the message, its method ("" for any), and the JSON pointer to a value that correlates messages.
_CORRELATING: Final = (
    (b"$/progress", "$/progress", "/params/token"),
    (b"window/workDoneProgress/", "window/workDoneProgress/", "/params/token"),
    (b"progressToken", "", "/params/progressToken"),
    (b"progressToken", "", "/params/_meta/progressToken"),
    (b"workDoneToken", "", "/params/workDoneToken"),
    (b"partialResultToken", "", "/params/partialResultToken"),
    (b"nextCursor", "", "/result/nextCursor"),
    (b'"cursor"', "", "/params/cursor"),
)


def is_text(data: bytes) -> bool:
    """Return True if bytes are UTF-8 without control characters other than those of texts and terminals."""
    if len(data.translate(None, _NO_TEXT)) != len(data):
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_in_text(message: bytes, start: int, end: int) -> bool:
    """Return True if the line around a span is text, except for a few bytes."""
    first, last = max(0, start - _CONTEXT), min(len(message), end + _CONTEXT)
    first = max(first, *(message.rfind(mark, first, start) + 1 for mark in _MARKS))
    for mark in _MARKS:
        position = message.find(mark, end, last)
        last = position if position >= 0 else last
    line = message[first:last]
    no_text = len(line) - len(line.translate(None, _NO_TEXT.replace(b"\0", b"")))
    no_text += sum("\udc80" <= character <= "\udcff" for character in line.decode("utf-8", "surrogateescape"))
    return no_text * _TOLERATED <= len(line)


def correlating(message: bytes) -> Iterator[tuple[int, int]]:
    """Yield the spans of values that the protocol uses to correlate messages, or to turn pages."""
    rows = [row for row in _CORRELATING if row[0] in message]
    if not rows:
        return
    text = message.decode("latin-1")  # one character for each byte
    method = next((value for _, _, value in locate(text, ["/method"])), "")
    for _, expected, pointer in rows:
        if not expected or (isinstance(method, str) and method.startswith(expected)):
            for start, end, _ in locate(text, [pointer]):
                yield start, end


_JSON_BEGINS: Final = b'{["-0123456789tfn'
_JSON_ENDS: Final = b'}]"0123456789el'
_BASE64_BEGINS: Final = tuple(each.encode() for each in BASE64_JSON)

# The literal characters come first, because `re` searches these quickly.
_BASE64: Final = tuple(
    re.compile(rb"%b(?<![A-Za-z0-9+/_-]%b)[A-Za-z0-9+/_-]{12,}+={0,2}+(?![A-Za-z0-9+/_.-])" % (begin, begin))
    for begin in _BASE64_BEGINS
)

_LONGEST_PARSED: Final = 4 * 1024 * 1024  # bytes; parsed values take thirty times as much memory

# A value of this length that a rule found becomes a known value, found also where no telling key is beside it.
_SHORTEST_LEARNED, _LONGEST_LEARNED = 12, 4096  # bytes


class Search:
    """Secrets of one message.

    Args:
        known: values that are secret.
        own: rules of users.
        rules: also find texts that look like a secret.
        any_bytes: the message may not be text, so that short values may occur in it by chance.

    Attributes:
        learned: values that rules found and that should be known in later messages too.
    """

    __slots__ = ("_findings", "_known", "_message", "_protected", "learned")

    def __init__(
        self, message: bytes, known: tuple[Secret, ...], own: CustomRules | None, *, rules: bool, any_bytes: bool
    ) -> None:
        json = _is_json(message)
        seen = view(message, barriers=json)
        self._message = message
        self._protected = _placeholders(message)
        guessed = list(_guesses(message, seen)) if rules else []
        custom: list[Finding] = []
        if own:
            custom = list(own.find(message, seen, json=json))
            guessed = [finding for finding in guessed if not own.spares(finding)]
            self._protected += own.spared(message, json=json)
            self._protected.sort(key=lambda span: span[::-1])
        named = [finding for finding in custom if finding.replacement is None and not (own and own.spares(finding))]
        self.learned = _worth_knowing([*named, *guessed], known)
        self._known = (*known, *self.learned)
        sure = find_known(message, seen, self._known, json=json)
        self._findings = [*(_probable(message, sure) if any_bytes else sure), *guessed]
        if own:
            self._findings = [finding for finding in (*custom, *self._findings) if not own.spares(finding)]

    def redacted(self, numbers: Numbers) -> bytes:
        """Return the message with a placeholder for each finding."""
        pieces: list[bytes] = []
        copied = 0
        for start, end, replacement in self.replacements(numbers):
            pieces += (self._message[copied:start], replacement)
            copied = end
        return b"".join((*pieces, self._message[copied:])) if pieces else self._message

    def replacements(self, numbers: Numbers) -> Iterator[tuple[int, int, bytes]]:
        """Yield the findings in order: start, end, and what to write instead."""
        for start, end in _placeholders(self._message):
            rule, _, number = self._message[start + len(MARK) : end - 1].decode().rpartition("#")
            numbers.reserve(rule, int(number))
        for finding in without_overlaps(self._message, self._findings, self._protected):
            if finding.replacement is None:
                rule, name = finding.rule, finding.rule.encode()
                if any(needle in name for secret in self._known for needle in secret.plain):
                    rule = "key"  # a rule is named after a key, which has a secret in it here
                placeholder = numbers.placeholder(rule, finding.value)
            else:
                placeholder = finding.replacement
                numbers.replaced(finding.rule)
            yield finding.start, finding.end, finding.quote + placeholder + finding.quote


def _guesses(message: bytes, seen: View) -> Iterator[Finding]:
    """Yield the findings of rules, except those in correlating values and in bytes that are not text."""
    findings = list(_by_rules(message, seen))
    if not findings:
        return
    exempt = list(correlating(message))
    text = is_text(message)
    for finding in findings:
        if not any(start <= finding.start and finding.end <= end for start, end in exempt) and (
            text or is_in_text(message, finding.start, finding.end)
        ):
            yield finding


def _probable(message: bytes, findings: Iterator[Finding]) -> Iterator[Finding]:
    """Yield findings of known values, except short ones in bytes that are not text."""
    text: bool | None = None
    for finding in findings:
        if len(finding.value) < SHORTEST_IN_BINARY:
            text = is_text(message) if text is None else text
            if not text and not is_in_text(message, finding.start, finding.end):
                continue
        yield finding


def _by_rules(message: bytes, seen: View) -> Iterator[Finding]:
    lowered = message.lower()
    yield from find_members(message, lowered)
    if has_control(message) and (plain := plain_view(seen)).is_rewritten:
        # A control sequence may be between a key and its value, or the only separator of a word and a token.
        unseen = plain_view(View(message))
        yield from below(unseen, find_members(unseen.text, unseen.text.lower()))
        spaced = plain_view(seen, b" ")
        yield from find_shapes(spaced)
        yield from _in_base64(spaced)
        seen = plain
    yield from _in_text(seen)
    if b"secret" in lowered and b"kind" in lowered:
        yield from find_secret_data(message, lowered, seen)
    if b"%" in seen.text:
        yield from _in_text(percent_view(seen), quoted=True)


def _in_text(seen: View, *, quoted: bool = False) -> Iterator[Finding]:
    yield from find_assignments(seen, quoted=quoted)
    yield from find_shapes(seen)
    yield from find_options(seen)
    yield from _in_base64(seen)


def _in_base64(seen: View) -> Iterator[Finding]:
    """Yield JSON in base64 that has a secret in it."""
    for match in chain.from_iterable(pattern.finditer(seen.text) for pattern in _BASE64):
        text = match[0].rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
        decoded = a2b_base64(text[: len(text) - (len(text) % 4 == 1)] + b"=" * (-len(text) % 4))
        if _is_json(decoded) and (found := next(_by_rules(decoded, view(decoded, barriers=True)), None)):
            yield in_view(seen, *match.span(), found.rule)


def _placeholders(message: bytes) -> list[tuple[int, int]]:
    """Return the spans of placeholders that the message has already."""
    return [match.span() for match in PLACEHOLDER.finditer(message)] if MARK.encode() in message else []


def _worth_knowing(findings: list[Finding], known: tuple[Secret, ...]) -> tuple[Secret, ...]:
    """Return the values of findings that are long enough to be searched in later messages."""
    values = {secret.value for secret in known}
    rules: dict[bytes, str] = {}
    for finding in reversed(findings):
        value = finding.value
        if not _SHORTEST_LEARNED <= len(value) <= _LONGEST_LEARNED or value in values or value[:1] in b"/~.":
            continue
        # One word with letters and digits does not occur in a text by chance.
        if (
            len(value.split()) == 1
            and value.upper() != value.lower()
            and any(digit in value for digit in b"0123456789")
        ):
            rules[value] = finding.rule
    return tuple(Secret(rule, value) for value, rule in rules.items())


def _is_json(message: bytes) -> bool:
    """Return True if quotes and numbers are those of JSON, so that the redacted message must be JSON again."""
    text = message.strip()
    if text[:1] not in _JSON_BEGINS or text[-1:] not in _JSON_ENDS:  # most lines on stderr
        return False
    if len(text) > _LONGEST_PARSED:
        return True
    try:
        loads(message.decode("utf-8", "surrogateescape"), parse_int=len, parse_float=len)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True
