"""Nothing that a command starts outlives its owner, whatever the command does and however the owner ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.process_tracker import PATIENCE, ProcessTracker

if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_sdk.core.process.child import Child
    from tests.unit.ext_sdk.core.process.conftest import Shell

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs the child subreaper of Linux")

# Each holds the tracker, says "ready" once all of it runs, and would run for an hour.
TREES = {
    "a child in the foreground": "echo ready >&9; sleep 3600; true",
    "the command itself": "echo ready >&9; exec sleep 3600",
    "a child in the background": "sleep 3600 & echo ready >&9; wait",
    "a daemon in its own session": "setsid sh -c 'echo ready >&9; exec sleep 3600' & wait",
    "a daemon after a double fork": "(setsid sh -c 'echo ready >&9; exec sleep 3600' &) ; sleep 3600",
    "processes that ignore SIGTERM": "trap '' TERM HUP INT; sleep 3600 & echo ready >&9; sleep 3600; sleep 3600",
    "a stopped process": "(echo ready >&9; kill -STOP $BASHPID; sleep 3600) & wait",
    "a pipeline": "yes | cat | cat >/dev/null & echo ready >&9; wait",
    "a tree of a hundred": "for i in $(seq 100); do sleep 3600 & done; echo ready >&9; wait",
}

OWNER = """
import os, sys
from ext_sdk.process import Command, Spawner
spawner = Spawner()
null = os.open(os.devnull, os.O_RDWR)
directory = os.open(".", os.O_RDONLY)
command = Command(["bash", "-c", sys.argv[1]], env={"PATH": os.environ["PATH"]}, directory=directory, grace=0.2)
child = spawner.spawn(command, stdin=null, stdout=null, stderr=null)
sys.stdout.write(f"{child.pid}\\n"); sys.stdout.flush()
sys.stdin.read()
"""


def _owner(script: str, program: str = OWNER) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-c", program, script]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _end(owner: subprocess.Popen[bytes], how: Callable[[subprocess.Popen[bytes]], object]) -> None:
    with owner:
        how(owner)
        owner.wait(PATIENCE)


ENDS: dict[str, Callable[[subprocess.Popen[bytes]], object]] = {
    "is killed": lambda owner: owner.kill(),
    "is told to end": lambda owner: owner.terminate(),
    "ends by itself": lambda owner: owner.stdin and owner.stdin.close(),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_nothing_is_left_when_the_owner(
    tree: str, end: Callable[[subprocess.Popen[bytes]], object], tracker: ProcessTracker
) -> None:
    owner = _owner(f"{tracker.hold}; {tree}")
    assert tracker.line() == "ready"
    _end(owner, end)
    assert not tracker.left()


def test_nothing_is_left_when_the_owner_is_killed_while_the_fork_server_starts(tracker: ProcessTracker) -> None:
    """The launch waits in the socket of a fork server that has only just been started, with the tracker in it."""
    hasty = OWNER.replace("null = os.open(os.devnull, os.O_RDWR)", f"null = os.open({str(tracker.path)!r}, os.O_RDWR)")
    hasty = "import ext_sdk.core.process.child as c; c.Child.started = lambda *_: os.kill(os.getpid(), 9)" + hasty
    owner = _owner("trap '' TERM; while :; do sleep 3600; done", hasty)
    _end(owner, lambda owner: owner.wait(PATIENCE))
    assert owner.returncode == -signal.SIGKILL
    assert not tracker.left()


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_a_stop_ends_the_whole_tree(tree: str, shell: Shell, tracker: ProcessTracker) -> None:
    child = shell.start(f"{tracker.hold}; {tree}")
    assert tracker.line() == "ready"
    child.stop(grace=0.2)
    assert child.wait(PATIENCE)
    assert not tracker.left(0)
    assert child.status is not None


def test_closing_the_child_ends_its_tree(shell: Shell, tracker: ProcessTracker) -> None:
    child = shell.start(f"{tracker.hold}; {TREES['a daemon after a double fork']}", grace=0.2)
    assert tracker.line() == "ready"
    child.close()
    assert not tracker.left()


def test_a_command_that_kills_its_supervisor_is_killed_by_the_fork_server(
    shell: Shell, tracker: ProcessTracker
) -> None:
    go = Path(f"{tracker.path}.go")  # not before the supervisor has told that the command runs
    os.mkfifo(go)
    child = shell.start(
        f"{tracker.hold}; setsid sleep 3600 & sleep 3600 & read -r line <'{go}'; kill -KILL $PPID; sleep 3600"
    )
    go.write_text("go\n")
    assert child.wait(PATIENCE)
    assert child.lost
    assert not tracker.left()


@pytest.mark.parametrize("order", ["$server $PPID", "$PPID $server"])
@pytest.mark.parametrize(
    "tree",
    ["sleep 3600", "trap '' TERM HUP; sleep 3600 & sleep 3600 & wait", "yes | cat >/dev/null", "setsid sleep 3600"],
)
def test_a_command_that_kills_its_supervisor_and_the_fork_server_is_killed_by_the_owner(
    tree: str, order: str, shell: Shell, tracker: ProcessTracker
) -> None:
    go = Path(f"{tracker.path}.go")  # not before the supervisor has told that the command runs
    os.mkfifo(go)
    server = "server=$(ps -o ppid= $PPID)"
    child = shell.start(f"{tracker.hold}; {server}; read -r line <'{go}'; kill -KILL {order}; {tree}; true")
    go.write_text("go\n")
    assert child.wait(PATIENCE)
    assert child.lost
    assert not tracker.left()
    other, output = shell.run("echo next")
    assert output.text == "next\n"
    assert other.gone


def test_a_supervisor_that_is_told_to_end_stops_its_tree_first(shell: Shell, tracker: ProcessTracker) -> None:
    child = shell.start(f"{tracker.hold}; kill -TERM $PPID; sleep 3600", grace=0.2)
    assert child.wait(PATIENCE)
    assert child.status is not None
    assert child.status.signal == signal.SIGTERM
    assert not tracker.left(0)


def test_commands_survive_the_fork_server_and_the_next_one_gets_a_new_one(
    shell: Shell, tracker: ProcessTracker
) -> None:
    """The parent of the supervisor is killed by the command; its supervisor goes on."""
    kill_grandparent = "kill -KILL $(ps -o ppid= $PPID)"
    os.mkfifo(f"{tracker.path}.go")
    child = shell.start(f"{tracker.hold}; {kill_grandparent}; echo ready >&9; read -r line <'{tracker.path}.go'")
    assert tracker.line() == "ready"
    other, output = shell.run("echo next")
    assert output.text == "next\n"
    assert not child.gone
    child.stop(grace=0.2)
    assert child.wait(PATIENCE)
    assert not tracker.left(0)
    assert other.gone


@pytest.mark.parametrize("tree", ["sleep 3600 & exit 3", "(setsid sleep 3600 &); exit 3"], ids=["a child", "a daemon"])
def test_what_a_command_leaves_behind_is_ended_and_named(tree: str, shell: Shell, tracker: ProcessTracker) -> None:
    child, _ = shell.run(f"{tracker.hold}; {tree}", grace=0.2)
    assert child.status is not None
    assert child.status.code == 3
    assert child.left.startswith("sleep(")
    assert not tracker.left(0)


def test_what_a_command_leaves_may_finish_its_last_work(shell: Shell) -> None:
    child, output = shell.run("exec > >(cat; sleep 0.02; echo end); echo begin")
    assert output.text == "begin\nend\n"
    assert not child.left


def test_what_a_command_leaves_is_not_stopped_while_it_works(shell: Shell) -> None:
    """As long as it would take on a machine that has no time for it."""
    work = "until=$((${EPOCHREALTIME/[.,]/} + 700000)); while ((${EPOCHREALTIME/[.,]/} < until)); do :; done"
    child, output = shell.run(f"exec > >(cat; {work}; echo end); echo begin")
    assert output.text == "begin\nend\n"
    assert not child.left


def test_what_a_command_leaves_is_stopped_though_it_never_rests(shell: Shell, tracker: ProcessTracker) -> None:
    child, _ = shell.run(f"{tracker.hold}; while :; do :; done & exit 0", grace=0.2)
    assert child.left.startswith("bash(")
    assert not tracker.left(0)


def test_a_daemon_is_kept_on_request_until_it_is_stopped(shell: Shell, tracker: ProcessTracker) -> None:
    child = shell.start(f"{tracker.hold}; (setsid sh -c 'echo ready >&9; exec sleep 3600' &); exit 0", keep=True)
    assert tracker.line() == "ready"
    assert child.wait_for_exit(PATIENCE)
    assert child.status is not None
    assert child.status.code == 0
    assert not child.wait(0.5)
    child.stop(grace=0.2)
    assert child.wait(PATIENCE)
    assert not tracker.left(0)


def test_a_handler_of_sigterm_has_the_grace_period_for_its_own_commands(shell: Shell) -> None:
    reader, writer = os.pipe()
    script = "trap 'sleep 0.02; echo cleaned; exit 7' TERM; echo ready; sleep 3600 & wait"
    null = os.open(os.devnull, os.O_RDONLY)
    child = shell.spawn(["bash", "-c", script], null, writer)
    os.close(writer)
    os.close(null)
    with os.fdopen(reader) as lines:
        assert lines.readline() == "ready\n"
        child.stop(grace=PATIENCE)
        assert lines.read() == "cleaned\n"
    assert child.wait(PATIENCE)
    assert child.status is not None
    assert child.status.code == 7


def test_a_later_stop_may_shorten_the_grace_period(shell: Shell, tracker: ProcessTracker) -> None:
    child = shell.start(f"{tracker.hold}; {TREES['processes that ignore SIGTERM']}")
    assert tracker.line() == "ready"
    child.stop(grace=3600.0)
    child.stop(grace=0.0)
    assert child.wait(PATIENCE)
    assert child.status is not None
    assert child.status.signal == signal.SIGKILL


def test_a_fork_storm_is_ended(shell: Shell, tracker: ProcessTracker) -> None:
    """Every process forks on and on; the total is bounded so that a failure of this test does no harm."""
    storm = """
