"""action.yml: its steps do what docs/recording-evals.md states when they are run as a GitHub runner runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from docs.demo import copy_booking, servers
from tests.docs.pages import ROOT, blocks
from tests.support.raw_server import RawServer, sends

PAGE = "docs/recording-evals.md"
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
BIN = Path(sys.executable).parent
WITH_PROGRAMS = {"PATH": os.pathsep.join([str(BIN), os.environ["PATH"]])}
LIMIT_SECONDS = 120
EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")
HOST = "ext-host run my-eval/eval.yaml"


def workflow() -> str:
    return next(block.text for block in blocks() if block.page == PAGE and block.kind == "yaml")


class Done(NamedTuple):
    """Result of the action.

    Attributes:
        used: names and inputs of the other actions that were used.
        output: output of the steps.
        summary: text for the page of the job.
        report: folder to upload.
    """

    failed: bool
    outputs: dict[str, str]
    used: dict[str, dict[str, str]]
    output: str
    summary: str
    report: Path


class Runner:
    """GitHub runner of a composite action, as far as action.yml uses its features.

    Args:
        workspace: folder of the checked-out repository.
        temp: RUNNER_TEMP.
        environ: additional variables.
    """

    def __init__(self, workspace: Path, temp: Path, environ: dict[str, str]) -> None:
        self._workspace = workspace
        self._temp = temp
        temp.mkdir()
        self._environ = os.environ | {"RUNNER_TEMP": str(temp), "GITHUB_ACTION_PATH": str(ROOT)} | environ

    def run(self, **given: str) -> Done:
        """Run the action with these inputs."""
        unknown = given.keys() - ACTION["inputs"].keys()
        missing = {name for name, spec in ACTION["inputs"].items() if spec.get("required")} - given.keys()
        assert not unknown | missing
        inputs = {name: spec.get("default", "") for name, spec in ACTION["inputs"].items()} | given
        values = {f"inputs.{name}": str(value) for name, value in inputs.items()} | {"runner.temp": str(self._temp)}
        files = {name: self._temp / name for name in ("GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("")
        used, output, failed = {}, "", False
        for step in ACTION["runs"]["steps"]:
            if not self._applies(str(step.get("if", "")), values, failed=failed):
                continue
            if "uses" in step:
                used[step["uses"].partition("@")[0]] = {
                    name: filled(text, values) for name, text in step["with"].items()
                }
                continue
            assert step["shell"] == "bash"  # required; the arguments are those of the runner
            added = [*reversed(files["GITHUB_PATH"].read_text().split()), self._environ["PATH"]]
            environ = {name: filled(text, values) for name, text in step.get("env", {}).items()}
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=self._workspace / filled(step.get("working-directory", "."), values),
                env=self._environ | {name: str(file) for name, file in files.items()} | environ
                | {"PATH": os.pathsep.join(added)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=LIMIT_SECONDS,
            )  # fmt: skip
            output += done.stdout
            failed = failed or done.returncode != 0
            if "id" in step:
                pairs = (line.partition("=") for line in files["GITHUB_OUTPUT"].read_text().splitlines())
                values |= {f"steps.{step['id']}.outputs.{name}": value for name, _, value in pairs}
        outputs = {name: filled(spec["value"], values) for name, spec in ACTION["outputs"].items()}
        summary = files["GITHUB_STEP_SUMMARY"].read_text()
        return Done(failed, outputs, used, output, summary, self._temp / "ext-recorder-report")

    @staticmethod
    def _applies(condition: str, values: dict[str, str], *, failed: bool) -> bool:
        terms = condition.split(" && ") if condition else []
        states = {"always()": True, "failure()": failed, "success()": not failed}
        if not any(term in states for term in terms):
            terms.append("success()")
        for term in terms:
            if term not in states:
                match = re.fullmatch(r"([\w.-]+) != '(\w*)'", term)
                assert match, term
                states[term] = values.get(match[1], "") != match[2]
        return all(states[term] for term in terms)


def filled(text: str, values: dict[str, str]) -> str:
    """Return a text with its expressions replaced; a value that is missing is empty."""
    return EXPRESSION.sub(lambda match: values.get(match[1], ""), text)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout with an eval and the host, in which the eval is recorded. Its servers have stopped."""
    monkeypatch.setenv("PATH", str(BIN), prepend=os.pathsep)
    folder = tmp_path / "workspace"
    shutil.copytree(ROOT / "docs" / "examples", folder / "docs" / "examples")
    copy_booking(folder / "my-eval", BIN / "ext-http")
    with servers(folder / "my-eval"):
        command = ["ext-recorder", "run", "--wrap", "my-eval/eval.yaml", "recordings/book-a-trip", "--", *HOST.split()]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=LIMIT_SECONDS)
    (folder / "my-eval" / "ext-http").unlink()
    return folder


def dependencies(folder: Path) -> Path:
    """Return a folder with the packages that are installed here, except this one: pip installs it from the checkout."""
    folder.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "gevals" not in path.name and path.suffix != ".pth":
            (folder / path.name).symlink_to(path)
    return folder


