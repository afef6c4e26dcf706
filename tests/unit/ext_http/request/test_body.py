"""Encoding of request bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_http.request.body import Body, encode, pairs
from ext_sdk import InvalidArgs
from ext_sdk.server.validation import validate
from tests.support.http_contexts import context_in

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("body", "content", "kind"),
    [
        ({"json": {"ä": 1.0}}, '{"ä":1.0}'.encode(), "application/json"),
        ({"json": None}, b"null", "application/json"),
        ({"form": {"a": [1, True], "b": "c d"}}, b"a=1&a=true&b=c+d", "application/x-www-form-urlencoded"),
        ({"raw": "ä"}, "ä".encode(), "text/plain; charset=utf-8"),
        ({"base64": "aGk= "}, b"hi", "application/octet-stream"),
        ({"graphql": {"query": "{a}"}}, b'{"query":"{a}"}', "application/json"),
        ({"file": "a.csv"}, b"1,2", "text/csv"),
        ({"raw": "<a/>", "contentType": "text/xml"}, b"<a/>", "text/xml"),
    ],
)
def test_a_body_has_the_content_type_of_its_kind(body: object, content: bytes, kind: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"1,2")
    assert encode(validate(Body, body), context_in(tmp_path)) == (content, kind)


def test_a_multipart_body_has_fields_and_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"hi")
    body = validate(Body, {"multipart": {"n": 1, "f": {"file": "a.txt"}, "t": {"text": "x", "contentType": "a/b"}}})
    content, kind = encode(body, context_in(tmp_path))
    assert kind.startswith("multipart/form-data; boundary=")
    assert b'name="f"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\nhi\r\n' in content
    assert b'name="t"\r\nContent-Type: a/b\r\n\r\nx\r\n' in content


def test_values_of_secret_fields_are_redacted(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    encode(validate(Body, {"form": {"password": "hunter-two"}}), context)
    assert "hunter-two" not in context.secrets.redact("it is hunter-two")


def test_invalid_base64_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgs, match="expected Base64"):
        encode(validate(Body, {"base64": "?"}), context_in(tmp_path))


def test_each_value_of_a_list_is_a_pair() -> None:
    assert list(pairs({"a": [1, "x"], "b": False})) == [("a", "1"), ("a", "x"), ("b", "false")]
