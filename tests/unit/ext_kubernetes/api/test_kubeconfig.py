"""Which cluster, as whom."""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trustme

from ext_kubernetes.api.credentials import PREFIX, PrivateFolder, remove_stale
from ext_kubernetes.config import KubernetesConfig
from tests.support.fake_kubernetes import FakeApi, Fault

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Starter

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
    assert f"no kubeconfig at {tmp_path}/missing (KUBECONFIG)" in told
    assert ".kube/config (the default)" in start(None).failed("get", NOWHERE)


def test_the_manifest_needs_no_kubeconfig(start: Starter, tmp_path: Path) -> None:
    answer = start(tmp_path / "missing").peer.initialize()
    assert "result" in answer


@pytest.mark.parametrize("broken", ["missing", "both missing", "directory", "context", "escaped context"])
def test_an_explicit_kubeconfig_that_can_not_be_used_is_refused_at_the_start(
    api: FakeApi, start: Starter, tmp_path: Path, broken: str
) -> None:
    good, missing = api.kubeconfig(tmp_path / "kubeconfig"), tmp_path / "missing"
    (tmp_path / "directory").mkdir()
    config, told = {
        "missing": ({"kubeconfig": str(missing)}, f"no kubeconfig at {missing} (config.kubeconfig)"),
        "both missing": ({"kubeconfig": f"{missing}:{missing}"}, f"no kubeconfig at {missing}:{missing}"),
        "directory": ({"kubeconfig": str(tmp_path / "directory")}, "directory can't be read: Is a directory"),
        "context": ({"kubeconfig": str(good), "context": "fakes"}, "has no context 'fakes'; did you mean 'fake'?"),
        "escaped context": ({"kubeconfig": str(good), "context": "fäke"}, "has no context 'fäke'; did you mean"),
    }[broken]
    answer = start(None).peer.initialize(config)
    assert "error" in answer, answer
    error = answer["error"]
    assert isinstance(error, dict)
    assert error["code"] == -32602
    assert told in error["message"]


@pytest.mark.parametrize("given", ["one of several is missing", "context", "escaped context", "relative"])
def test_an_explicit_kubeconfig_that_can_be_used_is_not_refused(
    api: FakeApi, start: Starter, tmp_path: Path, given: str
) -> None:
    path = api.kubeconfig(tmp_path / "kubeconfig")
    path.write_text(path.read_text().replace('"fake"', '"f\\u00e4ke"' if given == "escaped context" else '"fake"'))
    config = {
        "one of several is missing": {"kubeconfig": f"{tmp_path / 'missing'}:{path}"},
        "context": {"kubeconfig": str(path), "context": "fake"},
        "escaped context": {"kubeconfig": str(path), "context": "fäke"},
        "relative": {"kubeconfig": os.path.relpath(path)},
    }[given]
    assert start(None, config=config).ok("get", {"resource": "ns/default"})["name"] == "default"


