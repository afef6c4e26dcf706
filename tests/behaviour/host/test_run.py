"""`ext-host run` as a program: signals, a host that is killed, exit codes, and tasks with real extensions."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from ext_host.__main__ import main
from tests.support.host_tasks import Tasks
from tests.support.process_tracker import ProcessTracker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.ports import NewPort

ROOT = Path(__file__).parents[3]
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


def test_a_replay_says_what_it_does_not_perform_and_a_failed_recording_what_it_replaces(tasks: Tasks) -> None:
    path = tasks.task("verify: [{x.ok: {}}, {script: {inline: 'true'}}]")
    words = (path, "--agent", "echo done")
    assert run(tasks, *words, "--record=rec")[0] == 0
    tasks.extension.write_text(tasks.extension.read_text().replace('"success": True', '"success": False'))
    code, out, _ = run(tasks, *words, "--replay=rec", "--json=r.json", "--junit=r.xml")
    assert code == 0
    assert "replayed from rec, not performed: 1 of 2 steps" in out
    report = json.loads((tasks.folder / "r.json").read_text())
    counts = {"steps": 2, "replayedSteps": 1, "agentRuns": 1, "replayedAgentRuns": 0}
    assert report["replay"] == {"recording": "rec", "real": [], **counts}
    (trial,) = report["evals"][0]["tasks"][0]["runs"]
    assert [step["replayed"] for step in trial["phases"]["verify"]["steps"]] == [True, False]
    named = {each.get("name"): each.get("value") for each in ET.parse(tasks.folder / "r.xml").iter("property")}
    assert named["replayed"] == "1 of 2 steps"
    code, out, _ = run(tasks, *words, "--replay=rec", "--real=x")
    assert (code, "not performed: 0 of 2 steps" in out) == (1, True)
    code, _, errors = run(tasks, *words, "--record=rec")
    assert code == 1
    assert re.search(
        r"exited with 1, and a replay will, too; it replaces a recording of \S+Z that exited with 0", errors
    )


def test_messages_of_a_replay_name_options_of_ext_host(tasks: Tasks) -> None:
    path, said = tasks.task("verify: [{x.ok: {}}]"), tasks.folder / "said.txt"
    words = (path, "--agent", f"cat {said}")
    said.write_text("one")
    assert run(tasks, *words, "--record=rec")[0] == 0
    said.write_text("two")
    code, out, errors = run(tasks, *words, "--replay=rec")
    assert code == 3
    remedy = "record it again (--record rec), or set aside what may differ (--ignore /params/context/agent/output)"
    assert remedy in out
    assert remedy in errors
    assert run(tasks, *words, "--replay=rec", "--ignore=/params/context/agent/output")[0] == 0
    assert run(tasks, *words, "--replay=rec", "--mask=one|two")[0] == 0
    code, _, errors = run(tasks, path, "--agent=none", "--replay=rec")
    assert (code, "use another folder, or record it again with --record rec" in errors) == (2, True)
    assert "--mode" not in errors


def test_an_extension_or_the_agent_runs_in_a_replay(tasks: Tasks) -> None:
    pytest.importorskip("acp")
    path = tasks.task("prompt: {inline: said.txt}\nverify: [{x.ok: {}}]")
    (tasks.folder / "said.txt").write_text("one")
    words = (path, "--workspace=.", f"--agent=acp:{sys.executable} {ROOT / 'cassettes' / 'agent.py'}")
    assert run(tasks, *words, "--record=rec")[0] == 0
    performed = {
        ("x",): "0 of 1 step, 1 of 1 run of the agent",
        ("acp-agent",): "1 of 1 step",
        ("x", "acp-agent"): "0 of 1 step",
    }
    for names, text in performed.items():
        code, out, _ = run(tasks, *words, "--replay=rec", *(f"--real={name}" for name in names))
        assert (code, f"not performed: {text}\n" in out) == (0, True)


def test_the_text_of_a_run_has_no_secrets(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    secret, lines = "correct-horse-battery", ("first-line-of-the-key", "second-line-of-the-key")
    monkeypatch.setenv("API_TOKEN", secret)
    monkeypatch.setenv("DEPLOY_KEY", "\n".join(lines))
    tasks.extension.write_text(
        tasks.extension.read_text()
        .replace('"very bad"', 'os.environ["API_TOKEN"]')
        .replace('"bad"', '"x" * 290 + ": " + os.environ["API_TOKEN"]')
    )
    path = tasks.task("verify: [{x.fail: {}}, {script: {inline: 'echo $API_TOKEN; exit 1'}}]")
    agent = (
        'printf "%0280d " 0; for part in correct -horse; do printf %s "$part"; done; echo -battery; echo "$DEPLOY_KEY"'
    )
    for more in ("exit 0", "exit 1"):
        code, out, errors = run(tasks, path, "-v", "--agent", f"{agent}; {more}")
        assert code == 1
        assert "[redacted:env.API_TOKEN#" in out
        assert "[redacted:env.DEPLOY_KEY#" in out
        for text in ("correct-h", *lines):
            assert text not in out + errors


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("good.yaml", "--no-such-option", "--agent=none"), "No such option"),
        (("good.yaml", "--agent=none", "--task-timeout=5"), "a unit is missing"),
        (("none.yaml", "--agent=none"), "cannot read this file"),
        (("good.yaml",), "no agent"),
        (("good.yaml", "--agent=good.yaml"), "use file:good.yaml"),
        (("good.yaml", "--agent=none", "--real=x"), "expected --replay FOLDER"),
        (("good.yaml", "--agent=none", "--mask=x"), "--mask=x: expected --replay FOLDER or --record FOLDER with it"),
        (("good.yaml", "--agent=none", "--replay=none"), "none: no recording; make one with --record none"),
    ],
)
def test_a_run_that_does_not_begin_leaves_no_report_of_an_earlier_one(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], text: str
) -> None:
    monkeypatch.chdir(tasks.folder)
    tasks.task("verify: [{script: {inline: 'true'}}]", "good")
    reports = ("--junit=r.xml", "--json=r.json")
    assert main(["run", "good.yaml", "--agent=none", "--extension=x=true", *reports]) == 0
    assert main(["run", *words, *reports]) == 2
    report = json.loads((tasks.folder / "r.json").read_text())
    assert (report["status"], report["evals"]) == ("error", [])
    assert text in report["error"]
    root = ET.parse(tasks.folder / "r.xml").getroot()
    assert (root.get("tests"), root.get("errors")) == ("1", "1")
    assert text in str(root.findtext("testsuite/testcase/error"))


def test_a_file_that_is_no_report_is_not_replaced_by_an_error(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tasks.folder)
    before = tasks.task("verify: [{x.ok: {}}]").read_text()
    assert main(["run", "--agent=none", "--junit", "task.yaml"]) == 2
    assert (tasks.folder / "task.yaml").read_text() == before
    assert main(["run", "task.yaml", "--agent=none", "--junit=a/../r", "--json=r"]) == 2
    assert "expected two files for --junit and --json" in capsys.readouterr().err


def test_skipped_tasks_are_named_and_a_run_of_only_such_tasks_fails(tasks: Tasks) -> None:
    tasks.task("verify: [{x.ok: {}}]", "good")
    tasks.task("verify: [{llmJudge: {contains: x}}]", "model")
    words = ("--agent=none", "--skip-unsupported", "--json=r.json")
    for files, expected, status in ((("good.yaml", "model.yaml"), 0, "passed"), (("model.yaml",), 1, "failed")):
        code, out, errors = run(tasks, *files, *words)
        assert code == expected, errors
        assert "\nskipped, not checked: model\n" in out
        report = json.loads((tasks.folder / "r.json").read_text())
        assert (report["status"], report["skipped"]) == (status, ["model"])


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
