"""Expectations on status codes: one, several, a class or a range."""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta, field

from ext_sdk.expect import Check, Expectation

_CODES = "^([1-5]xx|[1-5][0-9][0-9](-[1-5][0-9][0-9])?)$"
# Not as `pattern`: where a string with one may also be a list, msgspec 0.22 frees memory that it does not own.
Codes = Annotated[str, Meta(extra_json_schema={"pattern": _CODES, "examples": ["2xx", "200-299"]})]
One = Annotated[int, Meta(ge=100, le=599)] | Codes
Several = Annotated[list[One], Meta(min_length=1)]


class StatusExpectation(Expectation):
    """What a status code must not be."""

    not_: Annotated[One | Several, Meta(description="None of these: 404, 5xx, 300-399, or a list of such")] = field(
        name="not"
    )

    def __post_init__(self) -> None:
        refuse_no_codes(self.not_)


# As users write it: 200, "2xx", "200-299", [200, "3xx"], {"not": "5xx"}.
Status = One | Several | StatusExpectation


def refuse_no_codes(status: Status) -> None:
    """Raise ValueError for what is no code, class or range of codes, and for a range that ends before it begins."""
    if isinstance(status, StatusExpectation):
        return
    for one in status if isinstance(status, list) else [status]:
        if isinstance(one, str) and not re.fullmatch(_CODES, one):
            raise ValueError(f"status: expected a code, 2xx, or 200-299, found {one!r:.40}")
        lowest, highest = _bounds(one)
        if lowest > highest:
            raise ValueError(f"status: expected a range from low to high, found {one}")


def check_status(expectation: Status, status: int) -> Check:
    """Hold a status code against an expectation."""
    wanted = expectation.not_ if isinstance(expectation, StatusExpectation) else expectation
    several = wanted if isinstance(wanted, list) else [wanted]
    among = any(lowest <= status <= highest for lowest, highest in map(_bounds, several))
    text = ", ".join(map(str, several))
    if isinstance(expectation, StatusExpectation):
        return Check(not among, "not to be", text, str(status), where="status")
    return Check(among, "to be" if len(several) == 1 else "to be one of", text, str(status), where="status")


def _bounds(one: int | str) -> tuple[int, int]:
    if isinstance(one, int):
        return one, one
    if one.endswith("xx"):
        return int(one[0]) * 100, int(one[0]) * 100 + 99
    lowest, _, highest = one.partition("-")
    return int(lowest), int(highest or lowest)
