"""Run a command, and fail if it leaves a process behind.

    python .ci/no_orphans.py COMMAND [ARGUMENT…]

A process whose parent ends is handed to the nearest ancestor that asked for it (Linux:
PR_SET_CHILD_SUBREAPER), and that is this one, whatever session, group or environment the process made for
itself. Elsewhere the command just runs.
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
GRACE_SECONDS = 10.0  # for those that are about to end: supervisors outlive what they clean up after
POLL_SECONDS = 0.02


def children() -> list[int]:
    """The processes that have become ours and have not ended."""
    tasks = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return [int(pid) for task in tasks for pid in task.read_text().split()]


def ended(pid: int) -> int:
    """Wait for a process as init would: whatever else is handed to us and ends is taken note of at once.

    Returns:
        The exit code, as a shell gives it: 128 and the number of the signal that ended it.
    """
    while True:
        found, status = os.waitpid(-1, 0)
        if found == pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def left_behind() -> list[int]:
    """The processes that are still there when the grace is over."""
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
    """Run the command; its exit code, or 1 where it left processes behind (which are ended)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    process = subprocess.Popen(command)
    code = process.returncode = ended(process.pid)  # told to the object, for it would wait itself
    orphans = left_behind() if sys.platform == "linux" else []
    for pid in orphans:
        told = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        print(f"left behind: process {pid}: {told}", file=sys.stderr)
        os.kill(pid, signal.SIGKILL)
    return code or bool(orphans)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
