"""Signals by name, and those that have arrived."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from ext_recorder.posix.signals import signal_name, signal_number

CATCH = """
import os, signal
from select import poll, POLLIN
from ext_recorder.posix.signals import Signals
signals = Signals()
signals.catch()
os.kill(os.getpid(), signal.SIGTERM)
os.kill(os.getpid(), signal.SIGUSR1)
waiting = poll()
waiting.register(signals.fd, POLLIN)
assert waiting.poll()
print(sorted(signals.take()), list(signals.take()))
signals.close()
print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGRTMIN + 3])
def test_every_signal_has_a_name_and_is_found_by_it(number: int) -> None:
    assert signal_number(signal_name(number)) == number


def test_a_name_of_another_system_has_no_number() -> None:
    assert signal_number("SIGINFO") is None


def test_signals_are_taken_once_and_do_not_end_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", CATCH], capture_output=True, text=True, check=True)
    number = sorted((int(each), False) for each in (signal.SIGTERM, signal.SIGUSR1))
    assert done.stdout.splitlines() == [f"{number} []", "True"]


FROM_TERMINAL = """
import os, signal, sys
from ext_recorder.posix.signals import FROM_TERMINAL, Signals
if sys.argv[1:]:
    del signal.sigtimedwait
signals = Signals()
signals.catch()
signals._asked = FROM_TERMINAL
signal.pthread_sigmask(signal.SIG_BLOCK, FROM_TERMINAL)
assert not list(signals.take())
os.kill(os.getpid(), signal.SIGINT)
print(list(signals.take()), list(signals.take()))
"""


@pytest.mark.parametrize(("arguments", "is_from_terminal"), [((), False), (("macOS",), True)])
def test_a_system_that_does_not_show_the_sender_counts_it_as_the_terminal(
    arguments: tuple[str, ...], is_from_terminal: bool
) -> None:
    command = [sys.executable, "-c", FROM_TERMINAL, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"[({int(signal.SIGINT)}, {is_from_terminal})] []\n"