@pytest.mark.parametrize(("schema", "name"), [("github-actions", "action.yml"), ("github-workflows", "workflow.yml")])
def test_the_action_and_the_workflow_of_the_page_are_valid(schema: str, name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text((ROOT / name).read_text() if name == "action.yml" else workflow())
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_lists_the_inputs() -> None:
    table = (ROOT / PAGE).read_text().partition("| input | value |\n|---|---|\n")[2].partition("\n\n")[0]
    listed = [name for line in table.splitlines() for name in re.findall("`([^`]+)`", line.split(" | ")[0])]
    assert listed == list(ACTION["inputs"])


def test_the_workflow_of_the_page_replays_the_eval_with_the_code_of_the_action(workspace: Path, tmp_path: Path) -> None:
    environ = {"PYTHONPATH": str(dependencies(tmp_path / "dependencies"))}  # instead of the package index:
    environ |= {"PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}  # sic: 0 means without
    runner = Runner(workspace, tmp_path / "temp", environ)
    (job,) = yaml.safe_load(workflow())["jobs"].values()
    (given,) = (step["with"] for step in job["steps"] if "/gevals-extensions@" in step["uses"])
    assert given["command"] == HOST
    done = runner.run(**given)
    assert not done.failed, done.output
    assert "task     passed  book-a-trip" in done.output
    assert (done.outputs, done.used) == ({"exit-code": "0"}, {})
    assert done.summary.startswith("### recordings/book-a-trip: passed\n````text\nchild http: 1 of 1 session\n")
    assert "; not paid: 2 model calls with 480 + 50 tokens" in done.summary
    program = tmp_path / "temp" / "ext-recorder" / "programs" / "ext-recorder"
    found = next((tmp_path / "temp" / "ext-recorder" / "lib").glob("*/site-packages/ext_recorder"))
    assert program.resolve().parent.parent == tmp_path / "temp" / "ext-recorder"
    assert not found.is_symlink()


def test_a_replay_that_differs_fails_and_uploads_a_report(workspace: Path, tmp_path: Path) -> None:
    task = workspace / "my-eval" / "book-a-trip" / "task.yaml"
    task.write_text(task.read_text().replace("Lisbon", "Porto"))
    runner = Runner(workspace, tmp_path / "temp", {})
    done = runner.run(folder="recordings/book-a-trip", command=HOST, package="none", report="booking")
    assert (done.failed, done.outputs) == (True, {"exit-code": "3"})
    assert done.used == {"actions/upload-artifact": {"name": "booking", "path": str(done.report)}}
    assert "### recordings/book-a-trip: exit code 3: the run differed from the recording" in done.summary
    assert "differs from recorded interaction" in done.summary
    assert (done.report / "summary.txt").read_text() in done.summary
    assert (done.report / "book-a-trip" / "recording.yaml").is_file()
    assert "book-a-trip" in (done.report / "recording.html").read_text()


def test_the_output_of_the_command_is_in_the_log_and_not_in_the_report(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    runner = Runner(tmp_path / "workspace", tmp_path / "temp", WITH_PROGRAMS)
    done = runner.run(folder="new", command="sh -c 'echo of-the-command >&2; exit 4'", mode="once", package="none")
    assert (done.failed, done.outputs) == (True, {"exit-code": "4"})
    assert "of-the-command" in done.output
    assert "new: not made, the command exited with 4" in (done.report / "summary.txt").read_text()
    assert "of-the-command" not in (done.report / "summary.txt").read_text() + done.summary


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"folder": "recordings/other", "command": "true"}, "recordings/other: the recording does not exist"),
        ({"folder": "new", "command": "true | cat", "mode": "once"}, "syntax error near unexpected token `|'"),
        (
            {"folder": "new", "command": "true", "mode": "sometimes"},
            "--mode sometimes: expected one of once, none",
        ),
        ({"folder": "new", "command": "true", "options": "--wrong"}, "--wrong"),
    ],
)
def test_wrong_inputs_fail_with_the_reason(given: dict[str, str], says: str, tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    done = Runner(tmp_path / "workspace", tmp_path / "temp", WITH_PROGRAMS).run(package="none", **given)
    assert done.failed
    assert says in done.output
    assert not (tmp_path / "workspace" / "new").exists()


def test_a_recording_made_by_the_action_has_the_words_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "workspace" / "sub").mkdir(parents=True)
    runner = Runner(tmp_path / "workspace", tmp_path / "temp", WITH_PROGRAMS)
    program = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).read(); print(sys.argv[2:])"
    folders = {"folder": "new", "working-directory": "sub"}
    with RawServer(sends(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) as server:
        command = f"""python3 -c '{program}' {server.url}\n  "two words"  $GITHUB_OUTPUT_OF_NOBODY 'a|b'"""
        done = runner.run(mode="once", command=command, package="none", **folders, **{"python-version": "3.13"})
    assert not done.failed, done.output
    assert "['two words', 'a|b']" in done.output
    assert done.used == {"actions/setup-python": {"python-version": "3.13"}}
    recorded = yaml.safe_load((tmp_path / "workspace" / "sub" / "new" / "recording.yaml").read_text())
    assert recorded["command"][4:] == ["two words", "a|b"]
