"""Expectations hold for what they were made of, fail for what differs, and never raise anything but what they say."""

from __future__ import annotations

import json
from itertools import permutations
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonpath import JSONPathEnvironment
from msgspec import UNSET

from ext_sdk.expect import Searcher, TextExpectation, check_text, json_path, passed
from ext_sdk.expect.check import difference, quoted
from ext_sdk.expect.json_equality import NotJson, differs, equal, match_unordered, parse
from ext_sdk.expect.json_path import PathFailed
from ext_sdk.expect.text import lines_of, without_final_line_ending

if TYPE_CHECKING:
    from random import Random

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
)
# What the library compares otherwise than we do: big integers, and booleans inside arrays.
PLAIN = st.recursive(
    st.none() | st.integers(-5, 5) | st.sampled_from("ab"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=20,
)
STEPS = st.sampled_from(
    [
        *(".a", ".b", "['c']", "[0]", "[-1]", "[*]", ".*", "..a", "..*", "[1:]", "[::2]", "[0, 'a']", "[?@.a]"),
        *("[?@ == 1]", "[?@.a == @.b]", "[?@.a != $.b]", "[?@ < 2 || @ == 'a']", "[?!@.a]", "[?count(@.*) > 1]"),
        *("[?length(@) >= 2]", "[?@..a]", "[?value(@.a) == 1]"),
    ]
)


@given(st.text())
def test_a_text_is_what_it_is(text: str) -> None:
    lines = lines_of(text)
    expectation = TextExpectation(equals=text, exactly=text, lines=lines, line_count=len(lines), empty=not text)
    assert passed(check_text(expectation, text, where="it"))
    if text:
        parts = TextExpectation(
            contains=text, starts_with=text[:1], contains_lines=[line for line in lines if line] or UNSET
        )
        assert passed(check_text(parts, text, where="it"))


@given(st.text(), st.text())
def test_two_texts_are_equal_only_when_they_are(left: str, right: str) -> None:
    same = without_final_line_ending(left) == without_final_line_ending(right)
    assert passed(check_text(left, right, where="it")) == same


@given(st.text(), st.text())
def test_what_is_shown_of_a_difference_is_one_short_line(left: str, right: str) -> None:
    for shown in (*difference(left, right), quoted(left)):
        assert "\n" not in shown
        assert len(shown) <= 6 * (160 + 60) + 60


@given(VALUES)
def test_a_value_survives_json_and_equals_itself(value: object) -> None:
    again = parse(json.dumps(value))
    assert equal(value, again)
    assert differs(value, again, partial=True) is None


@given(VALUES, VALUES)
def test_equality_is_that_of_the_json_text_but_for_the_spelling_of_numbers(left: object, right: object) -> None:
    def canonical(value: object) -> object:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, list):
            return [canonical(item) for item in value]
        return {key: canonical(item) for key, item in value.items()} if isinstance(value, dict) else value

    texts = [json.dumps(canonical(value), sort_keys=True) for value in (left, right)]
    assert equal(left, right) == (texts[0] == texts[1])
    assert equal(left, right) == equal(right, left)


@given(st.text())
def test_a_text_is_json_or_refused_by_our_error(text: str) -> None:
    try:
        parse(text)
    except NotJson:
        with pytest.raises((msgspec.DecodeError, UnicodeEncodeError)):
            msgspec.json.decode(text.encode())


@given(PLAIN, st.lists(STEPS, max_size=4))
def test_a_path_selects_what_the_library_itself_selects(document: object, steps: list[str]) -> None:
    path = "$" + "".join(steps)
    boxed = {"a": document, "b": 1}  # the library parses a document that is a string
    expected = [match.obj for match in JSONPathEnvironment(strict=True).finditer(path, boxed)]
    assert [node.value for node in json_path.select(path, boxed, Searcher())] == expected


@given(st.text(alphabet="$.@[]?*'\"ab01:,()=!<>&|-e \\ud", max_size=30))
def test_any_text_is_a_path_or_has_a_problem_told(text: str) -> None:
    path = "$" + text
    problem = json_path.problem(path)
    if problem:
        assert "\n" not in problem
        with pytest.raises(PathFailed):
            json_path.select(path, {"a": [1]}, Searcher())


@given(st.lists(VALUES, max_size=6), st.randoms(use_true_random=False), st.lists(SCALARS, max_size=3))
def test_an_array_is_found_in_any_order_and_among_others_as_the_way_says(
    items: list[object], random: Random, others: list[object]
) -> None:
    shuffled = random.sample(items, len(items))
    among = random.sample([*items, *others], len(items) + len(others))
    assert differs(items, shuffled, lists="unordered") is None
    assert differs(items, among, lists="subset") is None
    assert differs(items, [*others, *items], lists="ordered") is None
    assert (differs(items, among, lists="unordered") is None) == (not others)


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=4))
def test_as_many_items_are_taken_as_any_choice_could(table: list[list[bool]]) -> None:
    taken = match_unordered(len(table), 4, lambda wanted, there: table[wanted][there])
    assert len(set(taken.values())) == len(taken)
    assert all(table[wanted][there] for wanted, there in taken.items())
    best = max(sum(table[row][at] for row, at in enumerate(choice)) for choice in permutations(range(4), len(table)))
    assert len(taken) == best
