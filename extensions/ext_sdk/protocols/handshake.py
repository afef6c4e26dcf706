"""The line by which a child of HashiCorp's go-plugin says that it will be spoken to somewhere else.

    1|1|unix|/tmp/plugin123|netrpc|

Core protocol version, version of the application's protocol, network, address, and in newer versions the protocol and a
certificate. Nothing more of the conversation comes by stdio.
"""

from __future__ import annotations

_NETWORKS = ("unix", "tcp")


def elsewhere(payload: bytes) -> str:
    """Where the rest of a session goes, as "unix:/tmp/plugin123"; "" for any other line.

    Args:
        payload: what a child has written: a line, or the bytes that begin with it.
    """
    fields = payload.partition(b"\n")[0].decode("utf-8", "replace").strip().split("|")
    if len(fields) < 4 or not fields[0].isdigit() or not fields[1].isdigit() or fields[2] not in _NETWORKS:
        return ""
    return f"{fields[2]}:{fields[3]}" if fields[3] else ""
