"""Commands of a task: output, end, limits, and what they leave running."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from ext_host.commands import KEPT_BYTES, Commands, excerpt, shell
from ext_host.files import HostError
from ext_sdk.polling import Deadline
from tests.support.process_tracker import ProcessTracker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ext_host.commands import CommandEnd


@pytest.fixture
def commands() -> Iterator[Commands]:
    with Commands() as commands:
        yield commands


def run(commands: Commands, script: str, folder: Path, **options: object) -> CommandEnd:
    given: dict[str, object] = {"env": dict(os.environ), "folder": folder, "deadline": Deadline(60), **options}
    return commands.run(["/bin/sh", "-c", script], **given)  # type: ignore[arg-type]


def test_the_output_has_both_streams_in_their_order(commands: Commands, tmp_path: Path) -> None:
    pieces: list[str] = []
    end = run(commands, "echo 1; echo 2 >&2; echo 3; printf 'ü'; exit 4", tmp_path, on_output=pieces.append)
    assert (end.output.text, end.failure, end.reason) == ("1\n2\n3\nü", "exit code 4", "")
    assert "".join(pieces) == end.output.text
    assert run(commands, "kill -9 $$", tmp_path).failure == "killed by SIGKILL"
    assert run(commands, "pwd", tmp_path).output.text == f"{tmp_path}\n"


def test_the_input_is_given_and_ends(commands: Commands, tmp_path: Path) -> None:
    text = "x" * 1_000_000
    assert run(commands, "wc -c", tmp_path, stdin=text.encode()).output.text.strip() == "1000000"
    assert run(commands, "cat; echo end", tmp_path).output.text == "end\n"
    assert run(commands, "echo ignored", tmp_path, stdin=text.encode()).failure == ""


def test_a_long_output_is_cut_in_the_middle(commands: Commands, tmp_path: Path) -> None:
    end = run(commands, f"head -c {KEPT_BYTES * 3} /dev/zero; echo end", tmp_path)
    assert end.output.size == KEPT_BYTES * 3 + 4
    assert len(end.output.data) < KEPT_BYTES * 2
    assert end.output.text.endswith("end\n")


def test_at_the_deadline_or_when_cancelled_all_processes_are_stopped(commands: Commands, tmp_path: Path) -> None:
    tracker = ProcessTracker(tmp_path / "pipe")
    end = run(commands, f"{tracker.hold}; sleep 600 & sleep 600", tmp_path, deadline=Deadline(0.3))
    assert end.failure.startswith("stopped after ")
    assert not tracker.left()
    tracker.close()
    stopped = threading.Event()
    end = run(
        commands,
        "echo begins; sleep 600",
        tmp_path,
        deadline=Deadline(None, stopped),
        on_output=lambda _: stopped.set(),
    )
    assert (end.failure, end.output.text) == ("cancelled", "begins\n")


def test_what_a_command_leaves_running_ends_with_the_task(tmp_path: Path) -> None:
    tracker = ProcessTracker(tmp_path / "pipe")
    with Commands() as commands:
        server = "while [ ! -e ask ]; do sleep 0.01; done; echo served >&9; sleep 600"
        end = run(commands, f"{tracker.hold}; ({server}) & echo started", tmp_path)
        assert (end.output.text, end.failure) == ("started\n", "")
        (tmp_path / "ask").touch()
        assert tracker.line() == "served"
    assert not tracker.left()
    tracker.close()


def test_a_background_process_may_write_more_than_a_pipe_holds(commands: Commands, tmp_path: Path) -> None:
    end = run(commands, "(sleep 0.5; head -c 1000000 /dev/zero; touch written) & echo started", tmp_path)
    assert end.failure == ""
    assert run(commands, "while [ ! -e written ]; do sleep 0.01; done", tmp_path).failure == ""


def test_a_command_that_cannot_be_started_is_an_error(commands: Commands, tmp_path: Path) -> None:
    deadline = Deadline(60)
    for argv, folder, reason in (
        (["no-such-program"], tmp_path, "command not found: 'no-such-program'"),
        (["./none"], tmp_path, "No such file or directory"),
        (["sh"], tmp_path / "none", f"No such file or directory: {tmp_path}/none"),
        (["sh", "\0"], tmp_path, "NUL"),
    ):
        with pytest.raises(HostError) as error:
            commands.run(argv, env=dict(os.environ), folder=folder, deadline=deadline)
        assert reason in str(error.value)


def test_the_shell_is_that_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/zsh")
    assert shell() == "/bin/zsh"
    monkeypatch.delenv("SHELL")
    assert shell() == "/usr/bin/bash"


@pytest.mark.parametrize("end", [False, True])
def test_an_excerpt_has_no_part_of_a_secret(monkeypatch: pytest.MonkeyPatch, *, end: bool) -> None:
    secret = "correct-horse-battery-staple"
    monkeypatch.setenv("ADMIN_PASSWORD", secret)
    parts = [secret[at : at + 5] for at in range(len(secret) - 4)]
    for before in range(200):
        text = f"{'.' * before}{secret}{'.' * (200 - before)}"
        shown = excerpt(text, 100, end=end)
        assert len(shown.rstrip("…")) <= 100
        assert not any(part in shown for part in parts), shown
    token = "ghp_" + "a1B2" * 9
    assert "a1B2" not in excerpt(f"{'.' * 80}{token}", 100)  # by its format
    assert excerpt(f"password={secret}", 100) == f"password={secret}"  # complete: reports replace it
