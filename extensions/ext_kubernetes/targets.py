"""Objects that arguments name (`pod/nginx`, or apiVersion, kind and metadata), their namespace, pods and containers."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta

import ext_sdk
from ext_kubernetes.api.errors import KubernetesError, NotFound
from ext_kubernetes.api.paths import core_path
from ext_kubernetes.objects.conditions import condition_of, has
from ext_kubernetes.objects.fields import at, items, members, number, text

from .config import config_of
from .own_namespaces import existence, own_namespaces
from .polling import retry_until_deadline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_kubernetes.api.client import Client
    from ext_kubernetes.api.discovery import Resource
    from ext_kubernetes.api.paths import ApiPath
    from ext_kubernetes.objects.yaml_loader import Object


DEFAULT_NAMESPACE = "default"


class Metadata(ext_sdk.Args, forbid_unknown_fields=False):
    """Name and namespace, as in a manifest; its other members, such as labels, are accepted and do not matter."""

    name: str = ""
    namespace: str = ""


class TargetArgs(ext_sdk.Args):
    """Which object, in one of two spellings."""

    resource: Annotated[
        str,
        Meta(
            description="Kind and name: pod/nginx, deploy/web, certificates.cert-manager.io/x; a kind alone for "
            "several objects"
        ),
    ] = ""
    api_version: Annotated[str, Meta(description="In place of `resource`, with `kind` and `metadata`: apps/v1")] = ""
    kind: Annotated[str, Meta(description="In place of `resource`: Deployment")] = ""
    metadata: Annotated[
        Metadata, Meta(description="In place of `resource`: name and namespace; other members do not matter")
    ] = Metadata()
    namespace: Annotated[
        str, Meta(description="Where; by default the one that create-namespace made, or that of the configuration")
    ] = ""


class Target(NamedTuple):
    """An object, or with an empty name all objects of a kind.

    Attributes:
        resource: the kind.
        namespace: "" for a kind that has none.
        name: "" for all.
        selector: of labels, for messages; "" for none.
    """

    resource: Resource
    namespace: str
    name: str
    selector: str = ""

    @property
    def path(self) -> ApiPath:
        """Of the API server."""
        return self.resource.path(self.namespace, self.name)

    def __str__(self) -> str:
        """`pod/nginx`, for messages."""
        kind = self.resource.kind.lower()
        return f"{kind}/{self.name}" if self.name else self.resource.name

    @property
    def where(self) -> str:
        """`pod/nginx in namespace web`, for errors."""
        chosen = f"{self} with labels {self.selector}" if self.selector else str(self)
        return f"{chosen} in namespace {self.namespace}" if self.namespace else chosen

    @property
    def are(self) -> str:
        """The verb for it, in messages."""
        return "is" if self.name else "are"


def namespace_of(context: ext_sdk.Context, client: Client, given: str = "") -> str:
    """Return the namespace for an operation; `given` is the argument.

    Raises:
        ext_sdk.OperationFailed: none is given, and which one create-namespace made for this task is not certain.
    """
    return (
        given
        or own_namespaces(context).implicit(existence(context, client))
        or config_of(context).namespace
        or client.namespace
        or DEFAULT_NAMESPACE
    )


def target_of(
    args: TargetArgs,
    context: ext_sdk.Context,
    client: Client,
    *,
    named: bool = True,
    patient: bool = False,
    everywhere: bool = False,
) -> Target:
    """The object that arguments mean.

    Args:
        args: of the operation.
        context: of the call.
        client: asks for the kind.
        named: whether a name is needed; without one, all objects of the kind are meant.
        patient: whether a server that has troubles is asked until the deadline, as those who wait do.
        everywhere: all namespaces are meant.

    Raises:
        ext_sdk.InvalidArgs: none, or both spellings were used; a name is missing.
        KubernetesError: the kind is unknown, or the server can't be asked.
    """
    kind, name, api_version = _spelled(args)
    if named and not name:
        field = "resource" if args.resource else "metadata.name"
        raise ext_sdk.InvalidArgs(field, f"expected a kind and a name, such as {kind}/NAME; found no name")
    given = {one for one in (args.namespace, args.metadata.namespace) if one}
    if len(given) > 1:
        raise ext_sdk.InvalidArgs("namespace", f"expected one namespace, found {' and '.join(sorted(given))}")
    resource = resource_of(kind, api_version, context, client, patient=patient)
    if everywhere or not resource.namespaced:
        return Target(resource, "", name)
    return Target(resource, namespace_of(context, client, "".join(given)), name)


def namespace_missing(target: Target, client: Client, deadline: ext_sdk.Deadline) -> str:
    """What to say where an object is not found because its namespace is not there; "" where it is, or who knows."""
    if not target.namespace:
        return ""
    path = core_path("namespaces", name=target.namespace)
    try:
        client.request("GET", path, deadline=deadline, retry=False)
    except NotFound:
        return f"there is no namespace {target.namespace}: make it first, by create-namespace"
    except KubernetesError:  # who may not look at namespaces may be right all the same
        return ""
    return ""


@contextmanager
def missing_namespace_context(target: Target, client: Client, deadline: ext_sdk.Deadline) -> Iterator[None]:
    """Add to NotFound that the namespace of the target does not exist, if that is the reason."""
    try:
        yield
    except NotFound as error:
        missing = namespace_missing(target, client, deadline)
        error.error += f". {missing[:1].upper()}{missing[1:]}" if missing else ""
        raise


def resource_of(
    kind: str, api_version: str | None, context: ext_sdk.Context, client: Client, *, patient: bool = False
) -> Resource:
    """The kind that a name means; see target_of and Discovery.resource."""

    def ask() -> Resource:
        return client.discovery.resource(kind, api_version, deadline=context.deadline)

    return retry_until_deadline(ask, context.deadline) if patient else ask()


def _spelled(args: TargetArgs) -> tuple[str, str, str | None]:
    """Kind, name, and apiVersion where it is given."""
    if args.resource and args.kind:
        raise ext_sdk.InvalidArgs("resource", "expected `resource` or `kind`, found both")
    if args.resource:
        kind, slash, name = args.resource.partition("/")
        if not kind or "/" in name or (slash and not name):
            raise ext_sdk.InvalidArgs("resource", f"expected KIND/NAME, such as pod/nginx, found {args.resource!r}")
        if name and args.metadata.name:
            raise ext_sdk.InvalidArgs("metadata.name", "the name is in `resource` already")
        return kind, name or args.metadata.name, args.api_version or None
    if not args.kind:
        raise ext_sdk.InvalidArgs("resource", "expected a kind and a name, such as pod/nginx, or `kind` and `metadata`")
    return args.kind, args.metadata.name, args.api_version or None


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


def running_pod(pods: Pods) -> Object:
    """Return the named pod, or the preferred one of several. Raises OperationFailed if none is running."""
    found = pods.see()
    if found and text(found[0], "status", "phase") == "Running":
        return found[0]
    told = ", ".join(f"{text(pod, 'metadata', 'name')} is {text(pod, 'status', 'phase') or 'new'}" for pod in found[:5])
    raise ext_sdk.OperationFailed(
        f"no running pod of {pods.target.where}",
        error=f"expected a running pod of {pods.target.where}, found {told or 'none'}",
    )
