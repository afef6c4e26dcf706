"""Run a command, and fail if it leaves a process behind.

    python .ci/no_orphans.py COMMAND [ARGUMENT…]

On Linux, a process whose parent exits is adopted by the nearest ancestor that requested it (PR_SET_CHILD_SUBREAPER).
This program requests it, so it finds orphans regardless of their session, group or environment. On other systems the
command runs without this check.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
GRACE_SECONDS = 10.0  # supervisors exit after the processes they clean up
POLL_SECONDS = 0.02


def children() -> list[int]:
    """Return the running processes that were adopted."""
    tasks = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return [int(pid) for task in tasks for pid in task.read_text().split()]


def ended(pid: int) -> int:
    """Wait for a process, and reap all adopted processes that exit meanwhile, as init does.

    Returns:
        The exit code, as a shell gives it: 128 and the number of the signal that ended it.
    """
    while True:
        found, status = os.waitpid(-1, 0)
        if found == pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def left_behind() -> list[int]:
    """Return the processes that are still running after the grace period."""
    deadline = time.monotonic() + GRACE_SECONDS
    while found := children():
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if time.monotonic() > deadline:
            return found
        time.sleep(POLL_SECONDS)
    return []


def main(command: list[str]) -> int:
    """Run the command. Return its exit code, or 1 if it left processes behind, which are killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    process = subprocess.Popen(command)
    code = process.returncode = ended(process.pid)  # otherwise the object would wait for the process, too
    orphans = left_behind() if sys.platform == "linux" else []
    for pid in orphans:
        command_line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        print(f"left behind: process {pid}: {command_line}", file=sys.stderr)
        os.kill(pid, signal.SIGKILL)
    return code or bool(orphans)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
