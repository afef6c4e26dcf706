"""Pods that arguments name, the order in which they are preferred, their containers and logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta

import ext_sdk
from ext_kubernetes.api.discovery import core_path
from ext_kubernetes.api.errors import KubernetesError
from ext_kubernetes.objects.fields import at, condition_of, items, members, number, text
from ext_sdk.expect import Check

from .targets import target_of

if TYPE_CHECKING:
    from ext_kubernetes.api.client import Client
    from ext_kubernetes.api.discovery import ApiPath
    from ext_kubernetes.objects.yaml_loader import Object

    from .targets import TargetArgs


Container = Annotated[
    str, Meta(description="Container of the pod; default: the pod's default container, or its first one")
]

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"  # kubectl's annotation, set by deployments
PHASES = {"Running": 0, "Unknown": 1, "Pending": 2}  # in the order of preference; pods that have ended come last
LATEST = "~"  # sorts after every timestamp

OPERATORS = {
    "In": "{key} in ({values})",
    "NotIn": "{key} notin ({values})",
    "Exists": "{key}",
    "DoesNotExist": "!{key}",
}


class Pods:
    """Pods that arguments name; listed at each poll, because workloads replace theirs.

    Args:
        args: name a pod, or an owner of pods: a Deployment, StatefulSet, DaemonSet, ReplicaSet, Job or Service.
        selector: label selector of pods; replaces a name.

    Raises:
        ext_sdk.InvalidArgs: neither a name nor a selector, or both.
    """

    def __init__(self, args: TargetArgs, selector: str, context: ext_sdk.Context, client: Client) -> None:
        self.target = target_of(args, context, client, named=not selector)
        if selector and (self.target.name or self.target.others or self.target.resource.kind != "Pod"):
            raise ext_sdk.InvalidArgs("selector", f"expected pods by name or by labels, found {self.target} and labels")
        self._selector = selector
        self._context = context
        self._client = client

    def path_of(self, pod: Object, subresource: str) -> ApiPath:
        """Return the path of a pod's subresource, such as `exec`."""
        return core_path("pods", self.target.namespace, text(pod, "metadata", "name"), subresource)

    def read(self) -> list[Object]:
        """Return the present pods, the preferred one first: see `preferred`.

        Raises:
            KubernetesError: they can't be read.
            ext_sdk.OperationFailed: the target has no selector of pods.
        """
        deadline = self._context.deadline
        selector = self._selector
        if not selector:
            owner = members(self._client.request("GET", self.target.path, deadline=deadline))
            if self.target.resource.kind == "Pod":
                return [owner]
            selector = selector_of(members(owner, "spec", "selector"))
        if not selector:
            raise ext_sdk.OperationFailed(
                f"{self.target} selects no pods",
                error=f"expected a pod, or an object with a pod selector; {self.target.where} has none",
            )
        path, query = core_path("pods", self.target.namespace), [("labelSelector", selector)]
        return preferred(items(self._client.request("GET", path, query=query, deadline=deadline), "items"))


def preferred(pods: list[Object]) -> list[Object]:
    """Return pods in the order in which kubectl prefers them for exec and port-forward.

    The order: assigned to a node, running, ready, ready for longer, fewer restarts, older, by name. Unlike in kubectl,
    pods that are being deleted are omitted if another one has not ended; kubectl uses them as long as they are ready.
    """
    remaining = [pod for pod in pods if not text(pod, "metadata", "deletionTimestamp")]
    return sorted(pods if all(map(ended, remaining)) else remaining, key=_rank)


def _rank(pod: Object) -> tuple[object, ...]:
    condition = condition_of(pod, "Ready")
    ready = condition if condition is not None and condition.holds("True") else None
    statuses = items(pod, "status", "containerStatuses")
    containers = items(pod, "spec", "initContainers")
    sidecars = {text(container, "name") for container in containers if text(container, "restartPolicy")}
    init_statuses = items(pod, "status", "initContainerStatuses")
    started = [status for status in init_statuses if text(status, "name") in sidecars]
    return (
        not text(pod, "spec", "nodeName"),
        PHASES.get(text(pod, "status", "phase"), len(PHASES)),
        ready is None,
        (ready.since if ready else "") or LATEST,
        max((number(status, "restartCount") for status in statuses), default=0),
        max((number(status, "restartCount") for status in started), default=0),
        text(pod, "metadata", "creationTimestamp") or LATEST,
        text(pod, "metadata", "name"),
    )


