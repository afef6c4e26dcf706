"""Patterns of `allowHosts`: `api.test`, `*.api.test`, `127.0.0.1:8080`, `[::1]`, `*`.

A configuration is checked before the manifest is sent (see `ext_sdk.Config`), so this module imports nothing.
"""

from __future__ import annotations


def check_config(members: dict[str, object]) -> None:
    """Raise ValueError for a configuration that `HttpConfig` refuses."""
    hosts = members.get("allowHosts", [])
    for pattern in hosts if isinstance(hosts, list) else []:
        check_pattern(pattern)


def check_pattern(pattern: str) -> None:
    """Raise ValueError for an entry of `allowHosts` that is not a valid pattern."""
    host, port = split_pattern(pattern)
    if (
        not host
        or set("/@${} ") & set(pattern)
        or "*" in host.removeprefix("*.") != "*"
        or (port and not port.isdecimal())
    ):
        raise ValueError(f"expected a host, *.host, host:port or *, found {pattern!r:.100}")


def split_pattern(pattern: str) -> tuple[str, str]:
    """Return the host and port of a pattern; the port is "" if the pattern has none."""
    if pattern.startswith("["):
        host, _, port = pattern[1:].partition("]")
        return host.lower(), port.removeprefix(":")
    if pattern.count(":") > 1:  # an IPv6 address without brackets
        return pattern.lower(), ""
    host, _, port = pattern.partition(":")
    return host.lower(), port


def names(pattern: str, host: str, port: int) -> bool:
    """Return True if a pattern names exactly this host; a wildcard does not."""
    pattern_host, pattern_port = split_pattern(pattern)
    return pattern_host == host.rstrip(".") and pattern_port in {"", str(port)}


def matches(pattern: str, host: str, port: int) -> bool:
    """Return True if a pattern names a host or covers it with a wildcard."""
    pattern_host, pattern_port = split_pattern(pattern)
    host = host.rstrip(".")
    if pattern_port not in {"", str(port)}:
        return False
    return pattern_host in {"*", host} or (pattern_host.startswith("*.") and host.endswith(pattern_host[1:]))
