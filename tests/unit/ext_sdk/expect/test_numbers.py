"""Expectations on whole numbers."""

from __future__ import annotations

import pytest

import ext_sdk
from ext_sdk import expect
from ext_sdk.expect.numbers import largest
from ext_sdk.server.validation import validate


class Arguments(ext_sdk.Args):
    exit_code: expect.Integer


def checks_of(expectation: object, value: int) -> list[expect.Check]:
    return expect.check_integer(validate(Arguments, {"exitCode": expectation}).exit_code, value, where="exitCode")


@pytest.mark.parametrize(
    ("expectation", "value"),
    [
        (0, 0),
        ([0, 2], 2),
        ("nonzero", -1),
        ({"equals": 9007199254740993}, 9007199254740993),
        ({"in": [1, 2]}, 1),
        ({"not": 1}, 2),
        ({"not": [1, 3]}, 2),
        ({"gt": 1, "gte": 2, "lt": 3, "lte": 2}, 2),
    ],
)
def test_an_expectation_holds(expectation: object, value: int) -> None:
    assert expect.passed(checks_of(expectation, value))


@pytest.mark.parametrize(
    ("expectation", "value", "told"),
    [
        (0, 1, "exitCode: expected to equal 0, got 1"),
        ([0, 2], 1, "exitCode: expected to be one of 0, 2, got 1"),
        ("nonzero", 0, "exitCode: expected to be nonzero, got 0"),
        ({"equals": 9007199254740993}, 9007199254740992, "expected to equal 9007199254740993, got 9007199254740992"),
        ({"in": [1]}, 2, "expected to be one of 1, got 2"),
        ({"not": 2}, 2, "expected not to be 2, got 2"),
        ({"not": [1, 2]}, 2, "expected not to be 1, 2, got 2"),
        ({"gt": 2}, 2, "expected to be greater than 2, got 2"),
        ({"gte": 3}, 2, "expected to be at least 3, got 2"),
        ({"lt": 2}, 2, "expected to be less than 2, got 2"),
        ({"lte": 1}, 2, "expected to be at most 1, got 2"),
    ],
)
def test_an_expectation_that_does_not_hold_says_expected_and_got(expectation: object, value: int, told: str) -> None:
    checks = checks_of(expectation, value)
    assert not expect.passed(checks)
    assert told in expect.failure_text(checks)


@pytest.mark.parametrize("expectation", [{}, [], {"in": []}, {"not": []}, True, "0", "zero", 1.5, None, {"notin": 1}])
def test_what_is_no_expectation_or_checks_nothing_is_refused(expectation: object) -> None:
    with pytest.raises(ext_sdk.InvalidArgs) as refused:
        validate(Arguments, {"exitCode": expectation})
    assert refused.value.field.startswith("exitCode")


def test_each_bound_is_a_check() -> None:
    assert expect.summary(checks_of({"gt": 0, "lt": 2, "not": [5, 6]}, 9)) == "1 of 3 checks failed"


@pytest.mark.parametrize(
    ("expectation", "expected"),
    [
        (3, 3),
        ([1, 5], 5),
        ("nonzero", None),
        ({"gte": 2}, None),
        ({"lt": 4, "in": [1, 9]}, 3),
        ({"lte": 4, "not": 2}, 4),
        ({"equals": 7}, 7),
    ],
)
def test_the_largest_accepted_number_is_known_if_there_is_one(expectation: object, expected: int | None) -> None:
    assert largest(validate(Arguments, {"exitCode": expectation}).exit_code) == expected
