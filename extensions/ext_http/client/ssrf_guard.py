"""Guard against requests to addresses that were not meant: cloud metadata, and what `allowHosts` leaves out."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, urlsplit

import ext_sdk
from ext_http.early_check import split_pattern
from ext_sdk.net.metadata_hosts import hands_out_credentials, unwrapped

from .errors import Refused

if TYPE_CHECKING:
    from ext_sdk.net.metadata_hosts import Address


DEFAULT_PORTS = {"http": 80, "https": 443}


class Origin(NamedTuple):
    """Scheme, host in lower case without brackets, and port."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"


class Guard(NamedTuple):
    """What a request may reach.

    Attributes:
        allow: hosts as `allowHosts` has them: `api.test`, `*.api.test`, `127.0.0.1:8080`, `[::1]`, `*`.
        trusted: (host, port) of which the task itself says that it is to be asked; None: none.
    """

    allow: tuple[str, ...] = ()
    trusted: tuple[str, int] | None = None

    def check_host(self, host: str, port: int) -> None:
        """Raise Refused for a host that may not be asked; the addresses that its name has are checked later."""
        self._check_metadata(host, port, _address(host))
        if (host, port) == self.trusted or any(_matches(each, host, port) for each in self.allow):
            return
        raise Refused(
            f"{host}, port {port}, is not asked, for this host does not stand in the task but came out of a variable "
            f'or a redirect; if it may be asked, say so: "allowHosts": ["{_pattern(host, port)}"]'
        )

    def check_address(self, host: str, port: int, address: str) -> None:
        """Raise Refused for an address of a host that may not be connected to.

        Args:
            host: as it was asked for.
            port: of the address.
            address: that its name turned out to have.
        """
        found = _address(address)
        self._check_metadata(host, port, found)
        exact = (host, port) == self.trusted or any(_names(each, host, port) for each in self.allow)
        if found is None or exact or found.is_global:
            return
        if any(_names(each, address, port) for each in self.allow):
            return
        raise Refused(
            f"{host} is not asked, for its address {address} is a private one and `allowHosts` does not name the host "
            f'itself; if it may be asked, say so: "allowHosts": ["{host}"]'
        )

    def _check_metadata(self, host: str, port: int, address: Address | None) -> None:
        spellings = {host, *(map(str, (address, unwrapped(address))) if address else ())}
        if not any(map(hands_out_credentials, spellings)):
            return
        if any(_names(each, name, port) for each in self.allow for name in spellings):
            return
        raise Refused(
            f"{host} is not asked, for it is an address at which clouds hand out credentials; "
            f'if it may be asked, say so: "allowHosts": ["{host}"]'
        )


def origin_of(url: str, field: str = "url") -> Origin:
    """The origin of an absolute URL. Raises InvalidArgs for what is none, or neither http nor https."""
    parts = split(url, field)
    return Origin(parts.scheme, (parts.hostname or "").lower(), parts.port or DEFAULT_PORTS[parts.scheme])


def split(url: str, field: str = "url") -> SplitResult:
    """The parts of an absolute http or https URL. Raises InvalidArgs for anything else."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ext_sdk.InvalidArgs(field, f"expected a URL, found {url!r:.200}: {error}") from None
    if parts.scheme not in DEFAULT_PORTS:
        found = f"{parts.scheme}://" if "://" in url else f"{url!r:.200}"
        raise ext_sdk.InvalidArgs(field, f"expected a URL with http:// or https://, found {found}")
    if not parts.hostname or port == 0:
        raise ext_sdk.InvalidArgs(field, f"expected a URL with a host, found {url!r:.200}")
    return parts


def host_is_literal(given: str, expanded: str) -> bool:
    """Whether the host and port of a URL stand in the task themselves, and not in a variable of it.

    Args:
        given: the URL as the task has it, with `${NAME.key}`.
        expanded: the same with its values.
    """
    if given == expanded:
        return True
    scheme, found, rest = given.partition("://")
    end = min((at for at in map(rest.find, "/?#") if at >= 0), default=-1)
    if not found or end < 0:
        return False
    fixed = f"{scheme}://{rest[:end]}"
    return "${" not in fixed and expanded.startswith(fixed + rest[end])


def _pattern(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _names(pattern: str, host: str, port: int) -> bool:
    """Whether a pattern names this very host."""
    wanted, wanted_port = split_pattern(pattern)
    return wanted == host.rstrip(".") and wanted_port in {"", str(port)}


def _matches(pattern: str, host: str, port: int) -> bool:
    wanted, wanted_port = split_pattern(pattern)
    host = host.rstrip(".")
    if wanted_port not in {"", str(port)}:
        return False
    return wanted in {"*", host} or (wanted.startswith("*.") and host.endswith(wanted[1:]))


def _address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
