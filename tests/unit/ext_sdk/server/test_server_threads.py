"""Threads for operations: as many as are at work, used again, and in nobody's way."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ext_sdk.server import server
from ext_sdk.server.server import Workers

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

PATIENCE_SECONDS = 30.0


def meet(count: int) -> tuple[threading.Barrier, Callable[[], None]]:
    """A task that ends only when `count` of it, and the test, have come together."""
    barrier = threading.Barrier(count + 1, timeout=PATIENCE_SECONDS)

    def task() -> None:
        barrier.wait()

    return barrier, task


def test_tasks_run_side_by_side() -> None:
    pool = Workers()
    barrier, task = meet(20)
    for _ in range(20):
        pool.run(task)
    barrier.wait()  # all twenty are at work: breaks otherwise


def test_threads_are_used_again() -> None:
    pool = Workers()
    done = threading.Semaphore(0)
    seen: set[int] = set()

    def task() -> None:
        seen.add(threading.get_ident())
        done.release()

    for _ in range(200):
        pool.run(task)
        assert done.acquire(timeout=PATIENCE_SECONDS)
    assert len(seen) < 100


def test_threads_do_not_keep_the_interpreter() -> None:
    pool = Workers()
    daemons: list[bool] = []
    barrier, task = meet(1)

    def look() -> None:
        daemons.append(threading.current_thread().daemon)
        task()

    pool.run(look)
    barrier.wait()
    assert daemons == [True]


def test_an_idle_thread_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.01)
    pool = Workers()
    found: list[threading.Thread] = []
    barrier, task = meet(1)

    def look() -> None:
        found.append(threading.current_thread())
        task()

    pool.run(look)
    barrier.wait()
    found[0].join(PATIENCE_SECONDS)
    assert not found[0].is_alive()
    barrier, task = meet(1)
    pool.run(task)  # and the next task has a thread all the same
    barrier.wait()


def test_no_task_is_lost_when_threads_end_as_tasks_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.0)
    pool = Workers()
    done = threading.Semaphore(0)
    for _ in range(2000):
        pool.run(done.release)
    for _ in range(2000):
        assert done.acquire(timeout=PATIENCE_SECONDS), "a task was never run"
