"""The pipe that ends a loop's wait; signals that come by it are in test_server, with a process of their own."""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING

import pytest

from ext_sdk.server.server import SIGNALS, Wakeup

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def wakeup() -> Iterator[Wakeup]:
    one = Wakeup()
    yield one
    os.close(one.descriptor)
    os.close(one._write)


def awake(wakeup: Wakeup) -> bool:
    return bool(select.select([wakeup.descriptor], [], [], 0)[0])


def test_a_loop_is_woken_once_and_by_no_signal(wakeup: Wakeup) -> None:
    assert not awake(wakeup)
    wakeup.wake()
    assert awake(wakeup)
    assert not wakeup.drain()
    assert not awake(wakeup)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_seen_among_others_that_wake(wakeup: Wakeup, number: int) -> None:
    wakeup.wake()
    os.write(wakeup._write, bytes([number]))  # as the interpreter does
    wakeup.wake()
    assert wakeup.drain()
    assert not awake(wakeup)


def test_a_loop_that_does_not_look_blocks_nobody(wakeup: Wakeup) -> None:
    for _ in range(200_000):  # more than a pipe holds
        wakeup.wake()
    assert awake(wakeup)
