"""Expectations on text: each comparison when it holds and when it does not, and how it is told."""

from __future__ import annotations

import json

import pytest

import ext_sdk
from ext_sdk import expect
from ext_sdk.server.validation import validate


class Arguments(ext_sdk.Args):
    stdout: expect.Text


def checks_of(expectation: object, text: str) -> list[expect.Check]:
    arguments = validate(Arguments, {"stdout": expectation})
    return expect.check_text(arguments.stdout, text, where="stdout")


def refusal_of(expectation: object) -> ext_sdk.InvalidArgs:
    with pytest.raises(ext_sdk.InvalidArgs) as caught:
        validate(Arguments, {"stdout": expectation})
    return caught.value


HOLD = [
    ("hello", "hello"),
    ("hello", "hello\n"),
    ("hello\n", "hello"),
    ("hello\n", "hello\r\n"),
    ("", ""),
    ("", "\n"),
    ({"equals": "a\nb"}, "a\nb\n"),
    ({"equals": "HELLO", "ignoreCase": True}, "hello"),
    ({"exactly": "a\n"}, "a\n"),
    ({"contains": "ell"}, "hello"),
    ({"contains": ["he", "lo"]}, "hello"),
    ({"contains": "straße", "ignoreCase": True}, "STRASSE"),
    ({"containsAny": ["x", "ell"]}, "hello"),
    ({"containsAny": "ell"}, "hello"),
    ({"notContains": "x"}, "hello"),
    ({"notContains": ["x", "y"]}, "hello"),
    ({"startsWith": "he"}, "hello"),
    ({"endsWith": "lo"}, "hello\n"),
    ({"matches": r"^h\w+o$"}, "hello"),
    ({"matches": [r"h", r"(?m)^second$"]}, "hello\nsecond\nthird"),
    ({"matches": "HELLO", "ignoreCase": True}, "hello"),
    ({"notMatches": r"\d"}, "hello"),
    ({"lines": ["a", "b"]}, "a\nb\n"),
    ({"lines": ["a", "b"]}, "a\r\nb\r\n"),
    ({"lines": []}, ""),
    ({"lines": ["a", "", "b"]}, "a\n\nb"),
    ({"containsLines": "b"}, "a\nb\nc"),
    ({"containsLines": ["c", "a"]}, "a\nb\nc"),
    ({"lineCount": 2}, "a\nb\n"),
    ({"lineCount": {"gte": 1, "lt": 3}}, "a\nb"),
    ({"lineCount": 0}, ""),
    ({"lineCount": 1}, "\n"),
    ({"empty": True}, ""),
    ({"empty": False}, " "),
    ({"json": [{"path": "$.a[1]", "equals": 2}]}, '{"a": [1, 2]}'),
    ({"jsonEquals": {"a": [1, {"b": None}]}}, '{"a": [1, {"b": null}]}'),
    ({"jsonEquals": {"x": 1, "y": 2}}, '{"y": 2, "x": 1}'),
    ({"jsonEquals": None}, "null"),
    ({"jsonEquals": 1}, " 1.0 "),
    ({"jsonContains": {"a": {"b": 1}}}, '{"a": {"b": 1, "c": 2}, "d": 3}'),
    ({"jsonContains": [{"a": 1}, {}]}, '[{"a": 1, "b": 2}, {"c": 3}]'),
]

