"""Which pods and containers are meant: by name, by labels, or by what owns them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ext_sdk

from .conditions import condition_of, has
from .naming import target_of
from .objects import at, items, members, number, text
from .paths import core_path

if TYPE_CHECKING:
    from .client import Client
    from .manifests import Object
    from .naming import TargetArgs
    from .paths import ApiPath

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"  # kubectl's annotation, which deployments set
PHASES = {"Running": 0, "Unknown": 1, "Pending": 2}  # in the order of preference; pods that have ended come last
LATEST = "~"  # sorts after every timestamp
OPERATORS = {
    "In": "{key} in ({values})",
    "NotIn": "{key} notin ({values})",
    "Exists": "{key}",
    "DoesNotExist": "!{key}",
}


class Pods:
    """The pods that arguments mean; asked for anew at each look, since workloads replace theirs.

    Args:
        args: name a pod, or what has pods: a Deployment, StatefulSet, DaemonSet, ReplicaSet, Job or Service.
        selector: labels of pods, in place of a name.
        context: of the call.
        client: of the server.

    Attributes:
        target: what was named.

    Raises:
        ext_sdk.InvalidArgs: nothing, or too much, is named.
    """

    def __init__(self, args: TargetArgs, selector: str, context: ext_sdk.Context, client: Client) -> None:
        self.target = target_of(args, context, client, named=not selector)
        if selector and (self.target.name or self.target.resource.kind != "Pod"):
            raise ext_sdk.InvalidArgs("selector", f"expected pods by name or by labels, found {self.target} and labels")
        self._selector = selector
        self._context = context
        self._client = client

    @property
    def path(self) -> ApiPath:
        """Of the pods of the namespace."""
        return core_path("pods", self.target.namespace)

    def path_of(self, pod: Object, subresource: str) -> ApiPath:
        """Of a subresource of one of the pods, such as `exec`."""
        return core_path("pods", self.target.namespace, text(pod, "metadata", "name"), subresource)

    def see(self) -> list[Object]:
        """Return the pods that exist now, the preferred one first: see `preferred`.

        Raises:
            KubernetesError: they can't be read.
            ext_sdk.OperationFailed: the target has no selector of pods.
        """
        deadline = self._context.deadline
        if self.target.resource.kind == "Pod" and self.target.name:
            return [members(self._client.request("GET", self.target.path, deadline=deadline))]
        query = [("labelSelector", self._selector or self._owners())]
        return preferred(items(self._client.request("GET", self.path, query=query, deadline=deadline), "items"))

    def _owners(self) -> str:
        owner = self._client.request("GET", self.target.path, deadline=self._context.deadline)
        if labels := selector_of(members(owner, "spec", "selector")):
            return labels
        raise ext_sdk.OperationFailed(
            f"{self.target} has no pods of its own",
            error=f"expected a pod, or what has a selector of pods; {self.target.where} has none",
        )


def preferred(pods: list[Object]) -> list[Object]:
    """Return pods in the order in which kubectl prefers them for exec and port-forward.

    The order: assigned to a node, running, ready, ready for longer, fewer restarts, older, by name. Unlike kubectl, a
    pod that is being deleted is left out as long as another one may run: kubectl takes it while it is still ready.
    """
    lasting = [pod for pod in pods if not text(pod, "metadata", "deletionTimestamp")]
    candidates = pods if all(map(ended, lasting)) else lasting
    return sorted(candidates, key=_rank)


def _rank(pod: Object) -> tuple[object, ...]:
    ready = condition_of(pod, "Ready") if has(pod, "Ready", "True") else None
    statuses = items(pod, "status", "containerStatuses")
    sidecars = {text(one, "name") for one in items(pod, "spec", "initContainers") if text(one, "restartPolicy")}
    begun = [one for one in items(pod, "status", "initContainerStatuses") if text(one, "name") in sidecars]
    return (
        not text(pod, "spec", "nodeName"),
        PHASES.get(text(pod, "status", "phase"), len(PHASES)),
        ready is None,
        (ready.since if ready else "") or LATEST,
        max((number(one, "restartCount") for one in statuses), default=0),
        max((number(one, "restartCount") for one in begun), default=0),
        text(pod, "metadata", "creationTimestamp") or LATEST,
        text(pod, "metadata", "name"),
    )


def selector_of(selector: Object) -> str:
    """The selector of an object, as queries have it: `app=web,tier in (a,b)`; "" for none."""
    expressions = items(selector, "matchExpressions")
    labels = members(selector, "matchLabels") if {"matchLabels", "matchExpressions"} & selector.keys() else selector
    terms = [f"{key}={value}" for key, value in labels.items()]
    for one in expressions:
        values = at(one, "values")
        joined = ",".join(map(str, values)) if isinstance(values, list) else ""
        terms.append(OPERATORS[text(one, "operator")].format(key=text(one, "key"), values=joined))
    return ",".join(terms)


def container_of(pod: Object, given: str = "") -> str:
    """The container that is meant: the one that is given, the default one of the pod's annotation, or the first.

    Raises:
        ext_sdk.OperationFailed: the pod has no such container.
    """
    known = containers_of(pod)
    wanted = given or text(pod, "metadata", "annotations", DEFAULT_CONTAINER)
    if wanted in known:
        return wanted
    if given or not known:
        name = text(pod, "metadata", "name")
        raise ext_sdk.OperationFailed(
            f"pod/{name} has no container {given!r}",
            error=f"expected a container of pod/{name}: {', '.join(known)}; found {given!r}",
        )
    return known[0]


def containers_of(pod: Object) -> list[str]:
    """The names of a pod's containers: the usual ones first, then those of its beginning, then those for debugging."""
    kinds = ("containers", "initContainers", "ephemeralContainers")
    return [text(container, "name") for kind in kinds for container in items(pod, "spec", kind)]


def ended(pod: Object) -> bool:
    """Whether a pod has run to its end: nothing in it will start again."""
    return text(pod, "status", "phase") in {"Succeeded", "Failed"}
