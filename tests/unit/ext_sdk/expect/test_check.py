"""The words for the outcome of checks."""

from __future__ import annotations

from ext_sdk import expect
from ext_sdk.expect import Check
from ext_sdk.expect.check import quoted


def good(number: int = 1) -> list[Check]:
    return [Check(ok=True, what="to equal", expected="1", found="1", where="x") for _ in range(number)]


def bad(number: int = 1) -> list[Check]:
    return [Check(ok=False, what="to equal", expected="1", found=str(at), where="x") for at in range(number)]


def test_a_check_tells_where_expected_and_found() -> None:
    assert str(bad()[0]) == "x: expected to equal 1, got 0"
    assert str(good()[0]) == "x: found to equal 1"
    assert repr(bad()[0]) == "Check(False, 'x: expected to equal 1, got 0')"
    assert str(Check.failed("to be JSON", "soup", where="x")) == "x: expected to be JSON, got soup"


def test_the_number_of_checks_is_told() -> None:
    assert expect.summary(good()) == "1 check passed"
    assert expect.summary(good(3)) == "3 checks passed"
    assert expect.summary(good(2) + bad()) == "1 of 3 checks failed"
    assert expect.summary(bad()) == "1 of 1 check failed"


def test_no_checks_is_not_passed() -> None:
    assert not expect.passed([])
    assert expect.passed(good())
    assert not expect.passed(good() + bad())


def test_many_failures_are_told_in_part() -> None:
    told = expect.failure_text(good() + bad(7))
    assert told.count("expected") == 5
    assert told.endswith("\nand 2 more")


def test_the_result_has_the_number_of_checks_and_the_failures() -> None:
    passed = expect.conclude(good(2), done="Checked x", outputs={"size": 1})
    assert (passed.success, passed.message, passed.outputs) == (True, "Checked x: 2 checks passed", {"size": "1"})
    failed = expect.conclude(good() + bad(), done="Checked x", outputs={"size": 1})
    assert (failed.success, failed.message) == (False, "Checked x: 1 of 2 checks failed")
    assert failed.error == "x: expected to equal 1, got 0"
    assert failed.outputs == {"size": "1"}


def test_no_character_of_a_value_acts_on_a_terminal_or_reverses_the_text() -> None:
    assert quoted("a\x1b[31m\x7f\x9b\u2028\u202e\u2066 é") == '"a\\u001b[31m\\u007f\\u009b\\u2028\\u202e\\u2066 é"'