FAIL = [
    ("hello", "hello\n\n", 'expected to equal "hello", got "hello\\n"'),
    ("hello", " hello", 'expected to equal "hello", got " hello"'),
    ("", "x", 'expected to equal "", got "x"'),
    ({"equals": "Hello"}, "hello", 'expected to equal "Hello", got "hello"'),
    ({"exactly": "a"}, "a\n", 'expected to be exactly "a", got "a\\n"'),
    ({"contains": "x"}, "hello", 'expected to contain "x", got "hello"'),
    ({"containsAny": ["x", "y"]}, "hello", 'expected to contain one of "x", "y", got "hello"'),
    ({"notContains": "ell"}, "hello", 'expected not to contain "ell", got "hello"'),
    ({"startsWith": "lo"}, "hello", 'expected to start with "lo", got "hello"'),
    ({"endsWith": "he"}, "hello", 'expected to end with "he", got "hello"'),
    ({"matches": "^e"}, "hello", 'expected to match "^e", got "hello"'),
    ({"matches": "^b$"}, "a\nb", 'expected to match "^b$", got "a\\nb"'),
    ({"notMatches": "l+"}, "hello", 'expected not to match "l+", got "hello"'),
    ({"notMatches": "x+"}, "a\nb\naxxb\nc", 'expected not to match "x+", got "axxb" in line 3'),
    ({"notContains": "X", "ignoreCase": True}, "x\n", 'expected not to contain "X", got "x" in line 1'),
    ({"notContains": "\n\n"}, "a\n\nb", 'expected not to contain "\\n\\n", got "a" in line 1'),
    ({"lines": ["a"]}, "a\nb", 'expected to be 1 line: "a", got "a\\nb"'),
    ({"lines": ["b", "a"]}, "a\nb", 'expected to be 2 lines: "b\\na", got "a\\nb"'),
    ({"containsLines": "hell"}, "hello", 'expected to have the line "hell", got "hello"'),
    ({"lineCount": 3}, "a\nb", "number of lines of stdout: expected to equal 3, got 2"),
    ({"empty": True}, "\n", 'expected to be empty, got "\\n"'),
    ({"empty": False}, "", 'expected not to be empty, got ""'),
    ({"json": [{"path": "$", "exists": True}]}, "no json", 'expected to be JSON, got "no json": Expecting value'),
    ({"jsonEquals": 1}, "NaN", "NaN is not a JSON value"),
    ({"jsonEquals": {"a": 1}}, '{"a": "1"}', 'stdout at $.a: expected to equal 1 (integer), got "1" (string)'),
    ({"jsonEquals": {"a": 1}}, '{"a": 1, "b c": 2}', 'stdout at $["b c"]: expected to equal nothing, got 2'),
    ({"jsonEquals": [1, 2]}, "[1]", "stdout at $[1]: expected to equal 2 (integer), got nothing"),
    ({"jsonEquals": True}, "1", "expected to equal true (boolean), got 1 (integer)"),
    ({"jsonEquals": 9007199254740993}, "9007199254740992", "expected to equal 9007199254740993"),
    ({"jsonContains": [{"a": 1}]}, '[{"a": 1}, {"b": 2}]', "stdout at $[1]: expected to contain nothing"),
]

REFUSED: list[tuple[object, str, str]] = [
    ({}, "stdout", "this checks nothing; give at least one of equals, exactly, contains"),
    ({"ignoreCase": True}, "stdout", "this checks nothing"),
    ({"contains": ""}, "stdout.contains", "length >= 1"),
    ({"contains": []}, "stdout.contains", "length >= 1"),
    ({"notMatches": []}, "stdout.notMatches", "length >= 1"),
    ({"json": []}, "stdout.json", "length >= 1"),
    ({"matches": "(a"}, "stdout", "'(a' is not a regular expression of Python's `re`: missing )"),
    ({"matches": ["a", "*"]}, "stdout", "'*' is not a regular expression"),
    ({"json": [{"path": "$.a"}]}, "stdout.json[0]", "this checks nothing; give at least one of exists, count"),
    ({"contians": "a"}, "stdout", "did you mean 'contains'?"),
    ({"equals": None}, "stdout.equals", "expected a string, found null"),
    (1, "stdout", "found an integer"),
]


@pytest.mark.parametrize(("expectation", "text"), HOLD)
def test_an_expectation_holds(expectation: object, text: str) -> None:
    checks = checks_of(expectation, text)
    assert expect.passed(checks), checks


@pytest.mark.parametrize(("expectation", "text", "told"), FAIL)
def test_an_expectation_that_does_not_hold_says_expected_and_got(expectation: object, text: str, told: str) -> None:
    checks = checks_of(expectation, text)
    assert not expect.passed(checks)
    assert told in expect.failure_text(checks)
    assert expect.failure_text(checks).count("stdout") >= 1


@pytest.mark.parametrize(("expectation", "field", "told"), REFUSED)
def test_an_expectation_that_checks_nothing_or_is_wrong_is_refused_with_its_path(
    expectation: object, field: str, told: str
) -> None:
    refusal = refusal_of(expectation)
    assert refusal.field == field
    assert told in refusal.message


