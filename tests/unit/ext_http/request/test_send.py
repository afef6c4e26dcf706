"""Redirects: followed where the task says so, to where it says so, and without credentials to anywhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.http_stub import Stub, echo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.ext_http import Extension


@pytest.fixture
def other() -> Iterator[Stub]:
    """A server of another origin."""
    with Stub() as server:
        server.does("/", echo)
        yield server


def test_redirects_of_the_same_origin_are_followed_as_often_as_said(http: Extension, stub: Stub) -> None:
    stub.says("/1", status=301, Location="/2")
    stub.says("/2", status=302, Location="3?x=1")
    stub.does("/3", echo)
    result = http.get(stub.url("/1"), redirects=2)
    assert result.outputs["url"] == stub.url("/3?x=1")
    assert "redirected 2 times" in result.message
    error = http.failed("request", url=stub.url("/1"), redirects=1).error
    assert "more than 1 redirects" in error


def test_a_location_that_is_no_url_is_told(http: Extension, stub: Stub) -> None:
    url = stub.says("/", status=302, Location="http://[::1")
    assert "a redirect to 'http://[::1'" in http.failed("request", url=url, redirects=1).error


def test_a_loop_ends(http: Extension, stub: Stub) -> None:
    url = stub.says("/", status=307, Location="/")
    assert "more than 20 redirects" in http.failed("request", url=url, redirects=20).error
    assert len(stub.asked) == 21


@pytest.mark.parametrize(
    ("status", "method", "then"),
    [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "POST", "GET"),
        (303, "PUT", "GET"),
        (303, "HEAD", "HEAD"),
        (301, "PUT", "PUT"),
        (307, "POST", "POST"),
        (308, "PATCH", "PATCH"),
    ],
)
def test_the_method_changes_as_rfc_9110_has_it(
    status: int, method: str, then: str, http: Extension, stub: Stub
) -> None:
    stub.says("/old", status=status, Location="/new")
    stub.says("/new")
    http.get(stub.url("/old"), method=method, body={"json": 1}, redirects=1)
    assert stub.asked[-1].method == then
    assert stub.asked[-1].body == (
        b"1" if (then == method and method != "HEAD") or status in {307, 308} else stub.asked[-1].body
    )
    if then == "GET":
        assert stub.asked[-1].body == b""
        assert stub.asked[-1].header("content-type") is None


def test_another_origin_is_not_asked_unless_it_is_allowed(http: Extension, stub: Stub, other: Stub) -> None:
    url = stub.says("/", status=302, Location=other.url("/"))
    error = http.failed("request", url=url, redirects=3).error
    assert f"redirected to {other.url('/')}" in error
    assert f'"allowHosts": ["{other.address}"]' in error
    assert other.asked == []
    http.get(url, redirects=3, allowHosts=[other.address])
    assert len(other.asked) == 1


@pytest.mark.parametrize("location", ["http://169.254.169.254/", "file:///etc/passwd", "ftp://x.test/"])
def test_a_redirect_to_where_nobody_may_go_is_a_failure(location: str, http: Extension, stub: Stub) -> None:
    url = stub.says("/", status=302, Location=location)
    assert http.failed("request", url=url, redirects=3, allowHosts=["*"]).error
    assert len(stub.asked) == 1


def test_no_credentials_go_to_another_origin(http: Extension, stub: Stub, other: Stub) -> None:
    """Python's libraries keep X-Api-Key where only the port differs, and Go's client keeps them all."""
    url = stub.says("/", status=307, Location=other.url("/"), Set_Cookie="sid=cookie-of-the-first; Path=/")
    headers = {"X-Api-Key": "key-1234567", "Cookie": "mine=own-cookie", "Proxy-Authorization": "x", "X-Plain": "stays"}
    http.get(
        url,
        headers=headers,
        secretHeaders={"X-Tenant": "tenant-secret"},
        auth={"bearer": "token-1234567"},
        redirects=1,
        allowHosts=["127.0.0.1"],
    )
    first, second = stub.asked[-1], other.asked[-1]
    for name in ("x-api-key", "cookie", "x-tenant", "authorization"):
        assert first.header(name)
        assert second.header(name) is None, name
    assert second.header("x-plain") == "stays"
    assert second.header("host") == other.address


def test_credentials_stay_within_the_origin(http: Extension, stub: Stub) -> None:
    stub.says("/old", status=302, Location="/new")
    stub.says("/new")
    http.get(stub.url("/old"), auth={"bearer": "token-1234567"}, headers={"X-Api-Key": "k-123456"}, redirects=1)
    assert stub.asked[-1].header("authorization") == "Bearer token-1234567"
    assert stub.asked[-1].header("x-api-key") == "k-123456"


def test_a_user_in_a_location_is_not_sent(http: Extension, stub: Stub, other: Stub) -> None:
    url = stub.says("/", status=302, Location=other.url("/").replace("://", "://eve:guess@"))
    http.get(url, redirects=1, allowHosts=["127.0.0.1"])
    assert other.asked[-1].header("authorization") is None


def test_the_redirect_itself_can_be_what_is_expected(http: Extension, stub: Stub) -> None:
    url = stub.says("/", status=303, Location="/done")
    http.get(url, expect={"status": 303, "headers": {"location": "/done"}})


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/static/../../etc/passwd", "/static/../../etc/passwd"),
        ("/%2e%2e//a%2Fb;x?q=%41&r=a|b#part", "/%2e%2e//a%2Fb;x?q=%41&r=a|b"),
        ("?q=1", "/?q=1"),
        ("", "/"),
    ],
)
def test_a_path_can_be_sent_as_it_is(path: str, sent: str, http: Extension, stub: Stub) -> None:
    stub.default = lambda handler, _: handler.answer(200, "ok")
    result = http.get(stub.origin + path, pathAsIs=True)
    assert stub.asked[-1].path == sent
    assert result.outputs["url"] == stub.origin + sent
    http.get(stub.origin + path, pathAsIs=True, query={"n": "a b"})
    assert stub.asked[-1].path == f"{sent}{'&' if '?' in sent else '?'}n=a+b"


def test_a_path_that_is_sent_as_it_is_goes_through_a_proxy_and_sessions(http: Extension, stub: Stub) -> None:
    stub.default = lambda handler, _: handler.answer(200, "ok")
    http.get("http://shop.test/a/../b", pathAsIs=True, proxy=stub.origin)
    assert stub.asked[-1].path == "http://shop.test/a/../b"
    http.ok("session", name="shop", baseUrl=stub.origin)
    http.get("/a/../b", pathAsIs=True, session="shop")
    assert stub.asked[-1].path == "/a/../b"
    stub.does("/a/../c", lambda handler, _: handler.answer(302, "", {"Location": "../d"}))
    assert http.get(f"{stub.origin}/a/../c", pathAsIs=True, redirects=1).outputs["url"] == stub.url("/d")


def test_http_can_not_send_every_path(http: Extension, stub: Stub) -> None:
    error = http.failed("request", url=stub.url("/a b"), pathAsIs=True).error
    assert "url: expected visible ASCII characters, found ' ' in '/a b'; percent-encode it" in error
