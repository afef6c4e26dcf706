"""The recorder waits for a worker that reports progress, and stops one that does not."""

from __future__ import annotations

import os
import socket
from threading import Event
from typing import TYPE_CHECKING

import pytest

from ext_recorder.http import controller
from ext_recorder.http.controller import WorkerProcess
from ext_recorder.http.worker_context import WorkerOutcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ext_recorder.http.worker_context import WorkerContext

    Work = Callable[[WorkerContext], WorkerOutcome]
    Start = Callable[[Work], WorkerProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[WorkerProcess] = []

    def begin(work: Work) -> WorkerProcess:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        started.append(WorkerProcess(listener, str(tmp_path / "session"), work))
        return started[-1]

    yield begin
    for process in started:
        process.close()


def test_progress_is_reported_only_after_the_end_of_the_session(start: Start) -> None:
    def work(context: WorkerContext) -> WorkerOutcome:
        reports: list[str] = []
        send, context.busy = context.busy, lambda: reports.append("busy")
        context.proceed()
        before = len(reports)
        context.ready("seed", 0, [])
        os.read(context.control, 1)  # the rest of the message stays, so the session has ended
        context._reported = 0.0
        context.proceed()
        context.proceed()  # too soon for another report
        for _ in range(3):
            send()
        return WorkerOutcome(ok=True, lines=[f"{before} before, {len(reports)} after"])

    assert start(work).outcome(0.0, whole=True) == ("ok", ["", "0 before, 1 after"])


def test_a_long_end_is_reported(
    start: Start, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(controller, "QUIET_ELSEWHERE_S", -1.0)

    def work(context: WorkerContext) -> WorkerOutcome:
        context.ready("seed", 0, [])
        context.busy()
        context.busy()
        return WorkerOutcome(ok=True, lines=[])

    assert start(work).outcome(0.0, whole=True) == ("ok", [""])
    assert capsys.readouterr().err.count("writing the recording") == 1


def test_a_worker_without_progress_is_stopped(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(context: WorkerContext) -> WorkerOutcome:
        context.ready("seed", 0, [])
        Event().wait()
        return WorkerOutcome(ok=True, lines=[])

    process = start(work)
    monkeypatch.setattr(controller, "FINISH_S", 0.01)
    assert process.outcome(0.0, whole=True) is None
