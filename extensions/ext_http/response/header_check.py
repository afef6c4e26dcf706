"""Checks of headers, cookies and query parameters, the context that all checks share, and the syntax of values."""

from __future__ import annotations

import re
import time
from datetime import UTC
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from msgspec import UNSET, Meta, UnsetType

from ext_http.client.response import values_of
from ext_sdk import Duration
from ext_sdk.args import Scalar, scalar_text
from ext_sdk.expect import (
    Check,
    DurationExpectation,
    Expectation,
    Integer,
    TextExpectation,
    check_duration,
    check_integer,
    check_text,
)
from ext_sdk.expect.check import redact_named, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ext_sdk.expect import Searcher
    from ext_sdk.expect.check import Redact


_CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def header_value_problem(value: str) -> str:
    """Return the reason why a header value is not valid; "" if it is."""
    control = _CONTROL_CHARACTER.search(value)
    return f"expected one line, found {control[0]!r} in the value" if control else ""


class CheckContext(NamedTuple):
    """Resources of a check.

    Attributes:
        workdir: of files to compare with.
        redact: removes secrets from a text that is shown.
    """

    workdir: Path
    searcher: Searcher
    redact: Redact

    def redacted_as(self, name: str) -> CheckContext:
        """Return the context for the value of a name, such as Authorization: the value alone may not look secret."""
        return self._replace(redact=redact_named(name, self.redact))


Part = Annotated[str, Meta(min_length=1)]
Parts = Part | Annotated[list[Part], Meta(min_length=1)]
_SINGLE_VALUE = ("equals", "contains", "not_contains", "starts_with", "ends_with", "matches", "not_matches")
_MODIFIERS = ("values", "ignoreCase")


class HeaderExpectation(Expectation):
    """Expected values of a header or query parameter; all members given must hold."""

    values: Annotated[
        Literal["one", "all", "any"],
        Meta(description="Values that the other members apply to: one: there must be one only; all, any: of several"),
    ] = "one"
    exists: Annotated[bool | UnsetType, Meta(description="false: the name must not occur")] = UNSET
    count: Annotated[Integer | UnsetType, Meta(description="Number of values")] = UNSET
    equals: Annotated[str | UnsetType, Meta(description="The complete value")] = UNSET
    contains: Annotated[Parts | UnsetType, Meta(description="All of these")] = UNSET
    not_contains: Annotated[Parts | UnsetType, Meta(description="None of these")] = UNSET
    starts_with: Annotated[Part | UnsetType, Meta(description="Beginning of the value")] = UNSET
    ends_with: Annotated[Part | UnsetType, Meta(description="End of the value")] = UNSET
    matches: Annotated[Parts | UnsetType, Meta(description="Regular expressions that all match")] = UNSET
    not_matches: Annotated[Parts | UnsetType, Meta(description="Regular expressions of which none matches")] = UNSET
    ignore_case: Annotated[bool, Meta(description="Ignore case")] = False

    def __post_init__(self) -> None:
        self.refuse_empty(besides=_MODIFIERS)
        if self.exists is False and len(self.given(besides=_MODIFIERS)) > 1:
            raise ValueError("`exists: false` excludes all other checks")
        self.single_value()  # raises ValueError for an invalid regular expression

    def single_value(self) -> TextExpectation | None:
        """Return the expectation of a single value; None if there is none."""
        given = {name: value for name in _SINGLE_VALUE if (value := getattr(self, name)) is not UNSET}
        if "equals" in given:
            given["exactly"] = given.pop("equals")
        return TextExpectation(**given, ignore_case=self.ignore_case) if given else None


