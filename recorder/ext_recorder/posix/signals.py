"""Signals of the host, forwarded to the child, and the exit of the child, as files to poll.

A terminal sends Ctrl-C to the complete foreground group, so a child would get a forwarded Ctrl-C twice. Only the sender
in the kernel's siginfo distinguishes the two cases, and Python only shows it for blocked signals. So at a terminal, and
only there, SIGINT and SIGQUIT are blocked and polled every `TERMINAL_MS`. macOS does not show
the sender: there, these two signals at a terminal count as those of the terminal.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

# All signals that a process can handle, except those of faults, of job control, and of children.
_NOT_PASSED_ON = frozenset(
    {
        signal.SIGKILL, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCHLD, signal.SIGPIPE,
        signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGABRT, signal.SIGSYS,
        signal.SIGXFSZ, signal.SIGXCPU,
    }
)  # fmt: skip
PASSED_ON = tuple(sorted(signal.valid_signals() - _NOT_PASSED_ON))
FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
# Maximum delay of a signal at a terminal, in milliseconds.
TERMINAL_MS = 50


class Signals:
    """Signals since the last call.

    Attributes:
        fd: readable if `take` has signals to return.
        patience: milliseconds after which to call `take` even if `fd` is not readable; None: not needed.
    """

    __slots__ = ("_asked", "_wake", "fd", "patience")

    def __init__(self) -> None:
        self.fd, self._wake = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._wake, False)
        self.patience: int | None = None
        self._asked: tuple[int, ...] = ()

    def catch(self) -> None:
        """Catch all signals, so that none ends this process. Call this before the child is started.

        Ignored signals stay ignored, so that the child inherits that.
        """
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _wake_up)
        for number in PASSED_ON:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _wake_up)

    def catch_ignored(self) -> None:
        """Catch ignored signals as well, because a running child may handle them. Call this after it was started."""
        for number in PASSED_ON:
            signal.signal(number, _wake_up)
        try:
            terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
        except OSError:
            return
        try:
            in_foreground = os.tcgetpgrp(terminal) == os.getpgrp()
        except OSError:
            in_foreground = False
        finally:
            os.close(terminal)
        if in_foreground:
            self._asked = FROM_TERMINAL
            self.patience = TERMINAL_MS
            signal.pthread_sigmask(signal.SIG_BLOCK, FROM_TERMINAL)

    def take(self) -> Iterator[tuple[int, bool]]:
        """Yield the signals since the last call: (number, True if the child has received it as well)."""
        try:
            for number in os.read(self.fd, 4_096):
                yield number, False
        except BlockingIOError:
            pass
        if hasattr(signal, "sigtimedwait"):
            while self._asked and (info := signal.sigtimedwait(self._asked, 0)):
                yield info.si_signo, info.si_code > 0  # above 0: from the kernel, so from the terminal
        else:  # macOS does not report the sender; at a terminal it is most likely the terminal
            for number in signal.sigpending().intersection(self._asked):
                yield int(signal.sigwait((number,))), True

    def close(self) -> None:
        """Restore the default actions."""
        signal.set_wakeup_fd(-1)
        for number in (*PASSED_ON, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, self._asked)
        os.close(self.fd)
        os.close(self._wake)


def signal_name(number: int) -> str:
    """Return the name of a signal: SIGTERM for 15, SIGRTMIN+3 for a signal without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - int(getattr(signal, 'SIGRTMIN', 0))}"  # without it, every signal has a name


def signal_number(name: str) -> int | None:
    """Return the number of a signal: 15 for SIGTERM; None if this system has no signal of that name."""
    base, _, offset = name.partition("+")
    number = getattr(signal, base, None)
    return number + int(offset or 0) if isinstance(number, int) else None


def _wake_up(number: int, frame: FrameType | None) -> None:
    """Do nothing: Python has written the number to the wake-up descriptor."""
