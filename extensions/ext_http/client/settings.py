"""Settings of a client, hashable because equal ones share it, and sessions: what several requests share by a name."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from msgspec import Meta

from ext_http.client.url import IMPORT_LOCK, Guard

if TYPE_CHECKING:
    import httpx2

    from ext_http.client.response import Response

HttpVersion = Literal["1.1", "2", "auto"]


RECORDER = "EXT_RECORDER_PROXY"  # `ext-recorder run` records: its proxy, whose authority is in SSL_CERT_FILE, is used


class Tls(NamedTuple):
    """TLS settings.

    Attributes:
        ca: CA certificates in PEM; "" for those of the system.
        certificate: client certificate with its chain, in PEM; "" for none.
        key: key of the client certificate, in PEM.
        key_password: of an encrypted key.
        server_name: for SNI; "" for the URL's host.
    """

    ca: str = ""
    certificate: str = ""
    key: str = ""
    key_password: str = ""
    insecure: bool = False
    server_name: str = ""


class Proxy(NamedTuple):
    """HTTP proxy: its URL without user information, and (user, password)."""

    url: str
    auth: tuple[bytes, bytes] | None = None


class Settings(NamedTuple):
    """Settings of a client.

    Attributes:
        proxy: None for a direct connection.
        unix_socket: path of a socket to connect to, instead of the URL's host; "" for none.
        resolve: ((host, port), address) pairs, instead of the system's resolver; port 0 is any port.
        http_version: "auto" negotiates by ALPN.
    """

    guard: Guard = Guard()
    tls: Tls = Tls()
    proxy: Proxy | None = None
    unix_socket: str = ""
    resolve: tuple[tuple[tuple[str, int], str], ...] = ()
    http_version: HttpVersion = "1.1"


SessionName = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,64}$")]
MAX_COOKIES = 200  # of a port; a browser keeps 180 of a host. Also the number of ports.


class CookieJar:
    """Cookies that servers have set (RFC 6265), with a separate jar for each port. Thread-safe.

    RFC 6265, 8.5, ignores ports and calls that weak itself: on loopback, all services have one name.
    """

    def __init__(self) -> None:
        with IMPORT_LOCK:
            import httpx2

        self._library = httpx2
        self._jars: dict[int, httpx2.Cookies] = {}
        self._lock = threading.Lock()

    def header(self, url: str) -> str:
        """Return the Cookie header of a request; "" if no cookie applies."""
        request = self._library.Request("GET", url)
        request.headers.encoding = "latin-1"  # as responses are decoded: a server may send any byte
        with self._lock:
            self._jar_of(request).set_cookie_header(request)
        return request.headers.get("cookie", "")

    def store(self, response: Response) -> list[tuple[str, str]]:
        """Store the cookies that a response sets, up to the limit. Returns names and values of the port's cookies."""
        request = self._library.Request("GET", response.url)
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers]
        received = self._library.Response(response.status, headers=headers, request=request)
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
        return self._jars.setdefault(port, self._library.Cookies())


class Session:
    """State that the requests of one session share.

    Attributes:
        base_url: base of relative URLs; "" if not set.
        base_given: the base URL as the task contains it, variables not yet replaced.
        secret_headers: names, in lower case, of headers whose values are redacted.
    """

    __slots__ = ("base_given", "base_url", "cookies", "headers", "secret_headers")

    def __init__(self) -> None:
        self.cookies = CookieJar()
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
