"""Hosts at which clouds hand out credentials to any client inside: extensions send no request of a task there.

A name may resolve to such an address, so the resolved address counts, and must be the one that is connected to: a name
that is resolved twice may give two addresses.
"""

from __future__ import annotations

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
NAMES = frozenset({"metadata", "metadata.google.internal", "metadata.goog", "instance-data"})

ADDRESSES = frozenset(
    map(
        ipaddress.ip_address,
        (
            "169.254.169.254",  # AWS, GCP, Azure and others
            "169.254.170.2",  # ECS
            "169.254.170.23",  # EKS
            "168.63.129.16",  # the agent of Azure
            "100.100.100.200",  # Alibaba
            "192.0.0.192",  # Oracle
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
        ),
    )
)

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def hands_out_credentials(host: str) -> bool:
    """Return True if a name, or an address in any notation, is one of these hosts."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host.lower().rstrip(".") in NAMES
    return unwrapped(address) in ADDRESSES


def unwrapped(address: Address) -> Address:
    """Return the IPv4 address in an IPv6 one (mapped, 6to4, NAT64); any other unchanged."""
    if not isinstance(address, ipaddress.IPv6Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
