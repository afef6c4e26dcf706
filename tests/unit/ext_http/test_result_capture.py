"""Captures of responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_http.client.response import Response
from ext_http.result import Capture, capture_response
from ext_sdk import InvalidArgs
from ext_sdk.expect import Searcher
from ext_sdk.server.validation import validate
from tests.support.http_contexts import context_in

if TYPE_CHECKING:
    from pathlib import Path

    from ext_sdk.capture import Captured

RESPONSE = Response(status=201, url="http://a/b", headers=(("ETag", "1"), ("etag", "2")), body=b'{"id": "k-77"}')


def capture(tmp_path: Path, members: object, response: Response = RESPONSE) -> Captured:
    with Searcher() as searcher:
        captures = {"x": validate(Capture, members)}
        return capture_response(captures, response, context_in(tmp_path).secrets, searcher)


@pytest.mark.parametrize(
    ("members", "value"),
    [
        ({"from": "status"}, "201"),
        ({"from": "url"}, "http://a/b"),
        ({"from": "header", "header": "etag"}, "1"),
        ({"json": "$.id"}, "k-77"),
        ({"regex": "k-([0-9]+)"}, "77"),
        ({"from": "header", "header": "X-No", "default": "none"}, "none"),
        ({}, '{"id": "k-77"}'),
    ],
)
def test_a_part_of_the_response_is_captured(tmp_path: Path, members: dict[str, object], value: str) -> None:
    assert capture(tmp_path, members).values == {"x": value}


def test_a_value_that_is_not_found_is_a_failed_check(tmp_path: Path) -> None:
    captured = capture(tmp_path, {"from": "header", "header": "X-No"})
    assert [str(check) for check in captured.failures] == ["capture x: expected to be found, got no header X-No"]
    truncated = Response(status=200, body=b"a", truncated=True)
    assert "larger than maxBody" in str(capture(tmp_path, {}, truncated).failures[0])


def test_a_secret_that_was_not_found_withholds_the_body(tmp_path: Path) -> None:
    assert "body" in capture(tmp_path, {"json": "$.no", "secret": True}).withheld
    assert capture(tmp_path, {"json": "$.id", "secret": True}).secrets == {"x": "k-77"}


@pytest.mark.parametrize(
    "members", [{"header": "a"}, {"from": "header"}, {"from": "url", "json": "$"}, {"type": "string"}]
)
def test_members_that_do_not_fit_together_are_refused(members: object) -> None:
    with pytest.raises(InvalidArgs):
        validate(Capture, members)
