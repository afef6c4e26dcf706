"""Named sessions: cookies that stay from one request to the next, and what all of their requests have in common."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

if TYPE_CHECKING:
    from ext_http.client.cookies import CookieJar


SessionName = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,64}$")]


class Session:
    """One session.

    Attributes:
        cookies: of its servers.
        base_url: that its URLs are relative to; "" for none.
        base_given: the same, as the task has it.
        headers: of all of its requests.
        secret_headers: names, in lower case, of those that must not be seen.
    """

    __slots__ = ("base_given", "base_url", "cookies", "headers", "secret_headers")

    def __init__(self) -> None:
        from ext_http.client.cookies import CookieJar

        self.cookies: CookieJar = CookieJar()
        self.base_url = ""
        self.base_given = ""
        self.headers: dict[str, str] = {}
        self.secret_headers: frozenset[str] = frozenset()


class Sessions:
    """The sessions of a working directory; safe in several threads."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()

    def get(self, name: str) -> Session:
        """The session of this name, made at its first use."""
        with self._lock:
            return self._sessions.setdefault(name, Session())

    def forget(self, name: str) -> None:
        """End a session; the next use of its name begins a new one."""
        with self._lock:
            self._sessions.pop(name, None)
