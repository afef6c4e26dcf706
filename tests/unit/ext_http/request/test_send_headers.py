"""Request headers from several sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_http.request.send import Headers
from ext_sdk import InvalidArgs

if TYPE_CHECKING:
    from tests.support.ext_http import Extension
    from tests.support.http_stub import Stub


def test_a_header_that_is_set_again_replaces_all_its_values() -> None:
    headers = Headers()
    headers.set("Accept", ["a", " b "], "headers")
    assert headers.items() == [("Accept", "a"), ("Accept", "b")]
    headers.set("ACCEPT", "c", "headers")
    assert headers.items() == [("ACCEPT", "c")]
    headers.set("accept", [], "headers")
    assert "accept" not in headers


def test_secrets_and_host_are_not_sent_to_another_origin() -> None:
    headers = Headers()
    for name, value in (("Authorization", "Bearer token-7"), ("Host", "a"), ("X-Api-Key", "key-7"), ("X-Other", "b")):
        headers.set(name, value, "headers")
    headers.set("X-Mine", "mine-7", "secretHeaders", secret=True)
    assert headers.items(other_origin=True) == [("X-Other", "b")]
    secrets = {("header.authorization", "token-7"), ("header.x-api-key", "key-7"), ("header.x-mine", "mine-7")}
    assert set(headers.secrets()) == secrets


def test_headers_of_a_body_are_left_out_without_one() -> None:
    headers = Headers()
    headers.set("Content-Type", "a/b", "headers")
    assert headers.items(body=False) == []


def test_values_are_texts_numbers_booleans_and_variables_and_a_list_repeats_a_header(
    http: Extension, stub: Stub
) -> None:
    url = stub.does("/", lambda handler, asked: handler.answer())
    headers = {"X-One": 5, "X-Each": [True, 1.5, "a"], "X-Env": {"env": "TOKEN_7"}}
    http.peer.result("request", {"url": url, "headers": headers}, workdir=str(http.workdir), env={"TOKEN_7": "b"})
    received = [header for header in stub.asked[-1].headers if header[0].startswith("X-")]
    assert received == [("X-One", "5"), ("X-Each", "true"), ("X-Each", "1.5"), ("X-Each", "a"), ("X-Env", "b")]


@pytest.mark.parametrize(("name", "value"), [("a b", "x"), ("Content-Length", "1"), ("X", "a\nb"), ("", "x")])
def test_invalid_headers_are_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidArgs):
        Headers().set(name, value, "headers")
