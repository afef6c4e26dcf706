"""ext-host with agents that use a protocol: complete runs, their exit codes, recordings, and a host that is killed."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from tests.support.process_tracker import ProcessTracker

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("acp")

ROOT = Path(__file__).parents[3]
HOST = [sys.executable, "-m", "ext_host", "run"]
PEER = f"{sys.executable} -m tests.peers"
TASK = {
    "kind": "Task",
    "apiVersion": "mcpchecker/v1alpha2",
    "metadata": {"name": "edit-notes"},
    "spec": {
        "requires": [{"extension": "shell"}],
        "setup": [{"shell.run": {"script": "echo one > notes.txt; date +%N > first.txt"}}],
        "prompt": {},
        "verify": [
            {"shell.assert-agent": {"output": {"contains": "edited"}}},
            {"shell.assert-file": {"path": "notes.txt", "content": "two\n"}},
        ],
    },
}


class Project:
    """Folder with a task, and runs of ext-host in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write_task(
            ["ask", "fs/write_text_file", {"path": str(folder / "notes.txt"), "content": "two\n"}],
            ["say", "I edited the notes."],
        )

    def write_task(self, *steps: object) -> None:
        """Write a task whose prompt is a script for tests.peers.acp."""
        spec = TASK["spec"] | {"prompt": {"inline": json.dumps(steps)}}  # type: ignore[operator]
        (self.folder / "task.yaml").write_text(json.dumps(TASK | {"spec": spec}))

    def start(self, *words: str, agent: str) -> subprocess.Popen[str]:
        environ = os.environ | {"PYTHONPATH": str(ROOT)}
        command = [*HOST, "task.yaml", "--workspace", ".", "--agent", agent, *words]
        return subprocess.Popen(command, cwd=self.folder, env=environ, stdout=-1, stderr=-1, text=True)

    def run(self, *words: str, agent: str) -> tuple[int, str]:
        """Return the exit code and all output of a run."""
        with self.start(*words, agent=agent) as process:
            return process.wait(), "".join(process.communicate())


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project in a new folder."""
    folder = tmp_path / "project"
    folder.mkdir()
    return Project(folder)


@pytest.fixture
def tracker(tmp_path: Path) -> Iterator[ProcessTracker]:
    """Yield a tracker of processes."""
    tracker = ProcessTracker(tmp_path / "tracker")
    yield tracker
    tracker.close()


def test_a_recorded_run_is_replayed_without_agent_and_extension(project: Project) -> None:
    program = project.folder / "agent.sh"
    program.write_text(f"#!/bin/sh\nexec {PEER}.acp\n")
    program.chmod(0o755)
    extension = f"--extension=shell={project.folder}/shell.sh"
    (project.folder / "shell.sh").write_text(f"#!/bin/sh\nexec {sys.executable} -m ext_shell\n")
    (project.folder / "shell.sh").chmod(0o755)
    code, text = project.run(extension, "--record", "recording", agent="acp:./agent.sh")
    assert code == 0, text
    assert "task     passed  edit-notes" in text
    assert "child acp-agent: 1 session" in text
    first = (project.folder / "first.txt").read_text()
    for name in ("notes.txt", "first.txt"):
        (project.folder / name).unlink()
    for name in ("agent.sh", "shell.sh"):
        (project.folder / name).write_text("#!/bin/sh\necho this must not run >&2; exit 1\n")
    code, text = project.run(
        extension, "--replay", "recording", "--junit", "out/report.xml", "-q", agent="acp:./agent.sh"
    )
    assert code == 0, text
    assert (project.folder / "first.txt").read_text() == first
    assert ET.parse(project.folder / "out" / "report.xml").getroot().get("tests") == "1"
    project.write_task(["say", "I edited nothing."])
    code, text = project.run(extension, "--replay", "recording", agent="acp:./agent.sh")
    assert code == 3, text


@pytest.mark.parametrize(
    ("words", "agent", "code", "expected"),
    [
        ((), f"acp:{PEER}.acp", 0, "1 task: 1 passed"),
        ((), f"kaiak:{PEER}.kaiak", 1, "shell.assert-agent"),
        ((), "acp:cat", 1, "the agent failed: it responded to initialize with error -32601"),
        ((), "kaiak:unix:none.sock", 1, "cannot connect to the Unix socket none.sock"),
        ((), "acp:", 2, "--agent: expected acp:COMMAND, found 'acp:'"),
        ((), "acp:'", 2, "--agent: expected acp:COMMAND"),
        ((), "kaiak:no-such-program", 2, "command not found: 'no-such-program'"),
        (("--record=a", "--replay=b"), "none", 2, "expected one of --record and --replay"),
        (("--junit=.",), "none", 2, "cannot write the report .: it is a folder"),
        (("--permissions=some",), "none", 2, "--permissions"),
    ],
)
def test_the_exit_code_and_the_message_name_what_happened(
    project: Project, words: tuple[str, ...], agent: str, code: int, expected: str
) -> None:
    found, text = project.run(*words, agent=agent)
    assert expected in text
    assert found == code
    assert "Traceback" not in text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("kind", ["acp", "kaiak"])
def test_a_host_that_ends_leaves_no_process_of_its_agent(
    project: Project, tracker: ProcessTracker, kind: str, number: signal.Signals
) -> None:
    if kind == "kaiak":
        work = "trap '' TERM; sleep 3600 & echo up >&9; while :; do sleep 3600; done"
    else:
        work = f"(setsid sh -c 'trap \"\" TERM; echo up >&9; sleep 3600' &) ; exec {PEER}.acp"
        project.write_task(["ignore"])
    with project.start(agent=f"{kind}:sh -c {shlex.quote(f'{tracker.hold}; {work}')}") as process:
        assert tracker.line() == "up"
        process.send_signal(number)
        process.communicate()
    assert not tracker.left()
