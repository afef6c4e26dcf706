"""Checks of headers and query parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_http.response.header_check import (
    CheckContext,
    CookieExpectation,
    HeaderExpectation,
    check_cookies,
    check_headers,
    check_values,
    header_value_problem,
)
from ext_sdk import InvalidArgs
from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.expect import Searcher, failure_text, passed
from ext_sdk.server.validation import validate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def context(tmp_path: Path) -> Iterator[CheckContext]:
    with Searcher() as searcher:
        yield CheckContext(tmp_path, searcher, str)


@pytest.mark.parametrize(
    ("expectation", "values", "ok"),
    [
        ({"equals": "a"}, ["a"], True),
        ({"equals": "a"}, ["a", "a"], False),
        ({"equals": "a", "values": "all"}, ["a", "a"], True),
        ({"equals": "a", "values": "any"}, ["b", "a"], True),
        ({"startsWith": "A", "ignoreCase": True}, ["abc"], True),
        ({"exists": False}, [], True),
        ({"exists": False}, ["a"], False),
        ({"count": 2}, ["a", "b"], True),
        ({"contains": "a"}, [], False),
    ],
)
def test_values_are_checked(expectation: object, values: list[str], ok: bool, context: CheckContext) -> None:
    checks = check_values(validate(HeaderExpectation, expectation), values, "header X", context)
    assert passed(checks) is ok


def test_if_no_value_matches_all_are_shown(context: CheckContext) -> None:
    expectation = validate(HeaderExpectation, {"contains": "x", "values": "any"})
    assert failure_text(check_values(expectation, ["a", "b"], "header X", context)).endswith('got "a", "b"')


def test_a_list_is_compared_in_order(context: CheckContext) -> None:
    headers = [("X", "1"), ("Y", "2"), ("x", "3")]
    assert passed(check_headers({"x": ["1", "3"], "Y": "2"}, headers, context))
    assert not passed(check_headers({"x": ["3", "1"]}, headers, context))


def test_an_absent_header_excludes_other_checks() -> None:
    with pytest.raises(InvalidArgs, match="excludes all other checks"):
        validate(HeaderExpectation, {"exists": False, "equals": "a"})


def test_a_header_value_is_one_line() -> None:
    assert header_value_problem("a\tb") == ""
    assert header_value_problem("a\r\nb") == "expected one line, found '\\r' in the value"


SET = [
    ("Set-Cookie", "sid=old; Path=/"),
    ("set-cookie", "sid=abc=1; Path=/app; HttpOnly; secure; SameSite=strict; Max-Age=3600; Domain=.Shop.test"),
    ("Set-Cookie", "theme=dark"),
    ("Set-Cookie", "gone=; Expires=Thu, 01-Jan-1970 00:00:00 GMT"),
    ("Set-Cookie", "far=1; Expires=Fri, 31 Dec 9999 23:59:59 GMT; Max-Age=soon"),
    ("Set-Cookie", "nothing"),
]


@pytest.mark.parametrize(
    ("expectation", "failed"),
    [
        ({"sid": "abc=1", "theme": "dark"}, ""),
        ({"sid": {"value": {"startsWith": "abc"}, "httpOnly": True, "secure": True, "sameSite": "Strict"}}, ""),
        ({"sid": {"path": "/app", "domain": "shop.test", "lifetime": {"gte": "1h", "lte": "1h"}}}, ""),
        ({"theme": {"httpOnly": False, "secure": False, "path": "", "domain": "", "lifetime": "session"}}, ""),
        ({"gone": {"lifetime": {"lte": "0s"}, "value": ""}, "far": {"lifetime": {"gt": "87600h"}}}, ""),
        ({"other": {"exists": False}, "sid": {"exists": True}}, ""),
        ({"nothing": {"exists": False}}, ""),
        ({"sid": {"exists": False}}, "cookie sid: expected not to be set, got cookies sid, theme, gone, far"),
        ({"other": "x"}, "cookie other: expected to be set, got cookies sid, theme, gone, far"),
        ({"theme": "light"}, "cookie theme: expected to be exactly"),
        ({"theme": {"secure": True}}, "cookie theme: expected to have Secure, got no attributes"),
        ({"sid": {"httpOnly": False}}, "cookie sid: expected not to have HttpOnly, got attributes path, httponly"),
        ({"sid": {"path": "/"}}, 'Path of cookie sid: expected to be "/", got "/app"'),
        ({"sid": {"sameSite": "Lax"}}, 'SameSite of cookie sid: expected to be "Lax", got "strict"'),
        ({"sid": {"lifetime": {"lt": "1h"}}}, "lifetime of cookie sid: expected"),
        (
            {"sid": {"lifetime": "session"}},
            "lifetime of cookie sid: expected to be that of the browser session, got 1h",
        ),
        ({"theme": {"lifetime": {"gt": "1s"}}}, "lifetime of cookie theme: expected to be limited, got neither"),
    ],
)
def test_cookies_and_their_attributes(expectation: dict[str, object], failed: str, context: CheckContext) -> None:
    wanted = {
        name: value if isinstance(value, str) else validate(CookieExpectation, value)
        for name, value in expectation.items()
    }
    text = failure_text(check_cookies(wanted, SET, context))
    assert text.startswith(failed) if failed else text == "", text


def test_values_of_cookies_are_not_shown(context: CheckContext) -> None:
    redacting = context._replace(redact=Redactor(rules=True).redact_text)
    text = failure_text(check_cookies({"sid": "correct-horse"}, [("Set-Cookie", "sid=battery-staple")], redacting))
    assert "cookie sid: expected to be exactly" in text
    assert "correct-horse" not in text
    assert "battery-staple" not in text


@pytest.mark.parametrize(("value", "problem"), [({}, "checks nothing"), ({"exists": False, "path": "/"}, "excludes")])
def test_cookie_expectations_that_can_not_hold(value: object, problem: str) -> None:
    with pytest.raises(InvalidArgs, match=problem):
        validate(CookieExpectation, value)


@pytest.mark.parametrize(
    ("wanted", "found", "ok"),
    [
        ("application/json", "application/json; charset=utf-8", True),
        ("application/json", "Application/JSON;charset=utf-8", True),
        ("application/json", "application/json-patch+json", False),
        ("application/json; charset=utf-8", "application/json", False),
        ("text/html", "application/json; charset=utf-8", False),
    ],
)
def test_a_media_type_without_parameters_matches_one_with_them(
    wanted: str, found: str, ok: bool, context: CheckContext
) -> None:
    checks = check_headers({"Content-Type": wanted}, [("content-type", found)], context)
    assert passed(checks) is ok
    assert ok or f'got "{found}"' in failure_text(checks)
    assert not passed(check_headers({"X-Type": wanted}, [("X-Type", f"{wanted}; q=1")], context))


@pytest.mark.parametrize(("wanted", "found"), [(5, "5"), (1.5, "1.5"), (True, "true")])
def test_a_number_or_a_boolean_is_its_text(wanted: float, found: str, context: CheckContext) -> None:
    assert passed(check_headers({"X-Count": wanted}, [("X-Count", found)], context))
    assert not passed(check_headers({"X-Count": wanted}, [("X-Count", "6")], context))
