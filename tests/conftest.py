"""What holds for all tests."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.support.ports import reserved_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.ports import NewPort


def pytest_configure() -> None:
    """Restore signals that shells (in the background) and `nohup` ignore: tests send them to programs."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def new_port() -> Iterator[NewPort]:
    """Gives ports that are the test's own until it ends, see `reserved_port`."""
    with ExitStack() as held:
        yield lambda: held.enter_context(reserved_port())