def selector_of(selector: Object) -> str:
    """Return the selector of an object in the syntax of queries: `app=web,tier in (a,b)`; "" if it is empty."""
    labels = members(selector, "matchLabels") if {"matchLabels", "matchExpressions"} & selector.keys() else selector
    terms = [f"{key}={value}" for key, value in labels.items()]
    for expression in items(selector, "matchExpressions"):
        values = at(expression, "values")
        joined = ",".join(map(str, values)) if isinstance(values, list) else ""
        terms.append(OPERATORS[text(expression, "operator")].format(key=text(expression, "key"), values=joined))
    return ",".join(terms)


def container_of(pod: Object, given: str = "") -> str:
    """Return the given container, the default one by the pod's annotation, or the first.

    Raises:
        ext_sdk.OperationFailed: the pod has no such container.
    """
    names = containers_of(pod)
    container = given or text(pod, "metadata", "annotations", DEFAULT_CONTAINER)
    if container in names:
        return container
    if given or not names:
        name = text(pod, "metadata", "name")
        raise ext_sdk.OperationFailed(
            f"pod/{name} has no container {given!r}",
            error=f"pod/{name} has no container {given!r}, its containers are {', '.join(names) or '(none)'}",
        )
    return names[0]


def containers_of(pod: Object) -> list[str]:
    """Return the names of a pod's containers: regular ones first, then init and ephemeral containers."""
    kinds = ("containers", "initContainers", "ephemeralContainers")
    return [text(container, "name") for kind in kinds for container in items(pod, "spec", kind)]


def ended(pod: Object) -> bool:
    """Return True if all containers of a pod have terminated for good."""
    return text(pod, "status", "phase") in {"Succeeded", "Failed"}


def running_pod(pods: Pods) -> Object:
    """Return the named pod, or the preferred one of several. Raises OperationFailed if none is running."""
    candidates = pods.read()
    if candidates and text(candidates[0], "status", "phase") == "Running":
        return candidates[0]
    phases = [f"{text(pod, 'metadata', 'name')} is {text(pod, 'status', 'phase') or 'new'}" for pod in candidates[:5]]
    raise ext_sdk.OperationFailed(
        f"no running pod of {pods.target.where}",
        error=f"expected a running pod of {pods.target.where}, found {', '.join(phases) or 'none'}",
    )


MEBIBYTE = 1024 * 1024
MOST_BYTES = 8 * MEBIBYTE  # of one container's log


class Log(NamedTuple):
    """Log of a container; `cut`: its end was not read."""

    text: str
    cut: bool


def too_long(place: str) -> Check:
    """Return the failed check of a log that was not read completely."""
    return Check.failed("to be checked completely", f"more than {MOST_BYTES // MEBIBYTE} MiB of {place}", where="log")


def read_log(
    pod: Object, container: str, query: list[tuple[str, str]], context: ext_sdk.Context, client: Client
) -> Log:
    """Read the log of a container; bytes that are not UTF-8 are replaced. Raises KubernetesError."""
    metadata = ("metadata", "namespace"), ("metadata", "name")
    namespace, name = (text(pod, *path) for path in metadata)
    path = core_path("pods", namespace, name, "log")
    limit = MOST_BYTES + 1  # one byte more shows that the log is longer
    query = [("container", container), ("limitBytes", str(limit)), *query]
    try:
        data = client.raw(path, query=query, deadline=context.deadline, limit=limit)
    except KubernetesError as error:
        error.error = f"{error.error} (container {container} of pod {name} in namespace {namespace})"
        raise
    return Log(data[:MOST_BYTES].decode("utf-8", "replace"), cut=len(data) > MOST_BYTES)
