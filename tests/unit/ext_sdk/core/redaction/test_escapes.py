"""Views: escapes undone, and the way back."""

from __future__ import annotations

import pytest

from ext_sdk.core.redaction.escapes import exact_views, percent_view, undone, view

UNDONE = [
    (b"plain", b"plain"),
    (rb"a\nb\tc", b"a\nb\tc"),
    (rb"a\\\\nb", b"a\nb"),
    (rb"\/", b"/"),
    (rb"\u0041\x42", b"AB"),
    (rb"\\\\u0041", b"A"),
    (rb"\u005cu0041", b"A"),
    (rb"\ud83d\ude00", "\U0001f600".encode()),
    (rb"\ud83d", b"\xed\xa0\xbd"),
    (rb"\q", rb"\q"),
    (rb"\\", b"\\"),
    (rb"\u12", rb"\u12"),
    (rb"say \"x\"", b'say "x"'),
    (rb"\\\"", b'"'),
    (rb"\u0000\u0002", b"\1\1"),
]


@pytest.mark.parametrize(("text", "expected"), UNDONE)
def test_escapes_are_undone_at_every_depth(text: bytes, expected: bytes) -> None:
    assert undone(text) == expected


def test_quotes_that_delimit_strings_are_barriers() -> None:
    assert view(rb'{"a":"b\"c\\","d\u0022":1}', barriers=True).text == b'{\0a\0:\0b"c\\\0,\0d"\0:1}'


def test_knows_what_is_inside_a_string() -> None:
    seen = view(b'{"a":1}', barriers=True)
    assert [seen.inside(at) for at in range(7)] == [False, True, True, False, False, False, False]


def test_every_character_knows_where_it_came_from() -> None:
    text = rb"ab\n\u0041cd\\\"e"
    seen = view(text)
    assert seen.text == b'ab\nAcd"e'
    origins = [text[slice(*seen.origin(at, at + 1))] for at in range(len(seen.text))]
    assert origins == [b"a", b"b", rb"\n", rb"\u0041", b"c", b"d", rb"\\\"", b"e"]
    assert text[slice(*seen.origin(1, 5))] == rb"b\n\u0041c"


def test_a_view_of_a_view_leads_back_to_the_text() -> None:
    text = rb"x\u0025\u0034\u0031y"
    seen = percent_view(view(text))
    assert seen.text == b"xAy"
    assert text[slice(*seen.origin(1, 2))] == rb"\u0025\u0034\u0031"


def test_exact_views_read_one_depth_at_a_time() -> None:
    once, twice = exact_views(rb"C:\\\\token\\n", barriers=False)
    assert once.text == rb"C:\\token\n"
    assert twice.text == b"C:\\token\n"
