r"""Views: a text with its escapes decoded, and the origin of each of its characters.

A secret may be escaped as ``p\u0040ss``, ``p\/q`` or, in JSON within a string within JSON, ``p\\\"q``. Finders search
the view, where it is ``p"q`` at every depth; their findings are replaced in the text itself.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

# Replaces each quote that begins or ends a string in the view of a JSON text: no finding may span one.
BARRIER: Final = b"\0"

_BARRIERS: Final = re.compile(BARRIER)
# A run of backslashes and what it escapes are one unit: at each depth of nesting one more run becomes one backslash.
# Only a quote after an even run is not part of the unit, because it is not escaped.
# The first character is a literal, because `re` searches for these quickly.
_UNIT: Final = re.compile(
    rb"\\(?:\\*+u[dD][89abAB][0-9a-fA-F]{2}\\++u[dD][c-fC-F][0-9a-fA-F]{2}"  # one character beyond U+FFFF
    rb"|(?:\\\\)*+\""
    rb"|\\*+(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[bfnrt/])?)"
)
_EXACT: Final = re.compile(  # as a JSON parser reads it, one depth at a time
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[\\\"bfnrt/]"
)
_PERCENT: Final = re.compile(rb"%[0-9a-fA-F]{2}")
# Control sequences of terminals: colours, most often. ESC is itself, or as shells, `cat -v` and JSON write it.
_CONTROLS: Final = (b"\x1b", b"1b", b"1B", b"33[", b"\\e[", b"^[[")
_CONTROL: Final = re.compile(
    rb"(?:\x1b|\\\\*+(?:u001[bB]|x1[bB]|0?33|[eE])|\^\[)"
    rb"(?:\[[0-?]{0,64}[ !#-/]{0,4}[@-[\]-~]|[ !#-/]{1,4}[0-[\]-~])"
)
_SHORT: Final = {b"": b"\\", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"/": b"/"}
_QUOTE: Final = b"\2"  # an escaped quote, until those that delimit strings are barriers
_OTHER: Final = b"\1"  # replaces control characters that have a meaning here
_RESERVED: Final = bytes.maketrans(BARRIER + _QUOTE, _OTHER * 2)
_MOST_ROUNDS: Final = 3  # of decoding: \u005cu0041 takes two


class View:
    """Text as its readers decode it.

    Attributes:
        text: with escapes decoded.
        lowered: `text` in lower case.
    """

    __slots__ = ("_barriers", "_lowered", "_starts", "_under", "_units", "text")

    def __init__(self, text: bytes, units: Units | None = None, under: View | None = None) -> None:
        self.text = text
        self._units = units
        self._under = under
        self._starts: tuple[array[int], array[int]] | None = None
        self._barriers: array[int] | None = None
        self._lowered: bytes | None = None

    @property
    def lowered(self) -> bytes:
        if self._lowered is None:
            self._lowered = self.text.lower()
        return self._lowered

    @property
    def is_rewritten(self) -> bool:
        """True if the text differs from the original."""
        return self._units is not None and self._units.found

    def inside(self, position: int) -> bool:
        """Return True if a position in the view of a JSON text is inside a string."""
        if self._barriers is None:
            self._barriers = array("q", (barrier.start() for barrier in _BARRIERS.finditer(self.text)))
        return bisect_right(self._barriers, position) % 2 == 1

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the message that ``text[start:end]``, which must not be empty, was decoded from."""
        if self._units is not None:
            self._starts = self._starts or self._units.starts()
            starts, origins = self._starts
            first, last = bisect_right(starts, start) - 1, bisect_right(starts, end - 1) - 1
            start = origins[first] + (0 if first % 2 else start - starts[first])
            end = origins[last + 1] if last % 2 else origins[last] + end - starts[last]
        return self._under.origin(start, end) if self._under else (start, end)


