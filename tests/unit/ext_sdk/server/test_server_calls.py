"""The table of running calls: who answers, and when."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ext_sdk import Args, Config, Context, Operation, Result
from ext_sdk.context import Artifacts, Log, Secrets, States
from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.server.server import LONGEST_WAIT_MILLISECONDS, Calls
from ext_sdk.server.session import Call

PATIENCE_SECONDS = 30.0


def do(args: Args, context: Context) -> Result:
    """Do nothing."""
    return Result.ok()


def call(latest: float | None = None) -> Call:
    context = Context(
        workdir=Path("/"),
        log=Log(lambda level, message, data: None),
        config=Config(),
        secrets=Secrets(Redactor()),
        states=States(),
        artifacts=Artifacts("", "probe"),
    )
    return Call(Operation("do", do), Args(), context, latest, "")


def test_a_call_runs_from_its_begin_to_its_end() -> None:
    calls = Calls()
    assert not calls
    running = calls.begin("id", call())
    assert calls
    assert (running.id, calls.unclaimed()) == ("id", [running])
    calls.end(running)
    assert not calls


def test_a_call_is_claimed_once() -> None:
    calls = Calls()
    running = calls.begin(1, call())
    assert [calls.try_claim(running) for _ in range(3)] == [True, False, False]
    assert calls  # until its answer is out
    assert calls.unclaimed() == []


def test_calls_are_late_when_their_time_is_over_and_nobody_answers() -> None:
    calls = Calls()
    calls.begin(1, call())
    calls.begin(2, call(3600))
    late, claimed = calls.begin(3, call(0)), calls.begin(4, call(-1))
    calls.try_claim(claimed)
    assert calls.late() == [late]


@pytest.mark.parametrize(
    ("latest", "least", "most"),
    [
        ([], None, None),
        ([None, None], None, None),
        ([None, 3.0, 1.0], 0, 1001),
        ([0.0, 5.0], 1, 1),
        ([-5.0], 1, 1),
        ([9e9], LONGEST_WAIT_MILLISECONDS, LONGEST_WAIT_MILLISECONDS),
    ],
)
def test_a_wait_ends_when_the_next_call_is_late(
    latest: list[float | None], least: int | None, most: int | None
) -> None:
    calls = Calls()
    for seconds in latest:
        calls.begin(1, call(seconds))
    left = calls.milliseconds_left()
    if left is None or least is None or most is None:
        assert left is least is most
    else:
        assert least <= left <= most


def test_a_stop_reaches_every_operation() -> None:
    calls = Calls()
    running = [calls.begin(at, call()) for at in range(3)]
    calls.stop()
    assert all(one.context.deadline.stopped.is_set() for one in running)


def test_waiting_for_none_ends_with_the_last_answer() -> None:
    calls = Calls()
    running = calls.begin(1, call())
    waits = threading.Thread(target=calls.wait_for_none, args=(PATIENCE_SECONDS,), daemon=True)
    waits.start()
    calls.end(running)
    waits.join(PATIENCE_SECONDS / 2)
    assert not waits.is_alive()


def test_waiting_for_none_ends_when_the_time_is_over() -> None:
    calls = Calls()
    calls.begin(1, call())
    calls.wait_for_none(0.01)
    assert calls
