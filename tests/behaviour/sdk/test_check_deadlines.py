"""Checks end with the deadline of their operation, however large the document is."""

from __future__ import annotations

import json

import pytest

from ext_sdk import Deadline
from ext_sdk.capture import NotFound, find_by_json, find_by_regex
from ext_sdk.core.regex import TIME_UP
from ext_sdk.expect import Searcher, TextExpectation, check_text
from ext_sdk.server.validation import validate

LARGE = json.dumps([{"a": number} for number in range(5_000)])
OVER = Deadline(0)


@pytest.mark.parametrize(
    ("expectation", "where"),
    [
        ({"json": [{"path": "$[?@.a == 4999]", "exists": True}]}, "body at $[?@.a == 4999]: expected to be checked"),
        ({"json": [{"path": "$[?@.a]", "exists": False}]}, "body at $[?@.a]: expected to be checked"),
        ({"json": [{"path": "$[?search(@.b, 'x')]", "exists": False}]}, "body at $[?search(@.b, 'x')]: expected to be"),
        ({"json": [{"path": "$..a", "count": 5000}]}, "body at $..a: expected to be checked"),
        ({"json": [{"path": "$[*].a", "nodes": "all", "gte": 0}]}, "body at $[*].a: expected to be checked"),
        ({"jsonContains": [{"a": 4999}], "lists": "subset"}, "body: expected to be compared"),
        ({"matches": "4999"}, 'body: expected to match "4999"'),
    ],
)
def test_a_check_that_does_not_end_in_time_fails_and_is_named(expectation: dict[str, object], where: str) -> None:
    """Twelve queries of 300,000 items ran for 28 s under a timeout of 1 s, and passed."""
    wanted = validate(TextExpectation, expectation)
    with Searcher(deadline=OVER) as searcher:
        checks = check_text(wanted, LARGE, where="body", searcher=searcher)
    assert [check.ok for check in checks] == [False]
    assert where in str(checks[0])
    assert TIME_UP in str(checks[0])
    with Searcher(deadline=Deadline(60)) as searcher:
        assert TIME_UP not in str(check_text(wanted, LARGE, where="body", searcher=searcher)[0])


def test_what_is_captured_is_looked_for_as_long_as_there_is_time() -> None:
    with Searcher(deadline=OVER) as searcher:
        with pytest.raises(NotFound, match="the time of the operation was up"):
            find_by_json("$[?@.a == 4999].a", LARGE, where="body", searcher=searcher)
        with pytest.raises(NotFound, match="the time of the operation was up"):
            find_by_json("$[0].a", LARGE + " " * 100_000, where="body", searcher=searcher)
        with pytest.raises(NotFound, match="the time of the operation was up"):
            find_by_regex("4999", None, LARGE, where="body", searcher=searcher)


def test_what_takes_no_time_is_checked_all_the_same() -> None:
    """A response that came at the last moment is what it is."""
    wanted = validate(TextExpectation, {"contains": "a", "json": [{"path": "$[?@.a == 1].a", "equals": 1}]})
    with Searcher(deadline=OVER) as searcher:
        assert all(check.ok for check in check_text(wanted, '[{"a": 1}]', where="body", searcher=searcher))
