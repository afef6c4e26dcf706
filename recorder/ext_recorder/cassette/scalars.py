"""YAML scalars and one-line collections, as far as cassettes use them.

A payload stands between single quotation marks, where YAML 1.1 and 1.2 change nothing but `''`. What can't
stand there (control characters, the line ends that only Unicode knows, a byte order mark) is kept as base64
instead.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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

_PLAIN_FIRST = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz/")
_PLAIN = _PLAIN_FIRST | frozenset("0123456789_.+@-")
# What a YAML 1.1 loader would take for a boolean or null (`y` and `n` by the book, though PyYAML leaves
# them).
_RESERVED = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def holds(text: str) -> bool:
    """Can YAML hold this text on one line between single quotation marks?"""
    if text.isprintable():  # narrower than what YAML can hold, and answered at once
        return True
    return all(any(first <= ord(char) <= last for first, last in _HOLDABLE) for char in set(text))


def quoted(text: str) -> str:
    """A text between single quotation marks. The caller has asked `holds` before."""
    return "'" + text.replace("'", "''") + "'"


def scalar(text: str) -> str:
    """A short text of the header: plain where every YAML loader reads it as the same string, else quoted.

    Characters that YAML can't hold are written as U+FFFD: the header informs, it is not played.
    """
    if text and text[0] in _PLAIN_FIRST and _PLAIN.issuperset(text) and text.lower() not in _RESERVED:
        return text
    if not holds(text):
        text = "".join(char if holds(char) else "\ufffd" for char in text)
    return quoted(text)


def flow_list(items: Iterable[str]) -> str:
    """`[a, 'b c']`."""
    return "[" + ", ".join(scalar(item) for item in items) + "]"


def flow_map(items: Mapping[str, str]) -> str:
    """`{a: b, 'c d': e}`."""
    return "{" + ", ".join(f"{scalar(key)}: {scalar(value)}" for key, value in items.items()) + "}"
