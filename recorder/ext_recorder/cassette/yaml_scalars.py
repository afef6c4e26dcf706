"""YAML scalars and one-line collections, as far as cassettes use them.

A payload is written between single quotation marks, where YAML 1.1 and 1.2 change nothing but `''`. Text that cannot
be written there (control characters, the line ends of Unicode, a byte order mark) is written between double quotation
marks, with escapes that both versions have.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Flow = str | list[str] | dict[str, str]

# YAML 1.2.2, production 1 (c-printable), less what ends a line in YAML 1.1 (U+0085, U+2028, U+2029), less the
# byte order mark that some loaders drop. A tab is printable. (first, last) code points:
_HOLDABLE = (
    (0x09, 0x09),
    (0x20, 0x7E),
    (0xA0, 0x2027),
    (0x202A, 0xD7FF),
    (0xE000, 0xFEFE),
    (0xFF00, 0xFFFD),
    (0x10000, 0x10FFFF),
)

_LETTERS = {0x00: "0", 0x07: "a", 0x08: "b", 0x0A: "n", 0x0B: "v", 0x0C: "f", 0x0D: "r", 0x1B: "e"}
# Character to escape, for all that is not in _HOLDABLE and is a character. A tab is written as it is.
_ESCAPES: dict[int, str] = {
    **{code: f"\\x{code:02X}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code != 0x09},
    **{code: f"\\u{code:04X}" for code in (0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF)},
    **{code: f"\\{letter}" for code, letter in _LETTERS.items()},
    0x22: '\\"',
    0x5C: "\\\\",
}
_CHARACTERS = {escape[1]: chr(code) for code, escape in _ESCAPES.items() if len(escape) == 2}
_DIGITS = {"x": 2, "u": 4, "U": 8}
_HEX = frozenset("0123456789ABCDEFabcdef")

_PLAIN_FIRST = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz/")
_PLAIN = _PLAIN_FIRST | frozenset("0123456789_.+@-")
# Booleans and null of YAML 1.1 (`y` and `n` are in the specification, although PyYAML reads them as texts).
_RESERVED = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def holds(text: str) -> bool:
    """Return True if YAML can represent this text on one line between single quotation marks."""
    if text.isprintable():  # a subset of the allowed characters, and quick to check
        return True
    return all(any(first <= ord(char) <= last for first, last in _HOLDABLE) for char in set(text))


def quoted(text: str) -> str:
    """Return a text, for which `holds` is true, between single quotation marks."""
    return "'" + text.replace("'", "''") + "'"


def escaped(text: str) -> str:
    """Return any text without lone surrogates between double quotation marks, on one line."""
    return '"' + text.translate(_ESCAPES) + '"'


def visible(text: str) -> str:
    """Return a text for a terminal: control characters as the escapes that they have in a cassette."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _ESCAPES.get(ord(char)) or ascii(char)[1:-1] for char in text)


def unescaped(body: str) -> str | None:
    """Return the text that stands between double quotation marks; None for escapes that `escaped` does not write.

    Args:
        body: without its quotation marks.
    """
    parts, at = [], 0
    while (slash := body.find("\\", at)) >= 0:
        parts.append(body[at:slash])
        letter = body[slash + 1 : slash + 2]
        end = slash + 2 + _DIGITS.get(letter, 0)
        char = _CHARACTERS.get(letter)
        if char is None:
            digits = body[slash + 2 : end]
            if letter not in _DIGITS or len(digits) != _DIGITS[letter] or not _HEX.issuperset(digits):
                return None
            code = int(digits, 16)
            if 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
                return None
            char = chr(code)
        parts.append(char)
        at = end
    parts.append(body[at:])
    return "".join(parts)


def scalar(text: str) -> str:
    """Return a short text of the header: plain if every YAML loader reads it as the same string, otherwise quoted.

    Characters that YAML cannot represent are written as U+FFFD: the header is not replayed.
    """
    if text and text[0] in _PLAIN_FIRST and _PLAIN.issuperset(text) and text.lower() not in _RESERVED:
        return text
    if not holds(text):
        text = "".join(char if holds(char) else "\ufffd" for char in text)
    return quoted(text)


def flow_list(items: Iterable[str]) -> str:
    """Return a list as in `[a, 'b c']`."""
    return "[" + ", ".join(scalar(item) for item in items) + "]"


def flow_map(items: Mapping[str, str]) -> str:
    """Return a mapping as in `{a: b, 'c d': e}`."""
    return "{" + ", ".join(f"{scalar(key)}: {scalar(value)}" for key, value in items.items()) + "}"


def parse_flow(text: str) -> Flow | None:
    """Return a value of the header, without white space around it; None for a form that needs a YAML loader."""
    if text[:1] == "[" and text[-1:] == "]":
        items: list[str] = []
        rest = text[1:-1]
        while rest:
            item, rest = _scalar(rest)
            if item is None or (rest and not rest.startswith(", ")):
                return None
            items.append(item)
            rest = rest[2:]
        return items
    if text[:1] == "{" and text[-1:] == "}":
        pairs: dict[str, str] = {}
        rest = text[1:-1]
        while rest:
            key, rest = _scalar(rest)
            if key is None or key in pairs or not rest.startswith(": "):
                return None
            value, rest = _scalar(rest[2:])
            if value is None or (rest and not rest.startswith(", ")):
                return None
            pairs[key] = value
            rest = rest[2:]
        return pairs
    value, rest = _scalar(text)
    return value if not rest else None


def _scalar(text: str) -> tuple[str | None, str]:
    """Return the scalar at the start of a text, and the rest after it."""
    if not text.startswith("'"):
        # A colon is part of a plain scalar, unless a space follows: `a: b`.
        ends = (
            at
            for at, char in enumerate(text)
            if char not in _PLAIN and (char != ":" or text[at + 1 : at + 2] in {"", " ", ",", "]", "}"})
        )
        end = next(ends, len(text))
        plain = text[:end]
        return (plain, text[end:]) if plain not in {"", "-"} and plain[0] not in "@:" else (None, text)
    end = 1
    while (end := text.find("'", end)) >= 0:
        if text[end + 1 : end + 2] != "'":
            return text[1:end].replace("''", "'"), text[end + 1 :]
        end += 2
    return None, text
