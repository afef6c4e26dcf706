"""Named sessions: cookies, base URL and headers that several requests share."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ext_http.client.url import IMPORT_LOCK

if TYPE_CHECKING:
    from ext_http.client.cookies import CookieJar


SessionName = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,64}$")]


class Session:
    """State that the requests of one session share.

    Attributes:
        base_url: base of relative URLs; "" if not set.
        base_given: the base URL as the task contains it, variables not yet replaced.
        secret_headers: names, in lower case, of headers whose values are redacted.
    """

    __slots__ = ("base_given", "base_url", "cookies", "headers", "secret_headers")

    def __init__(self) -> None:
        with IMPORT_LOCK:
            from ext_http.client.cookies import CookieJar

        self.cookies: CookieJar = CookieJar()
        self.base_url = ""
        self.base_given = ""
        self.headers: dict[str, str] = {}
        self.secret_headers: frozenset[str] = frozenset()


class Sessions:
    """Sessions of a workdir, by name. Thread-safe."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()

    def get(self, name: str) -> Session:
        """Return the session of this name, created at its first use."""
        with self._lock:
            return self._sessions.setdefault(name, Session())

    def with_base_url(self) -> list[str]:
        """Return the names of the sessions that have a base URL."""
        with self._lock:
            return sorted(name for name, session in self._sessions.items() if session.base_url)

    def forget(self, name: str) -> None:
        """Delete a session; the next use of its name creates a new one."""
        with self._lock:
            self._sessions.pop(name, None)