# As users write it: a value, the values of a repeated header in order, or an object. Numbers and booleans are as JSON.
Header = Scalar | Annotated[list[str], Meta(min_length=1)] | HeaderExpectation
Name = Annotated[str, Meta(pattern="^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
Headers = Annotated[dict[Name, Header], Meta(min_length=1)]


def check_headers(
    expectations: Mapping[str, Header], headers: Sequence[tuple[str, str]], context: CheckContext
) -> list[Check]:
    """Check headers against expectations by name; names are case-insensitive."""
    checks: list[Check] = []
    for name, expectation in expectations.items():
        values = values_of(name, headers)
        if name.lower() == "content-type" and isinstance(expectation, str) and ";" not in expectation:
            # A media type matches one with parameters, such as `; charset=utf-8`.
            wanted = expectation.strip().lower()
            values = [expectation if value.partition(";")[0].strip().lower() == wanted else value for value in values]
        checks += check_values(expectation, values, f"header {name}", context.redacted_as(name))
    return checks


SameSite = Literal["Strict", "Lax", "None"]


class CookieExpectation(Expectation):
    """Expected cookie of a response; all members given must hold. Of several of one name, the last one counts."""

    exists: Annotated[bool | UnsetType, Meta(description="false: the response must not set it")] = UNSET
    value: Annotated[Header | UnsetType, Meta(description="Value as sent, in the form of a header")] = UNSET
    http_only: Annotated[bool | UnsetType, Meta(description="HttpOnly")] = UNSET
    secure: Annotated[bool | UnsetType, Meta(description="Secure")] = UNSET
    same_site: Annotated[SameSite | UnsetType, Meta(description="SameSite, in any case")] = UNSET
    path: Annotated[str | UnsetType, Meta(description='Path; "" if there must be none')] = UNSET
    domain: Annotated[str | UnsetType, Meta(description='Domain, without its first dot; "" if there must be none')] = (
        UNSET
    )
    lifetime: Annotated[
        DurationExpectation | Literal["session"] | UnsetType,
        Meta(description="Time until it expires, by Max-Age or else Expires, 0s if it is deleted; session: neither"),
    ] = UNSET

    def __post_init__(self) -> None:
        self.refuse_empty()
        if self.exists is False and len(self.given()) > 1:
            raise ValueError("`exists: false` excludes all other checks")


Cookies = Annotated[dict[Name, str | CookieExpectation], Meta(min_length=1)]


class SetCookie(NamedTuple):
    """Cookie of a Set-Cookie header (RFC 6265, 5.2): value, and attributes by name in lower case."""

    value: str
    attributes: Mapping[str, str]

    def lifetime(self) -> Duration | None:
        """Return the time until the cookie expires, 0s if it is deleted; None if it ends with the browser session."""
        age = self.attributes.get("max-age", "")
        if re.fullmatch(r"-?[0-9]{1,9}", age):
            return Duration.from_seconds(max(0, int(age)))
        from email.utils import parsedate_to_datetime

        try:
            expires = parsedate_to_datetime(self.attributes["expires"].replace("-", " "))
            left = expires.replace(tzinfo=expires.tzinfo or UTC).timestamp() - time.time()
        except (KeyError, ValueError, OverflowError):
            return None
        return Duration.from_seconds(min(max(0.0, left), MAX_LIFETIME))


MAX_LIFETIME = 290 * 365 * 86400.0  # seconds; a Duration is limited to 292 years


def cookies_of(headers: Sequence[tuple[str, str]]) -> dict[str, SetCookie]:
    """Return the cookies that a response sets, by name; of several of one name the last."""
    cookies = {}
    for value in values_of("set-cookie", headers):
        pair, *attributes = value.split(";")
        name, separator, content = pair.partition("=")
        if separator and name.strip():
            named = (attribute.partition("=") for attribute in attributes)
            found = {key.strip().lower(): text.strip() for key, _, text in named}
            cookies[name.strip()] = SetCookie(content.strip(), found)
    return cookies


def check_cookies(
    expectations: Mapping[str, str | CookieExpectation], headers: Sequence[tuple[str, str]], context: CheckContext
) -> list[Check]:
    """Check the cookies that a response sets against expectations by name. Their values are redacted in messages."""
    cookies, context = cookies_of(headers), context.redacted_as("Set-Cookie")
    checks: list[Check] = []
    for name, given in expectations.items():
        wanted = CookieExpectation(value=given) if isinstance(given, str) else given
        cookie, where = cookies.get(name), f"cookie {name}"
        if wanted.exists is not UNSET or cookie is None:
            expected = wanted.exists is not False
            found = f"cookies {', '.join(cookies)}" if cookies else "no cookies"
            what = "to be set" if expected else "not to be set"
            checks.append(Check((cookie is not None) == expected, what, "", found, where=where))
        if cookie is None:
            continue
        if not isinstance(wanted.value, UnsetType):
            checks += check_values(wanted.value, [cookie.value], where, context)
        checks += _check_attributes(wanted, cookie.attributes, where)
        if not isinstance(wanted.lifetime, UnsetType):
            lifetime, where = cookie.lifetime(), f"lifetime of {where}"
            if wanted.lifetime == "session":
                checks.append(
                    Check(lifetime is None, "to be that of the browser session", "", str(lifetime), where=where)
                )
            elif lifetime is None:
                checks.append(Check.failed("to be limited", "neither Max-Age nor Expires", where=where))
            else:
                checks += check_duration(wanted.lifetime, lifetime, where=where)
    return checks


def _check_attributes(wanted: CookieExpectation, attributes: Mapping[str, str], where: str) -> Iterator[Check]:
    for attribute, required in (("HttpOnly", wanted.http_only), ("Secure", wanted.secure)):
        if not isinstance(required, UnsetType):
            what = f"to have {attribute}" if required else f"not to have {attribute}"
            found = f"attributes {', '.join(attributes)}" if attributes else "no attributes"
            yield Check((attribute.lower() in attributes) == required, what, "", found, where=where)
    for attribute, expected in (("SameSite", wanted.same_site), ("Path", wanted.path), ("Domain", wanted.domain)):
        if not isinstance(expected, UnsetType):
            value = attributes.get(attribute.lower(), "")
            equal = value == expected
            if attribute != "Path":
                equal = value.removeprefix(".").lower() == expected.removeprefix(".").lower()
            yield Check(equal, "to be", shown(expected), shown(value), where=f"{attribute} of {where}")


def check_values(expectation: Header, values: Sequence[str], where: str, context: CheckContext) -> list[Check]:
    """Check the values of one name against an expectation.

    Args:
        values: empty if the name does not occur.
        where: description of the name for messages: `header Accept`.
    """
    if isinstance(expectation, list):
        expected, found = _listed(expectation, context), _listed(values, context)
        return [Check(list(values) == expectation, "to be", expected, found, where=where)]
    if isinstance(expectation, HeaderExpectation):
        wanted = expectation
    else:
        wanted = HeaderExpectation(equals=scalar_text(expectation))
    checks = []
    if not isinstance(wanted.exists, UnsetType):
        what = "to exist" if wanted.exists else "not to exist"
        checks.append(Check(bool(values) == wanted.exists, what, "", _listed(values, context), where=where))
    if not isinstance(wanted.count, UnsetType):
        checks += check_integer(wanted.count, len(values), where=f"number of {where}")
    if single := wanted.single_value():
        checks += _check_single_values(single, wanted.values, values, where, context)
    return checks


def _check_single_values(
    expectation: TextExpectation, quantifier: str, values: Sequence[str], where: str, context: CheckContext
) -> list[Check]:
    if not values:
        return [Check.failed("to exist", "nothing of this name", where=where)]
    if quantifier == "one" and len(values) > 1:
        found = f"{len(values)} values: {_listed(values, context)}; set `values: all` or `values: any`, or list them"
        return [Check.failed("to occur once", found, where=where)]
    checks = [
        check_text(expectation, value, where=where, searcher=context.searcher, redact=context.redact)
        for value in values
    ]
    if quantifier != "any":
        return [next((check for check in column if not check.ok), column[0]) for column in zip(*checks, strict=True)]
    best = min(checks, key=lambda of_value: sum(not check.ok for check in of_value))
    if len(values) > 1:
        for check in best:
            if not check.ok:  # by no value, so show all of them
                check.found, check.lines = _listed(values, context), ()
    return best


def _listed(values: Sequence[str], context: CheckContext) -> str:
    return ", ".join(shown(value, context.redact) for value in values) or "nothing of this name"
