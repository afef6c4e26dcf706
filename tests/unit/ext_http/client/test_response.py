"""Response: headers by name, text in its charset."""

from __future__ import annotations

import pytest

from ext_http.client.response import NotText, Response, decode_text


def test_header_names_are_case_insensitive_and_values_keep_their_order() -> None:
    response = Response(status=200, headers=(("X-A", "1"), ("x-a", "2"), ("X-B", "3")))
    assert response.values("x-A") == ["1", "2"]
    assert response.values("missing") == []


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        ("straße".encode(), [], "straße"),
        ("straße".encode("latin-1"), ["text/plain; charset=ISO-8859-1"], "straße"),
        (b"\xff", ["text/plain"], NotText("text in utf-8", "byte 0xff at offset 0")),
        (b"a", ["text/plain; charset=idna2"], NotText("text", "the unknown charset 'idna2'")),
    ],
)
def test_a_body_is_decoded_in_the_charset_of_its_type(
    body: bytes, content_type: list[str], expected: str | NotText
) -> None:
    assert decode_text(body, content_type) == expected


def test_text_replaces_invalid_bytes_and_decoded_reports_them() -> None:
    response = Response(status=200, body=b"a\xff")
    assert response.text == "a\ufffd"
    assert str(response.decoded) == "not text in utf-8: byte 0xff at offset 1"
