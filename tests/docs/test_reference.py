"""The reference pages are complete, and their examples, run in one session per page, do what the page states."""

from __future__ import annotations

import functools
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from docs.generate.__main__ import EXTENSIONS, load
from docs.generate.argument_types import ArgumentTypes
from docs.generate.extension_page import TEXTS
from ext_recorder.cli.commands import COMMANDS as RECORDER_COMMANDS
from ext_recorder.conformance.raw_host import json_object
from ext_recorder.conformance.target import Profile, Target
from tests.docs.pages import ROOT, blocks, commands
from tests.support.example_server import EXAMPLE_SERVER, example_server
from tests.support.fake_helm import FakeHelm
from tests.support.fake_kubernetes import FakeApi, Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMANDS = {
    "ext-http": (sys.executable, "-m", "ext_http"),
    "ext-kubernetes": (sys.executable, "-m", "ext_kubernetes"),
    "ext-shell": (sys.executable, "-m", "ext_shell"),
}
AGENT = {"prompt": "Create a file.", "output": "I created a file:\n\ncreated:\n- notes/todo.txt\n"}
SECRETS = {"SHOP_PASSWORD": "correct-horse", "SHOP_KEY": "battery-staple"}  # which examples name
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
    """Set up the cluster that the examples use. Return the environment of the extension."""
    ready = {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Available", "status": "True"}]}
    spec = {"containers": [{"name": "nginx", "image": "registry.example/nginx:1"}]}
    api.job_exit = 0
    api.commands["tar"] = lambda _: [(3, b'{"status":"Success"}')]
    (workdir / "index.html").write_text("hello")
    api.commands["nginx"] = lambda _: [(1, b"test is ok"), (3, b'{"status":"Success"}')]
    api.logs["nginx/nginx"] = 'ready for start up\n{"level": "info"}\n'
    where = {"namespace": "web"}  # which create-namespace creates
    running = {"phase": "Running", "startTime": "2026-11-22T12:00:00Z"} | ready
    api.put("pods", {"metadata": {"name": "nginx"} | where, "spec": spec, "status": running})
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 2)
    web = {"metadata": {"name": "web"} | where, "spec": {"replicas": 2}}
    api.put("deployments", web | {"status": {"observedGeneration": 1} | counts | ready})
    refused = 'deployments.apps "web" is forbidden: User "reader" cannot patch it'  # in the first example, on all pages
    api.faults.append(Fault("PATCH", "/deployments/web", status=403, reason="Forbidden", message=refused))
    api.put("serviceaccounts", {"metadata": {"name": "reader"} | where})
    about = {"kind": "Pod", "name": "nginx"}
    started = {"involvedObject": about, "type": "Normal", "reason": "Started"}
    api.put("events", {"metadata": {"name": "one"} | where} | started)
    api.put(
        "nodes",
        {
            "metadata": {"name": "worker", "labels": {"kubernetes.io/os": "linux"}},
            "status": {"allocatable": {"memory": "1Gi", "cpu": "4"}},
        },
    )
    helm = FakeHelm(workdir / "programs")
    return SECRETS | {"KUBECONFIG": str(api.kubeconfig(workdir / "kubeconfig")), "PATH": helm.path}


@functools.cache
def results(program: str) -> list[tuple[Step, dict[str, object]]]:
    """Run all examples of a page. Return each step with its result."""
    with tempfile.TemporaryDirectory() as folder:
        return list(run(program, Path(folder)))


def run(program: str, workdir: Path) -> Iterator[tuple[Step, dict[str, object]]]:
    """Run all examples of a page in one session."""
    target = Target(COMMANDS[program], Profile({}, program), workdir)
    with (
        FakeApi() as api,
        example_server() as server,
        target.started(environment=environment(api, workdir)) as host,
    ):
        target.initialize(host)
        for operation, args in examples(program):
            live = json_object(json.loads(json.dumps(args).replace(EXAMPLE_SERVER, server.address)), operation)
            params = target.execute_params(operation, live, phase="verify", agent=AGENT)
            yield (operation, args), json_object(host.call("execute", params).get("result"), operation)
        host.call("shutdown", {})


def operations(program: str) -> set[str]:
    """Return the names of the operations in the manifest."""
    manifest = json.loads((ROOT / "extensions" / program.replace("-", "_") / "manifest.json").read_text())
    return set(manifest["operations"])


def test_every_extension_has_a_page() -> None:
    manifests = {path.parent.name.replace("_", "-") for path in ROOT.glob("*/*/manifest.json")}
    assert manifests == set(TEXTS) == set(COMMANDS) == set(EXTENSIONS)


@pytest.mark.parametrize("program", TEXTS)
def test_every_operation_has_a_section_with_its_arguments_or_is_another_name_of_one(program: str) -> None:
    page = (ROOT / "docs" / "reference" / f"{program}.md").read_text()
    sections = set(re.findall(r"^## (\S+)$", page, re.MULTILINE)) - {"Configuration", "Types"}
    named = set(re.findall(r"^\| `(\w+)` \| \[`", page.partition("\n## Other names\n")[2], re.MULTILINE))
    assert sections | named == operations(program)
    assert not sections & named
    undeclared = [name for name, operation in load(EXTENSIONS[program]).operations.items() if operation.outputs is None]
    assert undeclared == []
    assert TEXTS[program].FAILURES.keys() == sections
    assert TEXTS[program].EXAMPLES.keys() <= sections


@pytest.mark.parametrize("program", TEXTS)
def test_every_argument_and_every_member_of_one_has_a_description(program: str) -> None:
    extension = load(EXTENSIONS[program])
    roots = [operation.args_type for operation in extension.operations.values()]
    types = ArgumentTypes([*roots, extension.config_type])
    missing = {
        f"{args_type.__name__}.{member.name}"
        for args_type in {*roots, extension.config_type, *types.classes.values()}
        for member in types.members(args_type)
        if not member.description
    }
    assert missing == set()


def test_every_command_of_the_recorder_has_a_section_and_is_run_on_a_page() -> None:
    page = (ROOT / "docs" / "reference" / "ext-recorder.md").read_text()
    assert re.findall(r"^## (\S+)$", page, re.MULTILINE) == list(RECORDER_COMMANDS)
    run_by_tests = [block for block in blocks() if block.kind == "console" and "not-run" not in block.flags]
    typed = "\n".join(command.text for block in run_by_tests for command in commands(block))
    assert set(re.findall(r"ext-recorder (\w+)", typed)) == set(RECORDER_COMMANDS)


@pytest.mark.parametrize("program", TEXTS)
def test_every_operation_has_an_example_and_all_examples_succeed(program: str) -> None:
    assert {operation for (operation, _), _ in results(program)} == operations(program)
    assert [(step, result) for step, result in results(program) if not result["success"]] == []


@pytest.mark.parametrize("program", TEXTS)
def test_the_outputs_of_the_examples_are_those_of_the_page(program: str) -> None:
    for (operation, args), result in results(program):
        seen = json_object(result.get("outputs", {}), operation).keys()
        outputs = load(EXTENSIONS[program]).operations[operation].outputs or {}
        calls = args.get("calls")
        inside = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
        sources = [args.get("capture"), args.get("outputs"), *(call.get("capture") for call in inside)]
        named = [pair for source in sources if isinstance(source, dict) for pair in source.items()]
        chosen = {name for name, part in named if not (isinstance(part, dict) and part.get("secret"))}
        always = {name for name in outputs if not name.endswith("?")} | chosen
        assert always <= seen <= {name.rstrip("?") for name in outputs} | chosen, operation
