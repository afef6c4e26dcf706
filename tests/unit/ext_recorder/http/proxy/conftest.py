"""An event loop, and what a stream of it has received."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from ext_recorder.http.event_loop import EventLoop
from ext_recorder.http.proxy.streams import Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TURNS = 10_000


class Receiver:
    """Handler of a stream that keeps its events."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.ends: list[OSError | None] = []
        self.handshakes: list[OSError | None] = []
        self.drains = 0

    @property
    def data(self) -> bytes:
        """Return everything that was received."""
        return b"".join(self.pieces)

    def received(self, stream: Stream, data: bytes) -> None:
        """Keep a piece."""
        self.pieces.append(data)

    def ended(self, stream: Stream, error: OSError | None) -> None:
        """Keep the end."""
        self.ends.append(error)
        stream.close()

    def secured(self, stream: Stream, error: OSError | None) -> None:
        """Keep the end of the handshake."""
        self.handshakes.append(error)

    def drained(self, stream: Stream) -> None:
        """Count."""
        self.drains += 1


class Loop(EventLoop):
    """Event loop of a test."""

    def __init__(self) -> None:
        self._owners: list[object] = []
        super().__init__()

    def watch(self, fd: int, events: int, ready: Callable[[int], None]) -> None:
        """Watch a descriptor."""
        super().watch(fd, events, ready)
        self._owners.append(getattr(ready, "__self__", None))

    def close(self) -> None:
        """Close all streams."""
        for owner in self._owners:
            if isinstance(owner, Stream):
                owner.close()

    def until(self, condition: Callable[[], object]) -> None:
        """Process events until a condition is true; fail if nothing happens any more."""
        for _ in range(TURNS):
            if condition():
                return
            self.turn(5.0)
        pytest.fail("the condition did not become true")


@pytest.fixture
def loop() -> Iterator[Loop]:
    """Yield an event loop; its streams are closed at the end."""
    made = Loop()
    yield made
    made.close()


@pytest.fixture
def pair(loop: Loop) -> tuple[Stream, Stream]:
    """Return both ends of a connection; their handlers are receivers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        return Stream(loop, near, Receiver()), Stream(loop, listener.accept()[0], Receiver())
