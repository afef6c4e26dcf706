"""Ports of this machine for servers that are started later, or never: nobody else gets them meanwhile."""

from __future__ import annotations

import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    NewPort: TypeAlias = Callable[[], int]  # what the fixture `new_port` gives


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port of loopback that is bound and not listened at, as long as this lasts.

    Whoever connects is refused. The system gives it to no one who asks for any port, and a server that asks for this
    one gets it, if it sets SO_REUSEADDR, as servers do.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield int(holder.getsockname()[1])
