"""Texts and values in messages."""

from __future__ import annotations

import pytest

from ext_sdk.expect import Check, TextExpectation, check_text, failure_text, section
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


def redact(text: str) -> str:
    return text.replace("BEGIN\nkey\nEND", "[redacted:key]")


def told_of(expectation: str | TextExpectation, text: str) -> list[str]:
    checks = check_text(expectation, text, where="out", redact=redact)
    assert not all(check.ok for check in checks)
    assert not any("\n" in check.brief for check in checks)
    return failure_text(checks).split("\n")


def test_a_text_of_many_lines_is_shown_by_the_lines_that_differ() -> None:
    lines = [f"line {number}" for number in range(40)]
    found = [*lines[:20], "new", "line twenty", *lines[21:]]
    assert told_of("\n".join(lines), "\n".join(found)) == [
        "out: differs from the expected text from line 21 on (- expected, + got):",
        "    line 18",
        "    line 19",
        "  - line 20",
        "  + new",
        "  + line twenty",
        "    line 21",
        "    line 22",
    ]
    assert told_of("a \nb", "a\nb")[1:] == ['  - "a "', '  + "a"', '    "b"']


def test_texts_that_differ_in_every_line_are_cut() -> None:
    told = told_of("a\n" * 100, "b\n" * 100)
    assert len(told) < 20
    assert told[-1] == "  …"


def test_of_a_text_of_many_lines_the_first_and_the_last_are_shown() -> None:
    told = told_of(TextExpectation(contains="ready"), "".join(f"line {number}\x1b\n" for number in range(99)))
    assert told[0] == 'out: expected to contain "ready", got 99 lines:'
    assert told[1] == "  | line 0\\u001b"
    assert "  | … 87 lines left out" in told
    assert told[-1] == "  | line 98\\u001b"
    assert len(told) == 14


def test_a_secret_of_several_lines_is_in_no_line() -> None:
    told = "".join(told_of(TextExpectation(contains="ready"), "1\nBEGIN\nkey\nEND\n2"))
    assert "[redacted:key]" in told
    assert "BEGIN" not in told
    without = check_text(TextExpectation(contains="ready"), "BEGIN\nkey\nEND", where="out")
    assert failure_text(without) == r'out: expected to contain "ready", got "BEGIN\nkey\nEND"'


def test_long_values_are_one_below_the_other() -> None:
    short, long = Check(False, "to be", "1", "x" * 110, where="sum"), Check(False, "to be", "a" * 120, "b", where="sum")  # noqa: FBT003
    assert str(short) == f"sum: expected to be 1\n  got {'x' * 110}"
    assert str(long) == f"sum:\n  expected to be {'a' * 120}\n  got            b"
    assert failure_text([short, long], brief=True) == f"{short.brief}; {long.brief}"


def test_a_section_has_the_end_of_a_text() -> None:
    assert section("log ends with", "done\n") == "log ends with: done"
    lines = section("log ends with", "\n".join(map(str, range(50)))).split("\n")
    assert (lines[0], lines[1], lines[-1], len(lines)) == ("log ends with:", "  … 38 lines left out", "  49", 14)
