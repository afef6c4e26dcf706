"""SSRF guard: refuses hosts that the task does not name, and cloud metadata addresses."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, NamedTuple

from ext_http.host_patterns import matches, names
from ext_sdk.net.metadata_hosts import hands_out_credentials, unwrapped

from .errors import Refused

if TYPE_CHECKING:
    from ext_sdk.net.metadata_hosts import Address


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
        pattern = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        raise Refused(
            f"host {host}, port {port}, is refused: it comes from a variable or a redirect, the task does not name it; "
            f'to allow it, set "allowHosts": ["{pattern}"]'
        )

    def check_address(self, host: str, port: int, address: str) -> None:
        """Raise Refused for an address that may not be connected to.

        Args:
            host: as it was requested.
            port: of the address.
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
