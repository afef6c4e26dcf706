"""Durations: what Go's time package gives for the same text, taken from Go 1.26 itself."""

from __future__ import annotations

import re

import pytest

from ext_sdk.duration import DURATION_PATTERN, Duration

SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE

ACCEPTED = [
    ("0", 0, "0s"),
    ("+0", 0, "0s"),
    ("-0", 0, "0s"),
    ("0s", 0, "0s"),
    ("30s", 30 * SECOND, "30s"),
    ("5m", 5 * MINUTE, "5m0s"),
    ("1h30m", 90 * MINUTE, "1h30m0s"),
    ("100ms", SECOND // 10, "100ms"),
    ("-1.5h", -90 * MINUTE, "-1h30m0s"),
    ("+5s", 5 * SECOND, "5s"),
    (".5s", SECOND // 2, "500ms"),
    ("5.s", 5 * SECOND, "5s"),
    ("1\u00b5s", 1_000, "1\u00b5s"),
    ("1\u03bcs", 1_000, "1\u00b5s"),
    ("1.5us", 1_500, "1.5\u00b5s"),
    ("1ns", 1, "1ns"),
    ("0.9ns", 0, "0s"),
    ("2h1m", 121 * MINUTE, "2h1m0s"),
    ("30s1h", HOUR + 30 * SECOND, "1h0m30s"),
    ("1s1s", 2 * SECOND, "2s"),
    ("00000000000000000000007s", 7 * SECOND, "7s"),
    ("39h9m14.425s", 140_954_425_000_000, "39h9m14.425s"),
    ("0.3333333333333333333h", 20 * MINUTE, "20m0s"),
    ("0.830103483285477580700h", 2_988_372_539_827, "49m48.372539827s"),
    ("0.100000000000000000000h", 6 * MINUTE, "6m0s"),
    ("9223372036854775807ns", 2**63 - 1, "2562047h47m16.854775807s"),
    ("9223372036854775.807us", 2**63 - 1, "2562047h47m16.854775807s"),
    ("-9223372036854775808ns", -(2**63), "-2562047h47m16.854775808s"),
    ("-2562047h47m16.854775808s", -(2**63), "-2562047h47m16.854775808s"),
]

REFUSED = [
    ("", "no number"),
    ("-", "no number"),
    ("+", "no number"),
    ("--1s", "a number is missing"),
    (".", "a number is missing"),
    (".s", "a number is missing"),
    ("s", "a number is missing"),
    (" 1s", "a number is missing"),
    ("\uff11s", "a number is missing"),
    ("5", "a unit is missing"),
    ("00", "a unit is missing"),
    ("0.", "a unit is missing"),
    ("1..5s", "a unit is missing"),
    ("1s5", "a unit is missing"),
    ("1d", "unknown unit 'd'"),
    ("1S", "unknown unit 'S'"),
    ("1 s", "unknown unit ' s'"),
    ("1s ", "unknown unit 's '"),
    ("1e3s", "unknown unit 'e'"),
    ("1h-30m", "unknown unit 'h-'"),
    ("9223372036854775808ns", "out of range"),
    ("-9223372036854775809ns", "out of range"),
    ("9223372036854775.808us", "out of range"),
    ("2562047h47m16.854775808s", "out of range"),
    ("3000000h", "out of range"),
    ("-3000000h", "out of range"),
    ("2000000h2000000h", "out of range"),
    ("9" * 100_000 + "s", "out of range"),
]


@pytest.mark.parametrize(("text", "nanoseconds", "shown"), ACCEPTED)
def test_reads_and_writes_what_go_reads_and_writes(text: str, nanoseconds: int, shown: str) -> None:
    duration = Duration.parse(text)
    assert duration.nanoseconds == nanoseconds
    assert str(duration) == shown


@pytest.mark.parametrize(
    ("text", "valid"),
    [(text, True) for text, _, _ in ACCEPTED] + [(text, "out of range" in reason) for text, reason in REFUSED],
)
def test_the_pattern_takes_what_go_parses_be_it_out_of_range(text: str, valid: bool) -> None:
    assert bool(re.fullmatch(DURATION_PATTERN, text)) is valid


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_refuses_what_go_refuses_and_says_why(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r"^invalid duration") as caught:
        Duration.parse(text)
    assert reason in str(caught.value)


def test_a_refusal_repeats_only_the_beginning_of_a_long_text() -> None:
    with pytest.raises(ValueError, match="unknown unit") as caught:
        Duration.parse("1" + "x" * 1_000_000)
    assert len(str(caught.value)) < 300


def test_a_refusal_says_how_durations_are_written() -> None:
    with pytest.raises(ValueError, match=r"like 30s, 1h30m or 1\.5s"):
        Duration.parse("five minutes")


@pytest.mark.parametrize("nanoseconds", [2**63, -(2**63) - 1])
def test_refuses_lengths_beyond_64_bits(nanoseconds: int) -> None:
    with pytest.raises(ValueError, match="out of range"):
        Duration(nanoseconds)


@pytest.mark.parametrize("seconds", [float("inf"), float("-inf"), float("nan"), 1e10])
def test_refuses_seconds_that_no_duration_holds(seconds: float) -> None:
    with pytest.raises(ValueError, match="out of range"):
        Duration.from_seconds(seconds)


def test_converts_from_and_to_seconds() -> None:
    assert Duration.from_seconds(1.5) == Duration.parse("1.5s")
    assert Duration.parse("-250ms").seconds == -0.25
    assert str(Duration.from_seconds(0.0000001)) == "100ns"


def test_orders_by_length() -> None:
    texts = ["1m", "-1h", "59s", "0", "1h"]
    assert [str(each) for each in sorted(map(Duration.parse, texts))] == [
        "-1h0m0s",
        "0s",
        "59s",
        "1m0s",
        "1h0m0s",
    ]
    assert Duration.parse("60s") >= Duration.parse("1m") > Duration.parse("59.9s")


def test_equal_lengths_are_one_key() -> None:
    assert {Duration.parse("60s"): "x"}[Duration.parse("1m")] == "x"
    assert Duration.parse("1m") != 60_000_000_000


def test_cannot_be_compared_with_a_bare_number() -> None:
    with pytest.raises(TypeError):
        assert Duration.parse("1m") < 60


def test_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Duration.parse("1s").nanoseconds = 2


def test_only_zero_is_false() -> None:
    assert not Duration()
    assert Duration(-1)
