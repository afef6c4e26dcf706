"""Paths of requests: whatever an argument is, a request stays at the kind of path that the operation is for."""

from __future__ import annotations

import copy
import itertools
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from jsonschema import Draft202012Validator

from ext_kubernetes.api.discovery import api_path, core_path
from ext_kubernetes.api.errors import InvalidName
from ext_kubernetes.extension import extension
from ext_sdk.server.schema import branches_of, params_schema, properties_of
from tests.support.fake_helm import FakeHelm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.ext_kubernetes import Extension, Starter
    from tests.support.fake_kubernetes import FakeApi

    WithValue = Callable[["Args", str], Iterator["Args"]]

Args = dict[str, Any]
Shape = tuple[str, ...]

BENIGN = "benign"
HOSTILE = ["..", ".", "../../../../namespaces/victim", "a/b", "a%2fb", "%2e%2e", "a?b=c#d", "ä\r\nInjected: yes", ""]
WORST = ["../../../../namespaces/victim", "a%2fb"]  # for arguments that are in no path
FORBIDDEN = [one for one in HOSTILE if one in {".", ".."} or "/" in one or "%" in one]
OPERATIONS = [operation.name for operation in extension.operations.values()]
# Arguments that refer to an object, in one of several forms.
REFERENCE = {"resource", "apiVersion", "kind", "metadata", "manifest", "namespace", "subresource"}
# Arguments that have to lead to a path, so that this test can't pass because nothing is sent.
REACHING = {
    "apply": {"manifest", "namespace"},
    "assert": {"metadata.name", "metadata.namespace", "namespace", "resource"},
    "condition": {"metadata.name", "metadata.namespace", "namespace", "resource"},
    "copy": {"metadata.name", "namespace", "resource"},
    "create": {"manifest", "metadata"},
    "create-configmap": {"namespace"},
    "create-secret": {"namespace"},
    "delete": {"manifest", "metadata.name", "metadata.namespace", "namespace", "resource"},
    "delete-namespace": {"name"},
    "exec": {"metadata.name", "namespace", "resource"},
    "get": {"metadata.name", "metadata.namespace", "namespace", "resource", "subresource"},
    "label": {"metadata.name", "namespace", "resource"},
    "logs": {"metadata.name", "namespace", "resource"},
    "patch": {"metadata.name", "namespace", "resource", "subresource"},
    "port-forward": {"metadata.name", "namespace", "resource"},
    "replace": {"manifest", "namespace", "subresource"},
    "rollout": {"metadata.name", "namespace", "resource"},
    "run-job": {"namespace"},
    "scale": {"metadata.name", "namespace", "resource"},
    "stable": {"metadata.name", "namespace", "resource"},
    "wait": {"metadata.name", "metadata.namespace", "namespace", "resource"},
}


class Commands(dict[str, Any]):
    """Every program is in every container, and succeeds."""

    def __missing__(self, name: str) -> Callable[[bytes], list[tuple[int, bytes]]]:
        return lambda stdin: [(3, b'{"status": "Success"}')]


@pytest.fixture
def furnished(api: FakeApi) -> FakeApi:
    """A server with all that the examples of the operations are about."""
    pod: Args = {
        "metadata": {"name": "nginx"},
        "spec": {"containers": [{"name": "main"}]},
        "status": {"phase": "Running"},
    }
    pod["status"] |= {"conditions": [{"type": "Ready", "status": "True"}]}
    api.put("pods", pod)
    api.put("configmaps", {"metadata": {"name": "settings"}, "data": {"colour": "blue"}})
    api.put("deployments", {"metadata": {"name": "web"}, "spec": {"replicas": 1}})
    api.logs["nginx/main"] = "ready\n"
    api.commands = Commands()
    return api


