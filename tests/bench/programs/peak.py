"""Print the peak memory of a command and of all processes that it waits for, in KiB: peak.py COMMAND...

The kernel counts what a process held before `exec`, a copy of its parent's memory, in its peak. This parent is small,
so that the number is the command's own. Exits with the command's exit code.
"""

from __future__ import annotations

import os
import sys


def main() -> int:
    command = sys.argv[1:]
    null = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0), (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
    _, status, used = os.wait4(os.posix_spawn(command[0], command, os.environ, file_actions=null), 0)
    os.write(1, b"%d\n" % used.ru_maxrss)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    os._exit(main())
