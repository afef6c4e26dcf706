"""One thing that is not as expected, and how it is told."""

from __future__ import annotations

from typing import NamedTuple

from ext_sdk.expect.excerpt import shown

from .secret_data import masked


class Difference(NamedTuple):
    """One thing that is not as expected: where, and both sides as text."""

    path: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.path}: expected {self.expected}, found {self.found}"


class Nothing:
    """Where there is no value."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING = Nothing()


def told(value: object) -> str:
    """Return a value as text for messages; values of Secrets are masked."""
    return "nothing" if value is NOTHING else shown(masked(value))
