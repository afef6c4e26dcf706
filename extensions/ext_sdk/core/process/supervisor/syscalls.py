"""System calls that the modules of this program share."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal  # `signal` without its enums, whose import takes as long as the rest of this program

__all__ = ["STOP_SIGNALS", "become_subreaper", "reset_signals", "send", "wake_on"]

PR_SET_CHILD_SUBREAPER = 36
STOP_SIGNALS = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM)


def become_subreaper() -> None:
    """Make orphans below this process its children. Not inherited: each supervisor calls this for itself."""
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reset_signals() -> None:
    """Reset every signal to its default: Python ignores SIGPIPE and SIGXFSZ, which exec would keep."""
    for number in range(1, _signal.NSIG):
        try:
            _signal.signal(number, _signal.SIG_DFL)
        except (OSError, ValueError):
            continue  # SIGKILL, SIGSTOP and those that the C library keeps for itself
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())


def send(pid: int, number: int) -> None:
    """Send a signal; skip a process that has ended or that this user may not signal."""
    try:  # noqa: SIM105 - importing contextlib takes as long as this complete program
        os.kill(pid, number)
    except OSError:
        pass


def wake_on(*signals: int) -> int:
    """Write these signals as bytes to a pipe, so that `poll` reports them; return the end to read."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    _signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in signals:
        _signal.signal(number, lambda number, frame: None)
    return reader
