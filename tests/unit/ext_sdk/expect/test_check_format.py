"""Texts and values in messages."""

from __future__ import annotations

import pytest

from ext_sdk.expect.check import difference, quoted, shown


def test_a_short_text_is_quoted_whole_on_one_line() -> None:
    assert quoted('a "b"\n\tä\0') == '"a \\"b\\"\\n\\tä\\u0000"'


def test_a_long_text_shows_beginning_end_and_length() -> None:
    text = "begin " + "word " * 1000 + "end"
    told = quoted(text)
    assert told.startswith('"begin word')
    assert told.endswith('word end" (5,009 characters)')
    assert len(told) < 260


@pytest.mark.parametrize("before", range(100, 260, 7))
def test_a_word_is_shown_whole_or_not_at_all(before: int) -> None:
    secret = "sk-0123456789abcdefghijklmnopqrstuvwxyz"
    for text in (" x" * (before // 2) + f" {secret} " + "y " * 300, "y " * 300 + f" {secret} " + " x" * (before // 2)):
        told = quoted(text).replace(secret, "")
        assert not any(secret[at : at + 4] in told for at in range(len(secret) - 4))


def test_a_text_without_a_break_shows_its_length_only() -> None:
    assert quoted("A" * 5000) == '" … " (5,000 characters)'


def test_a_json_value_is_shown_as_json() -> None:
    assert shown({"a": [1, None, True, "ä"]}) == '{"a": [1, null, true, "ä"]}'
    assert shown("a") == '"a"'
    assert shown(list(range(1000))).endswith("(4,890 characters)")


def test_short_texts_are_shown_whole_and_long_ones_by_their_first_difference() -> None:
    assert difference("a", "b") == ('"a"', '"b"')
    assert difference("a\n" * 50, "a\n" * 49 + "b\n") == ('"a" in line 50', '"b" there')
    assert difference("a\n" * 60, "a\n" * 50 + "a") == ('"a" in line 52', "nothing there")
    assert difference("x " * 200 + "end", "x " * 200 + "End")[0].endswith("in line 1, column 401")
