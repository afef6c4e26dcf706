"""Durations, whatever the text: written ones are read back, and nothing but ValueError comes out."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ext_sdk.duration import DURATION_PATTERN, Duration

UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}

lengths = st.integers(min_value=-(2**63), max_value=2**63 - 1)
parts = st.lists(
    st.tuples(st.integers(0, 999), st.text("0123456789", max_size=9), st.sampled_from(sorted(UNITS))),
    min_size=1,
    max_size=5,
)


@given(lengths)
def test_what_is_written_is_read_back(nanoseconds: int) -> None:
    assert Duration.parse(str(Duration(nanoseconds))).nanoseconds == nanoseconds


@given(parts)
def test_a_sum_of_parts_is_exact_to_a_nanosecond_each(written: list[tuple[int, str, str]]) -> None:
    text = "".join(f"{whole}.{fraction}{unit}" for whole, fraction, unit in written)
    exact = sum(Fraction(f"{whole}.{fraction}0") * UNITS[unit] for whole, fraction, unit in written)
    found = Duration.parse(text).nanoseconds
    assert exact - len(written) <= found <= exact + Fraction(1, 1000)


@given(st.text() | st.text("0123456789.+-hmsnu\u00b5"))
def test_any_other_text_raises_a_value_error(text: str) -> None:
    if not re.fullmatch(DURATION_PATTERN, text):
        with pytest.raises(ValueError, match=r"(missing|no number|unknown unit)"):
            Duration.parse(text)
        return
    try:
        duration = Duration.parse(text)
    except ValueError:  # out of range
        return
    assert Duration.parse(str(duration)) == duration


@given(lengths, lengths)
def test_order_is_that_of_the_lengths(one: int, other: int) -> None:
    assert (Duration(one) < Duration(other)) is (one < other)
    assert (Duration(one) >= Duration(other)) is (one >= other)
    assert (Duration(one) == Duration(other)) is (one == other)
