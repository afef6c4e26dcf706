r"""A text with its escapes undone, that still knows where each of its characters came from.

A secret may be spelt ``p\u0040ss``, ``p\/q`` or, in JSON within a string within JSON, ``p\\\"q``. Finders search
the view, where it is ``p"q`` at every depth; what they find is replaced in the text itself.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

# Stands in the view of a JSON text for each quote that begins or ends a string: nothing found may reach across one.
BARRIER: Final = b"\0"

_BARRIERS: Final = re.compile(BARRIER)
# A run of backslashes and what it escapes are one unit: at each depth of nesting one more run becomes one backslash.
# Only a quote after an even run does not belong to it, because there it is not escaped.
_UNIT: Final = re.compile(
    rb"\\++u[dD][89abAB][0-9a-fA-F]{2}\\++u[dD][c-fC-F][0-9a-fA-F]{2}"  # one character beyond U+FFFF
    rb"|\\(?:\\\\)*+\""
    rb"|\\++(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[bfnrt/])?"
)
_EXACT: Final = re.compile(  # as a JSON parser reads it, one depth at a time
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[\\\"bfnrt/]"
)
_PERCENT: Final = re.compile(rb"%[0-9a-fA-F]{2}")
# Control sequences of terminals: colours, most often. ESC is itself, or as shells, `cat -v` and JSON write it.
_CONTROLS: Final = (b"\x1b", b"1b", b"1B", b"33[", b"\\e[", b"^[[")
_CONTROL: Final = re.compile(
    rb"(?:\x1b|\\++(?:u001[bB]|x1[bB]|0?33|[eE])|\^\[)"
    rb"(?:\[[0-?]{0,64}[ !#-/]{0,4}[@-[\]-~]|[ !#-/]{1,4}[0-[\]-~])"
)
_SHORT: Final = {b"": b"\\", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"/": b"/"}
_QUOTE: Final = b"\2"  # an escaped quote, until those that delimit strings are barriers
_OTHER: Final = b"\1"  # what control characters become that mean something here
_RESERVED: Final = bytes.maketrans(BARRIER + _QUOTE, _OTHER * 2)
_MOST_ROUNDS: Final = 3  # of undoing: \u005cu0041 takes two


class View:
    """A text as its readers will see it.

    Attributes:
        text: with escapes undone.
        lowered: the same in lower case.
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
        """Return True if the text differs from the one that the view is of."""
        return self._units is not None and self._units.found

    def inside(self, position: int) -> bool:
        """Whether a position in the view of a JSON text is inside a string."""
        if self._barriers is None:
            self._barriers = array("q", (each.start() for each in _BARRIERS.finditer(self.text)))
        return bisect_right(self._barriers, position) % 2 == 1

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Where ``text[start:end]`` came from, in whole units; the stretch must not be empty."""
        if self._units is not None:
            self._starts = self._starts or self._units.starts()
            starts, origins = self._starts
            first, last = bisect_right(starts, start) - 1, bisect_right(starts, end - 1) - 1
            start = origins[first] + (0 if first % 2 else start - starts[first])
            end = origins[last + 1] if last % 2 else origins[last] + end - starts[last]
        return self._under.origin(start, end) if self._under else (start, end)


class Units:
    """The escapes of one text, and what they stand for.

    Args:
        text: any bytes.
        pattern: matches one escape.
        rewrite: tells what an escape stands for.
    """

    __slots__ = ("_known", "_pattern", "_rewrite", "_text")

    @property
    def found(self) -> bool:
        """Return True if there are escapes; known after they are undone."""
        return bool(self._known)

    def __init__(self, text: bytes, pattern: re.Pattern[bytes], rewrite: Callable[[bytes], bytes]) -> None:
        self._text = text
        self._pattern = pattern
        self._rewrite = rewrite
        self._known: dict[bytes, bytes] = {}  # few different ones, many times

    def undone(self) -> bytes:
        """The text without escapes."""
        return self._pattern.sub(self._replacement, self._text)

    def starts(self) -> tuple[array[int], array[int]]:
        """Where stretches without escapes (even index) and escapes (odd index) begin, undone and before."""
        here, there = array("q", [0]), array("q", [0])
        moved = 0
        for match in self._pattern.finditer(self._text):
            start, end = match.span()
            here.append(start + moved)
            there.append(start)
            moved += len(self._known[match[0]]) - end + start
            here.append(end + moved)
            there.append(end)
        return here, there

    def _replacement(self, match: re.Match[bytes]) -> bytes:
        unit = match[0]
        found = self._known.get(unit)
        if found is None:
            found = self._known[unit] = self._rewrite(unit)
        return found


def view(text: bytes, *, barriers: bool = False) -> View:
    """The text with all escapes by backslash undone.

    Args:
        text: any bytes.
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
    r"""The text as a JSON parser sees it, and as one sees it that parses the strings again.

    In a path like ``C:\\token`` the view above takes backslash and ``t`` for a tab; these don't.
    """
    once = _quoted(_rewritten(text.replace(_QUOTE, _OTHER), _EXACT, _undo_one, None), barriers=barriers)
    return once, _quoted(_rewritten(once.text, _EXACT, _undo_one, once))


def percent_view(under: View) -> View:
    """The view with the escapes of URLs undone too."""
    return _rewritten(under.text, _PERCENT, _percent_undo, under)


def has_control(text: bytes) -> bool:
    """Return whether a text may have a control sequence of a terminal, as it is or escaped."""
    return any(each in text for each in _CONTROLS)


def plain_view(under: View, control: bytes = b"") -> View:
    """Return the view without control sequences of terminals, or with `control` in the place of each."""
    return _rewritten(under.text, _CONTROL, lambda _: control, under)


def undone(value: bytes) -> bytes:
    """A value with its escapes undone, so that all its spellings are one."""
    return view(value).text.translate(_RESERVED)


def percent_undone(value: bytes) -> bytes:
    """The same for the escapes of URLs."""
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
