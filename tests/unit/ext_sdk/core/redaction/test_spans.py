"""Placeholders: their numbers, and texts that are the same but for these."""

from __future__ import annotations

import pytest

from ext_sdk.core.redaction.patterns import same_but_for_numbers
from ext_sdk.core.redaction.spans import Numbers, rule_name

SAME = [
    ("plain", "plain"),
    ("a [redacted:bearer#1] b", "a [redacted:bearer#7] b"),
    ("[redacted:x#1] [redacted:x#2] [redacted:x#1]", "[redacted:x#5] [redacted:x#3] [redacted:x#5]"),
    ("[redacted:env.API_TOKEN#1]", "[redacted:key.token#1]"),
]
DIFFERENT = [
    ("plain", "other"),
    ("[redacted:x#1]", "plain"),
    ("[redacted:x#1]", "[redacted:x#1] "),
    ("a [redacted:x#1]", "b [redacted:x#1]"),
    ("[redacted:x#1] [redacted:x#1]", "[redacted:x#1] [redacted:x#2]"),
    ("[redacted:x#1] [redacted:x#2]", "[redacted:x#1] [redacted:x#1]"),
    ("[redacted:x#1]", "[redacted:x#1"),
    ("[redacted:x#1][redacted:x#2]", "[redacted:x#1]"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_placeholders_stand_for_each_other(one: str, other: str) -> None:
    assert same_but_for_numbers(one, other)
    assert same_but_for_numbers(other, one)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_anything_else_is_a_difference(one: str, other: str) -> None:
    assert not same_but_for_numbers(one, other)
    assert not same_but_for_numbers(other, one)


def test_numbers_count_the_values_of_each_rule() -> None:
    numbers = Numbers()
    given = [numbers.placeholder(rule, value) for rule, value in [("a", b"x"), ("b", b"x"), ("a", b"y"), ("a", b"x")]]
    assert given == [b"[redacted:a#1]", b"[redacted:b#1]", b"[redacted:a#2]", b"[redacted:a#1]"]
    assert numbers.rules == ("a", "b")


def test_numbers_keep_no_value() -> None:
    numbers = Numbers()
    numbers.placeholder("a", b"hunter2-S3cr3t")
    assert "hunter2" not in repr([getattr(numbers, name) for name in Numbers.__slots__])


def test_a_rule_name_is_short_and_safe() -> None:
    assert rule_name('env."A" b\n]') == "env._A__b__"
    assert len(rule_name("x" * 1000)) <= 96
    assert rule_name("") == "secret"
