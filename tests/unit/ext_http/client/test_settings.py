"""Cookie jar of a session: one jar for each port, and a limit."""

from __future__ import annotations

from ext_http.client.response import Response
from ext_http.client.settings import MAX_COOKIES, CookieJar


def setting(url: str, *cookies: str) -> Response:
    return Response(status=200, url=url, headers=tuple(("Set-Cookie", cookie) for cookie in cookies))


def test_a_cookie_is_sent_to_the_port_that_set_it_only() -> None:
    jar = CookieJar()
    assert jar.store(setting("http://shop.test:81/a", "id=7; Path=/")) == [("id", "7")]
    assert jar.header("http://shop.test:81/b") == "id=7"
    assert jar.header("http://shop.test:82/b") == ""
    assert jar.header("http://other.test:81/b") == ""


def test_cookies_over_the_limit_are_dropped() -> None:
    jar = CookieJar()
    stored = jar.store(setting("http://shop.test/", *(f"c{number}=v" for number in range(MAX_COOKIES + 5))))
    assert len(stored) == MAX_COOKIES
