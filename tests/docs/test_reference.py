"""The reference pages: their examples, run one after the other in one session, do what they should."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from docs.generate.outputs import OUTPUTS
from ext_recorder.commands import COMMANDS as RECORDER_COMMANDS
from ext_recorder.conformance.host import json_object
from ext_recorder.conformance.target import Profile, Target
from tests.docs.pages import ROOT, blocks, commands
from tests.support.example_server import EXAMPLE_SERVER, example_server
from tests.support.fake_helm import FakeHelm
from tests.support.fake_kubernetes import FakeApi

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = {
    "ext-http": (sys.executable, "-m", "ext_http"),
    "ext-kubernetes": (sys.executable, "-m", "ext_kubernetes"),
    "ext-shell": (sys.executable, "-m", "ext_shell"),
}
AGENT = {"prompt": "Create a file.", "output": "I created notes/todo.txt."}
Step = tuple[str, dict[str, object]]


def examples(program: str) -> list[Step]:
    page = f"docs/reference/{program}.md"
    alias = program.removeprefix("ext-")
    found: list[Step] = []
    for block in blocks():
        if block.page == page and block.kind == "yaml":
            for step in yaml.safe_load(block.text):
                found += [(name.removeprefix(f"{alias}."), json_object(args, name)) for name, args in step.items()]
    return found


def environment(api: FakeApi, workdir: Path) -> dict[str, str]:
    """What the examples need: a cluster in which somebody has been at work."""
    ready = {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Available", "status": "True"}]}
    spec = {"containers": [{"name": "nginx"}]}
    api.job_exit = 0
    api.commands["tar"] = lambda _: [(3, b'{"status":"Success"}')]
    (workdir / "index.html").write_text("hello")
    api.commands["nginx"] = lambda _: [(1, b"test is ok"), (3, b'{"status":"Success"}')]
    api.logs["nginx/nginx"] = "ready for start up\n"
    where = {"namespace": "web"}  # which create-namespace creates
    api.put("pods", {"metadata": {"name": "nginx"} | where, "spec": spec, "status": {"phase": "Running"} | ready})
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 2)
    web = {"metadata": {"name": "web"} | where, "spec": {"replicas": 2}}
    api.put("deployments", web | {"status": {"observedGeneration": 1} | counts | ready})
    about = {"kind": "Pod", "name": "nginx"}
    started = {"involvedObject": about, "type": "Normal", "reason": "Started"}
    api.put("events", {"metadata": {"name": "one"} | where} | started)
    helm = FakeHelm(workdir / "programs")
    return {"KUBECONFIG": str(api.kubeconfig(workdir / "kubeconfig")), "PATH": helm.path}


def results(program: str, workdir: Path) -> dict[str, dict[str, object]]:
    target = Target(COMMANDS[program], Profile({}, program), workdir)
    found = {}
    with (
        FakeApi() as api,
        example_server() as server,
        target.started(environment=environment(api, workdir)) as host,
    ):
        target.initialize(host)
        for operation, args in examples(program):
            there = json_object(json.loads(json.dumps(args).replace(EXAMPLE_SERVER, server.address)), operation)
            params = target.execute_params(operation, there, phase="verify", agent=AGENT)
            found[operation] = json_object(host.call("execute", params).get("result"), operation)
        host.call("shutdown", {})
    return found


def operations(program: str) -> set[str]:
    """Those of the manifest that a host gets."""
    manifest = json.loads((ROOT / "extensions" / program.replace("-", "_") / "manifest.json").read_text())
    return set(manifest["operations"])


def test_every_extension_is_looked_at_here() -> None:
    assert (
        set(OUTPUTS) == set(COMMANDS) == {path.parent.name.replace("_", "-") for path in ROOT.glob("*/*/manifest.json")}
    )


@pytest.mark.parametrize("program", OUTPUTS)
def test_every_operation_has_a_section_with_its_arguments_or_is_another_name_of_one(program: str) -> None:
    page = (ROOT / "docs" / "reference" / f"{program}.md").read_text()
    sections = set(re.findall(r"^## (\S+)$", page, re.MULTILINE)) - {"Configuration"}
    named = set(re.findall(r"^\| `(\w+)` \| \[`", page.partition("\n## Other names\n")[2], re.MULTILINE))
    assert sections | named == operations(program)
    assert not sections & named


def test_every_command_of_the_recorder_has_a_section_and_is_run_on_a_page() -> None:
    page = (ROOT / "docs" / "reference" / "ext-recorder.md").read_text()
    assert re.findall(r"^## (\S+)$", page, re.MULTILINE) == list(RECORDER_COMMANDS)
    run_by_tests = [block for block in blocks() if block.kind == "console" and "not-run" not in block.flags]
    typed = "\n".join(command.text for block in run_by_tests for command in commands(block))
    assert set(re.findall(r"ext-recorder (\w+)", typed)) == set(RECORDER_COMMANDS)


@pytest.mark.parametrize("program", OUTPUTS)
def test_every_operation_has_an_example_that_succeeds(program: str, tmp_path: Path) -> None:
    found = results(program, tmp_path)
    assert found.keys() == OUTPUTS[program].keys() == operations(program)
    assert {name: result for name, result in found.items() if not result["success"]} == {}


@pytest.mark.parametrize("program", OUTPUTS)
def test_the_outputs_of_the_examples_are_those_of_the_page(program: str, tmp_path: Path) -> None:
    for operation, result in results(program, tmp_path).items():
        seen = json_object(result.get("outputs", {}), operation).keys()
        told = OUTPUTS[program][operation]
        always = {name for name, text in told.items() if not text.startswith(("if ", "where", "the same for"))}
        assert always <= seen <= told.keys(), operation
