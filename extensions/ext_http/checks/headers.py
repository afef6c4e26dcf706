"""Expectations on headers, repeated ones too.

A header that comes several times has several values; they are never joined or split at commas, for a date has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from ext_sdk.expect import (
    Check,
    Expectation,
    Integer,
    Searcher,
    TextExpectation,
    check_integer,
    check_text,
)
from ext_sdk.expect.excerpt import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ext_sdk.expect.excerpt import Redact

Part = Annotated[str, Meta(min_length=1)]
Parts = Part | Annotated[list[Part], Meta(min_length=1)]
_OF_ALL = ("exists", "count")  # fields about the values together
_OF_EACH = ("equals", "contains", "not_contains", "starts_with", "ends_with", "matches", "not_matches")
_HOW = ("values", "ignoreCase")


class HeaderExpectation(Expectation):
    """What a header must be; all that is given must hold."""

    values: Annotated[
        Literal["one", "all", "any"], Meta(description="one: it comes once. all, any: of those that come")
    ] = "one"
    exists: Annotated[bool | UnsetType, Meta(description="false: it does not come")] = UNSET
    count: Annotated[Integer | UnsetType, Meta(description="How often it comes")] = UNSET
    equals: str | UnsetType = UNSET
    contains: Annotated[Parts | UnsetType, Meta(description="All of these")] = UNSET
    not_contains: Annotated[Parts | UnsetType, Meta(description="None of these")] = UNSET
    starts_with: Part | UnsetType = UNSET
    ends_with: Part | UnsetType = UNSET
    matches: Annotated[Parts | UnsetType, Meta(description="Regular expressions, all found")] = UNSET
    not_matches: Annotated[Parts | UnsetType, Meta(description="None found")] = UNSET
    ignore_case: bool = False

    def __post_init__(self) -> None:
        self.refuse_empty(besides=_HOW)
        if self.exists is False and len(self.given(besides=_HOW)) > 1:
            raise ValueError("`exists: false` leaves nothing that other checks could be about")
        self.of_each()  # refuses what is no regular expression

    def of_each(self) -> TextExpectation | None:
        """What is expected of single values; None for nothing."""
        given = {name: value for name in _OF_EACH if (value := getattr(self, name)) is not UNSET}
        if "equals" in given:
            given["exactly"] = given.pop("equals")
        return TextExpectation(**given, ignore_case=self.ignore_case) if given else None


# As users write it: a value, the values of a repeated one in their order, or an object.
Header = str | Annotated[list[str], Meta(min_length=1)] | HeaderExpectation
Name = Annotated[str, Meta(pattern="^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
Headers = Annotated[dict[Name, Header], Meta(min_length=1)]


def values_of(name: str, headers: Sequence[tuple[str, str]]) -> list[str]:
    """All values of a header, in order; its name in any case."""
    return [value for one, value in headers if one.lower() == name.lower()]


def check_headers(
    expectations: Mapping[str, Header],
    headers: Sequence[tuple[str, str]],
    *,
    where: str = "header",
    searcher: Searcher,
    redact: Redact = str,
) -> list[Check]:
    """Hold headers against expectations.

    Args:
        expectations: by name, in any case.
        headers: name and value, as they came.
        where: what they are, for the message; the name follows.
        searcher: runs the regular expressions.
        redact: takes secrets out of what is shown.
    """
    checks: list[Check] = []
    for name, expectation in expectations.items():
        place = f"{where} {name}"
        values = values_of(name, headers)
        if isinstance(expectation, list):
            text, found = ", ".join(shown(value, redact) for value in expectation), _listed(values, redact)
            checks.append(Check(values == expectation, "to be", text, found, where=place))
            continue
        wanted = HeaderExpectation(equals=expectation) if isinstance(expectation, str) else expectation
        checks += [*_of_all(wanted, values, place, redact), *_of_values(wanted, values, place, searcher, redact)]
    return checks


def _listed(values: Sequence[str], redact: Redact) -> str:
    return ", ".join(shown(value, redact) for value in values) or "no such header"


def _of_all(wanted: HeaderExpectation, values: Sequence[str], place: str, redact: Redact) -> list[Check]:
    checks = []
    if not isinstance(wanted.exists, UnsetType):
        what = "to exist" if wanted.exists else "not to exist"
        checks.append(Check(bool(values) == wanted.exists, what, "", _listed(values, redact), where=place))
    if not isinstance(wanted.count, UnsetType):
        checks += check_integer(wanted.count, len(values), where=f"number of {place}")
    return checks


def _of_values(
    wanted: HeaderExpectation, values: Sequence[str], place: str, searcher: Searcher, redact: Redact
) -> list[Check]:
    each = wanted.of_each()
    if each is None:
        return []
    if not values:
        return [Check.failed("to exist", "no such header", where=place)]
    if wanted.values == "one" and len(values) > 1:
        found = f"{len(values)} values: {_listed(values, redact)}; say `values: all` or `values: any`, or list them"
        return [Check.failed("to come once", found, where=place)]
    checks = [check_text(each, value, where=place, searcher=searcher, redact=redact) for value in values]
    if wanted.values == "any":
        best = min(checks, key=lambda made: sum(not check.ok for check in made))
        return [check if check.ok or len(values) == 1 else _of_any(check, values, redact) for check in best]
    return [next((check for check in column if not check.ok), column[0]) for column in zip(*checks, strict=True)]


def _of_any(check: Check, values: Sequence[str], redact: Redact) -> Check:
    """A check that no value passed shows them all."""
    return Check(False, check.what, check.expected, f"{_listed(values, redact)}", where=check.where)  # noqa: FBT003
