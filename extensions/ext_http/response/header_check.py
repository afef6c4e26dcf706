"""Checks of headers, and the syntax of header values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from ext_sdk.expect import Check, Expectation, Integer, TextExpectation, check_integer, check_text
from ext_sdk.expect.format import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .check_context import CheckContext


_BAD = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def header_value_problem(value: str) -> str:
    """Why the value of a header can't be sent; "" where it can."""
    bad = _BAD.search(value)
    return f"expected one line, found {bad[0]!r} in the value" if bad else ""


Part = Annotated[str, Meta(min_length=1)]
Parts = Part | Annotated[list[Part], Meta(min_length=1)]
_OF_ALL = ("exists", "count")  # fields about the values together
_OF_EACH = ("equals", "contains", "not_contains", "starts_with", "ends_with", "matches", "not_matches")
_HOW = ("values", "ignoreCase")


class HeaderExpectation(Expectation):
    """What a header, or a parameter of a query, must be; all that is given must hold."""

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
    means: CheckContext,
    *,
    where: str = "header",
) -> list[Check]:
    """Hold headers against expectations.

    Args:
        expectations: by name, in any case.
        headers: name and value, as they came.
        means: what checks are made with.
        where: what they are, for the message; the name follows.
    """
    checks: list[Check] = []
    for name, expectation in expectations.items():
        checks += check_values(expectation, values_of(name, headers), f"{where} {name}", means.beside(name))
    return checks


def check_values(expectation: Header, values: Sequence[str], place: str, means: CheckContext) -> list[Check]:
    """Hold the values that have one name against an expectation.

    Args:
        expectation: a value, values in their order, or an object.
        values: those that came; none where the name did not come.
        place: what they are, for the message.
        means: what checks are made with.
    """
    if isinstance(expectation, list):
        text, found = _listed(expectation, means), _listed(values, means)
        return [Check(list(values) == expectation, "to be", text, found, where=place)]
    wanted = HeaderExpectation(equals=expectation) if isinstance(expectation, str) else expectation
    return [*_of_all(wanted, values, place, means), *_of_each(wanted, values, place, means)]


def _listed(values: Sequence[str], means: CheckContext) -> str:
    return ", ".join(shown(value, means.redact) for value in values) or "nothing of this name"


def _of_all(wanted: HeaderExpectation, values: Sequence[str], place: str, means: CheckContext) -> list[Check]:
    checks = []
    if not isinstance(wanted.exists, UnsetType):
        what = "to exist" if wanted.exists else "not to exist"
        checks.append(Check(bool(values) == wanted.exists, what, "", _listed(values, means), where=place))
    if not isinstance(wanted.count, UnsetType):
        checks += check_integer(wanted.count, len(values), where=f"number of {place}")
    return checks


def _of_each(wanted: HeaderExpectation, values: Sequence[str], place: str, means: CheckContext) -> list[Check]:
    each = wanted.of_each()
    if each is None:
        return []
    if not values:
        return [Check.failed("to exist", "nothing of this name", where=place)]
    if wanted.values == "one" and len(values) > 1:
        found = f"{len(values)} values: {_listed(values, means)}; say `values: all` or `values: any`, or list them"
        return [Check.failed("to come once", found, where=place)]
    checks = [check_text(each, one, where=place, searcher=means.searcher, redact=means.redact) for one in values]
    if wanted.values == "any":
        best = min(checks, key=lambda made: sum(not check.ok for check in made))
        return [check if check.ok or len(values) == 1 else _of_any(check, values, means) for check in best]
    return [next((check for check in column if not check.ok), column[0]) for column in zip(*checks, strict=True)]


def _of_any(check: Check, values: Sequence[str], means: CheckContext) -> Check:
    """A check that no value passed shows them all."""
    return Check(False, check.what, check.expected, _listed(values, means), where=check.where)  # noqa: FBT003
