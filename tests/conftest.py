"""What holds for all tests."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Programs that are tested here are interrupted; a shell that starts this in the background has that ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
