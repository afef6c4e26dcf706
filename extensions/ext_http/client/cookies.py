"""Cookies of a session (RFC 6265), by the library's jar."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import httpx2

if TYPE_CHECKING:
    from ext_http.answer import Answer


MOST = 200  # cookies of a session; a browser keeps 180 of a host


class CookieJar:
    """What servers have set; safe in several threads."""

    def __init__(self) -> None:
        self._cookies = httpx2.Cookies()
        self._lock = threading.Lock()

    def header(self, url: str) -> str:
        """The Cookie header for a request; "" where there is none."""
        request = httpx2.Request("GET", url)
        with self._lock:
            self._cookies.set_cookie_header(request)
        return request.headers.get("cookie", "")

    def store(self, answer: Answer) -> list[tuple[str, str]]:
        """Keep what an answer sets, up to a number. Returns names and values of all that there are now."""
        response = httpx2.Response(
            answer.status, headers=list(answer.headers), request=httpx2.Request("GET", answer.url)
        )
        with self._lock:
            self._cookies.extract_cookies(response)
            for cookie in list(self._cookies.jar)[MOST:]:
                self._cookies.jar.clear(cookie.domain, cookie.path, cookie.name)
            return [(cookie.name, cookie.value or "") for cookie in self._cookies.jar]