class Units:
    """Escapes of one text, and their values.

    Args:
        pattern: matches one escape.
        rewrite: returns the value of an escape.
    """

    __slots__ = ("_known", "_pattern", "_rewrite", "_text")

    @property
    def found(self) -> bool:
        """True if there are escapes; valid after `undone`."""
        return bool(self._known)

    def __init__(self, text: bytes, pattern: re.Pattern[bytes], rewrite: Callable[[bytes], bytes]) -> None:
        self._text = text
        self._pattern = pattern
        self._rewrite = rewrite
        self._known: dict[bytes, bytes] = {}  # few different ones, many times

    def undone(self) -> bytes:
        """Return the text without escapes."""
        return self._pattern.sub(self._replacement, self._text)

    def starts(self) -> tuple[array[int], array[int]]:
        """Return the starts of parts without escapes (even index) and of escapes (odd index), decoded and original."""
        decoded, original = array("q", [0]), array("q", [0])
        moved = 0
        for match in self._pattern.finditer(self._text):
            start, end = match.span()
            decoded.append(start + moved)
            original.append(start)
            moved += len(self._known[match[0]]) - end + start
            decoded.append(end + moved)
            original.append(end)
        return decoded, original

    def _replacement(self, match: re.Match[bytes]) -> bytes:
        unit = match[0]
        value = self._known.get(unit)
        if value is None:
            value = self._known[unit] = self._rewrite(unit)
        return value


def view(text: bytes, *, barriers: bool = False) -> View:
    """Return the text with all escapes by backslash decoded.

    Args:
        barriers: the text is JSON: each quote that delimits a string becomes a :data:`BARRIER`.
    """
    if b"\\" not in text:
        return View(text.replace(b'"', BARRIER) if barriers else text)
    found = _quoted(_rewritten(text.replace(_QUOTE, _OTHER), _UNIT, _undo, None), barriers=barriers)
    for _ in range(_MOST_ROUNDS):
        if b"\\u00" not in found.text:
            break
        found = _quoted(_rewritten(found.text, _UNIT, _undo, found))
    return found


def exact_views(text: bytes, *, barriers: bool) -> tuple[View, View]:
    r"""Return the text as a JSON parser decodes it, and with its strings decoded once more.

    `view` decodes backslash and ``t`` in a path like ``C:\\token`` as a tab; these don't.
    """
    once = _quoted(_rewritten(text.replace(_QUOTE, _OTHER), _EXACT, _undo_one, None), barriers=barriers)
    return once, _quoted(_rewritten(once.text, _EXACT, _undo_one, once))


def percent_view(under: View) -> View:
    """Return the view with the escapes of URLs decoded too."""
    return _rewritten(under.text, _PERCENT, _percent_undo, under)


def has_control(text: bytes) -> bool:
    """Return True if a text may have a control sequence of a terminal, as it is or escaped."""
    return any(each in text for each in _CONTROLS)


def plain_view(under: View, control: bytes = b"") -> View:
    """Return the view without control sequences of terminals, or with `control` in the place of each."""
    return _rewritten(under.text, _CONTROL, lambda _: control, under)


def undone(value: bytes) -> bytes:
    """Return a value with its escapes decoded, so that all its forms become one."""
    return view(value).text.translate(_RESERVED)


def percent_undone(value: bytes) -> bytes:
    """Return a value with the escapes of URLs decoded."""
    return _PERCENT.sub(lambda match: _percent_undo(match[0]), value)


def _rewritten(text: bytes, pattern: re.Pattern[bytes], rewrite: Callable[[bytes], bytes], under: View | None) -> View:
    units = Units(text, pattern, rewrite)
    return View(units.undone(), units, under)


def _quoted(found: View, *, barriers: bool = False) -> View:
    if barriers:
        found.text = found.text.replace(b'"', BARRIER)
    found.text = found.text.replace(_QUOTE, b'"')
    return found


def _undo_one(unit: bytes) -> bytes:
    return b"\\" if unit == b"\\\\" else _undo(unit)


def _undo(unit: bytes) -> bytes:
    escape = unit.lstrip(b"\\")
    if escape == b'"':
        return _QUOTE
    if escape[:1] == b"u":
        if len(escape) == len(b"uXXXX"):
            character = chr(int(escape[1:], 16))
        else:
            high, low = int(escape[1:5], 16), int(escape[-4:], 16)
            character = chr(0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF))
        encoded = character.encode("utf-8", "surrogatepass")
        return _QUOTE if encoded == b'"' else encoded.translate(_RESERVED)
    if escape[:1] == b"x":
        return bytes([int(escape[1:], 16)]).translate(_RESERVED)
    return _SHORT[escape]


def _percent_undo(unit: bytes) -> bytes:
    return bytes([int(unit[1:], 16)]).translate(_RESERVED)
