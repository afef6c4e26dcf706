"""Cookies of a session (RFC 6265), by the library's jar; but those of one port don't go to another one.

RFC 6265 (8.5) leaves ports out, and says itself that this is weak: on loopback, every service has the same name.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import httpx2

if TYPE_CHECKING:
    from .response import Response


MOST = 200  # cookies of a session; a browser keeps 180 of a host


class CookieJar:
    """What servers have set; safe in several threads."""

    def __init__(self) -> None:
        self._jars: dict[int, httpx2.Cookies] = {}
        self._lock = threading.Lock()

    def header(self, url: str) -> str:
        """The Cookie header for a request; "" where there is none."""
        request = httpx2.Request("GET", url)
        request.headers.encoding = "latin-1"  # as answers are read: a server may set any byte
        with self._lock:
            self._of(request).set_cookie_header(request)
        return request.headers.get("cookie", "")

    def store(self, answer: Response) -> list[tuple[str, str]]:
        """Keep what an answer sets, up to a number. Returns names and values of those of its port."""
        request = httpx2.Request("GET", answer.url)
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
        response = httpx2.Response(answer.status, headers=headers, request=request)
        with self._lock:
            cookies = self._of(request)
            cookies.extract_cookies(response)
            for cookie in list(cookies.jar)[MOST:]:
                cookies.jar.clear(cookie.domain, cookie.path, cookie.name)
            return [(cookie.name, cookie.value or "") for cookie in cookies.jar]

    def _of(self, request: httpx2.Request) -> httpx2.Cookies:
        """The jar of a port; http and https have one together."""
        port = request.url.port or 443
        if port not in self._jars and len(self._jars) >= MOST:
            self._jars.clear()
        return self._jars.setdefault(port, httpx2.Cookies())
