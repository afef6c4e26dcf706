"""Recorded and live ids of open calls."""

from __future__ import annotations

from ext_recorder.messages.id_map import IdMap


def test_an_id_is_that_of_the_open_call_and_afterwards_that_of_the_latest_one() -> None:
    calls = IdMap()
    assert calls.live(b"1") == b"1"
    calls.begin(b"1", b"7")
    assert (calls.is_open(b"1"), calls.live(b"1"), len(calls)) == (True, b"7", 1)
    assert calls.end(b"1") == b"7"
    assert (bool(calls), calls.live(b"1"), calls.end(b"1")) == (False, b"7", None)


def test_calls_with_the_same_id_are_answered_in_their_order() -> None:
    calls = IdMap()
    for live in (b"7", b"8", b"9"):
        calls.begin(b"1", live)
    assert len(calls) == 3
    assert [calls.end(b"1") for _ in range(4)] == [b"7", b"8", b"9", None]


def test_a_response_without_an_id_ends_the_oldest_call() -> None:
    calls = IdMap()
    calls.end_oldest()
    calls.begin(b"2", b"8")
    calls.begin(b"1", b"7")
    calls.end_oldest()
    assert (calls.is_open(b"2"), calls.is_open(b"1")) == (False, True)


def test_only_the_latest_answered_calls_are_kept() -> None:
    calls = IdMap()
    calls.ended([(b"%d" % number, b"live") for number in range(1_000)])
    assert (calls.live(b"0"), calls.live(b"999")) == (b"0", b"live")
    for number in range(1_000, 2_000):
        calls.begin(b"%d" % number, b"live")
        calls.end(b"%d" % number)
    assert (calls.live(b"999"), calls.live(b"1999")) == (b"999", b"live")


def test_the_values_that_a_response_repeats_are_given_once() -> None:
    calls = IdMap()
    calls.begin(b"1", b"7")
    calls.expect(b"1", {"/result/name": (b'"a"', b'"b"')})
    assert calls.echoes(None) == {}
    assert calls.echoes(b"1") == {"/result/name": (b'"a"', b'"b"')}
    assert calls.echoes(b"1") == {}
