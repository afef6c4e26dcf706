"""The sessions that `make cassettes` tells are those of the cassettes, and what must not be in these is not."""

from __future__ import annotations

import base64
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
import yaml

from cassettes import kubernetes_sessions
from cassettes.kubernetes_sessions import PASSWORD, TASK
from cassettes.record import SESSIONS
from cassettes.session import in_workdir
from docs.examples.host import Host
from tests.docs.pages import agrees, blocks

if TYPE_CHECKING:
    from cassettes.session import Step

ROOT = Path(__file__).parents[2]
RECORDER = str(Path(sys.executable).with_name("ext-recorder"))
KUBERNETES = sorted(kubernetes_sessions.SESSIONS)


def cassette(name: str) -> Path:
    return ROOT / "cassettes" / f"{name}.yaml"


def play(name: str, steps: list[Step], workdir: Path) -> list[object]:
    """What a cassette answers to these steps; each must be the recorded one."""
    env = os.environ | {"PATH": "/nonexistent", "KUBECONFIG": "/nonexistent"}
    with Host([RECORDER, "replay", str(cassette(name))], env) as host:
        answers = [host.try_call(method, in_workdir(params, str(workdir))) for method, params in steps]
        assert host.end() == 0, answers
    return answers


@pytest.mark.parametrize("name", SESSIONS)
def test_a_cassette_answers_the_session_that_is_told(name: str, tmp_path: Path) -> None:
    steps = SESSIONS[name].steps
    assert len(play(name, steps, tmp_path)) == len(steps)


def test_every_cassette_is_told() -> None:
    files = [path for path in ROOT.glob("cassettes/*/*.yaml") if not path.name.endswith(".http.yaml")]
    found = {str(path.relative_to(ROOT / "cassettes").with_suffix("")) for path in files}
    assert {name for name in found if name.startswith(("shell/", "kubernetes/", "http/"))} == set(SESSIONS)


def test_the_task_of_the_readme_runs_from_its_cassette(tmp_path: Path) -> None:
    """Setup, what the agent did, verify and cleanup succeed, with no cluster there."""
    steps = kubernetes_sessions.SESSIONS["kubernetes/create-pod"].steps
    answers = play("kubernetes/create-pod", steps, tmp_path)
    told = {
        str(params["operation"]): cast("dict[str, object]", answer) for (_, params), answer in executed(steps, answers)
    }
    assert {name: answer for name, answer in told.items() if answer["success"] is not True} == {}
    spec = yaml.safe_load(TASK.read_text())["spec"]
    phases = [step for phase in ("setup", "verify", "cleanup") for step in spec[phase]]
    assert {name.removeprefix("kubernetes.") for step in phases for name in step} == told.keys()


def executed(steps: list[Step], answers: list[object]) -> list[tuple[Step, object]]:
    return [(step, answer) for step, answer in zip(steps, answers, strict=True) if step[0] == "execute"]


def test_a_failing_wait_tells_its_story_which_is_that_of_the_page(tmp_path: Path) -> None:
    steps = kubernetes_sessions.SESSIONS["kubernetes/failing"].steps
    answers = play("kubernetes/failing", steps, tmp_path)
    condition = next(answer for step, answer in executed(steps, answers) if step[1]["operation"] == "condition")
    story = str(cast("dict[str, object]", condition)["error"])
    for part in ("last found False", "CrashLoopBackOff", "exit code 3", "event:", "BackOff"):
        assert part in story
    (shown,) = (
        block.text
        for block in blocks()
        if block.page == "docs/kubernetes-tasks.md" and "last found False" in block.text
    )
    assert agrees(shown, story)


def test_a_cassette_with_a_secret_plays_with_another_one(tmp_path: Path) -> None:
    other = "another-password-that-nobody-has"
    steps = kubernetes_sessions.SESSIONS["kubernetes/secrets"].steps
    literals = {"literals": {"user": "ada", "password": other}}
    name, params = steps[2]
    assert params["operation"] == "create-secret"
    told = params | {"args": cast("dict[str, object]", params["args"]) | literals}
    play("kubernetes/secrets", [*steps[:2], (name, told), *steps[3:]], tmp_path)


@pytest.mark.parametrize("name", KUBERNETES)
def test_no_credentials_and_no_address_of_the_cluster_are_in_a_cassette(name: str) -> None:
    text = cassette(name).read_text()
    for secret in (PASSWORD, base64.b64encode(PASSWORD.encode()).decode().rstrip("=")[:-1]):
        assert secret not in text
    for private in ("127.0.0.1:", "localhost:", "client-key-data", "certificate-authority-data", "BEGIN "):
        assert private not in text
