"""How long the exchange of this thread may still take. The library knows the time of one read only, not of all."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import ext_sdk

if TYPE_CHECKING:
    from collections.abc import Iterator

SLICE = 0.25  # seconds after which somebody who waits for a socket looks whether they have to stop


class Budget:
    """The time for one exchange.

    Args:
        deadline: for all of it.
        connect: seconds for connecting, TLS included; None: as much as there is.

    Attributes:
        connections: how many were begun for it; none where one was there already.
    """

    __slots__ = ("connect", "connections", "deadline")

    def __init__(self, deadline: ext_sdk.Deadline, connect: float | None = None) -> None:
        self.deadline = deadline
        self.connect = connect
        self.connections = 0

    def connecting(self) -> Budget:
        """The time for a connection that begins now."""
        self.connections += 1
        return self if self.connect is None else Budget(self.deadline.limit(self.connect))

    def slice(self) -> float:
        """Seconds to wait for a socket, after which to ask again. Raises TimeoutError when there are none left."""
        left = self.deadline.remaining()
        if left <= 0:
            raise TimeoutError("the extension was told to end" if self.deadline.stopped.is_set() else "no time is left")
        return min(left, SLICE)


_CURRENT: ContextVar[Budget] = ContextVar("budget")
_UNLIMITED = Budget(ext_sdk.Deadline())


def current() -> Budget:
    """The budget of the exchange that this thread is at."""
    return _CURRENT.get(_UNLIMITED)


@contextmanager
def spending(budget: Budget) -> Iterator[None]:
    """All that goes over a socket within the block counts."""
    token = _CURRENT.set(budget)
    try:
        yield
    finally:
        _CURRENT.reset(token)
