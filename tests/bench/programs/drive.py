"""A host in Python, where there is no C compiler: drive.py REQUESTS ANSWERS WINDOW EARLY COMMAND...

Sends the lines of the file REQUESTS to COMMAND, at most WINDOW of them unanswered, and takes one line for each. ANSWERS
is a file with what must come, byte for byte, or "-". Prints one line of JSON: seconds from the first answer to the last
and to the child's exit, a call's median and 99th percentile, processor time, and the child's memory after EARLY
answers, at the end, and at its peak (0: not known here).
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import perf_counter

PATIENCE_SECONDS = 300  # then the system ends this process, and its child sees the end of its input


def memory(pid: int, name: str) -> int:
    """A line of /proc/PID/status in KiB; 0 where there is no such thing."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0)


def main() -> int:
    requests_file, answers_file, window, early, *command = sys.argv[1:]
    signal.alarm(PATIENCE_SECONDS)
    requests = Path(requests_file).read_bytes().splitlines(keepends=True)
    expected = None if answers_file == "-" else Path(answers_file).read_bytes()
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert child.stdin is not None
    assert child.stdout is not None
    to_child, from_child = child.stdin.fileno(), child.stdout.fileno()
    asked: list[float] = []
    took: list[float] = []
    received = 0
    begin = 0.0
    early_memory = 0
    while len(took) < len(requests):
        # One at first: the start of the child is no part of the rate.
        while len(asked) < len(requests) and len(asked) - len(took) < (int(window) if took else 1):
            asked.append(perf_counter())
            with suppress(BrokenPipeError):  # whether it has ended already is told by the end of its output
                os.write(to_child, requests[len(asked) - 1])
        data = os.read(from_child, 65_536)
        at = perf_counter()
        if not data:
            return wrong(f"the child ended after {len(took)} of {len(requests)} answers")
        if expected is not None and not expected.startswith(data, received):
            return wrong(f"answer {len(took) + 1} is not the expected one")
        received += len(data)
        for _ in range(data.count(b"\n")):
            took.append(at - asked[len(took)])
            begin = begin or perf_counter()
            if len(took) == int(early):
                early_memory = memory(child.pid, "VmRSS:")
    end = perf_counter()
    last_memory, peak = memory(child.pid, "VmRSS:"), memory(child.pid, "VmHWM:")
    child.stdin.close()
    while os.read(from_child, 65_536):
        pass
    code = child.wait()
    gone = perf_counter()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    rest = sorted(took[1:] or took)
    measured = {
        "seconds": end - begin,
        "to_exit": gone - begin,
        "p50": rest[len(rest) // 2],
        "p99": rest[len(rest) * 99 // 100],
        "cpu": used.ru_utime + used.ru_stime,
        "early_kib": early_memory,
        "last_kib": last_memory,
        "peak_kib": peak,
        "exit": code,
    }
    sys.stdout.write(json.dumps(measured) + "\n")
    return 0


def wrong(text: str) -> int:
    sys.stderr.write(f"drive: {text}\n")
    return 2


if __name__ == "__main__":
    raise SystemExit(main())
