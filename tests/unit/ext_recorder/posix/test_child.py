"""What a child has done, as far as its parent sees it."""

from __future__ import annotations

import os

import pytest

from ext_recorder.posix.child import has_exited, spawn


@pytest.mark.parametrize("name", ["waitid of Python", "waitid of the system"])
def test_the_status_of_a_child_that_has_exited_can_still_be_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "waitid of the system":  # as with Python 3.11 and 3.12 on macOS
        monkeypatch.delattr(os, "waitid")
    child = spawn(["sh", "-c", "read line; exit 3"])
    assert not has_exited(child.pid)
    os.close(child.stdin)
    while not has_exited(child.pid):
        os.sched_yield()
    assert has_exited(child.pid)
    assert os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1]) == 3
    with pytest.raises(ChildProcessError):
        has_exited(child.pid)
    os.close(child.stdout)
    os.close(child.stderr)
