"""What live tests make in a cluster: objects of each kind that they need, named `it` unless they say otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.live.client import Object

IMAGE = "busybox:1.36"


def container(*command: str) -> Object:
    """A container that runs a command; its image is not pulled where it is there."""
    return {"name": "main", "image": IMAGE, "imagePullPolicy": "IfNotPresent", "command": list(command)}


RUNNING = container("sleep", "1000")
UNREADY = RUNNING | {"readinessProbe": {"exec": {"command": ["false"]}}}
GREEDY = RUNNING | {"resources": {"requests": {"cpu": "1000"}}}
UNAVAILABLE: Object = {"name": "main", "image": "registry.invalid/nothing:1"}


def runs(script: str) -> Object:
    """A container that runs a script."""
    return container("sh", "-c", script)


def ends(code: int) -> Object:
    """A container that ends at once."""
    return runs(f"exit {code}")


def pod(container: Object = RUNNING, name: str = "it", **spec: object) -> Object:
    """A pod; `app` in its labels is its name."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container], **spec},
    }


def template(container: Object = RUNNING, name: str = "it") -> Object:
    """What a workload makes its pods of."""
    made = pod(container, name)
    return {"metadata": {"labels": made["metadata"]["labels"]}, "spec": made["spec"]}


def workload(kind: str, container: Object = RUNNING, name: str = "it", spec: Object | None = None) -> Object:
    """A Deployment, StatefulSet or DaemonSet; `app` in the labels of its pods is its name."""
    made = {"selector": {"matchLabels": {"app": name}}, "template": template(container, name), **(spec or {})}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": made}


def deployment(container: Object = RUNNING, replicas: int = 2, **spec: object) -> Object:
    """A deployment."""
    return workload("Deployment", container, spec={"replicas": replicas, **spec})


def job(container: Object, name: str = "it") -> Object:
    """A job that is tried once."""
    tried = {"restartPolicy": "Never", "containers": [container]}
    spec = {"backoffLimit": 0, "template": {"spec": tried}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def configmap(name: str = "it", data: dict[str, str] | None = None, **metadata: object) -> Object:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {}}


# --- Custom resources ------------------------------------------------------------------------------------------------

KINDS = {"Gateway": "gateways", "Switch": "switches", "PodMetrics": "pods", "Fleet": "fleets"}  # by irregular plurals
CLUSTER_WIDE = frozenset({"Fleet"})


def definition(kind: str, group: str) -> Object:
    """The definition of one of KINDS, with status and scale."""
    plural = KINDS[kind]
    open_ = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec = {
        "type": "object",
        "properties": {"on": {"type": "boolean"}, "replicas": {"type": "integer"}, "template": open_},
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        },
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": open_}}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster" if kind in CLUSTER_WIDE else "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [version],
        },
    }


def custom(kind: str, group: str, name: str = "it", **spec: object) -> Object:
    """An object of one of KINDS."""
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def service(name: str = "it") -> Object:
    """A service of the pods with the label `app`."""
    spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
