"""`.ci/no_orphans.py` passes an exit code on, and finds what was left behind, wherever it went."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.packaging.artefacts import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans to an ancestor of choice")


def run_watched(script: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / ".ci" / "no_orphans.py"), "sh", "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_code_is_that_of_the_command(code: int) -> None:
    assert run_watched(f"exit {code}").returncode == code


def test_a_process_in_a_session_and_environment_of_its_own_is_found_and_ended() -> None:
    # `sleep` holds none of our pipes, so this test ends whether or not it is found
    done = run_watched("setsid env -i /bin/sleep 1000 >/dev/null 2>&1 </dev/null &")
    assert done.returncode == 1
    assert "left behind: process" in done.stderr
    assert "sleep 1000" in done.stderr


def test_a_process_that_ends_by_itself_is_none() -> None:
    done = run_watched("setsid sleep 0.2 >/dev/null 2>&1 </dev/null &")
    assert (done.returncode, done.stderr) == (0, "")


def test_orphans_that_end_meanwhile_do_not_stay_as_zombies() -> None:
    # the shell that started the sleeper is gone at once; what looks for the sleeper later must not find its remains
    script = "(sleep 0.1 & echo $! >&3) 3>&1; sleep 0.5"
    done = run_watched(
        f'pid=$({{ {script}; }} | head -1); while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done; exit 4'
    )
    assert done.returncode == 4
