"""What the tests of the Go extension with the same operations ask, as requests over stdio and what must come.

`go test -v` prints 78 lines for them: 64 cases and 14 functions that hold cases together, which are the groups here.
Where that extension answers broken arguments with a failure, this one may refuse them by the schema of its manifest,
which is the error -32602: `refused`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from tests.support.fake_kubernetes import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.support.fake_helm import FakeHelm
    from tests.support.fake_kubernetes import FakeApi

Outputs = dict[str, str]


@dataclass(slots=True)
class World:
    """What is around a case.

    Attributes:
        api: the server.
        helm: the program.
        kubeconfig: the file that the extension is told.
        ok: runs an operation that must succeed, and gives its outputs with the message as `message`.
    """

    api: FakeApi
    helm: FakeHelm
    kubeconfig: Path
    ok: Callable[[str, object], Outputs]


class Case(NamedTuple):
    """One case.

    Attributes:
        group, name: of the other extension's tests.
        operation, args: what is asked.
        comes: a success; a failure as a result; or a refusal of the arguments, by the schema or by the operation.
        says: a text in the message or the error.
        given: what happens before.
        then: what must hold afterwards; takes the outputs, too.
        differs: why something else comes here than there; "" where it does not.
    """

    group: str
    name: str
    operation: str
    args: object
    comes: Literal["ok", "failed", "refused"]
    says: str = ""
    given: Callable[[World], object] = lambda _: None
    then: Callable[[World, Outputs], bool] = lambda _, __: True
    differs: str = ""


# --- What happens before ----------------------------------------------------------------------------------------------


def broken(method: str, path: str = "") -> Callable[[World], object]:
    """A server that fails: what their mocked client has as an error."""
    return lambda world: world.api.faults.append(Fault(method, path, times=99, message="connection refused"))


def deployment(available: str) -> Callable[[World], object]:
    """A Deployment with such a condition."""
    status = {"observedGeneration": 1, "conditions": [{"type": "Available", "status": available}]}
    return lambda world: world.api.put("deployments", {"metadata": {"name": "nginx"}, "spec": {}, "status": status})


def denied(verb: str) -> Callable[[World], object]:
    """Access reviews say no."""
    return lambda world: world.api.denied.add((verb, "pods"))


def contexts(*names: str, current: str = "", cluster: str = "c", user: str = "u") -> Callable[[World], object]:
    """A kubeconfig with contexts, all of the same cluster and user; `c` and `u` are there."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current,
        "clusters": [{"name": "c", "cluster": {"server": "https://example.com"}}],
        "users": [{"name": "u", "user": {"token": "sesame"}}],
        "contexts": [{"name": name, "context": {"cluster": cluster, "user": user}} for name in names],
    }
    return lambda world: world.kubeconfig.write_text(json.dumps(content))


def no_kubeconfig(world: World) -> None:
    """The file can't be read."""
    world.kubeconfig.write_text("[")


def namespaces(*prefixes: str) -> Callable[[World], object]:
    """Namespaces that were made before."""
    return lambda world: [world.ok("createNamespace", {"prefix": prefix}) for prefix in prefixes]


