"""Children under supervision: their files, and their end with all that they started."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

import pytest

from ext_recorder.errors import RecorderError
from ext_recorder.posix.channel import wait
from ext_recorder.posix.output import open_files
from ext_recorder.posix.supervised_child import SupervisedChild
from ext_sdk.core.process.spawner import Spawner
from tests.support.recorder_process import wait_until_gone

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def spawner() -> Iterator[Spawner]:
    spawner = Spawner()
    yield spawner
    spawner.close()


def test_a_child_is_used_on_pipes_and_stopped_with_what_it_has_started(spawner: Spawner, tmp_path: Path) -> None:
    program = "read line; pwd; echo $NAME >&2; sleep 1000 & echo $!; wait"
    environment = {"PATH": os.environ["PATH"], "NAME": "a name"}
    with SupervisedChild(spawner, ["sh", "-c", program], environment, tmp_path) as child:
        child.channel.send(b"go\n")
        output = errors = b""
        while output.count(b"\n") < 2 or not errors:
            ready = wait([child.channel, child.errors], 10)
            output += (child.channel.read() or b"") if child.channel.source in ready else b""
            errors += (child.errors.read() or b"") if child.errors.source in ready else b""
        assert not child.has_exited()
    folder, pid = output.decode().splitlines()
    assert (folder, errors) == (str(tmp_path.resolve()), b"a name\n")
    wait_until_gone(int(pid))


def test_output_may_go_to_a_file(spawner: Spawner, tmp_path: Path) -> None:
    with tempfile.TemporaryFile() as file:
        to = file.fileno()
        with SupervisedChild(
            spawner, ["sh", "-c", "echo a; echo b >&2"], os.environ, tmp_path, stdout=to, stderr=to
        ) as child:
            assert child.process.wait_for_exit(10)
            assert child.has_exited()
            assert not child.channel.is_open
        assert os.pread(to, 100, 0) == b"a\nb\n"


def test_a_command_that_does_not_exist_is_an_error_and_leaves_no_file_open(spawner: Spawner, tmp_path: Path) -> None:
    before = len(open_files())
    for _ in range(3):
        with pytest.raises(RecorderError, match="no-such-command"):
            SupervisedChild(spawner, ["no-such-command"], os.environ, tmp_path)
    assert len(open_files()) <= before + 1  # the connection to the fork server
