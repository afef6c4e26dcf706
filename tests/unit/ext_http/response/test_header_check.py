"""Checks of headers and query parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_http.response.header_check import (
    CheckContext,
    HeaderExpectation,
    check_headers,
    check_values,
    header_value_problem,
)
from ext_sdk import InvalidArgs
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
