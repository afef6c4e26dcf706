"""The checks of a configuration that run before the manifest is sent; see `ext_sdk.Config`."""

from __future__ import annotations


def check_config(members: dict[str, object]) -> None:
    """Raise ValueError for what `HttpConfig` refuses."""
    hosts = members.get("allowHosts", [])
    check_patterns(hosts if isinstance(hosts, list) else [])


def check_patterns(allow: list[str]) -> None:
    """Raise ValueError for an entry of `allowHosts` that is not a host."""
    for each in allow:
        host, port = split_pattern(each)
        if (
            not host
            or set("/@${} ") & set(each)
            or "*" in host.removeprefix("*.") != "*"
            or (port and not port.isdecimal())
        ):
            raise ValueError(f"expected a host, *.host, host:port or *, found {each!r:.100}")


def split_pattern(pattern: str) -> tuple[str, str]:
    """Return host and port of an entry of `allowHosts`; the port is "" if there is none."""
    if pattern.startswith("["):
        host, _, port = pattern[1:].partition("]")
        return host.lower(), port.removeprefix(":")
    if pattern.count(":") > 1:  # an IPv6 address without brackets
        return pattern.lower(), ""
    host, _, port = pattern.partition(":")
    return host.lower(), port
