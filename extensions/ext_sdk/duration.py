"""Durations in Go's syntax: ``time.ParseDuration`` and ``Duration.String``, to the nanosecond.

gevals 0.0.1 ("Duration Format") requires Go's syntax, and its host is a Go program, so Go's parsing, errors and
rounding are the definition. No library in Python agrees with it on fractions, on overflow and on ``1µs``.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_NANOSECONDS: Final = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # micro sign
    "\u03bcs": 1_000,  # Greek letter mu
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
# Matches every text that Go parses, even if out of range, in RE2: `parse` accepts no other.
DURATION_PATTERN: Final = "^[-+]?(0|(([0-9]+\\.?[0-9]*|\\.[0-9]+)([nu\u00b5\u03bcm]?s|[mh]))+)$"
_MOST: Final = 2**63  # Go counts in int64; one more is allowed below zero than above
_DIGITS: Final = frozenset("0123456789")
_NUMERIC: Final = _DIGITS | {"."}
_SHOWN: Final = 40  # characters of a refused text that an error quotes
_ADVICE: Final = "write numbers with units h, m, s, ms, us or ns, like 30s, 1h30m or 1.5s"


class Duration:
    """Time span in whole nanoseconds, within about 292 years either way.

    Immutable, hashable and ordered. ``str()`` returns Go's form (``1h30m0s``), which :meth:`parse` reads.

    Attributes:
        nanoseconds: the length, exact; may be negative.
        seconds: the length.

    Raises:
        ValueError: the length does not fit in 64 bits.
    """

    __slots__ = ("nanoseconds", "seconds")
    nanoseconds: int
    seconds: float

    def __init__(self, nanoseconds: int = 0) -> None:
        if not -_MOST <= nanoseconds < _MOST:
            raise ValueError(f"duration of {nanoseconds} ns is out of range: at most about 292 years")
        object.__setattr__(self, "nanoseconds", nanoseconds)
        object.__setattr__(self, "seconds", nanoseconds / 1e9)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Duration can't be changed")

    @classmethod
    def parse(cls, text: str) -> Duration:
        """Parse a duration such as ``300ms``, ``-1.5h`` or ``2h45m``; only ``0`` needs no unit.

        Raises:
            ValueError: the text is not a duration, or out of range; the message has the reason.
        """
        negative = text.startswith("-")
        at = 1 if text.startswith(("-", "+")) else 0
        if text[at:] == "0":
            return cls(0)
        if at == len(text):
            raise _invalid(text, "it has no number")
        total = 0
        while at < len(text):
            part, at = _part(text, at)
            total += part
            if total > _MOST:
                raise _out_of_range(text)
        if total == _MOST and not negative:
            raise _out_of_range(text)
        return cls(-total if negative else total)

    @classmethod
    def from_seconds(cls, seconds: float) -> Duration:
        """Return the duration nearest to a number of seconds.

        Raises:
            ValueError: the number is not finite, or beyond 292 years.
        """
        if not abs(seconds) < _MOST / 1e9:
            raise ValueError(f"duration of {seconds} s is out of range: at most about 292 years")
        return cls(round(seconds * 1e9))

    def __str__(self) -> str:
        sign = "-" if self.nanoseconds < 0 else ""
        length = abs(self.nanoseconds)
        if length == 0:
            return "0s"
        if length < _NANOSECONDS["us"]:
            return f"{sign}{length}ns"
        if length < _NANOSECONDS["ms"]:
            return f"{sign}{_decimal(length, 3)}\u00b5s"
        if length < _NANOSECONDS["s"]:
            return f"{sign}{_decimal(length, 6)}ms"
        minutes, rest = divmod(length, _NANOSECONDS["m"])
        hours, minutes = divmod(minutes, 60)
        shown = f"{_decimal(rest, 9)}s"
        if hours:
            return f"{sign}{hours}h{minutes}m{shown}"
        return f"{sign}{minutes}m{shown}" if minutes else f"{sign}{shown}"

    def __repr__(self) -> str:
        return f"Duration({str(self)!r})"

    def __bool__(self) -> bool:
        return self.nanoseconds != 0

    def __hash__(self) -> int:
        return hash((Duration, self.nanoseconds))

    def __eq__(self, other: object) -> bool:
        return self.nanoseconds == other.nanoseconds if isinstance(other, Duration) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self.nanoseconds < other.nanoseconds if isinstance(other, Duration) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self.nanoseconds <= other.nanoseconds if isinstance(other, Duration) else NotImplemented


def _part(text: str, at: int) -> tuple[int, int]:
    """Return the nanoseconds of the number with its unit at ``text[at:]``, and the start of the next part."""
    point = _run(text, at, _DIGITS)
    whole = text[at:point]
    end = point
    if text[point : point + 1] == ".":
        end = _run(text, point + 1, _DIGITS)
    fraction = text[point + 1 : end]
    if not whole and not fraction:
        raise _invalid(text, f"a number is missing before {_short(text[at:])}")
    unit_end = end
    while unit_end < len(text) and text[unit_end] not in _NUMERIC:
        unit_end += 1
    unit = _NANOSECONDS.get(text[end:unit_end])
    if unit is None:
        raise _invalid(text, f"unknown unit {_short(text[end:unit_end])}" if unit_end > end else "a unit is missing")
    significant = whole.lstrip("0")
    # 2**63 has 19 digits; beyond that int() itself would be slow.
    if len(significant) > 19 or (product := int(significant or "0") * unit) > _MOST:
        raise _out_of_range(text)
    value, scale = 0, 1.0  # of the fraction, computed in float64 and cut, as Go does it
    for digit in fraction:
        longer = value * 10 + int(digit)
        if value > (_MOST - 1) // 10 or longer > _MOST:
            break
        value, scale = longer, scale * 10
    return product + int(float(value) * (float(unit) / scale)), unit_end


def _decimal(value: int, places: int) -> str:
    """Return ``value`` / 10**places, without trailing zeros."""
    whole, fraction = divmod(value, 10**places)
    return f"{whole}.{fraction:0{places}}".rstrip("0").rstrip(".")


def _run(text: str, at: int, characters: frozenset[str]) -> int:
    while at < len(text) and text[at] in characters:
        at += 1
    return at


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


def _invalid(text: str, reason: str) -> ValueError:
    return ValueError(f"invalid duration {_short(text)}: {reason}; {_ADVICE}")


def _out_of_range(text: str) -> ValueError:
    return ValueError(f"invalid duration {_short(text)}: it is out of range, at most about 292 years")
