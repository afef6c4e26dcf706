"""One piece of work a cassette, in several processes."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest

from ext_recorder.batch.pool import Progress, map_cassettes
from ext_recorder.batch.selection import Cassette
from ext_recorder.errors import CassetteError, UsageError

if TYPE_CHECKING:
    from pathlib import Path


def upper(path: Path, name: str, *, mark: str = "") -> str:
    return f"{path}{mark}{name}".upper()


def identity(path: Path, name: str) -> int:
    return os.getpid()


def fall_over(path: Path, name: str) -> str:
    if name == "b":
        os.kill(os.getpid(), signal.SIGKILL)
    return name


ERRORS: dict[str, Exception] = {
    "broken": CassetteError("/tmp/copy", 7, "the problem", "the advice"),
    "wrong": UsageError("not so"),
    "disk": PermissionError(13, "Permission denied", "/somewhere"),
}


def refuse(path: Path, name: str) -> str:
    if name in ERRORS:
        raise ERRORS[name]
    return name


def cassettes(*names: str) -> list[Cassette]:
    return [Cassette(name) for name in names]


@pytest.mark.parametrize("jobs", [1, 2])
def test_outcomes_come_in_the_order_of_the_cassettes(jobs: int) -> None:
    found = list(map_cassettes(cassettes(*"abcdefg"), partial(upper, mark="!"), jobs=jobs))
    assert [outcome.result for outcome in found] == [f"{name}!{name}" for name in "ABCDEFG"]
    assert [outcome.name for outcome in found] == list("abcdefg")
    assert not any(outcome.error for outcome in found)


def test_several_are_done_in_other_processes_and_one_in_this() -> None:
    several = {outcome.result for outcome in map_cassettes(cassettes("a", "b", "c"), identity, jobs=2)}
    assert os.getpid() not in several
    assert [outcome.result for outcome in map_cassettes(cassettes("a"), identity, jobs=2)] == [os.getpid()]


def test_there_may_be_nothing_to_do() -> None:
    assert list(map_cassettes([], upper)) == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_is_that_of_its_cassette_alone(jobs: int) -> None:
    found = {
        outcome.name: outcome
        for outcome in map_cassettes(cassettes("broken", "disk", "fine", "wrong"), refuse, jobs=jobs)
    }
    assert found["broken"].error == "broken:7: the problem (the advice)"
    assert found["disk"].error == "/somewhere: Permission denied"
    assert found["wrong"].error == "wrong: not so"
    assert (found["fine"].result, found["fine"].error) == ("fine", "")


def test_a_worker_that_is_killed_costs_its_own_cassette() -> None:
    found = {outcome.name: outcome for outcome in map_cassettes(cassettes(*"abcdef"), fall_over, jobs=2)}
    assert "its process was ended by SIGKILL" in found["b"].error
    assert [name for name, outcome in found.items() if outcome.result == name] == list("acdef")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_worker_that_ends_by_itself_bears_being_told_to_end() -> None:
    told_at_its_very_end = """if True:
        import atexit, os, signal
        from multiprocessing import Pipe
        from ext_recorder.batch.pool import _serve
        ours, theirs = Pipe()
        ours.close()
        atexit.register(os.kill, os.getpid(), signal.SIGTERM)
        _serve(theirs, None)
    """
    done = subprocess.run(
        [sys.executable, "-c", told_at_its_very_end], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_sees_a_bar_that_makes_room_for_lines() -> None:
    terminal = Terminal()
    for _ in map_cassettes(cassettes("a", "b"), upper, jobs=1, progress=Progress(2, terminal)):
        terminal.write("a line\n")
    shown = terminal.getvalue()
    assert "1/2" in shown
    assert "2/2" in shown
    for part in shown.split("a line\n")[:-1]:
        assert part.endswith("\r\x1b[K\x1b[?25h")
    assert shown.endswith("\x1b[?25h")


def test_what_is_no_terminal_gets_no_bar() -> None:
    for total, file in ((2, io.StringIO()), (1, Terminal())):
        with Progress(total, file) as progress:
            progress.advance()
            progress.aside()
        assert file.getvalue() == ""