@pytest.fixture
def kube(furnished: FakeApi, start: Starter, tmp_path: Path) -> Extension:
    helm = FakeHelm(tmp_path / "bin")
    # Without watches, which are opened beside the calls, it is known which call a request is of.
    kubeconfig = furnished.kubeconfig(tmp_path / "kubeconfig")
    return start(kubeconfig, {"PATH": helm.path}, config={"watch": False})


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_argument_leads_to_another_path(kube: Extension, furnished: FakeApi, operation: str, tmp_path: Path) -> None:
    objects = copy.deepcopy(furnished.objects)
    # Arguments that the schema refuses lead to no request; `tests.support.rejections` is about those.
    is_valid = Draft202012Validator(params_schema(extension.operations[operation].args_type)).is_valid
    workdirs = (tmp_path / f"workdir-{number}" for number in itertools.count())
    reaching = set()

    def requests(args: Args) -> list[Shape]:
        """The paths of what a call requests, with their segments decoded; the server is as new before it."""
        with furnished.changed:
            furnished.objects = copy.deepcopy(objects)
        furnished.asked.clear()
        workdir = next(workdirs)
        workdir.mkdir()
        (workdir / "index.html").write_text("hello")
        kube.peer.call("execute", {"operation": operation, "args": args, "context": {"workdir": str(workdir)}})
        asked = list(furnished.asked)
        assert not any("injected" in one.headers for one in asked)
        return [shape(one.path) for one in asked]

    for base, field, with_value in cases(operation):
        left_out = {key: one for key, one in base.items() if key != field.partition(".")[0]}
        # The report of a wait that timed out on a busy machine reads events.
        events = ("api", "v1", "namespaces", "default", "events")
        expected = {("api",), ("apis",), events, *requests(base), *requests(left_out)}
        for benign in (BENIGN, f"{BENIGN}/{BENIGN}"):
            for args in filter(is_valid, with_value(base, benign)):
                expected |= set(requests(args))
        if reaches := any(BENIGN in one for one in expected):
            reaching.add(field)
        for hostile in HOSTILE if reaches else WORST:
            for args in filter(is_valid, with_value(base, hostile)):
                for found in requests(args):
                    assert any(matches(found, one) for one in expected), (field, args, found)
    assert reaching >= REACHING.get(operation, set())


def shape(path: str) -> Shape:
    assert path.startswith("/"), path
    segments = [unquote(segment) for segment in path[1:].split("/")]
    return tuple(re.sub(r"(?s)^.+-[a-z0-9]{8}$|^job-[a-z0-9]+$", "generated", segment) for segment in segments)


def matches(found: Shape, expected: Shape) -> bool:
    """Whether a path has the segments of another one, with anything harmless where the benign value was."""
    return len(found) == len(expected) and all(
        one == other or (other == BENIGN and one not in {"", *FORBIDDEN} and not set(one) & {"/", "%"})
        for one, other in zip(found, expected, strict=True)
    )


def cases(operation: str) -> Iterator[tuple[Args, str, WithValue]]:
    """Yield arguments and a field to change: all fields of the first base, those of a reference of the others."""
    for number, base in enumerate(bases(operation)):
        for field, with_value in fields(operation):
            if not number or field.partition(".")[0] in REFERENCE:
                yield base, field, with_value


def bases(operation: str) -> Iterator[Args]:
    """The operation's example, in all forms of a reference that it takes; nothing waits."""
    found = extension.operations[operation]
    properties = properties_of(params_schema(found.args_type))
    example: Args = {key: value for key, value in (found.example or {}).items() if key != "timeout"}
    example |= {"timeout": "0s"} if "timeout" in properties else {}  # looks once
    example |= {"for": "1ms", "timeout": "50ms"} if operation == "stable" else {}
    yield example
    if {"resource", "kind", "metadata"} <= properties.keys() and "resource" in example:
        kind, _, name = str(example["resource"]).partition("/")
        yield example | {"resource": "", "kind": kind, "metadata": {"name": name}}
    if "manifest" in properties and "subresource" in properties:
        yield {"manifest": manifest("settings")}


def fields(operation: str) -> Iterator[tuple[str, WithValue]]:
    """Every argument that may be text or have text in it, with a function that gives arguments with a value there."""
    for name, schema in properties_of(params_schema(extension.operations[operation].args_type)).items():
        if name == "timeout":
            continue
        if name == "manifest":
            yield name, _manifests
        elif any(properties := [properties_of(branch) for branch in branches_of(schema)]):
            for inner in {key for one in properties for key in one}:
                yield f"{name}.{inner}", _setter(name, inner)
        else:
            yield name, _setter(name)


