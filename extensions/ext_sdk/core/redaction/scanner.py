"""Parts of a message in which guesses are not made: bytes that are not text, and tokens that a protocol defines.

In random bytes every short format occurs sooner or later, and a replaced byte makes a file another one. A progress
token or a cursor correlates messages and gives no access. Values that are known to be secret are replaced in both, in
bytes that are not text only if they are long enough not to be there by chance.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from json import loads
from typing import TYPE_CHECKING, Final

from ext_sdk.core.wire.json_pointer import locate

from .command_options import find_options
from .encodings import Secret
from .escapes import View, has_control, percent_view, plain_view, view
from .key_values import find_assignments, find_members
from .known_values import find_known
from .kubernetes_secrets import find_secret_data
from .patterns import PLACEHOLDER
from .spans import MARK, below, in_view, without_overlaps
from .token_finder import find_shapes
from .token_formats import BASE64_JSON

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .redactor import Own
    from .spans import Finding, Numbers


SHORTEST_IN_BINARY: Final = 8  # bytes of a known value
_NO_TEXT: Final = bytes(byte for byte in range(32) if byte not in b"\t\n\r\b\a\f\v\x1b") + b"\x7f"
_MARKS: Final = (b"\n", b"\r", b"\0")  # a line ends there, or an item of a list as `env -0` writes it
_CONTEXT: Final = 4096  # bytes before and after a finding that are judged with it
_TOLERATED: Final = 8  # one byte in 8 may not be text: another encoding than UTF-8, a stray control character

# What a message has in it, its method (b"" for any), and the place of a value that correlates messages.
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
    """Return whether bytes are UTF-8 without control characters other than those of texts and terminals."""
    if len(data.translate(None, _NO_TEXT)) != len(data):
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_in_text(message: bytes, start: int, end: int) -> bool:
    """Return whether the line with this stretch is text, but for few bytes."""
    first, last = max(0, start - _CONTEXT), min(len(message), end + _CONTEXT)
    first = max(first, *(message.rfind(mark, first, start) + 1 for mark in _MARKS))
    for mark in _MARKS:
        found = message.find(mark, end, last)
        last = found if found >= 0 else last
    line = message[first:last]
    no_text = len(line) - len(line.translate(None, _NO_TEXT.replace(b"\0", b"")))
    no_text += sum("\udc80" <= each <= "\udcff" for each in line.decode("utf-8", "surrogateescape"))
    return no_text * _TOLERATED <= len(line)


def correlating(message: bytes) -> Iterator[tuple[int, int]]:
    """Yield where a message has values that the protocol uses to correlate messages, or to turn pages."""
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

_BASE64: Final = re.compile(
    rb"(?<![A-Za-z0-9+/_-])(?:%b)[A-Za-z0-9+/_-]{12,}+={0,2}+(?![A-Za-z0-9+/_.-])" % b"|".join(_BASE64_BEGINS)
)

_LONGEST_PARSED: Final = 4 * 1024 * 1024  # bytes; parsed it takes thirty times as much memory

# A value of this length that a rule found is remembered, and found where it is repeated without a telling key.
_SHORTEST_LEARNED, _LONGEST_LEARNED = 16, 4096  # bytes


class Search:
    """What is secret in one message.

    Args:
        message: any bytes.
        known: values that are secret.
        own: rules of users.
        rules: also search what looks like a secret.
        any_bytes: the message may be no text, and short values be there by chance.

    Attributes:
        learned: values that rules found and that should be known in later messages too.
    """

    __slots__ = ("_findings", "_known", "_message", "_protected", "learned")

    def __init__(
        self, message: bytes, known: tuple[Secret, ...], own: Own | None, *, rules: bool, any_bytes: bool
    ) -> None:
        json = _is_json(message)
        seen = view(message, barriers=json)
        self._message = message
        self._protected = _placeholders(message)
        found = list(_guesses(message, seen)) if rules else []
        wanted: list[Finding] = []
        if own:
            wanted = list(own.find(message, seen, json=json))
            found = [each for each in found if not own.spares(each)]
            self._protected += own.spared(message, json=json)
            self._protected.sort(key=lambda stretch: stretch[::-1])
        named = [each for each in wanted if each.replacement is None and not (own and own.spares(each))]
        self.learned = _worth_knowing([*named, *found], known)
        self._known = (*known, *self.learned)
        sure = find_known(message, seen, self._known, json=json)
        self._findings = [*(_probable(message, sure) if any_bytes else sure), *found]
        if own:
            self._findings = [each for each in (*wanted, *self._findings) if not own.spares(each)]

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
        for each in without_overlaps(self._message, self._findings, self._protected):
            if each.replacement is None:
                placeholder = numbers.placeholder(self._safe(each.rule), each.value)
            else:
                placeholder = each.replacement
                numbers.replaced(each.rule)
            yield each.start, each.end, each.quote + placeholder + each.quote

    def _safe(self, rule: str) -> str:
        """A rule is named after its key, and a key may have a secret in it."""
        name = rule.encode()
        return "key" if any(needle in name for each in self._known for needle in each.plain) else rule


def _guesses(message: bytes, seen: View) -> Iterator[Finding]:
    """Yield what rules find, where guesses are made."""
    found = list(_by_rules(message, seen))
    if not found:
        return
    exempt = list(correlating(message))
    text = is_text(message)
    for each in found:
        if not any(start <= each.start and each.end <= end for start, end in exempt) and (
            text or is_in_text(message, each.start, each.end)
        ):
            yield each


def _probable(message: bytes, found: Iterator[Finding]) -> Iterator[Finding]:
    """Yield findings of known values but for short ones in bytes that are not text."""
    text: bool | None = None
    for each in found:
        if len(each.value) < SHORTEST_IN_BINARY:
            text = is_text(message) if text is None else text
            if not text and not is_in_text(message, each.start, each.end):
                continue
        yield each


def _by_rules(message: bytes, seen: View) -> Iterator[Finding]:
    lowered = message.lower()
    yield from find_members(message, lowered)
    if has_control(message) and (plain := plain_view(seen)).is_rewritten:
        yield from _beside_controls(message, seen)
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


def _beside_controls(message: bytes, seen: View) -> Iterator[Finding]:
    """Yield what is found only after control sequences of terminals, or spaces, are left out of a text.

    One may be between a key and its value, or the only thing between a word and a token.
    """
    plain = plain_view(View(message))
    yield from below(plain, find_members(plain.text, plain.text.lower()))
    spaced = plain_view(seen, b" ")
    yield from find_shapes(spaced)
    yield from _in_base64(spaced)


def _in_base64(seen: View) -> Iterator[Finding]:
    """Yield JSON in base64 that has something secret in it."""
    if not any(each in seen.text for each in _BASE64_BEGINS):
        return
    for match in _BASE64.finditer(seen.text):
        text = match[0].rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
        decoded = a2b_base64(text[: len(text) - (len(text) % 4 == 1)] + b"=" * (-len(text) % 4))
        if _is_json(decoded) and (found := next(_by_rules(decoded, view(decoded, barriers=True)), None)):
            yield in_view(seen, *match.span(), found.rule)


def _placeholders(message: bytes) -> list[tuple[int, int]]:
    """Where earlier placeholders stand."""
    return [match.span() for match in PLACEHOLDER.finditer(message)] if MARK.encode() in message else []


def _worth_knowing(findings: list[Finding], known: tuple[Secret, ...]) -> tuple[Secret, ...]:
    values = {each.value for each in known}
    found = {each.value: each.rule for each in reversed(findings) if _is_long_and_mixed(each.value)}
    return tuple(Secret(rule, value) for value, rule in found.items() if value not in values)


def _is_long_and_mixed(value: bytes) -> bool:
    """Whether a text that has this value in it has it for no other reason."""
    if not _SHORTEST_LEARNED <= len(value) <= _LONGEST_LEARNED or value[:1] in b"/~.":
        return False
    digits = sum(byte in b"0123456789" for byte in value)
    return digits >= 2 and len(value.split()) == 1 and value.upper() != value.lower()


def _is_json(message: bytes) -> bool:
    """Whether quotes and numbers are JSON's, so that what is written must be JSON again."""
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
