"""Calls that read from a socket and leave there what they read."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


def peeks(module: Any, args: Sequence[object], named: Mapping[str, object]) -> bool:
    """Return True if `recv` or `recv_into` leaves the received bytes in the socket (MSG_PEEK).

    Args:
        module: socket.
        args: of the call.
        named: of the call, too.
    """
    at = 1 if args and isinstance(args[0], int) else 2  # after the size, or after a buffer and the size
    flags = args[at] if len(args) > at else named.get("flags", 0)
    return isinstance(flags, int) and bool(flags & module.MSG_PEEK)
