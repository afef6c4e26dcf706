"""An extension that ends, however it ends, leaves no process behind: of `run`, of `start`, in the middle or after."""

from __future__ import annotations

import os
import select
import signal
from typing import TYPE_CHECKING

import pytest

from ext_sdk.server.server import CLEANUP_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.ext_shell import Extension
    from tests.support.process_tracker import ProcessTracker

HOST_PATIENCE = 5.0  # seconds from its request to shut down

# Each says "up" once all of it runs, holds the tracker and would run for an hour.
TREES = {
    "a tree": "sleep 3600 & echo up >&9; sleep 3600",
    "a daemon": "(setsid sh -c 'echo up >&9; exec sleep 3600' >/dev/null 2>&1 &); sleep 3600",
    "who ignores signals": "trap '' TERM INT HUP; sleep 3600 & echo up >&9; while :; do sleep 3600; done",
}

CALLS: dict[str, Callable[[str], tuple[str, dict[str, object]]]] = {
    "run": lambda script: ("run", {"script": script}),
    "start, not yet ready": lambda script: (
        "start",
        {"name": "web", "script": script, "ready": {"file": "never"}, "timeout": "1h"},
    ),
    "start": lambda script: ("start", {"name": "web", "script": script}),
}


def _shut_down(shell: Extension) -> None:
    assert "result" in shell.host.call("shutdown", {})


ENDS: dict[str, tuple[Callable[[Extension], object], set[int]]] = {
    "SIGKILL": (lambda shell: shell.host.signal(signal.SIGKILL), {-signal.SIGKILL}),
    "SIGTERM": (lambda shell: shell.host.signal(signal.SIGTERM), {0}),
    "SIGINT": (lambda shell: shell.host.signal(signal.SIGINT), {0}),
    "SIGHUP": (lambda shell: shell.host.signal(signal.SIGHUP), {0}),
    "shutdown": (_shut_down, {0}),
    "no one who listens": (lambda shell: shell.host.close_stdout(), {0, 1}),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("tree", TREES)
def test_nothing_is_left_after(
    tree: str, call: str, end: str, fresh: Callable[..., Extension], tracker: ProcessTracker
) -> None:
    shell = fresh(config={"maxOperationTime": "1h"})
    operation, args = CALLS[call](f"{tracker.hold}; {TREES[tree]}")
    shell.send(operation, args)
    assert tracker.line() == "up"
    act, codes = ENDS[end]
    act(shell)
    assert shell.host.exit_code() in codes
    assert not tracker.left()


@pytest.mark.parametrize("call", ["start, not yet ready", "start"])
def test_nothing_is_left_when_the_host_closes_its_end(
    call: str, fresh: Callable[..., Extension], tracker: ProcessTracker
) -> None:
    shell = fresh(config={"maxOperationTime": "4s"})
    operation, args = CALLS[call](f"{tracker.hold}; {TREES['a daemon']}")
    shell.send(operation, args)
    assert tracker.line() == "up"
    shell.host.close_stdin()
    assert shell.host.exit_code() == 0
    assert not tracker.left()


def test_nothing_is_left_when_it_is_killed_while_many_are_being_started(
    fresh: Callable[..., Extension], tracker: ProcessTracker
) -> None:
    shell = fresh()
    for number in range(10):
        script = f"{tracker.hold}; {TREES['a daemon']}"
        shell.send("start", {"name": f"web{number}", "script": script, "ready": {"logLine": "never"}})
    assert tracker.line() == "up"  # the first of them
    shell.host.signal(signal.SIGKILL)
    shell.host.exit_code()
    assert not tracker.left()


def test_cleaning_up_takes_less_time_than_a_host_gives(
    fresh: Callable[..., Extension], tracker: ProcessTracker
) -> None:
    """A host kills 5 s after its request to shut down; the extension is gone before its children are, if need be."""
    shell = fresh()
    shell.ok("start", name="web", script=f"{tracker.hold}; {TREES['who ignores signals']}")
    assert tracker.line() == "up"
    _shut_down(shell)
    assert not tracker.left(HOST_PATIENCE - CLEANUP_SECONDS)
    assert shell.host.exit_code() == 0


def test_a_one_shot_start_ends_with_its_process(fresh: Callable[..., Extension], tracker: ProcessTracker) -> None:
    shell = fresh()
    id = shell.send("start", {"name": "web", "script": f"{tracker.hold}; {TREES['a tree']}"})
    shell.host.close_stdin()
    assert shell.answer(id).success
    assert shell.host.exit_code() == 0
    assert not tracker.left()


def test_the_fork_server_itself_ends(fresh: Callable[..., Extension]) -> None:
    shell = fresh()
    answer = shell.ok("run", script="ps -o ppid= $PPID")
    server = int(answer.outputs["stdout"])
    handle = os.pidfd_open(server)
    try:
        shell.host.signal(signal.SIGKILL)
        assert select.select([handle], [], [], 60)[0]
    finally:
        os.close(handle)
