"""The loop does deferred work when no event is ready, or when too much of it waits."""

from __future__ import annotations

import os
from threading import Thread

from ext_recorder.http.event_loop import MOST_DEFERRED, MOST_DEFERRED_BYTES, READ, EventLoop


def test_deferred_work_waits_for_an_idle_loop_unless_there_is_too_much_of_it() -> None:
    loop, done = EventLoop(), []
    ready, write = os.pipe()
    os.write(write, b"x")
    loop.watch(ready, READ, lambda _: done.append("event"))
    loop.defer(lambda: done.append("deferred"))
    loop.turn(0)
    loop.turn(0)
    assert done == ["event", "event"]
    loop.defer(lambda: done.append("large"), MOST_DEFERRED_BYTES + 1)
    loop.turn(0)
    assert done[2:] == ["event", "deferred"]
    for _ in range(MOST_DEFERRED):
        loop.defer(lambda: done.append("many"))
    loop.turn(0)
    assert done[4:] == ["event", "large"]
    loop.unwatch(ready)
    loop.turn(None)
    assert done[6:] == ["many"]
    loop.drain()
    assert done[6:] == ["many"] * MOST_DEFERRED


def test_timers_run_in_their_order_and_not_if_they_are_cancelled() -> None:
    loop, done = EventLoop(), []
    loop.after(0.002, lambda: done.append("second"))
    loop.after(0.0, lambda: done.append("first"))
    loop.after(0.001, lambda: done.append("cancelled")).cancelled = True
    while len(done) < 2:
        loop.turn(None)
    assert done == ["first", "second"]


def test_work_of_another_thread_wakes_the_loop() -> None:
    loop, done = EventLoop(), []
    thread = Thread(target=lambda: loop.post(lambda: done.append("posted")))
    thread.start()
    while not done:
        loop.turn(None)
    thread.join()
    assert done == ["posted"]


def test_a_descriptor_without_events_is_not_watched_until_it_has_some() -> None:
    loop, done = EventLoop(), []
    ready, write = os.pipe()
    os.write(write, b"x")

    def note(_: int) -> None:
        done.append("event")

    loop.rewatch(ready, READ, note)
    loop.rewatch(ready, 0, note)
    assert not loop.turn(0)
    loop.rewatch(ready, READ, note)
    assert loop.turn(0)
    assert done == ["event"]
