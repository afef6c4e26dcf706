"""Expectations on durations."""

from __future__ import annotations

import pytest

import ext_sdk
from ext_sdk import Duration
from ext_sdk.expect import DurationExpectation, check_duration, failure_text, passed
from ext_sdk.server.validation import validate


@pytest.mark.parametrize(
    ("expectation", "holds"),
    [
        ({"lt": "1s"}, False),
        ({"lte": "1s"}, True),
        ({"gt": "1s"}, False),
        ({"gte": "1s"}, True),
        ({"gt": "-1h", "lt": "1000001us"}, True),
        ({"lt": "1000000001ns"}, True),
    ],
)
def test_a_bound_is_compared_to_the_nanosecond(expectation: dict[str, str], holds: bool) -> None:
    wanted = validate(DurationExpectation, expectation)
    assert passed(check_duration(wanted, Duration.parse("1s"), where="duration")) == holds


def test_a_failure_says_both_durations() -> None:
    checks = check_duration(DurationExpectation(lt=Duration.parse("500ms")), Duration.parse("1.5s"), where="duration")
    assert failure_text(checks) == "duration: expected to be less than 500ms, got 1.5s"


def test_no_bound_is_refused() -> None:
    with pytest.raises(ext_sdk.InvalidArgs, match="checks nothing"):
        validate(DurationExpectation, {})
