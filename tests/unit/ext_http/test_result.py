"""Results of operations that check a response."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_http.client.response import Response
from ext_http.result import CheckedRequestArgs, CheckedResponse, notes_of, request_spec, rounded
from ext_sdk import InvalidArgs
from ext_sdk.expect import Searcher
from ext_sdk.server.validation import validate
from tests.support.http_contexts import context_in

if TYPE_CHECKING:
    from pathlib import Path

    from ext_sdk import Result


def arguments(**members: object) -> CheckedRequestArgs:
    return validate(CheckedRequestArgs, {"url": "http://a/", **members})


def result(args: CheckedRequestArgs, response: Response, workdir: Path) -> Result:
    with Searcher() as searcher:
        return CheckedResponse(args, response, context_in(workdir), searcher).result("GET http://a/")


def test_a_response_that_is_not_as_expected_is_a_failure_with_its_outputs(tmp_path: Path) -> None:
    failed = result(arguments(), Response(status=404, reason="Not Found", body=b"no", elapsed=0.0123), tmp_path)
    assert not failed.success
    assert failed.error == (
        "status: expected to be 2xx, got 404\nresponse: 404 Not Found\nbody: no\nrequest: GET http://a/"
    )
    assert (failed.outputs["status"], failed.outputs["duration"]) == ("404", "12ms")


def test_a_redirect_that_was_not_followed_is_explained(tmp_path: Path) -> None:
    moved = Response(status=301, headers=(("Location", "/b"),))
    assert "it redirects to /b; set `redirects`" in result(arguments(), moved, tmp_path).error
    assert "set `redirects`" not in result(arguments(redirects=1), moved, tmp_path).error


def test_a_body_with_a_secret_that_cannot_be_redacted_is_withheld(tmp_path: Path) -> None:
    args = arguments(capture={"k": {"regex": "k=(.*)", "secret": True}})
    withheld = result(args, Response(status=200, body=b"k=abc"), tmp_path)
    assert "withheld" in str(withheld.outputs["body"])
    assert withheld.secret_outputs == {"k": "abc"}


def test_notes_report_unverified_certificates_redirects_and_cut_bodies() -> None:
    response = Response(status=200, url="http://b/", hops=("http://a/",), truncated=True)
    assert notes_of(arguments(tls={"insecure": True}), response).startswith("; the server's certificate was not")
    assert "; redirected 1 time, to http://b/; the body is cut" in notes_of(arguments(), response)
    assert notes_of(arguments()) == ""


def test_names_of_other_outputs_are_refused_as_captures() -> None:
    with pytest.raises(InvalidArgs):
        request_spec(arguments(capture={"status": {}}))
    assert request_spec(arguments(method="put", query={"a": [1, 2]}))[:2] == ("put", (("a", "1"), ("a", "2")))


def test_a_response_to_head_has_no_body_to_check() -> None:
    with pytest.raises(InvalidArgs, match="a response to HEAD has no body"):
        arguments(method="head", expect={"body": "x"})


def test_durations_are_at_least_one_millisecond() -> None:
    assert [rounded(seconds) for seconds in (0.0, 0.0016, 61.0)] == ["1ms", "2ms", "1m1s"]
