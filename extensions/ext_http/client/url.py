"""URLs of requests, and the SSRF guard: hosts that they may not lead to."""

from __future__ import annotations

import ipaddress
import re
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

import ext_sdk
from ext_http.host_patterns import matches, names
from ext_sdk.metadata_hosts import hands_out_credentials, unwrapped

from .errors import Refused

if TYPE_CHECKING:
    from ext_sdk.metadata_hosts import Address


# For the first import of the HTTP library: two threads that import parts of it may each see half-initialized modules.
IMPORT_LOCK = threading.Lock()
_NOT_IN_TARGET = re.compile(r"[^\x21-\x7e]")
DEFAULT_PORTS = {"http": 80, "https": 443}
User = tuple[str, str]  # name and password


class Origin(NamedTuple):
    """Scheme, host in lower case without brackets, and port."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"


class Target(NamedTuple):
    """URL of a request.

    Attributes:
        url: absolute and normalized, without user information.
        origin: of the URL.
        user: user and password of the URL; None if it has none.
        literal: the task itself contains the host, not a variable.
        raw: path and query as they are sent; "" for those of `url`.
    """

    url: str
    origin: Origin
    user: User | None = None
    literal: bool = False
    raw: str = ""

    @property
    def trusted(self) -> tuple[str, int] | None:
        """Return host and port as a Guard takes them."""
        return self.origin[1:] if self.literal else None


def parse(text: str, field: str = "url") -> Target:
    """Return the target that an http or https URL names. Raises InvalidArgs if it is not one."""
    check(text, field)
    return _target(normalized(text, field))


def join(base: str, reference: str) -> Target:
    """Return the target of a Location header (RFC 9110, 10.2.2). Raises ValueError, InvalidArgs if it is invalid."""
    import httpx2

    try:
        url = str(httpx2.URL(base).join(reference).copy_with(fragment=None))
    except httpx2.InvalidURL as error:
        raise ValueError(str(error)) from error
    check(url)
    return _target(url)


def check(url: str, field: str = "url") -> None:
    """Raise InvalidArgs if a text is not an absolute http or https URL."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ext_sdk.InvalidArgs(field, f"expected a URL, found {url!r:.200}: {error}") from None
    if parts.scheme not in DEFAULT_PORTS:
        found = f"{parts.scheme}://" if "://" in url else f"{url!r:.200}"
        hint = "; the operation websocket opens it" if parts.scheme in {"ws", "wss"} else ""
        raise ext_sdk.InvalidArgs(field, f"expected a URL with http:// or https://, found {found}{hint}")
    if not parts.hostname or port == 0:
        raise ext_sdk.InvalidArgs(field, f"expected a URL with a host, found {url!r:.200}")


@lru_cache(maxsize=256)  # most tasks request a few URLs many times
def normalized(url: str, field: str = "url") -> str:
    """Return a URL in ASCII without its fragment: host by IDNA, other characters percent-encoded where required.

    Raises:
        InvalidArgs: the text is not a URL.
    """
    with IMPORT_LOCK:
        import httpx2

    try:
        return str(httpx2.URL(url).copy_with(fragment=None))
    except (httpx2.InvalidURL, UnicodeError, ValueError) as error:
        raise ext_sdk.InvalidArgs(field, f"expected a URL, found {url!r:.200}: {error}") from None


def raw_target(url: str) -> str:
    """Return path and query of a URL without normalization. Raises InvalidArgs if HTTP can't send them so."""
    rest = url.partition("://")[2].partition("#")[0]
    raw = rest[min((at for at in map(rest.find, "/?") if at >= 0), default=len(rest)) :]
    raw = raw if raw.startswith("/") else f"/{raw}"
    if wrong := _NOT_IN_TARGET.search(raw):
        problem = f"expected visible ASCII characters, found {wrong[0]!r} in {raw!r:.200}; percent-encode it"
        raise ext_sdk.InvalidArgs("url", f"{problem}, because pathAsIs sends the path unchanged")
    return raw


def host_is_literal(given: str, expanded: str) -> bool:
    """Return True if the task contains the host and port of a URL literally, not in a variable.

    Args:
        given: the URL in the task, with `${NAME.key}`.
        expanded: the same URL with the values of the variables.
    """
    if given == expanded:
        return True
    scheme, separator, rest = given.partition("://")
    end = min((at for at in map(rest.find, "/?#") if at >= 0), default=-1)
    if not separator or end < 0:
        return False
    fixed = f"{scheme}://{rest[:end]}"
    return "${" not in fixed and expanded.startswith(fixed + rest[end])


def origin_of(url: str) -> Origin:
    """Return the origin of a valid http or https URL."""
    return _origin(urlsplit(url))


def _origin(parts: SplitResult) -> Origin:
    return Origin(parts.scheme, (parts.hostname or "").lower(), parts.port or DEFAULT_PORTS[parts.scheme])


def _target(url: str) -> Target:
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return Target(url, _origin(parts))
    user, password = (unquote(text or "") for text in (parts.username, parts.password))
    return Target(urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])), _origin(parts), (user, password))


class Guard(NamedTuple):
    """Hosts and addresses that a request may reach.

    Attributes:
        allow: patterns as in `allowHosts`, in lower case.
        trusted: (host, port) that the task itself names; None if it names none.
    """

    allow: tuple[str, ...] = ()
    trusted: tuple[str, int] | None = None

    def check_host(self, host: str, port: int) -> None:
        """Raise Refused for a host that may not be reached. Its addresses are checked when it is connected to."""
        self._check_metadata(host, port, _address(host))
        if (host, port) == self.trusted or any(matches(pattern, host, port) for pattern in self.allow):
            return
        name = f"[{host}]" if ":" in host else host
        raise Refused(
            f"host {host}, port {port}, is refused: it comes from a variable or a redirect, the task does not name it; "
            f'to allow it, set "allowHosts": ["{name}:{port}"], or "{name}" for all of its ports'
        )

    def check_address(self, host: str, port: int, address: str) -> None:
        """Raise Refused for an address that may not be connected to.

        Args:
            host: as it was requested.
            address: that the host's name was resolved to.
        """
        parsed = _address(address)
        self._check_metadata(host, port, parsed)
        exact = (host, port) == self.trusted or any(names(pattern, host, port) for pattern in self.allow)
        if parsed is None or exact or parsed.is_global:
            return
        if any(names(pattern, address, port) for pattern in self.allow):
            return
        raise Refused(
            f"host {host} is refused: its address {address} is private and `allowHosts` does not name the host itself; "
            f'to allow it, set "allowHosts": ["{host}"]'
        )

    def _check_metadata(self, host: str, port: int, address: Address | None) -> None:
        forms = {host, *(map(str, (address, unwrapped(address))) if address else ())}
        if not any(map(hands_out_credentials, forms)):
            return
        if any(names(pattern, form, port) for pattern in self.allow for form in forms):
            return
        raise Refused(
            f"host {host} is refused: clouds serve credentials at this address; "
            f'to allow it, set "allowHosts": ["{host}"]'
        )


def _address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
