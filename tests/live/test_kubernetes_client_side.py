"""Client-side apply makes the same objects as a real `kubectl apply`, and a later `kubectl apply` continues it."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.live.manifests import IMAGE, configmap, custom, deployment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.live.client import Client, Object
    from tests.live.kubernetes import Kube

KUBECTL = shutil.which("kubectl")
with_kubectl = pytest.mark.skipif(KUBECTL is None, reason="no kubectl in PATH")
REVISION = "deployment.kubernetes.io/revision"
OF_THE_SERVER = ("uid", "resourceVersion", "creationTimestamp", "generation")


def web(**pod: object) -> Object:
    """A Deployment that has one of each kind of list: with a merge key, with two, of scalars, and plain ones."""
    containers = [
        {
            "name": "main",
            "image": IMAGE,
            "args": ["a", "b"],
            "env": [{"name": name, "value": f"<{name}&>"} for name in ("ONE", "TWO", "THREE")],
            "ports": [{"containerPort": 53, "protocol": "UDP", "name": "u"}, {"containerPort": 80, "name": "http"}],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/w"}],
            "resources": {"limits": {"memory": "1024Mi"}},
        },
        {"name": "second", "image": IMAGE},
    ]
    volumes = [{"name": "v", "configMap": {"name": "c"}}, {"name": "w", "emptyDir": {}}]
    made = deployment(replicas=0, strategy={"type": "RollingUpdate"})
    made["metadata"] |= {"annotations": {"a": "ü", "b": "2"}, "labels": {"x": "y"}, "finalizers": ["example.com/a"]}
    made["spec"]["template"]["spec"] = {
        "containers": containers,
        "volumes": volumes,
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "imagePullSecrets": [{"name": "p"}, {"name": "q"}],
        **pod,
    }
    return made


def changed() -> Object:
    """The same Deployment with members and items removed, added, changed and in another order."""
    made = web()
    made["metadata"] |= {"annotations": {"b": "3"}, "labels": {}, "finalizers": ["example.com/b"]}
    made["spec"]["strategy"] = {"type": "Recreate"}
    pod = made["spec"]["template"]["spec"]
    del pod["nodeSelector"]
    main = pod["containers"][0]
    main |= {"args": ["b"], "env": [{"name": "THREE", "value": "3"}, {"name": "ONE", "value": "1"}]}
    main["ports"] = [{"containerPort": 80, "name": "http"}, {"containerPort": 81, "name": "other"}]
    main["volumeMounts"] = main["volumeMounts"][1:]
    main["resources"] = {"limits": {"memory": "1Gi"}, "requests": None}
    pod["containers"] = [{"name": "first", "image": IMAGE}, main]
    pod["volumes"] = [{"name": "w", "configMap": {"name": "c"}}]
    pod["imagePullSecrets"] = [{"name": "q"}]
    return made


def service(*ports: int) -> Object:
    spec = {"selector": {"app": "it"}, "ports": [{"port": port, "name": f"p{port}"} for port in ports]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "it"}, "spec": spec}


def with_nulls() -> Object:
    made = configmap("it", {"a": "1"})
    made["metadata"] |= {"creationTimestamp": None, "labels": {"gone": None}}
    return made


def named(manifest: Object, name: str) -> Object:
    return copy.deepcopy(manifest) | {"metadata": manifest["metadata"] | {"name": name}}


def kubectl(kubeconfig: Path, namespace: str, manifest: Object) -> str:
    assert KUBECTL is not None
    command = [KUBECTL, "--kubeconfig", str(kubeconfig), "-n", namespace, "apply", "--validate=false", "-f", "-"]
    ran = subprocess.run(command, input=json.dumps(manifest), capture_output=True, text=True, check=True)
    return ran.stdout


def content(item: Object) -> Any:
    """Return the content of an object without the parts that the server sets; of managed fields, their owners."""
    metadata = {key: value for key, value in item["metadata"].items() if key not in OF_THE_SERVER}
    metadata["annotations"] = {key: value for key, value in metadata["annotations"].items() if key != REVISION}
    metadata["managedFields"] = {  # their order is that of their times
        entry["manager"]: (entry["operation"], entry["fieldsV1"])
        for entry in metadata["managedFields"]
        if entry["manager"] != "kube-controller-manager"  # which takes its time
    }
    shown = {key: value for key, value in item.items() if key != "status"} | {"metadata": metadata}
    for field in ("clusterIP", "clusterIPs"):
        shown.get("spec", {}).pop(field, None)
    return json.loads(json.dumps(shown, sort_keys=True).replace(item["metadata"]["name"], "NAME"))


def is_observed(item: Object) -> bool:
    return bool(item["status"].get("observedGeneration") == item["metadata"]["generation"])


STORIES: dict[str, list[Object]] = {
    "a Deployment": [web(), changed(), web(), web(tolerations=None, hostname="it")],
    "a Service": [service(80, 81), service(81, 82), service(82)],
    "a ConfigMap": [configmap("it", {"a": "1", "b": "2"}), configmap("it", {"b": "3", "c": "4"}), with_nulls()],
}


@with_kubectl
@pytest.mark.parametrize("story", STORIES)
def test_an_object_becomes_as_kubectl_makes_it(
    kube: Kube, admin: Client, kubeconfig: Path, namespace: str, story: str
) -> None:
    names = ("theirs", "ourown")
    paths = [admin.path(named(STORIES[story][0], name), namespace) for name in names]
    for step, manifest in enumerate(STORIES[story]):
        kubectl(kubeconfig, namespace, named(manifest, names[0]))
        kube.ok("apply", {"manifest": named(manifest, names[1]), "clientSide": True})
        theirs, ours = (content(admin.get(path)) for path in paths)
        assert ours == theirs, step
        if manifest["kind"] == "Deployment":
            for path in paths:
                admin.wait_for(path, is_observed)
        again = kube.ok("apply", {"manifest": named(manifest, names[1]), "clientSide": True})
        assert "(unchanged)" in again["message"]
        if manifest["kind"] == "Deployment":  # others add what is in no manifest: it stays
            extra = {"spec": {"replicas": 1 if step == 1 else 0}, "metadata": {"labels": {"extra": "1"}}}
            for path in paths:
                admin.patch(path, extra)
    for path in paths:
        admin.patch(path, {"metadata": {"finalizers": None}})


@with_kubectl
def test_a_later_kubectl_apply_removes_what_its_manifest_leaves_out(
    kube: Kube, admin: Client, kubeconfig: Path, namespace: str
) -> None:
    made = deployment(replicas=0)
    made["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "none"}
    assert "(created)" in kube.ok("apply", {"manifest": made, "clientSide": True})["message"]
    del made["spec"]["template"]["spec"]["nodeSelector"]
    kubectl(kubeconfig, namespace, made)
    path = admin.path(made, namespace)
    assert "nodeSelector" not in admin.get(path)["spec"]["template"]["spec"]


def test_lists_of_custom_resources_are_replaced(kube: Kube, admin: Client, namespace: str, kinds: str) -> None:
    first = custom(
        "Switch", kinds, template={"list": [{"name": "a"}, {"name": "b"}], "map": {"a": 1, "b": {"c": None}}}
    )
    kube.ok("apply", {"manifest": first, "clientSide": True})
    path = admin.path(first, namespace)
    admin.patch(path, {"spec": {"template": {"map": {"other": True}}}})
    second = custom("Switch", kinds, template={"list": [{"name": "b"}], "map": {"b": {}}})
    kube.ok("apply", {"manifest": second, "clientSide": True})
    template = {"list": [{"name": "b"}], "map": {"b": {}, "other": True}}
    assert admin.get(path)["spec"] == {"template": template}
