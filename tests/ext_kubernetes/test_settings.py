"""Which cluster, as whom."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from ext_kubernetes.config import KubernetesConfig

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ext_kubernetes.conftest import Starter
    from tests.ext_kubernetes.fake_api import FakeApi

NOWHERE = {"resource": "configmap/x"}


def test_the_configuration_comes_before_the_environment(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    kubeconfig = api.kubeconfig(tmp_path / "kubeconfig")
    kube = start(tmp_path / "missing", config={"kubeconfig": str(kubeconfig)})
    assert kube.ok("get", {"resource": "namespace/default"})["name"] == "default"


def test_the_variable_of_the_task_comes_before_that_of_the_extension(
    api: FakeApi, start: Starter, tmp_path: Path
) -> None:
    kubeconfig = api.kubeconfig(tmp_path / "kubeconfig")
    kube = start(tmp_path / "missing")
    assert kube.ok("get", {"resource": "ns/default"}, env={"KUBECONFIG": str(kubeconfig)})["name"] == "default"


def test_a_kubeconfig_of_the_task_is_relative_to_its_workdir(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    kube = start(None)
    api.kubeconfig(kube.workdir / "cluster.yaml")
    assert kube.ok("get", {"resource": "ns/default"}, env={"KUBECONFIG": "cluster.yaml"})["name"] == "default"


def test_several_files_are_merged_and_the_first_wins(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "fake"}))
    second = api.kubeconfig(tmp_path / "second")
    kube = start(None, {"KUBECONFIG": f"{first}:{tmp_path / 'missing'}:{second}"})
    assert kube.ok("get", {"resource": "ns/default"})["name"] == "default"


def test_without_a_kubeconfig_the_error_says_where_it_was_looked_for(start: Starter, tmp_path: Path) -> None:
    told = start(tmp_path / "missing").failed("get", NOWHERE)
    assert f"there is no kubeconfig at {tmp_path}/missing (KUBECONFIG)" in told
    assert ".kube/config (the default)" in start(None).failed("get", NOWHERE)


def test_the_manifest_needs_no_kubeconfig(start: Starter, tmp_path: Path) -> None:
    answer = start(tmp_path / "missing").peer.initialize()
    assert "result" in answer


def test_an_unknown_context_is_told_with_those_that_there_are(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    kube = start(api.kubeconfig(tmp_path / "kubeconfig"), config={"context": "fakes"})
    assert f"the kubeconfig {tmp_path}/kubeconfig has no context 'fakes'; did you mean 'fake'?" in kube.failed(
        "get", NOWHERE
    )


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("token: sesame-opens: [", "is no YAML: line 1"),
        ("- sesame-opens", "found no mapping but a list"),
        ("contexts: [sesame-opens]", "an entry of `contexts` without `name` or `context`"),
    ],
)
def test_a_broken_kubeconfig_is_told_without_what_is_in_it(
    content: str, told: str, start: Starter, tmp_path: Path
) -> None:
    (tmp_path / "broken").write_text(content)
    found = start(tmp_path / "broken").failed("get", NOWHERE)
    assert told in found
    assert "sesame" not in found


def test_a_changed_kubeconfig_is_read_again(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config"}))
    kube = start(kubeconfig)
    assert f"the kubeconfig {kubeconfig} has no current-context" in kube.failed("get", NOWHERE)
    api.kubeconfig(kubeconfig)
    assert kube.ok("get", {"resource": "ns/default"})["name"] == "default"


def plugin(tmp_path: Path, script: str) -> Path:
    path = tmp_path / "plugin"
    path.write_text(f"#!{sys.executable}\n{script}")
    path.chmod(0o755)
    return path


def with_plugin(api: FakeApi, tmp_path: Path, script: str) -> Path:
    kubeconfig = api.kubeconfig(tmp_path / "kubeconfig")
    content = json.loads(kubeconfig.read_text())
    command = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin(tmp_path, script))}
    content["users"][0]["user"] = {"exec": command | {"interactiveMode": "Never"}}
    kubeconfig.write_text(json.dumps(content))
    return kubeconfig


CREDENTIAL = """
import json, pathlib
token = pathlib.Path({path!r}).read_text()
print(json.dumps({{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
    "status": {{"token": token}}}}))
