"""Credential plugins that do not end."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from ext_kubernetes.api.package_patches import Plugin, plugins_until
from ext_sdk import Deadline

WAITING = [sys.executable, "-c", "import signal; signal.pause()"]


def plugin(*command: str) -> Plugin:
    """As the package starts one."""
    pipe = subprocess.PIPE
    return Plugin([*command], stdout=pipe, stderr=pipe, stdin=None, universal_newlines=True)


@pytest.mark.parametrize("stopped", [False, True])
def test_one_that_does_not_end_is_ended_at_the_deadline_and_when_the_extension_ends(stopped: bool) -> None:
    end = threading.Event()
    if stopped:
        end.set()
    with plugin(*WAITING) as waiting, plugins_until(Deadline(None if stopped else 0.0, end)):
        with pytest.raises(TimeoutError, match="it may wait for a login"):
            waiting.communicate()
        assert waiting.returncode == -signal.SIGKILL


def test_one_that_ends_is_heard_whatever_it_says() -> None:
    script = "import sys; print('a' * 1_000_000); print('b', file=sys.stderr)"
    with plugin(sys.executable, "-c", script) as ending, plugins_until(Deadline()):
        assert ending.communicate() == ("a" * 1_000_000 + "\n", "b\n")
        assert ending.returncode == 0


def test_one_that_a_person_can_talk_to_has_all_the_time() -> None:
    pipe = subprocess.PIPE
    with (
        Plugin([sys.executable, "-c", "print(input())"], stdin=pipe, stdout=pipe, universal_newlines=True) as talking,
        plugins_until(Deadline(0.0)),
    ):
        assert talking.communicate("hello\n")[0] == "hello\n"