def test_an_unknown_context_is_told_with_those_that_there_are(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    kube = start(api.kubeconfig(tmp_path / "kubeconfig"), config={"context": "fakes"})
    assert f"the kubeconfig {tmp_path}/kubeconfig has no context 'fakes'; did you mean 'fake'?" in kube.failed(
        "get", NOWHERE
    )


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("token: sesame-opens: [", "is not valid YAML: line 1"),
        ("- sesame-opens", "found a list"),
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
    assert "it timed out and was killed; it may wait for a login" in told


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
    assert "The credentials of fake were rejected" in told
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


def changed(kubeconfig: Path, part: str, **members: object) -> Path:
    """Add members to the cluster or the user of a kubeconfig."""
    content = json.loads(kubeconfig.read_text())
    content[f"{part}s"][0][part] |= members
    kubeconfig.write_text(json.dumps(content))
    return kubeconfig


NO_BYPASS = {"NO_PROXY": "", "no_proxy": ""}


@pytest.mark.parametrize("ending", ["", "\n", "\r\n", " \n\n"])
def test_a_token_in_a_file_is_trimmed(api: FakeApi, start: Starter, tmp_path: Path, ending: str) -> None:
    api.token = "sesame-opens"
    (tmp_path / "token").write_text(f"sesame-opens{ending}")
    kubeconfig = changed(api.kubeconfig(tmp_path / "kubeconfig"), "user", tokenFile=str(tmp_path / "token"))
    kube = start(kubeconfig)
    kube.ok("get", {"resource": "ns/default"})
    (tmp_path / "token").write_text(f"another-token{ending}")
    api.token = "another-token"
    kube.ok("get", {"resource": "ns/default"})


def test_the_token_of_a_service_account_is_trimmed(start: Starter, tmp_path: Path) -> None:
    authority = trustme.CA()
    with FakeApi(authority=authority) as api:
        api.token = "sesame-opens"
        (tmp_path / "token").write_text("sesame-opens\n")
        authority.cert_pem.write_to_path(tmp_path / "ca.crt")
        host, _, port = api.address.removeprefix("https://").partition(":")
        env = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        kube = start(None, env, {"serviceAccount": str(tmp_path)})
        for _ in range(2):  # the package reads the token again before each request
            kube.ok("get", {"resource": "ns/default"})


def test_a_token_that_is_none_is_told_and_not_shown(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    kubeconfig = changed(api.kubeconfig(tmp_path / "kubeconfig"), "user", token="sesame\nopens")
    told = start(kubeconfig).failed("get", NOWHERE)
    assert "its token has characters that are not allowed in a header" in told
    assert "sesame" not in told


def test_user_and_password_of_a_proxy_are_sent_to_it(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    proxy = api.address.replace("http://", "http://ada:pass%20word@")
    kubeconfig = changed(
        api.kubeconfig(tmp_path / "kubeconfig"), "cluster", server="http://api.invalid:1", **{"proxy-url": proxy}
    )
    kube = start(kubeconfig, NO_BYPASS)
    kube.ok("get", {"resource": "ns/default"})
    sent = base64.b64encode(b"ada:pass word").decode()
    assert {asked.headers.get("proxy-authorization") for asked in api.asked} == {f"Basic {sent}"}
    config = kube.ok("view-config")["config"]
    assert "proxy-url: http://127.0.0.1:" in config
    assert "pass" not in config


def test_a_proxy_that_is_not_supported_is_told(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    kubeconfig = changed(api.kubeconfig(tmp_path / "kubeconfig"), "cluster", **{"proxy-url": "socks5://127.0.0.1:1"})
    told = start(kubeconfig, NO_BYPASS).failed("get", NOWHERE)
    assert "proxies of the type socks5 are not supported; use an HTTP proxy" in told
    start(kubeconfig, {"NO_PROXY": "127.0.0.1"}).ok("get", {"resource": "ns/default"})


def test_view_config_hides_what_an_address_may_hold(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    server = "https://ada:sesame@host.invalid:6443/path?token=opens#it"
    kubeconfig = changed(api.kubeconfig(tmp_path / "kubeconfig"), "cluster", server=server)
    config = start(kubeconfig).ok("view-config")["config"]
    assert "server: https://host.invalid:6443/path\n" in config


@pytest.mark.parametrize("members", [
    {"client-certificate": "{cert}", "client-key": "{junk}"},
    {"client-certificate": "{cert}"},
    {"client-certificate": "{junk}", "client-key": "{key}"},
])  # fmt: skip
def test_a_client_certificate_that_is_none_is_told(start: Starter, tmp_path: Path, members: dict[str, str]) -> None:
    authority = trustme.CA()
    leaf = authority.issue_cert("user.invalid")
    files = {name: tmp_path / name for name in ("cert", "key", "junk")}
    leaf.cert_chain_pems[0].write_to_path(files["cert"])
    leaf.private_key_pem.write_to_path(files["key"])
    files["junk"].write_text("junk")
    with FakeApi(authority=authority) as api:
        given = {name: text.format(**files) for name, text in members.items()}
        told = start(changed(api.kubeconfig(tmp_path / "kubeconfig"), "user", **given)).failed("get", NOWHERE)
        assert "its client certificate and key can't be used: " in told
        assert not api.asked


def test_an_authority_that_is_not_asked_is_refused(start: Starter, tmp_path: Path) -> None:
    with FakeApi(authority=trustme.CA()) as api:
        kubeconfig = api.kubeconfig(tmp_path / "kubeconfig")
        changed(kubeconfig, "cluster", **{"insecure-skip-tls-verify": True})
        told = start(kubeconfig).failed("get", NOWHERE)
    assert "`insecure-skip-tls-verify` and a certificate authority exclude each other" in told


def test_the_hint_of_a_plugin_that_is_missing_is_told(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "no-such-plugin",
        "installHint": "It comes with the tools of the cloud.",
        "interactiveMode": "Never",
    }
    told = start(changed(api.kubeconfig(tmp_path / "kubeconfig"), "user", exec=plugin)).failed("get", NOWHERE)
    assert "no-such-plugin" in told
    assert told.endswith(". It comes with the tools of the cloud.")


def test_who_has_no_credentials_is_told_that_none_were_sent(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    text = 'namespaces "default" is forbidden: User "system:anonymous" cannot get resource "namespaces"'
    api.faults.append(Fault("GET", "/namespaces/", status=403, reason="Forbidden", message=text))
    told = start(api.kubeconfig(tmp_path / "kubeconfig")).failed("get", {"resource": "ns/default"})
    assert "No credentials were sent: the kubeconfig has no supported ones for fake" in told
    assert "Role" not in told


def test_an_address_with_a_wrong_path_is_told(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    api.faults.append(Fault("GET", "/api", times=9, status=404, reason="", body=b"404 page not found\n"))
    told = start(api.kubeconfig(tmp_path / "kubeconfig")).failed("get", {"resource": "ns/default"})
    assert "check the path of `server` in the kubeconfig" in told


def test_folders_of_processes_that_were_killed_are_removed(tmp_path: Path) -> None:
    stale, other, young = (tmp_path / f"{prefix}{name}" for prefix, name in (
        (PREFIX, "stale"), ("ext-kubernetes-", "artifacts"), (PREFIX, "young")
    ))  # fmt: skip
    for folder in (stale, other, young):
        folder.mkdir()
        (folder / "lock").touch()
    (tmp_path / f"{PREFIX}link").symlink_to(other)
    hour = time.time() - 3600
    for folder in (stale, other):
        os.utime(folder, (hour, hour))
    remove_stale(str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {other.name, young.name, f"{PREFIX}link"}


def test_a_folder_in_use_is_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = PrivateFolder()
    assert (Path(folder.path).stat().st_mode & 0o777) == 0o700
    remove_stale(str(tmp_path), time.time() + 3600)
    assert Path(folder.path).is_dir()
    folder.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_step_may_have_a_kubeconfig_of_its_own(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    with FakeApi() as other:
        kube = start(api.kubeconfig(tmp_path / "k"), config={"namespace": "configured"})
        other.kubeconfig(kube.workdir / "agent.yaml", namespace="theirs")
        other.kubeconfig(tmp_path / "outside.yaml")
        for path in ("agent.yaml", str(kube.workdir / "agent.yaml")):
            kube.ok("get", {"resource": "cm", "kubeconfig": path})
            assert other.asked[-1].path == "/api/v1/namespaces/theirs/configmaps"
        kube.ok("get", {"resource": "cm", "kubeconfig": str(tmp_path / "outside.yaml")})
        assert other.asked[-1].path == "/api/v1/namespaces/default/configmaps"
        assert not api.asked
        kube.ok("get", {"resource": "cm"})
        assert api.asked[-1].path == "/api/v1/namespaces/configured/configmaps"
        found = kube.ok("current-context", {"kubeconfig": "agent.yaml"})
        assert found["namespace"] == "theirs"
        # The namespace that the task created in one cluster is not the default in another one.
        kube.ok("create-namespace", {"name": "made"})
        kube.ok("get", {"resource": "cm"})
        assert api.asked[-1].path == "/api/v1/namespaces/made/configmaps"
        kube.ok("get", {"resource": "cm", "kubeconfig": "agent.yaml"})
        assert other.asked[-1].path == "/api/v1/namespaces/theirs/configmaps"


def test_a_step_may_have_a_context_of_its_own(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    content = json.loads(api.kubeconfig(tmp_path / "k").read_text())
    content["contexts"].append({"name": "web", "context": {"cluster": "fake", "user": "fake", "namespace": "web"}})
    (tmp_path / "k").write_text(json.dumps(content))
    kube = start(tmp_path / "k", config={"namespace": "configured"})
    kube.ok("get", {"resource": "cm", "context": "web"})
    assert api.asked[-1].path == "/api/v1/namespaces/web/configmaps"
    assert "no context 'wep'; did you mean 'web'?" in kube.failed("get", {"resource": "cm", "context": "wep"})
    assert kube.ok("current-context", {"context": "web"})["namespace"] == "web"


@pytest.mark.parametrize(
    ("user", "member"),
    [
        ({"exec": {"command": "sh", "args": ["-c", "touch ran"], "apiVersion": "x"}}, "exec"),
        ({"auth-provider": {"name": "gcp"}}, "auth-provider"),
        ({"tokenFile": "/etc/hostname"}, "tokenFile"),
        ({"client-key": "/etc/hostname"}, "client-key"),
    ],
)
def test_a_kubeconfig_that_an_agent_may_have_written_runs_and_reads_nothing(
    api: FakeApi, start: Starter, tmp_path: Path, user: dict[str, object], member: str
) -> None:
    kube = start(api.kubeconfig(tmp_path / "k"))
    api.kubeconfig(kube.workdir / "agent.yaml", user=user)
    for path in ("agent.yaml", "./agent.yaml", str(kube.workdir / "agent.yaml")):
        told = kube.failed("get", {"resource": "cm", "kubeconfig": path})
        assert f"so it must contain its credentials: found `{member}` of the user 'fake'" in told
    assert not api.asked
    assert not (kube.workdir / "ran").exists()


def test_a_kubeconfig_of_a_step_is_inside_of_the_workdir_or_absolute(
    api: FakeApi, start: Starter, tmp_path: Path
) -> None:
    kube = start(api.kubeconfig(tmp_path / "k"))
    (kube.workdir / "link").symlink_to("../k")
    for path in ("../k", "link"):
        told = kube.failed("get", {"resource": "cm", "kubeconfig": path})
        assert "not a path inside the working directory" in told
    assert "could not read the kubeconfig 'missing'" in kube.failed("get", {"resource": "cm", "kubeconfig": "missing"})
    missing = str(tmp_path / "missing")
    told = kube.failed("get", {"resource": "cm", "kubeconfig": missing})
    assert f"no kubeconfig at {missing} (`kubeconfig` of the step)" in told
