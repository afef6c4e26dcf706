"""`as` and its companions of a kubeconfig's user, on every way to the server."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from tests.support.fake_helm import FakeHelm
from tests.unit.ext_kubernetes.operations.test_exec import STDOUT, SUCCESS, always

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.ext_kubernetes import Extension, Starter
    from tests.support.fake_kubernetes import FakeApi

USER = {
    "as": "Jané",
    "as-groups": ["testers", "a,b"],
    "as-uid": "u-1",
    "as-user-extra": {"example.com/Scope%": ["one", "two"], "plain": ["x"]},
}
HEADERS = {
    "impersonate-user": "Jané".encode().decode("latin-1"),
    "impersonate-group": "testers\na,b",
    "impersonate-uid": "u-1",
    "impersonate-extra-example.com%2fscope%25": "one\ntwo",
    "impersonate-extra-plain": "x",
}


def test_every_request_is_the_other_user_s(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    kube = start(api.kubeconfig(tmp_path / "k", token="sesame-opens-it", user=USER))
    metadata = {"name": "web", "labels": {"app": "web"}}
    pod = {"metadata": metadata, "spec": {"containers": [{"name": "main"}]}, "status": {"phase": "Running"}}
    api.put("pods", pod)
    api.logs["web/main"] = "ready\n"
    api.commands["hostname"] = always((STDOUT, b"web"), SUCCESS)
    api.commands["tar"] = always(SUCCESS)
    (kube.workdir / "file").write_text("x")
    kube.ok("create", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}})
    kube.ok("apply", {"manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "two"}}})
    kube.ok("patch", {"resource": "cm/one", "patch": {"data": {"a": "b"}}})
    kube.ok("delete", {"resource": "cm/one"})
    kube.ok("logs", {"resource": "pod/web"})
    kube.ok("exec", {"resource": "pod/web", "command": ["hostname"]})
    kube.ok("copy", {"resource": "pod/web", "direction": "toContainer", "local": "file", "remote": "/tmp/file"})
    port = int(kube.ok("port-forward", {"resource": "pod/web", "port": 80})["localPort"])
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"hello")
        assert connection.recv(5) == b"hello"
    kube.failed("wait", {"resource": "cm/two", "jsonPath": "$.data.never", "timeout": "1500ms"})
    assert {one.method for one in api.asked} == {"GET", "POST", "PATCH", "DELETE"}
    assert any(one.query.get("watch") for one in api.asked)
    websockets = {one.path.rpartition("/")[2] for one in api.asked if one.headers.get("upgrade") == "websocket"}
    assert websockets == {"exec", "portforward"}
    for asked in api.asked:
        assert {name: value for name, value in asked.headers.items() if name.startswith("impersonate")} == HEADERS
        assert asked.headers["authorization"] == "Bearer sesame-opens-it"


def test_nobody_else_is_impersonated(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    kubes = [start(api.kubeconfig(tmp_path / "other", user={"as": "jane"})), start(api.kubeconfig(tmp_path / "own"))]
    for kube, user in zip(kubes, ("jane", None), strict=True):
        api.asked.clear()
        kube.ok("get", {"resource": "ns/default"})
        assert {one.headers.get("impersonate-user") for one in api.asked} == {user}


def test_a_changed_kubeconfig_counts(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    kube = start(api.kubeconfig(tmp_path / "k", user={"as": "jane"}))
    kube.ok("get", {"resource": "ns/default"})
    api.kubeconfig(tmp_path / "k", user={"as": "another-user"})
    kube.ok("get", {"resource": "ns/default"})
    assert api.asked[-1].headers["impersonate-user"] == "another-user"


@pytest.mark.parametrize(
    ("user", "told"),
    [
        ({"as-groups": ["g"]}, "as: expected a user name, because as-groups, as-uid or as-user-extra is set"),
        ({"as-uid": "1"}, "as: expected a user name"),
        ({"as": 7}, "as: expected a string of one line"),
        ({"as": "a\r\nX: y"}, "as: expected a string of one line"),
        ({"as": "a", "as-groups": "g"}, "as-groups: expected a list of strings"),
        ({"as": "a", "as-user-extra": ["g"]}, "as-user-extra: expected lists of strings by name"),
        ({"as": "a", "as-user-extra": {"x": "y"}}, "as-user-extra.x: expected a list of strings"),
    ],
)
def test_what_can_not_be_impersonated_is_refused(
    api: FakeApi, start: Starter, tmp_path: Path, user: dict[str, object], told: str
) -> None:
    kube = start(api.kubeconfig(tmp_path / "k", user=user))
    assert told in kube.failed("get", {"resource": "ns/default"})
    assert not api.asked


def test_helm_acts_as_the_other_user_too(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    helm = FakeHelm(tmp_path / "bin")
    kube = start(api.kubeconfig(tmp_path / "k", user=USER), {"PATH": helm.path})
    kube.ok("helm-list")
    flags = helm.heard("argv").splitlines()
    assert [flag for flag in flags if "-as-" in flag] == [
        "--kube-as-user=Jané",
        "--kube-as-group=testers",
        "--kube-as-group=a,b",
    ]
    assert helm.heard("kubeconfig") == str(tmp_path / "k")  # where it finds uid and extra


def test_a_step_names_the_user_to_act_as(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    kube = start(api.kubeconfig(tmp_path / "k", token="sesame-opens-it", user={"as": "jane", "as-groups": ["x"]}))
    acting = {"asUser": "system:serviceaccount:web:reader", "asGroups": ["readers", "testers"]}
    kube.ok("get", {"resource": "cm", **acting})
    (asked,) = [one for one in api.asked if one.path.endswith("/configmaps")]
    assert asked.headers["impersonate-user"] == acting["asUser"]
    assert asked.headers["impersonate-group"] == "readers\ntesters"
    # The user may not be allowed to list kinds, and the kinds are the same.
    found = {one.headers["impersonate-user"] for one in api.asked if one is not asked}
    assert found == {"jane"}
    count = len(api.asked)
    kube.ok("get", {"resource": "cm", "asUser": "日本"})
    assert len(api.asked) == count + 1
    assert api.asked[-1].headers["impersonate-user"] == "日本".encode().decode("latin-1")
    kube.ok("get", {"resource": "cm"})
    assert api.asked[-1].headers["impersonate-user"] == "jane"


@pytest.mark.parametrize(
    ("acting", "told"),
    [
        ({"asGroups": ["x"]}, "asGroups: expected `asUser`, too"),
        ({"asUser": "a\r\nImpersonate-Group: system:masters"}, "asUser: expected a name without spaces around it"),
        ({"asUser": " a"}, "asUser: expected a name without spaces around it, found ' a'"),
        ({"asUser": "a", "asGroups": [""]}, "asGroups: expected a name"),
        ({"asUser": "${x.user|}"}, "asUser: expected a user, found an empty text; omit it"),
        ({"asUser": "system:serviceaccounts:a:b"}, "asUser: expected a user, such as system:serviceaccount:NAMESPACE:"),
        ({"kubeconfig": "${x.path|}"}, "kubeconfig: expected a value, found an empty text"),
        ({"context": ""}, "context: expected a value, found an empty text"),
    ],
)
def test_a_user_that_can_not_be_sent_is_refused(kube: Extension, api: FakeApi, acting: object, told: str) -> None:
    assert isinstance(acting, dict)
    assert told in kube.refused("get", {"resource": "cm", **acting})
    assert not api.asked