import os, time
os.write(9, b"ready\\n")
end = time.monotonic() + 20
while time.monotonic() < end:
    try:
        if os.fork():
            time.sleep(0.01)
    except OSError:
        time.sleep(0.05)
"""
    child = shell.start(f'{tracker.hold}; exec "$1" -I -S -c "$2"', sys.executable, storm)
    assert tracker.line() == "ready"
    child.stop(grace=0.0)
    assert child.wait(PATIENCE)
    assert not tracker.left(0)


def test_a_command_that_exits_at_once_is_reported(shell: Shell) -> None:
    statuses = [shell.start(f"exit {code}") for code in range(20)]
    assert all(child.wait(PATIENCE) for child in statuses)
    assert [child.status.code for child in statuses if child.status] == list(range(20))


def _names(children: list[Child]) -> list[str]:
    return [child.left for child in children]


def test_commands_side_by_side_have_trees_of_their_own(shell: Shell, tracker: ProcessTracker) -> None:
    staying = shell.start(f"{tracker.hold}; {TREES['a daemon after a double fork']}")
    assert tracker.line() == "ready"
    going = [shell.run("sleep 3600 & exit 0", grace=0.2)[0] for _ in range(3)]
    assert all(name.startswith("sleep(") for name in _names(going))
    assert tracker.left(0)
    assert not staying.gone


class TestWithoutLinux:
    """Process groups alone, as where there is neither subreaper nor /proc."""

    @pytest.mark.parametrize("name", ["a child in the foreground", "a child in the background", "a pipeline"])
    def test_a_stop_ends_the_process_group(self, name: str, group_shell: Shell, tracker: ProcessTracker) -> None:
        child = group_shell.start(f"{tracker.hold}; {TREES[name]}")
        assert tracker.line() == "ready"
        child.stop(grace=0.2)
        assert child.wait(PATIENCE)
        assert not tracker.left(0)

    def test_what_a_command_leaves_in_its_group_is_ended(self, group_shell: Shell, tracker: ProcessTracker) -> None:
        child = group_shell.start(f"{tracker.hold}; sleep 3600 & exit 3", grace=0.2)
        assert child.wait(PATIENCE)
        assert child.status is not None
        assert child.status.code == 3
        assert not tracker.left()

    def test_closing_the_child_ends_its_group(self, group_shell: Shell, tracker: ProcessTracker) -> None:
        child = group_shell.start(f"{tracker.hold}; {TREES['processes that ignore SIGTERM']}", grace=0.2)
        assert tracker.line() == "ready"
        child.close()
        assert not tracker.left()
