"""The tasks of README, run by the host among the examples: with a real extension, and with a recorded one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT

TASKS = ROOT / "docs" / "examples"
RECORDER = (sys.executable, "-P", "-m", "ext_recorder")
LIMIT_SECONDS = 120


def run(workdir: Path, task: str, agent: str, *programs: str) -> tuple[int, str]:
    done = completed(workdir, task, agent, *programs)
    return done.returncode, done.stdout


def completed(workdir: Path, task: str, agent: str, *programs: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-m", "docs.examples.run_task", str(TASKS / task), "--agent", agent, *programs],
        cwd=workdir,
        env=os.environ | {"PATH": path, "PYTHONPATH": str(ROOT), "KUBECONFIG": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_SECONDS,
    )
    assert "Traceback" not in done.stderr
    return done


def verdicts(told: str) -> list[tuple[str, ...]]:
    """(phase, verdict, step) of each step, and ("agent",)."""
    lines = [line.split() for line in told.splitlines() if not line.startswith(" ")]
    return [("agent",) if words[0] == "agent" else tuple(words[:3]) for words in lines]


def test_an_agent_that_does_nothing_fails_and_the_cleanup_is_done_all_the_same(tmp_path: Path) -> None:
    code, told = run(tmp_path, "fix-the-greeting.yaml", "cat")
    assert code == 1
    assert verdicts(told) == [
        ("setup", "ok", "shell.write-file"),
        ("agent",),
        ("verify", "FAILED", "shell.run"),
        ("verify", "ok", "shell.assert-agent"),
        ("cleanup", "ok", "shell.remove"),
    ]
    assert "agent    The program repo/greet.py misspells its greeting. Fix it.\n" in told  # `cat` answers the prompt
    assert 'stdout: expected to equal "Hello, world", got "Helo, world"' in told
    assert list(tmp_path.iterdir()) == []


def test_after_a_setup_that_failed_no_agent_is_asked(tmp_path: Path) -> None:
    (tmp_path / "repo").write_text("in the way")
    code, told = run(tmp_path, "fix-the-greeting.yaml", "touch asked")
    assert code == 1
    assert [each[0] for each in verdicts(told)] == ["setup", "cleanup"]
    assert not (tmp_path / "asked").exists()


def test_the_task_on_a_cluster_runs_on_its_recorded_session_without_one(tmp_path: Path) -> None:
    cassette, shim = tmp_path / "task.yaml", tmp_path / "ext-kubernetes"
    session = str(ROOT / "cassettes" / "kubernetes" / "create-pod.yaml")
    without_the_agents = ("--calls", "1-3,5-")  # its fourth request is what an agent does by other means
    for command in (
        ("trim", *without_the_agents, "-o", str(cassette), session),
        ("shim", "--mode", "none", "--ignore", "/params/context/agent", str(shim), str(cassette)),
    ):
        subprocess.run([*RECORDER, *command], check=True, capture_output=True, timeout=LIMIT_SECONDS)
    code, told = run(tmp_path, "create-pod.yaml", "echo made", f"kubernetes={shim}")
    assert code == 0, told
    assert [verdict for _, verdict, _ in filter(lambda each: each[1:], verdicts(told))] == ["ok"] * 6


def test_what_cannot_be_run_is_told_in_a_line(tmp_path: Path) -> None:
    for task, programs, says in (
        ("none.yaml", (), "No such file or directory: "),
        ("fix-the-greeting.yaml", ("shell=no-such-program",), "No such file or directory: 'no-such-program'"),
        ("verify-job.yaml", (), "expected 'requires': a key of the task, or an extension that it requires"),
    ):
        done = completed(tmp_path, task, "true", *programs)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"{TASKS / task}: ")
        assert says in done.stderr
        assert done.stderr.count("\n") == 1
