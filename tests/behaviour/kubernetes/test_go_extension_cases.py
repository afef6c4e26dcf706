"""Every case of the Go extension's own tests, asked of this one: see go_extension_cases."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.kubernetes.go_extension_cases import CASES, World
from tests.support.ext_kubernetes import COMMAND
from tests.support.fake_helm import FakeHelm
from tests.support.host import ExtensionHost, parameters
from tests.support.rejections import refusal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.behaviour.kubernetes.go_extension_cases import Case
    from tests.support.ext_kubernetes import Starter
    from tests.support.fake_kubernetes import FakeApi

GROUPS = {
    "wait": 3,
    "create": 3,
    "delete": 3,
    "authCanI": 13,
    "createNamespace": 4,
    "deleteGeneratedNamespaces": 4,
    "generateID": 1,  # their only function without cases in it
    "parseResourceRef": 3,
    "gvr": 2,
    "listContexts": 4,
    "getCurrentContext": 3,
    "viewConfig": 8,
    "helmInstall": 4,
    "helmList": 4,
    "helmUninstall": 5,
}
LINES = 78  # of `go test -v`: one for each case, and one for each function that has cases in it


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExtensionHost]:
    """One process for all cases; which cluster, and which helm, is told by the task of each."""
    home = str(tmp_path_factory.mktemp("home"))
    with ExtensionHost(COMMAND, {"HOME": home, "KUBECONFIG": "", "KUBERNETES_SERVICE_HOST": ""}) as one:
        one.initialize()
        yield one


def test_they_are_all_there() -> None:
    assert Counter(case.group for case in CASES) == GROUPS
    assert len({(case.group, case.name) for case in CASES}) == len(CASES)
    assert len(CASES) + len(GROUPS) - 1 == LINES


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.group}: {case.name}")
def test_case(case: Case, peer: ExtensionHost, api: FakeApi, tmp_path: Path) -> None:
    helm = FakeHelm(tmp_path / "programs")
    kubeconfig = api.kubeconfig(tmp_path / "kubeconfig")
    (tmp_path / "work").mkdir()
    env = {"KUBECONFIG": str(kubeconfig), "PATH": f"{helm.path}{os.pathsep}{os.environ['PATH']}"}
    context: dict[str, object] = {"workdir": str(tmp_path / "work"), "env": env}

    def ok(operation: str, args: object) -> dict[str, str]:
        result = peer.result(operation, args, **context)
        assert result["success"] is True, result
        outputs = result.get("outputs") or {}
        assert isinstance(outputs, dict)
        return {**outputs, "message": str(result.get("message", ""))}

    world = World(api, helm, kubeconfig, ok)
    case.given(world)
    answer = peer.call("execute", parameters("-", **context) | {"operation": case.operation, "args": case.args})
    if case.comes == "refused":
        assert case.says in refusal("ext_kubernetes", case.operation, case.args, answer)
        return
    result = answer["result"]
    assert isinstance(result, dict), answer
    assert result["success"] is (case.comes == "ok"), result
    assert case.says in f"{result.get('message', '')}\n{result.get('error', '')}", result
    assert case.then(world, {**(result.get("outputs") or {}), "message": str(result.get("message", ""))}), result


# --- Three more of a newer version: where the kubeconfig is -----------------------------------------------------------


def current(start: Starter, env: Path | None, config: object = None) -> str:
    return start(env, config=config).ok("getCurrentContext")["context"]


def kubeconfig(path: Path, name: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{{current-context: {name}, contexts: [{{name: {name}, context: {{cluster: c}}}}]}}")
    return path


def test_the_variable_is_used_where_the_configuration_has_none(start: Starter, tmp_path: Path) -> None:
    kubeconfig(tmp_path / "home" / ".kube" / "config", "home")
    assert current(start, kubeconfig(tmp_path / "env", "env")) == "env"


def test_the_configuration_is_preferred_to_the_variable(start: Starter, tmp_path: Path) -> None:
    explicit = kubeconfig(tmp_path / "explicit", "explicit")
    assert current(start, kubeconfig(tmp_path / "env", "env"), {"kubeconfig": str(explicit)}) == "explicit"


def test_without_both_the_one_of_the_home_directory_is_used(start: Starter, tmp_path: Path) -> None:
    kubeconfig(tmp_path / "home" / ".kube" / "config", "home")
    assert current(start, None) == "home"
