"""Expectations on a place of a JSON document: strict in types, told with path and value."""

from __future__ import annotations

import pytest

import ext_sdk
from ext_sdk import expect
from ext_sdk.expect import JsonExpectation, json_path
from ext_sdk.server.validation import validate

DOCUMENT: dict[str, object] = {
    "id": 9007199254740993,
    "one": 1,
    "text": "1",
    "yes": True,
    "none": None,
    "ratio": 0.5,
    "name": "nginx-1",
    "empty": [],
    "tags": ["a", "b"],
    "items": [{"name": "x", "up": True}, {"name": "y", "up": False}],
    "labels": {"app": "web", "tier": "front"},
}


def checks_of(**expectation: object) -> list[expect.Check]:
    arguments = validate(JsonExpectation, expectation)
    with expect.Searcher() as searcher:
        return expect.check_json(arguments, DOCUMENT, where="body", searcher=searcher)


HOLD: list[dict[str, object]] = [
    {"path": "$.id", "equals": 9007199254740993},
    {"path": "$.one", "equals": 1.0},
    {"path": "$.none", "equals": None},
    {"path": "$.none", "exists": True},
    {"path": "$.nothing", "exists": False},
    {"path": "$.one", "notEquals": "1"},
    {"path": "$.yes", "notEquals": 1},
    {"path": "$.text", "in": [1, "1"]},
    {"path": "$.none", "type": "null"},
    {"path": "$.yes", "type": "boolean"},
    {"path": "$.one", "type": "integer"},
    {"path": "$.one", "type": "number"},
    {"path": "$.ratio", "type": "number"},
    {"path": "$.text", "type": "string"},
    {"path": "$.tags", "type": "array"},
    {"path": "$.labels", "type": "object"},
    {"path": "$.name", "contains": "ginx"},
    {"path": "$.tags", "contains": "b"},
    {"path": "$.items", "contains": {"name": "y"}},
    {"path": "$.labels", "contains": {"app": "web"}},
    {"path": "$.name", "matches": r"^nginx-\d$"},
    {"path": "$.items", "length": 2},
    {"path": "$.name", "length": {"gt": 3}},
    {"path": "$.labels", "length": "nonzero"},
    {"path": "$.empty", "length": 0},
    {"path": "$.items[*]", "count": 2},
    {"path": "$.items[?@.up == true]", "count": 1},
    {"path": "$.empty[*]", "count": 0},
    {"path": "$.ratio", "gt": 0, "gte": 0.5, "lt": 1, "lte": 0.5},
    {"path": "$.id", "gt": 9007199254740992},
    {"path": "$.items[*].name", "nodes": "all", "matches": "^[xy]$"},
    {"path": "$.items[*]", "nodes": "any", "contains": {"name": "y", "up": False}},
    {"path": "$.items[?search(@.name, '^x')].up", "equals": True},
]