def _setter(name: str, inner: str = "") -> WithValue:
    def with_value(base: Args, value: str) -> Iterator[Args]:
        if inner:
            outer = base.get(name)
            for one in (value, [value], {"x": value}):
                yield base | {name: (outer if isinstance(outer, dict) else {}) | {inner: one}}
            return
        if name == "resource" and base.get("resource"):
            yield base | {name: f"{str(base[name]).partition('/')[0]}/{value}"}
        elif name == "metadata":
            for one in ({"name": value}, {"generateName": value}, {"name": "settings", "namespace": value}):
                yield base | {name: one}
        for one in (value, [value], {"x": value}, {value: "x"}):
            yield base | {name: one}

    return with_value


def manifest(name: str, **metadata: str) -> Args:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def _manifests(base: Args, value: str) -> Iterator[Args]:
    if "manifest" not in base:
        base = {key: one for key, one in base.items() if key in {"timeout", "expect"}}
    for one in (
        manifest(value),
        manifest("settings", namespace=value),
        manifest("settings") | {"kind": value},
        manifest("settings") | {"apiVersion": value},
        manifest("settings") | {"apiVersion": f"{value}/v1"},
    ):
        yield base | {"manifest": one}


# --- The mechanism ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", FORBIDDEN)
def test_what_kubectl_refuses_is_refused(value: str) -> None:
    for parts in ((value, "v1", "pods"), ("apps", value, "pods"), ("apps", "v1", value), ("apps", "v1", "x", value)):
        with pytest.raises(InvalidName, match="may not "):
            api_path(*parts)
    with pytest.raises(InvalidName, match="may not "):
        core_path("pods", "web", value)


@pytest.mark.parametrize("value", ["..", "status/..", "status//", "../status", "a%2fb"])
def test_a_subresource_stays_below_its_object(value: str) -> None:
    with pytest.raises(InvalidName, match="invalid subresource"):
        core_path("pods", "web", "it", value)


def test_everything_else_is_encoded() -> None:
    assert core_path("pods", "a b", "system:x?y#z;ä", "proxy/a") == (
        "/api/v1/namespaces/a%20b/pods/system:x%3Fy%23z%3B%C3%A4/proxy/a"
    )


def test_the_reason_is_kubectl_s(kube: Extension, furnished: FakeApi) -> None:
    furnished.asked.clear()
    told = kube.failed("delete", {"resource": "cm/..", "namespace": "victim"})
    assert """invalid resource name "..": [may not be '..']""" in told
    assert """invalid namespace "a/%": [may not contain '/', may not contain '%']""" in kube.failed(
        "get", {"resource": "cm/x", "namespace": "a/%"}
    )
    assert {one.path for one in furnished.asked} <= {"/api", "/apis"}


@pytest.mark.parametrize("source", ["config", "kubeconfig"])
def test_a_configured_namespace_is_checked_too(api: FakeApi, start: Starter, tmp_path: Path, source: str) -> None:
    own = "../../nodes" if source == "kubeconfig" else ""
    config = {"namespace": "../../nodes"} if source == "config" else {}
    kube = start(api.kubeconfig(tmp_path / "k", namespace=own), config=config)
    assert 'invalid namespace "../../nodes"' in kube.failed("get", {"resource": "cm/x"})
    assert {one.path for one in api.asked} <= {"/api", "/apis"}


@pytest.mark.parametrize("value", FORBIDDEN)
def test_helm_gets_no_such_names(kube: Extension, tmp_path: Path, value: str) -> None:
    calls: list[tuple[str, Args]] = [
        ("helm-install", {"chart": "repo/web", "name": value}),
        ("helm-install", {"chart": "repo/web", "namespace": value}),
        ("helm-upgrade", {"chart": "repo/web", "name": value}),
        ("helm-list", {"namespace": value}),
        ("helm-uninstall", {"name": value}),
        ("helm-status", {"name": value}),
        ("helm-values", {"name": value}),
        ("helm-rollback", {"name": value}),
        ("helmUninstall", {"name": "web", "namespace": value}),
    ]
    for operation, args in calls:
        assert "invalid " in kube.failed(operation, args)
    assert not (tmp_path / "bin" / "helm.argv").exists()
