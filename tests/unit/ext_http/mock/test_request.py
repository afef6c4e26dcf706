"""Targets of requests, and path templates."""

from __future__ import annotations

import pytest

from ext_http.mock.request import Limits, PathTemplate, ReceivedRequest
from ext_sdk import Duration


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/a%20b?c=d+e&f", "/a b", (("c", "d e"), ("f", ""))),
        ("http://host/a", "/a", ()),
        ("http://host", "/", ()),
        ("*", "*", ()),
        ("/%zz?%zz=1", "/%zz", (("%zz", "1"),)),
    ],
)
def test_a_target_is_split_and_decoded(target: str, path: str, query: tuple[tuple[str, str], ...]) -> None:
    request = ReceivedRequest("GET", target)
    assert (request.path, request.query) == (path, query)


def test_a_parameter_matches_one_segment_that_is_not_empty() -> None:
    template = PathTemplate("/cities/{city}/days/{day}")
    assert template.match(ReceivedRequest("GET", "/cities/S%C3%A3o%2FP/days/7").segments) == {
        "city": "São/P",
        "day": "7",
    }
    assert template.match(ReceivedRequest("GET", "/cities//days/7").segments) is None
    assert template.match(ReceivedRequest("GET", "/cities/a/days/7/8").segments) is None


@pytest.mark.parametrize("text", ["a", "/a?b=1", "/{a}/{a}", "/a{b}", "/{1}", "/{}"])
def test_an_invalid_template_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="path: "):
        PathTemplate(text)


def test_the_time_of_a_request_is_positive() -> None:
    with pytest.raises(ValueError, match="requestTime: expected a duration over 0"):
        Limits(request_time=Duration.parse("0s"))