FAIL: list[tuple[dict[str, object], str]] = [
    (
        {"path": "$.id", "equals": 9007199254740992},
        "body at $.id: expected to equal 9007199254740992, got 900719925474099",
    ),
    ({"path": "$.text", "equals": 1}, 'body at $.text: expected to equal 1, got "1" (string)'),
    ({"path": "$.one", "equals": "1"}, "got 1 (integer); values of references are strings: compare numbers by `gte`"),
    ({"path": "$.yes", "equals": 1}, "expected to equal 1, got true (boolean)"),
    ({"path": "$.one", "equals": True}, "expected to equal true, got 1 (integer)"),
    ({"path": "$.nothing", "equals": None}, "body at $.nothing: expected to select a value, got nothing"),
    ({"path": "$.nothing", "exists": True}, "expected to exist, got nothing"),
    ({"path": "$.none", "exists": False}, "expected not to exist, got null"),
    ({"path": "$.one", "notEquals": 1.0}, "expected not to equal 1.0, got 1 (integer)"),
    ({"path": "$.one", "in": ["1", 2]}, 'expected to be one of ["1", 2], got 1 (integer)'),
    ({"path": "$.ratio", "type": "integer"}, "expected to be of type integer, got 0.5 (number)"),
    ({"path": "$.yes", "type": "integer"}, "expected to be of type integer, got true (boolean)"),
    ({"path": "$.name", "contains": "x-2"}, 'expected to contain "x-2", got "nginx-1" (string)'),
    ({"path": "$.name", "contains": 1}, "expected to contain 1"),
    ({"path": "$.tags", "contains": "ab"}, 'expected to contain "ab", got ["a", "b"] (array)'),
    ({"path": "$.labels", "contains": "app"}, 'expected to contain "app"'),
    ({"path": "$.one", "contains": 1}, "expected to contain 1, got 1 (integer)"),
    ({"path": "$.one", "matches": "1"}, 'expected to match "1", got 1 (integer)'),
    ({"path": "$.items", "length": 3}, "length of body at $.items: expected to equal 3, got 2"),
    ({"path": "$.one", "length": 1}, "expected to have a length, got 1 (integer)"),
    ({"path": "$.items[*]", "count": 3}, "number of values of body at $.items[*]: expected to equal 3, got 2"),
    ({"path": "$.text", "gte": 1}, 'expected to be at least 1, got "1" (string)'),
    ({"path": "$.yes", "lte": 1}, "expected to be at most 1, got true (boolean)"),
    (
        {"path": "$.items[*].up", "equals": True},
        "expected to select one value, got 2; say `nodes: all` or `nodes: any`",
    ),
    ({"path": "$.items[*].up", "nodes": "all", "equals": True}, "body at $['items'][1]['up']: expected to equal true"),
    ({"path": "$.items[*].up", "nodes": "any", "equals": None}, "expected to equal null"),
    ({"path": "$.empty[*]", "nodes": "all", "equals": 1}, "expected to select a value, got nothing"),
]


@pytest.mark.parametrize("expectation", HOLD)
def test_an_expectation_holds(expectation: dict[str, object]) -> None:
    checks = checks_of(**expectation)
    assert expect.passed(checks), checks


@pytest.mark.parametrize(("expectation", "told"), FAIL)
def test_an_expectation_that_does_not_hold_says_place_expected_and_got(
    expectation: dict[str, object], told: str
) -> None:
    checks = checks_of(**expectation)
    assert not expect.passed(checks)
    assert told in expect.failure_text(checks)


@pytest.mark.parametrize(
    ("expectation", "told"),
    [
        ({"path": "$.a"}, "this checks nothing"),
        ({"path": "$.a", "nodes": "all"}, "this checks nothing"),
        ({"path": "a.b", "exists": True}, "it must begin with `$`"),
        ({"path": "$.items.0.id", "exists": True}, "items of an array are written [0]"),
        ({"path": "$[?@.a = 1]", "exists": True}, "is not a JSONPath"),
        ({"path": "$.a", "matches": "("}, "not a regular expression"),
        ({"path": "$.a", "exists": False, "equals": 1}, "selects no value for other checks"),
        ({"path": "$.a", "in": []}, "length >= 1"),
        ({"path": "$.a", "type": "str"}, "str"),
        ({"path": "$.a", "equal": 1}, "did you mean 'equals'?"),
        ({"exists": True}, "required"),
    ],
)
def test_what_checks_nothing_or_is_wrong_is_refused(expectation: dict[str, object], told: str) -> None:
    with pytest.raises(ext_sdk.InvalidArgs, match=r".") as refused:
        validate(JsonExpectation, expectation)
    assert told in str(refused.value)


def test_any_means_that_one_value_passes_every_check() -> None:
    mixed = checks_of(path="$.items[*]", nodes="any", contains={"name": "x"}, equals={"name": "y", "up": False})
    assert [check.ok for check in mixed].count(True) == 1


def test_a_pattern_in_a_path_that_would_run_for_ever_is_a_failure() -> None:
    arguments = validate(JsonExpectation, {"path": "$[?match(@, '(a+)+b')]", "count": 0})
    with expect.Searcher(0.1) as searcher:
        checks = expect.check_json(arguments, ["a" * 50], where="body", searcher=searcher)
    assert "took longer than 0.1 s" in expect.failure_text(checks)


def test_a_path_that_visits_without_end_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_path, "MOST_NODES", 5_000)
    arguments = validate(JsonExpectation, {"path": "$..*..*..*..*", "count": 0})
    with expect.Searcher() as searcher:
        checks = expect.check_json(arguments, [[[1] * 20] * 20] * 20, where="body", searcher=searcher)
    assert "visits more than 5,000 nodes" in expect.failure_text(checks)