"""


def test_a_credential_plugin_gives_the_token_and_is_asked_again_when_it_is_refused(
    api: FakeApi, start: Starter, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("first-token")
    api.token = "first-token"
    kube = start(with_plugin(api, tmp_path, CREDENTIAL.format(path=str(token))))
    kube.ok("get", {"resource": "ns/default"})
    api.token = "second-token"
    token.write_text("second-token")
    kube.ok("get", {"resource": "ns/default"})
    api.token = "third-token"
    assert "have expired, were revoked" in kube.failed("get", {"resource": "ns/default"})


def test_a_credential_plugin_that_fails_is_told(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    kube = start(with_plugin(api, tmp_path, "import sys; sys.exit('no session')"))
    told = kube.failed("get", NOWHERE)
    assert "the credential plugin of the kubeconfig" in told
    assert "no session" in told
    assert not api.asked


def test_a_credential_plugin_that_does_not_end_is_told(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    kube = start(with_plugin(api, tmp_path, "import signal; signal.pause()"))
    told = kube.failed("get", NOWHERE | {"timeout": "0s"})
    assert "it did not end in time, and was ended; does it wait for somebody to log in?" in told


def test_a_credential_plugin_reads_nothing_of_what_the_host_says(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    kube = start(with_plugin(api, tmp_path, "import sys; sys.exit(f'read {sys.stdin.read()!r}')"))
    assert "process returned 1. read ''" in kube.failed("get", NOWHERE)


@pytest.mark.parametrize("member", ["clusters", "users"])
def test_what_a_context_names_has_to_be_there(api: FakeApi, start: Starter, tmp_path: Path, member: str) -> None:
    kubeconfig = api.kubeconfig(tmp_path / "kubeconfig")
    kubeconfig.write_text(json.dumps(json.loads(kubeconfig.read_text()) | {member: []}))
    told = start(kubeconfig).failed("get", NOWHERE)
    assert f"has no {member.removesuffix('s')} 'fake', which its context 'fake' names; none is known" in told


def test_a_cluster_without_an_address_is_told(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    kubeconfig = api.kubeconfig(tmp_path / "kubeconfig")
    content = json.loads(kubeconfig.read_text())
    del content["clusters"][0]["cluster"]["server"]
    kubeconfig.write_text(json.dumps(content))
    assert "has no `server`, an address, in its cluster 'fake'" in start(kubeconfig).failed("get", NOWHERE)


def test_a_proxy_that_is_away_is_told_and_nothing_was_carried_out(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    kubeconfig = api.kubeconfig(tmp_path / "kubeconfig")
    content = json.loads(kubeconfig.read_text())
    content["clusters"][0]["cluster"]["proxy-url"] = "http://127.0.0.1:1"
    kubeconfig.write_text(json.dumps(content))
    told = start(kubeconfig, {"NO_PROXY": "", "no_proxy": ""}).failed("get", NOWHERE | {"timeout": "0s"})
    assert "Unable to connect to proxy: " in told
    assert "may have been carried out" not in told


def test_credentials_that_are_refused_are_told_and_not_shown(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    api.token = "another"
    kube = start(api.kubeconfig(tmp_path / "kubeconfig", token="sesame-opens-it"))
    told = kube.failed("get", NOWHERE)
    assert "The credentials of fake are refused" in told
    assert "sesame" not in told + kube.peer.stderr


def test_a_service_account_that_is_not_there_is_told(start: Starter) -> None:
    env = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}
    kube = start(None, env, {"serviceAccount": "/nonexistent"})
    told = kube.failed("get", NOWHERE)
    assert "the service account in /nonexistent can't be used: Service token file does not exist" in told


def test_a_kubeconfig_beside_a_service_account_is_one_too_many() -> None:
    with pytest.raises(ValueError, match="expected `kubeconfig` or `serviceAccount`, found both"):
        KubernetesConfig(kubeconfig="a", service_account="b")


def test_no_file_is_left_behind(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    kube = start(api.kubeconfig(tmp_path / "kubeconfig"), {"TMPDIR": str(temporary)})
    kube.ok("get", {"resource": "ns/default"})
    kube.peer.call("shutdown", {})
    assert kube.peer.exit_code() == 0
    assert list(temporary.iterdir()) == []
