"""`ext-host run` as a program: signals, a host that is killed, exit codes, and tasks with real extensions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.host_tasks import Tasks
from tests.support.process_tracker import ProcessTracker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.ports import NewPort

LIMIT_SECONDS = 120


@pytest.fixture
def tracker(tmp_path: Path) -> Iterator[ProcessTracker]:
    tracker = ProcessTracker(tmp_path / "pipe")
    yield tracker
    tracker.close()


@pytest.fixture
def tasks(tmp_path: Path) -> Tasks:
    return Tasks(tmp_path)


def start(tasks: Tasks, *words: object) -> subprocess.Popen[str]:
    """Start ext-host with the extension `x` of the tasks."""
    return subprocess.Popen(
        [sys.executable, "-m", "ext_host", "run", *map(str, words), f"--extension=x={tasks.command}"],
        env=os.environ | {"SHELL": "/bin/sh"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tasks.folder,
    )


def run(tasks: Tasks, *words: object) -> tuple[int, str, str]:
    with start(tasks, *words) as process:
        out, errors = process.communicate(timeout=LIMIT_SECONDS)
    assert "Traceback" not in errors
    return process.returncode, out, errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_the_agent_and_the_task_is_cleaned_up(
    tasks: Tasks, tracker: ProcessTracker, number: signal.Signals
) -> None:
    path = tasks.task("verify: [{x.ok: {}}]\ncleanup: [{script: {inline: touch cleaned}}]")
    agent = f"{tracker.hold}; sleep 600 & echo ready >&9; sleep 600"
    with start(tasks, path, "--agent", agent) as process:
        assert tracker.line() == "ready"
        process.send_signal(number)
        out, errors = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 128 + number, errors
    assert (tasks.folder / "cleaned").exists()
    assert "verify" not in out
    assert "cancelled" in out
    assert not tracker.left()


def test_a_second_signal_also_stops_the_cleanup(tasks: Tasks, tracker: ProcessTracker) -> None:
    tasks.extension.write_text(f"fd = open({str(tracker.path)!r}, 'w')\n{tasks.extension.read_text()}")
    script = f"{tracker.hold}; echo cleaning >&9; sleep 600"
    path = tasks.task(f'verify: [{{x.ok: {{}}}}]\ncleanup: [{{script: {{inline: "{script}"}}}}]')
    with start(tasks, path, "--agent", f"{tracker.hold}; echo ready >&9; sleep 600") as process:
        for line in ("ready", "cleaning"):
            assert tracker.line() == line
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 130
    assert not tracker.left()


@pytest.mark.parametrize("phase", ["setup", "agent", "verify"])
def test_a_killed_host_leaves_no_process(tasks: Tasks, tracker: ProcessTracker, phase: str) -> None:
    """Neither of the extension, nor of the agent or a script, nor of what these have started."""
    tasks.extension.write_text(f"fd = open({str(tracker.path)!r}, 'w')\n{tasks.extension.read_text()}")
    script = f"{tracker.hold}; sleep 600 & (setsid sleep 600 &) ; echo ready >&9; sleep 600"
    step = f'{{script: {{inline: "{script}"}}}}'
    setup, verify = (f", {step}" if phase == each else "" for each in ("setup", "verify"))
    path = tasks.task(f"setup: [{{x.ok: {{}}}}{setup}]\nverify: [{{x.ok: {{}}}}{verify}]")
    with start(tasks, path, "--agent", script if phase == "agent" else "true") as process:
        assert tracker.line() == "ready"
        process.kill()
        process.communicate(timeout=LIMIT_SECONDS)
    assert not tracker.left()


def test_parallel_tasks_have_their_own_lines_and_all_files_are_run(tasks: Tasks) -> None:
    for number in range(12):
        tasks.task("verify: [{x.ok: {}}]", f"t{number}", ", parallel: true")
    tasks.eval("extensions: {x: {package: ./x}}\ntaskSets: [{glob: 't[0-5].yaml'}]")
    code, out, errors = run(
        tasks, "eval.yaml", *(f"t{number}.yaml" for number in range(6, 12)), "-p", 8, "--agent=none"
    )
    assert (code, errors) == (0, "")
    passed = [line.split()[-1] for line in out.splitlines() if line.startswith("task     passed")]
    assert sorted(passed) == sorted(f"t{number}" for number in range(12))


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("good.yaml", "--agent=none"), 0, ""),
        (("bad.yaml", "--agent=none"), 1, ""),
        (("good.yaml", "bad.yaml", "--agent=none"), 1, ""),
        (("good.yaml",), 2, "good.yaml: no agent: choose one with --agent"),
        (("none.yaml",), 2, "none.yaml: cannot read this file: No such file or directory"),
        (("agent.yaml",), 2, "agent.yaml: expected a Task or an Eval; use `--agent file:agent.yaml`"),
        (("good.yaml", "--agent=none", "--labels=a"), 2, "labels: expected KEY=VALUE, found 'a'"),
        (("good.yaml", "--agent=none", "--task-timeout=5"), 2, "a unit is missing"),
        (("good.yaml", "--agent=none", "--extension=xx=ext-x"), 2, "has an extension 'xx'; did you mean 'x'?"),
        (("good.yaml", "--agent=none", "--run=gud", "--extension=x=a"), 2, "no task matches name 'gud'"),
        (("good.yaml", "--agent=none", "--extension=x"), 2, "--extension: expected NAME=COMMAND, found 'x'"),
        (("--agent=none",), 2, "Missing argument 'TASK|EVAL...'"),
    ],
)
def test_the_exit_code_and_one_line_report_what_happened(
    tasks: Tasks, words: tuple[str, ...], code: int, text: str
) -> None:
    tasks.task("verify: [{x.ok: {}}]", "good")
    tasks.task("verify: [{x.fail: {}}]", "bad")
    (tasks.folder / "agent.yaml").write_text("kind: Agent\ncommands: {runPrompt: x}")
    found, out, errors = run(tasks, *words)
    assert (found, bool(out)) == (code, code < 2)
    assert text in errors
    assert errors.count("\n") == bool(text)


def test_extensions_share_values_and_a_server_of_the_agent_runs_until_the_cleanup(
    tasks: Tasks, tracker: ProcessTracker, new_port: NewPort
) -> None:
    """With the real extensions: what a step of ext-shell keeps under a name is used by ext-http."""
    port = new_port()
    path = tasks.task(
        f"""
        requires: [{{extension: shell}}, {{extension: http}}, {{extension: x}}]
        setup:
          - shell.write-file: {{path: page, content: hello}}
          - shell.run: {{command: [cat, page], as: page}}
        verify:
          - http.request: {{url: "http://127.0.0.1:{port}/page", expect: {{body: "${{page.stdout}}"}}}}
        """
    )
    server = f"'{sys.executable}' -m http.server --bind 127.0.0.1 {port} --directory \"$EXT_HOST_TASK_FOLDER\""
    wait = f"while ! (echo > /dev/tcp/127.0.0.1/{port}) 2>/dev/null; do sleep 0.02; done"
    agent = f"{tracker.hold}; {server} >/dev/null 2>&1 &\nbash -c '{wait}'"
    code, out, errors = run(tasks, path, "--agent", agent)
    assert code == 0, out + errors
    assert not tracker.left()