def one_that_is_gone(world: World) -> None:
    """A namespace that was made, and deleted by somebody else."""
    name = world.ok("createNamespace", {"prefix": "vm-test"})["namespace"]
    world.ok("delete", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def one_that_stays(world: World) -> None:
    """A namespace that may not be deleted."""
    name = world.ok("createNamespace", {"prefix": "vm-test"})["namespace"]
    world.api.faults.append(Fault("DELETE", name, status=403, reason="Forbidden", message="permission denied"))


def no_release(world: World) -> None:
    """What helm says of a release that is not there."""
    world.helm.say("error", "Error: uninstall: Release not loaded: test-release-nonexistent: release: not found\n")


def no_chart(world: World) -> None:
    """What helm says of a registry that is not there."""
    world.helm.say("error", "Error: failed to do request: dial tcp: lookup registry.io: no such host\n")


# --- What holds afterwards --------------------------------------------------------------------------------------------


def reviewed(**attributes: str) -> Callable[[World, Outputs], bool]:
    """The review asked for this and nothing else of it; "" is what is left out."""

    def holds(world: World, _: Outputs) -> bool:
        (asked,) = world.api.requests("POST", "/subjectaccessreviews")
        told = asked.body["spec"]["resourceAttributes"] | {"user": asked.body["spec"]["user"]}
        return all(told.get(key, "") == value for key, value in attributes.items())

    return holds


def asked_for(path: str) -> Callable[[World, Outputs], bool]:
    """The server was asked about this object."""
    return lambda world, _: bool(world.api.requests(path=path))


def allowed(text: str) -> Callable[[World, Outputs], bool]:
    """The output `allowed`."""
    return lambda _, outputs: outputs["allowed"] == text


def shown(*texts: str, absent: str = "") -> Callable[[World, Outputs], bool]:
    """What is in the output `config`, and what is not; credentials never are."""
    return lambda _, outputs: (
        all(text in outputs["config"] for text in texts)
        and not any(text in outputs["config"] for text in ("sesame", absent) if text)
    )


def tracked_once(world: World, outputs: Outputs) -> bool:
    """The name has 8 characters behind the prefix, and is deleted as the only one."""
    well = re.fullmatch("vm-test-[a-z0-9]{8}", outputs["namespace"]) is not None
    return well and world.ok("deleteGeneratedNamespaces", {})["namespaces"] == outputs["namespace"]


def none_tracked(world: World, _: Outputs) -> bool:
    """There is none to be deleted."""
    world.api.faults.clear()
    return world.ok("deleteGeneratedNamespaces", {})["message"] == "No generated namespaces to delete"


def another_name(world: World, outputs: Outputs) -> bool:
    """Of the right length and alphabet, and not the same twice."""
    names = [outputs["namespace"], world.ok("createNamespace", {"prefix": "x"})["namespace"]]
    return names[0] != names[1] and all(re.fullmatch("x-[a-z0-9]{8}", name) for name in names)


def ran_helm(*words: str) -> Callable[[World, Outputs], bool]:
    """Helm was given these words."""
    return lambda world, _: set(words) <= set(world.helm.heard("argv").splitlines())


def object_of(api_version: str, kind: str, name: str, namespace: str = "") -> dict[str, object]:
    """An object by its reference."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


ALICE = {"verb": "get", "resource": "pods", "as": "alice", "namespace": "default"}
ACCOUNT = "system:serviceaccount:create-simple-rbac:reader-sa"
CONFIG_MAP = object_of("v1", "ConfigMap", "test-cm", "default")
MISSING = object_of("v1", "ConfigMap", "missing")
MANY = contexts("dev", "prod", current="prod")
RELEASE = {"name": "test-release-nonexistent"}
AVAILABLE = object_of("apps/v1", "Deployment", "nginx", "default") | {"condition": "Available", "timeout": "1s"}
MINIFY = {"minify": True}


def without(args: Mapping[str, object], name: str) -> dict[str, object]:
    """The same arguments but one."""
    return {key: value for key, value in args.items() if key != name}


CASES = (
    # group, name, operation, args, comes, says, given, then
    Case("wait", "condition already met", "wait", AVAILABLE, "ok",
         "Deployment/nginx condition Available=True", deployment("True")),
    Case("wait", "condition not met within timeout", "wait", AVAILABLE, "failed",
         "last found False", deployment("False")),
    Case("wait", "missing condition field", "wait", object_of("v1", "Pod", "test"), "refused", "condition"),

    Case("create", "successful create", "create", CONFIG_MAP, "ok", "Created ConfigMap/test-cm",
         then=lambda _, outputs: all(outputs[key] for key in ("name", "namespace", "uid", "resourceVersion"))),
    Case("create", "invalid args type", "create", "not a map", "refused"),
    Case("create", "client error", "create", CONFIG_MAP, "failed", "connection refused", broken("POST")),

    Case("delete", "successful delete", "delete", CONFIG_MAP, "ok", "Deleted ConfigMap/test-cm",
         lambda world: world.ok("create", CONFIG_MAP)),
    Case("delete", "not found with ignoreNotFound", "delete", MISSING | {"ignoreNotFound": True}, "ok", "(ignored)"),
    Case("delete", "not found without ignoreNotFound", "delete", MISSING, "failed", "not found"),

    Case("authCanI", "allowed action", "authCanI", ALICE, "ok",
         "alice can get pods in namespace default: allowed", then=allowed("true")),
    Case("authCanI", "denied action", "authCanI", ALICE | {"verb": "delete"}, "ok",
         "alice can delete pods in namespace default: denied", denied("delete"), allowed("false")),
    Case("authCanI", "cluster-wide check allowed", "authCanI",
         {"verb": "list", "resource": "namespaces", "as": "admin-user"}, "ok", "cluster-wide: allowed",
         then=reviewed(namespace="")),
    Case("authCanI", "expect allowed matches", "authCanI", ALICE | {"expect": {"allowed": True}}, "ok"),
    Case("authCanI", "expect allowed mismatch", "authCanI", ALICE | {"expect": {"allowed": True}}, "failed",
         "permission check failed: expected allowed=true but got allowed=false", denied("get")),
    Case("authCanI", "expect denied matches", "authCanI", ALICE | {"expect": {"allowed": False}}, "ok",
         given=denied("get")),
    Case("authCanI", "missing verb", "authCanI", without(ALICE, "verb"), "refused", "verb is required"),
    Case("authCanI", "missing resource", "authCanI", without(ALICE, "resource"), "refused", "resource is required"),
    Case("authCanI", "missing as", "authCanI", without(ALICE, "as"), "ok", "you can get pods",
         differs="there `as` is required; here it is about yourself without it, and no task can be without it there"),
    Case("authCanI", "with api group", "authCanI",
         ALICE | {"verb": "create", "resource": "deployments", "apiGroup": "apps"}, "ok", then=reviewed(group="apps")),
    Case("authCanI", "with specific resource name", "authCanI",
         ALICE | {"resource": "secrets", "resourceName": "my-secret"}, "ok", then=reviewed(name="my-secret")),
    Case("authCanI", "service account format", "authCanI", ALICE | {"as": ACCOUNT}, "ok", then=reviewed(user=ACCOUNT)),
    Case("authCanI", "client error", "authCanI", ALICE, "failed", "connection refused", broken("POST")),

    Case("createNamespace", "successful create", "createNamespace", {"prefix": "vm-test"}, "ok",
         "Created namespace vm-test-", then=tracked_once),
    Case("createNamespace", "invalid args type", "createNamespace", "not a map", "refused"),
    Case("createNamespace", "missing prefix", "createNamespace", {"other": "value"}, "refused", "other"),
    Case("createNamespace", "client error", "createNamespace", {"prefix": "vm-test"}, "failed", "connection refused",
         broken("POST"), none_tracked),

    Case("deleteGeneratedNamespaces", "no tracked namespaces", "deleteGeneratedNamespaces", {}, "ok",
         "No generated namespaces to delete"),
    Case("deleteGeneratedNamespaces", "successful deletion of two namespaces", "deleteGeneratedNamespaces",
         {"prefix": "vm-test"}, "ok",
         "Deleted 2 generated namespace(s)", namespaces("vm-test", "vm-test"), none_tracked,
         differs="one process serves all tasks: without prefix or names, any of several may be another task's"),
    Case("deleteGeneratedNamespaces", "not-found error silently ignored", "deleteGeneratedNamespaces", {}, "ok",
         "Deleted 1 generated namespace(s)", one_that_is_gone),
    Case("deleteGeneratedNamespaces", "non-not-found error causes failure", "deleteGeneratedNamespaces", {}, "failed",
         "permission denied", one_that_stays),

    Case("generateID", "generateID", "createNamespace", {"prefix": "x"}, "ok", then=another_name),

    Case("parseResourceRef", "valid namespaced resource", "delete",
         object_of("apps/v1", "Deployment", "nginx", "default"), "ok", "Deleted Deployment/nginx", deployment("True"),
         asked_for("/apis/apps/v1/namespaces/default/deployments/nginx")),
    Case("parseResourceRef", "missing apiVersion", "delete",
         {"kind": "Pod", "metadata": {"name": "test"}, "ignoreNotFound": True}, "ok",
         then=asked_for("/api/v1/namespaces/default/pods/test"),
         differs="a kind that only one group has needs no apiVersion here: the server is asked what there is"),
    Case("parseResourceRef", "missing metadata.name", "delete",
         {"apiVersion": "v1", "kind": "Pod", "metadata": {}}, "refused", "found no name"),
    Case("gvr", "core v1 pod", "delete", object_of("v1", "Pod", "x", "default") | {"ignoreNotFound": True}, "ok",
         then=asked_for("/api/v1/namespaces/default/pods/x")),
    Case("gvr", "apps/v1 deployment", "delete",
         object_of("apps/v1", "Deployment", "x", "default") | {"ignoreNotFound": True}, "ok",
         then=asked_for("/apis/apps/v1/namespaces/default/deployments/x")),

    Case("listContexts", "successful list with multiple contexts", "listContexts", {}, "ok",
         "Found 2 context(s), current: prod", MANY, lambda _, outputs: outputs["count"] == "2"),
    Case("listContexts", "successful list with single context", "listContexts", {}, "ok",
         "Found 1 context(s), current: kind-kind", contexts("kind-kind", current="kind-kind"),
         lambda _, outputs: outputs["current"] == "kind-kind"),
    Case("listContexts", "no contexts found", "listContexts", {}, "failed", "no contexts found in kubeconfig",
         contexts()),
    Case("listContexts", "client error", "listContexts", {}, "failed", "kubeconfig", no_kubeconfig),

    Case("getCurrentContext", "successful get current context", "getCurrentContext", {}, "ok",
         "Current context: prod", MANY, lambda _, outputs: outputs["context"] == "prod"),
    Case("getCurrentContext", "empty current context", "getCurrentContext", {}, "failed",
         "no current context set in kubeconfig", contexts("dev")),
    Case("getCurrentContext", "client error", "getCurrentContext", {}, "failed", "kubeconfig", no_kubeconfig),

    Case("viewConfig", "successful view without minify", "viewConfig", {"minify": False}, "ok",
         "Kubeconfig retrieved", MANY, shown("https://example.com", "dev", "prod")),
    Case("viewConfig", "successful view with minify", "viewConfig", MINIFY, "ok", "", MANY,
         shown("prod", absent="dev")),
    Case("viewConfig", "default minify to false", "viewConfig", {}, "ok", "", MANY, shown("dev", "prod")),
    Case("viewConfig", "client error", "viewConfig", {}, "failed", "kubeconfig", no_kubeconfig),
    Case("viewConfig", "minify with missing cluster reference", "viewConfig", MINIFY, "failed",
         'cluster "missing-cluster" not found in kubeconfig',
         contexts("prod", current="prod", cluster="missing-cluster")),
    Case("viewConfig", "minify with missing authInfo reference", "viewConfig", MINIFY, "failed",
         'user "missing-user" not found in kubeconfig', contexts("prod", current="prod", user="missing-user")),
    Case("viewConfig", "minify with empty cluster name", "viewConfig", MINIFY, "failed",
         'context "prod" has no cluster', contexts("prod", current="prod", cluster="")),
    Case("viewConfig", "minify with empty authInfo (should succeed)", "viewConfig", MINIFY, "ok", "",
         contexts("prod", current="prod", user=""), shown("prod")),

    Case("helmInstall", "missing chart parameter", "helmInstall", {}, "refused", "chart"),
    Case("helmInstall", "empty chart parameter", "helmInstall", {"chart": ""}, "refused", "chart"),
    Case("helmInstall", "invalid args type", "helmInstall", "invalid", "refused"),
    Case("helmInstall", "valid chart parameter", "helmInstall",
         {"chart": "oci://registry.io/chart/nginx", "name": "test-release"}, "failed", "helm install failed", no_chart),

    Case("helmList", "invalid args type", "helmList", "invalid", "refused"),
    Case("helmList", "valid empty args", "helmList", {}, "ok", "Found 1 Helm release(s)"),
    Case("helmList", "with namespace", "helmList", {"namespace": "default"}, "ok", "web",
         then=ran_helm("--namespace=default")),
    Case("helmList", "all namespaces", "helmList", {"allNamespaces": True}, "ok", "web",
         then=ran_helm("--all-namespaces")),

    Case("helmUninstall", "missing name parameter", "helmUninstall", {}, "refused", "name"),
    Case("helmUninstall", "empty name parameter", "helmUninstall", {"name": ""}, "refused", "name"),
    Case("helmUninstall", "invalid args type", "helmUninstall", "invalid", "refused"),
    Case("helmUninstall", "valid name parameter for non-existent release", "helmUninstall", RELEASE, "ok", "",
         no_release),
    Case("helmUninstall", "with namespace", "helmUninstall", RELEASE | {"namespace": "default"}, "ok", "", no_release,
         ran_helm("--namespace=default")),
)  # fmt: skip
