"""What the writer process does when its recorder was killed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ext_recorder.record import writer_process
from ext_recorder.record.note_queue import NO_PROCESS
from ext_recorder.record.writer_process import NO_GUARD, _terminate_orphan

ENDLESS = [sys.executable, "-c", "import sys; sys.stdout.write('ready'); sys.stdout.flush(); input()"]
GUARDS = pytest.mark.parametrize("with_guard", [True, False], ids=["pidfd", "process id"])


def guard_of(pid: int, *, wanted: bool) -> int:
    if wanted and not hasattr(os, "pidfd_open"):
        pytest.skip("this system has no pidfd")
    return os.pidfd_open(pid) if wanted else NO_GUARD


@GUARDS
def test_a_child_that_goes_on_is_killed(with_guard: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_process, "CHILD_GRACE_S", 0.0)
    with subprocess.Popen(ENDLESS, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        assert child.stdout.read(5) == b"ready"
        guard = guard_of(child.pid, wanted=with_guard)
        _terminate_orphan(child.pid, guard)
        assert child.wait() == -9
    if with_guard:
        os.close(guard)


@GUARDS
def test_a_child_that_has_ended_is_left_alone(with_guard: bool) -> None:
    with subprocess.Popen(ENDLESS, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        guard = guard_of(child.pid, wanted=with_guard)
    _terminate_orphan(child.pid, guard)
    if with_guard:
        os.close(guard)


def test_no_process_is_not_all_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("kill was called"))
    _terminate_orphan(NO_PROCESS, NO_GUARD)
