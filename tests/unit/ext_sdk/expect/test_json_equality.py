"""Arrays compared in four ways: each with its own items, wherever they stand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import ext_sdk
from ext_sdk import expect
from ext_sdk.expect.json_equality import TooManyComparisons, differs
from ext_sdk.server.validation import validate

if TYPE_CHECKING:
    from ext_sdk.expect.json_equality import Lists

ONE, BOTH = {"a": 1}, {"a": 1, "b": 2}

# lists, partial, expected, found, whether it holds
CASES: list[tuple[Lists, bool, object, object, bool]] = [
    ("exact", False, [1, 2], [1, 2], True),
    ("exact", False, [1, 2], [2, 1], False),
    ("exact", True, [1], [1, 2], False),
    ("unordered", False, [1, 2, 2], [2, 1, 2], True),
    ("unordered", False, [1, 2, 2], [2, 1, 1], False),
    ("unordered", False, [1, 2], [1, 2, 3], False),
    ("unordered", False, ["1"], [1], False),
    ("unordered", False, [True], [1], False),
    ("unordered", False, [9007199254740993], [9007199254740992], False),
    ("unordered", False, [1.0], [1], True),
    ("unordered", False, [[1, 2], [3]], [[3], [2, 1]], True),
    ("unordered", False, {"x": [{"y": [1, 2]}]}, {"x": [{"y": [2, 1]}]}, True),
    ("unordered", False, [ONE], [BOTH], False),
    ("unordered", True, [ONE, BOTH], [BOTH, ONE], True),
    ("ordered", False, [1, 3], [0, 1, 2, 3, 4], True),
    ("ordered", False, [3, 1], [0, 1, 2, 3, 4], False),
    ("ordered", False, [1, 1], [1, 2], False),
    ("ordered", True, [ONE, BOTH], [ONE, BOTH], True),
    ("ordered", False, [], [1], True),
    ("subset", False, [3, 1], [0, 1, 2, 3], True),
    ("subset", False, [1, 1], [1, 2], False),
    ("subset", False, [5], [1, 2], False),
    ("subset", True, [ONE, BOTH], [BOTH, ONE], True),  # a greedy choice would give BOTH to the first
    ("subset", True, [ONE, ONE, BOTH], [BOTH, ONE, {"a": 1, "c": 3}], True),
    ("subset", True, [BOTH, BOTH], [BOTH, ONE], False),
    ("subset", False, [1], {"0": 1}, False),
]


@pytest.mark.parametrize(("lists", "partial", "expected", "found", "holds"), CASES)
def test_an_array_is_compared_in_the_way_that_was_chosen(
    lists: Lists, partial: bool, expected: object, found: object, holds: bool
) -> None:
    difference = differs(expected, found, partial=partial, lists=lists)
    assert (difference is None) == holds, difference


@pytest.mark.parametrize(
    ("expectation", "text", "told"),
    [
        (
            {"jsonContains": {"items": [3]}, "lists": "subset"},
            '{"items": [1, 2]}',
            "stdout at $.items[*]: expected to contain 3 (integer), got nothing",
        ),
        (
            {"jsonEquals": [2, 1], "lists": "unordered"},
            "[1, 7, 2]",
            "stdout at $[1]: expected to equal nothing, got 7 (integer)",
        ),
        (
            {"jsonContains": [{"a": 1, "b": {"c": 2}}, ONE], "lists": "subset"},
            '[{"a": 1}, {"a": 2, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}}]',
            "stdout at $[1].a: expected to contain 1 (integer), got 2 (integer)",
        ),
        (
            {"jsonEquals": [ONE, BOTH], "lists": "ordered"},
            '[{"a": 1, "b": 2}, {"a": 1}]',
            'stdout at $[*]: expected to equal {"a": 1, "b": 2} (object), got nothing',
        ),
        (
            {"jsonEquals": [1], "lists": "exact"},
            "[2]",
            "stdout at $[0]: expected to equal 1 (integer), got 2 (integer)",
        ),
    ],
)
def test_a_failure_names_the_item_that_is_missing_or_too_many(
    expectation: dict[str, object], text: str, told: str
) -> None:
    wanted = validate(expect.TextExpectation, expectation)
    assert expect.failure_text(expect.check_text(wanted, text, where="stdout")) == told


def test_arrays_that_are_too_large_to_be_compared_in_any_order_are_a_failure_and_no_hang() -> None:
    left, right = ([{"n": number, "side": side} for number in range(2000)] for side in "ab")
    with pytest.raises(TooManyComparisons, match="lists: subset"):
        differs(left, right, lists="subset")
    wanted = expect.TextExpectation(json_equals=left, lists="unordered")
    checks = expect.check_text(wanted, json.dumps(right), where="body")
    assert "took over 1,000,000 comparisons" in expect.failure_text(checks)


def test_the_way_alone_checks_nothing() -> None:
    with pytest.raises(ext_sdk.InvalidArgs, match="checks nothing"):
        validate(expect.TextExpectation, {"lists": "subset"})
    with pytest.raises(ext_sdk.InvalidArgs, match="neither is given"):
        validate(expect.TextExpectation, {"lists": "subset", "contains": "x"})
