"""A host that says all it has to say, and reads when it likes: bulk_host.py REQUESTS PIECE PAUSE COMMAND...

Sends the first line of the file REQUESTS to COMMAND and waits for its answer, so that all of them run; then all the
rest, as fast as it is taken, and reads meanwhile what comes, PIECE bytes at a time, PAUSE seconds after each. As many
lines must come, and the same where `--same` is the first word of COMMAND. Prints one line of JSON: seconds from the
second line to the last byte that came, and the most memory that the child ever had (0: not known here).
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

PATIENCE_SECONDS = 60  # for anything to be taken or said


def memory(pid: int) -> int:
    """The most that a process ever had, in KiB; 0 where a system does not tell."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def exchange(child: subprocess.Popen[bytes], requests: memoryview, lines: int, piece: int, pause: float) -> bytearray:
    """Send, and read until so many lines came. Returns them."""
    assert child.stdin is not None
    assert child.stdout is not None
    to_child, from_child = child.stdin.fileno(), child.stdout.fileno()
    os.set_blocking(to_child, False)
    came = bytearray()
    seen = 0
    while seen < lines:
        readable, writable, _ = select.select([from_child], [to_child] if requests else [], [], PATIENCE_SECONDS)
        if not readable and not writable:
            raise SystemExit(f"bulk_host: nothing happens any more after {seen} of {lines} lines")
        if writable:
            requests = requests[os.write(to_child, requests[:65_536]) :]
        if readable:
            data = os.read(from_child, piece)
            if not data:
                raise SystemExit(f"bulk_host: the child ended after {seen} of {lines} lines")
            came += data
            seen += data.count(10)
            if pause:
                time.sleep(pause)
    return came


def main() -> int:
    file, piece, pause, *command = sys.argv[1:]
    requests = Path(file).read_bytes()
    first = requests.index(b"\n") + 1
    same = command[0] == "--same"
    child = subprocess.Popen(command[same:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    try:
        came = exchange(child, memoryview(requests)[:first], 1, int(piece), 0.0)
        begin = time.perf_counter()
        rest = memoryview(requests)[first:]
        came += exchange(child, rest, requests.count(b"\n") - 1, int(piece), float(pause))
        took = time.perf_counter() - begin
        if same and came != requests:
            raise SystemExit("bulk_host: what came is not what was sent")
        peak = memory(child.pid)
        child.communicate(timeout=PATIENCE_SECONDS)
    finally:
        child.kill()
    sys.stdout.write(json.dumps({"seconds": took, "peak_kib": peak, "exit": child.returncode}) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