def test_every_comparison_is_counted() -> None:
    expectation = {
        "equals": "a",
        "exactly": "a",
        "contains": ["a", "a"],
        "containsAny": ["a", "b"],
        "notContains": ["x", "y"],
        "startsWith": "a",
        "endsWith": "a",
        "matches": ["a", "."],
        "notMatches": "b",
        "lines": ["a"],
        "containsLines": ["a"],
        "lineCount": {"gt": 0, "lt": 2},
        "empty": False,
    }
    assert expect.summary(checks_of(expectation, "a")) == "17 checks passed"


def test_a_long_text_is_told_by_the_line_that_differs() -> None:
    lines = [f"this is line {number}" for number in range(1, 101)]
    expected, found = "\n".join(lines), "\n".join([*lines[:56], "this is another line", *lines[57:]])
    told = expect.failure_text(checks_of(expected, found))
    assert told == 'stdout: expected to equal "this is line 57" in line 57, got "this is another line" there'


def test_a_pattern_that_would_run_for_ever_is_a_failure_that_names_it() -> None:
    arguments = validate(Arguments, {"stdout": {"matches": "(a+)+$"}})
    with expect.Searcher(0.1) as searcher:
        checks = expect.check_text(arguments.stdout, "a" * 50 + "b", where="stdout", searcher=searcher)
    assert "'(a+)+$' took longer than 0.1 s" in expect.failure_text(checks)


SECRET = "correct horse battery staple"
LONG = "begin " * 24 + SECRET + " end" * 100


@pytest.mark.parametrize(
    "expectation",
    [
        "other",
        {"exactly": "other"},
        {"empty": True},
        {"contains": "other"},
        {"contains": SECRET + "!"},
        {"containsAny": [SECRET + "?", "other"]},
        {"notContains": "horse"},
        {"notContains": SECRET},
        {"startsWith": "other"},
        {"matches": "other"},
        {"notMatches": "horse b"},
        {"lines": ["other"]},
        {"lines": ["begin " * 30]},
        {"containsLines": "other"},
        {"jsonEquals": 1},
        {"json": [{"path": "$", "exists": True}]},
    ],
)
@pytest.mark.parametrize("text", [LONG, f"first\n{LONG}\nlast"])
def test_secrets_are_taken_out_before_a_text_is_cut(expectation: object, text: str) -> None:
    arguments = validate(Arguments, {"stdout": expectation})
    checks = expect.check_text(
        arguments.stdout, text, where="stdout", redact=lambda shown: shown.replace(SECRET, "[redacted]")
    )
    told = expect.failure_text(checks)
    assert told
    assert not any(word in told for word in ("correct", "battery", "staple")), told


@pytest.mark.parametrize(
    "expectation",
    [
        {"jsonEquals": {"a": 1}},
        {"jsonContains": {"a": "x"}},
        {"json": [{"path": "$.a", "equals": "x"}]},
        {"json": [{"path": "$.a", "exists": False}]},
        {"json": [{"path": "$", "matches": SECRET}]},
    ],
)
def test_secrets_are_taken_out_of_values_in_json(expectation: object) -> None:
    arguments = validate(Arguments, {"stdout": expectation})
    text = json.dumps({"a": LONG})
    checks = expect.check_text(
        arguments.stdout, text, where="stdout", redact=lambda shown: shown.replace(SECRET, "[redacted]")
    )
    told = expect.failure_text(checks)
    assert told
    assert not any(word in told for word in ("correct", "battery", "staple")), told


def test_a_document_that_is_nested_too_deeply_is_a_failure_and_no_crash() -> None:
    checks = checks_of({"jsonEquals": []}, "[" * 100_000 + "]" * 100_000)
    assert not expect.passed(checks)
    assert "nested too deeply" in expect.failure_text(checks)
    deep: object = 1
    for _ in range(600):
        deep = [deep]
    checks = checks_of({"jsonEquals": deep}, "[" * 600 + "1" + "]" * 600)
    assert "nested too deeply" in expect.failure_text(checks)
