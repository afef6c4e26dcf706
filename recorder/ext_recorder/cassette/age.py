"""Age of a cassette (`--max-age`): an old recording of a server that has changed since then tests nothing."""

from __future__ import annotations

import time

from ext_recorder.errors import CassetteError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .header import Header

_UNITS = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_NAMES = (("d", "day"), ("h", "hour"), ("m", "minute"))


def seconds(text: str) -> int:
    """Return the seconds of a `--max-age`, as 30d. Raises UsageError."""
    number, unit = text[:-1], text[-1:]
    if number.isascii() and number.isdigit() and len(number) < 7 and unit in _UNITS:
        return int(number) * _UNITS[unit]
    raise UsageError(f"--max-age {text}: expected a number and a unit (m, h, d or w), as 30d")


def is_old(path: str, header: Header, most: str) -> bool:
    """Return True if a cassette is older than a `--max-age`.

    Args:
        most: the value of the option; "" for any age.

    Raises:
        UsageError: the value is not an age.
        CassetteError: the cassette has no date.
    """
    return bool(most) and _age(path, header) > seconds(most)


def check(path: str, header: Header, most: str) -> None:
    """Raise CassetteError if a cassette is older than a `--max-age`. For the arguments see `is_old`."""
    if is_old(path, header, most):
        command = " ".join(header.command) if header.command and " ".join(header.command).isprintable() else "COMMAND…"
        advice = f"record it again: ext-recorder record --mode all {path} -- {command}"
        raise CassetteError(path, 0, _problem(path, header, most), advice)


def problem(path: str, header: Header, most: str) -> str:
    """Return the error message for a cassette that is too old."""
    return f"{path}: {_problem(path, header, most)}"


def _problem(path: str, header: Header, most: str) -> str:
    age = _age(path, header)
    counts = ((int(age // _UNITS[unit]), name) for unit, name in _NAMES)
    count, name = next(((count, name) for count, name in counts if count), (0, ""))
    words = f"{count} {name}{'s' if count > 1 else ''}" if count else "less than a minute"
    return f"recorded {words} ago ({header.recorded}), and --max-age is {most}"


def _age(path: str, header: Header) -> float:
    from datetime import datetime

    try:
        recorded = datetime.fromisoformat(header.recorded)
    except ValueError:
        found = f"`recorded: {header.recorded}`" if header.recorded else "no `recorded:` in its head"
        raise CassetteError(path, 0, f"--max-age needs the date of the recording, found {found}") from None
    return time.time() - recorded.timestamp()
