"""Arguments of requests that contradict each other."""

from __future__ import annotations

import pytest

from ext_http.request.args import RequestArgs
from ext_sdk import InvalidArgs
from ext_sdk.server.validation import validate


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"tls": {"key": "k.pem"}}, "key requires certificate"),
        ({"tls": {"insecure": True, "ca": "ca.pem"}}, "expected one of ca and insecure"),
        ({"allowHosts": ["http://a"]}, "expected a host"),
        ({"connectTimeout": "0s"}, "expected a duration over 0"),
        ({"auth": {}}, "auth"),
        ({"auth": {"bearer": "a", "netrc": "b"}}, "auth"),
        ({"redirects": 21}, "redirects"),
    ],
)
def test_invalid_arguments_are_refused(arguments: dict[str, object], problem: str) -> None:
    with pytest.raises(InvalidArgs, match=problem):
        validate(RequestArgs, {"url": "http://a/", **arguments})


def test_no_redirects_are_followed_by_default() -> None:
    args = validate(RequestArgs, {"url": "http://a/"})
    assert (args.redirects, args.http_version, args.timeout.seconds) == (0, "1.1", 25)
