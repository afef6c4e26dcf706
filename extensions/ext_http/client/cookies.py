"""Cookie jar of a session (RFC 6265) with a separate jar for each port.

RFC 6265, 8.5, ignores ports and calls that weak itself: on loopback, all services have one name.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import httpx2

if TYPE_CHECKING:
    from .response import Response


MAX_COOKIES = 200  # of a port; a browser keeps 180 of a host. Also the number of ports.


class CookieJar:
    """Cookies that servers have set. Thread-safe."""

    def __init__(self) -> None:
        self._jars: dict[int, httpx2.Cookies] = {}
        self._lock = threading.Lock()

    def header(self, url: str) -> str:
        """Return the Cookie header of a request; "" if no cookie applies."""
        request = httpx2.Request("GET", url)
        request.headers.encoding = "latin-1"  # as responses are decoded: a server may send any byte
        with self._lock:
            self._jar_of(request).set_cookie_header(request)
        return request.headers.get("cookie", "")

    def store(self, response: Response) -> list[tuple[str, str]]:
        """Store the cookies that a response sets, up to the limit. Returns names and values of the port's cookies."""
        request = httpx2.Request("GET", response.url)
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers]
        received = httpx2.Response(response.status, headers=headers, request=request)
        with self._lock:
            cookies = self._jar_of(request)
            cookies.extract_cookies(received)
            for cookie in list(cookies.jar)[MAX_COOKIES:]:
                cookies.jar.clear(cookie.domain, cookie.path, cookie.name)
            return [(cookie.name, cookie.value or "") for cookie in cookies.jar]

    def _jar_of(self, request: httpx2.Request) -> httpx2.Cookies:
        port = request.url.port or 443  # http and https on their default ports share a jar
        if port not in self._jars and len(self._jars) >= MAX_COOKIES:
            self._jars.clear()
        return self._jars.setdefault(port, httpx2.Cookies())
