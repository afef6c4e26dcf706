"""Sessions: cookies and settings that stay from one call to the next, in one workdir."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.ext_http import Extension
from tests.support.http_stub import Asked, Handler, Stub, echo

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "cookie-value-4711"


def login(handler: Handler, asked: Asked) -> None:
    handler.answer(200, "in", {"Set-Cookie": [f"sid={SECRET}; Path=/; HttpOnly", "lang=en; Path=/shop"]})


def cookie(stub: Stub) -> str | None:
    return stub.asked[-1].header("cookie")


def test_cookies_of_a_session_are_kept_between_calls(http: Extension, stub: Stub) -> None:
    """Venom: cookies are not supported between steps."""
    stub.does("/me", echo)
    result = http.get(stub.does("/login", login), session="shop")
    http.get(stub.url("/me"), session="shop")
    assert cookie(stub) == f"sid={SECRET}"
    later = http.get(stub.does("/shop/me", echo), session="shop")
    assert cookie(stub) == f"lang=en; sid={SECRET}"
    assert SECRET not in repr(result)
    assert SECRET not in repr(later)


def test_cookies_stay_in_their_session_and_without_one_there_are_none(http: Extension, stub: Stub) -> None:
    http.get(stub.does("/login", login), session="shop")
    for args in ({"session": "other"}, {}):
        http.get(stub.does("/me", echo), **args)
        assert cookie(stub) is None


def test_sessions_belong_to_their_workdir(http: Extension, stub: Stub, tmp_path: Path) -> None:
    http.get(stub.does("/login", login), session="shop")
    (tmp_path / "other").mkdir()
    Extension(http.peer, tmp_path / "other").get(stub.does("/me", echo), session="shop")
    assert cookie(stub) is None


def test_a_cookie_of_a_redirect_is_kept_and_sent_on(http: Extension, stub: Stub) -> None:
    stub.routes["/login"] = lambda handler, asked: handler.answer(
        303, "", {"Set-Cookie": "a=set-by-redirect; Path=/", "Location": "/me"}
    )
    stub.does("/me", echo)
    http.get(stub.url("/login"), method="POST", session="shop", redirects=1)
    assert cookie(stub) == "a=set-by-redirect"


def test_cookies_do_not_go_to_other_hosts(http: Extension, stub: Stub) -> None:
    http.get(stub.does("/login", login), session="shop")
    with Stub(host="::1") as other:
        http.get(other.says("/"), session="shop")
        assert cookie(other) is None


def test_cookies_do_not_go_to_other_ports(http: Extension, stub: Stub) -> None:
    """RFC 6265 leaves ports out; on loopback this would hand a session to every other service."""
    http.get(stub.does("/login", login), session="shop")
    with Stub() as other:
        http.get(other.says("/"), session="shop")
        assert cookie(other) is None
        stub.says("/away", status=302, Location=other.url("/"))
        http.get(stub.url("/away"), session="shop", redirects=1, allowHosts=[other.address])
        assert cookie(stub) == f"sid={SECRET}"
        assert cookie(other) is None


def test_a_cookie_for_another_domain_is_not_kept(http: Extension, stub: Stub) -> None:
    stub.routes["/"] = lambda handler, asked: handler.answer(200, "", {"Set-Cookie": "a=other; Domain=evil.test"})
    for _ in range(2):
        http.get(stub.url(), session="shop")
    assert cookie(stub) is None


def test_a_header_of_the_call_takes_the_place_of_cookies(http: Extension, stub: Stub) -> None:
    http.get(stub.does("/login", login), session="shop")
    http.get(stub.does("/me", echo), session="shop", headers={"Cookie": "mine=1234"})
    assert cookie(stub) == "mine=1234"


def test_a_session_has_a_base_url_and_headers(http: Extension, stub: Stub) -> None:
    result = http.ok(
        "session",
        name="shop",
        baseUrl=stub.url("/api"),
        headers={"X-Team": "blue"},
        secretHeaders={"X-Own": "hidden-one"},
    )
    assert result.message == f"session 'shop': baseUrl {stub.url('/api')}; headers X-Team, X-Own"
    answer = http.get(
        stub.does("/api/items", echo).removeprefix(stub.url("/api")), session="shop", headers={"X-More": "1"}
    )
    asked = stub.asked[-1]
    assert (asked.header("x-team"), asked.header("x-own"), asked.header("x-more")) == ("blue", "hidden-one", "1")
    assert "hidden-one" not in repr(answer)


def test_a_cookie_of_odd_bytes_does_no_harm(http: Extension, stub: Stub) -> None:
    odd = "HTTP/1.1 200 OK\r\nSet-Cookie: odd=b\u00e4d\u0083; Path=/\r\nContent-Length: 0\r\n\r\n"
    http.get(stub.does("/", lambda handler, asked: handler.begin(odd)), session="shop")
    http.get(stub.says("/me"), session="shop")
    assert (cookie(stub) or "").startswith("odd=b")


def test_a_flood_of_cookies_is_not_kept(http: Extension, stub: Stub) -> None:
    cookies = [f"name{number}=value{number}" for number in range(1000)]
    stub.routes["/"] = lambda handler, asked: handler.answer(200, "", {"Set-Cookie": cookies})
    http.get(stub.url(), session="shop")
    http.get(stub.url(), session="shop")
    assert len((cookie(stub) or "").split("; ")) == 200


def test_a_session_can_begin_anew(http: Extension, stub: Stub) -> None:
    http.ok("session", name="shop", headers={"X-Team": "blue"})
    http.get(stub.does("/login", login), session="shop")
    http.ok("session", name="shop", forget=True)
    http.get(stub.does("/me", echo), session="shop")
    assert cookie(stub) is None
    assert stub.asked[-1].header("x-team") is None


def test_a_base_url_out_of_a_variable_is_not_asked(http: Extension, stub: Stub) -> None:
    http.get(stub.json("/", {"base": stub.origin}), capture={"base": {"json": "$.base"}}, **{"as": "told"})
    http.ok("session", name="shop", baseUrl="${told.base}")
    assert "allowHosts" in http.failed("request", url="/x", session="shop").error


def test_a_session_that_can_not_be_is_refused(http: Extension) -> None:
    assert "baseUrl: expected a URL" in http.refused("session", name="shop", baseUrl="shop.test")
    assert "one line" in http.refused("session", name="shop", headers={"X": "a\nb"})
    assert "name" in http.refused("session", name="no spaces")
