"""Objects that arguments name (`pod/nginx`, or apiVersion, kind and metadata), their namespace, pods and containers."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta

import ext_sdk
from ext_kubernetes.api.errors import KubernetesError, NotFound
from ext_kubernetes.api.paths import core_path
from ext_kubernetes.objects.conditions import condition_of
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
    """Name and namespace, as in a manifest; other members, such as labels, are accepted and ignored."""

    name: Annotated[str, Meta(description="Name of the object")] = ""
    namespace: Annotated[str, Meta(description="Namespace of the object")] = ""


class TargetArgs(ext_sdk.Args):
    """An object, given by `resource`, or by `kind` and `metadata`."""

    resource: Annotated[
        str,
        Meta(
            description="Kind and name: pod/nginx, deploy/web, certificates.cert-manager.io/x; a kind without a name "
            "for several objects"
        ),
    ] = ""
    api_version: Annotated[
        str, Meta(description="apiVersion, such as apps/v1; with `kind` and `metadata`, which replace `resource`")
    ] = ""
    kind: Annotated[str, Meta(description="Kind, such as Deployment; replaces `resource`")] = ""
    metadata: Annotated[Metadata, Meta(description="Name and namespace, with `kind`; other members are ignored")] = (
        Metadata()
    )
    namespace: Annotated[
        str, Meta(description="Namespace; default: the one created by create-namespace, or the configured one")
    ] = ""


Container = Annotated[
    str, Meta(description="Container of the pod; default: the pod's default container, or its first one")
]


class Target(NamedTuple):
    """An object, or with an empty name all objects of a kind.

    Attributes:
        namespace: "" for a cluster-scoped kind.
        name: "" for all.
        selector: label selector, for messages; "" for none.
    """

    resource: Resource
    namespace: str
    name: str
    selector: str = ""

    @property
    def path(self) -> ApiPath:
        """Return the path of the object or list."""
        return self.resource.path(self.namespace, self.name)

    def __str__(self) -> str:
        """Return `pod/nginx`, for messages."""
        return f"{self.resource.kind.lower()}/{self.name}" if self.name else self.resource.name

    @property
    def where(self) -> str:
        """Return `pod/nginx in namespace web`, for errors."""
        chosen = f"{self} with labels {self.selector}" if self.selector else str(self)
        return f"{chosen} in namespace {self.namespace}" if self.namespace else chosen

    @property
    def are(self) -> str:
        """Return the verb that agrees with the target in messages."""
        return "is" if self.name else "are"


def namespace_of(context: ext_sdk.Context, client: Client, given: str = "") -> str:
    """Return the namespace for an operation; `given` is the argument.

    Raises:
        ext_sdk.OperationFailed: no namespace is given, and the one created for this task is ambiguous.
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
    """Return the target that arguments name.

    Args:
        named: a name is required; if not, all objects of the kind are meant without one.
        patient: retry transient errors of the server until the deadline, as waits do.
        everywhere: all namespaces are meant.

    Raises:
        ext_sdk.InvalidArgs: no object, or several; a name is missing.
        KubernetesError: the kind is unknown, or the server can't be queried.
    """
    if args.resource and args.kind:
        raise ext_sdk.InvalidArgs("resource", "expected `resource` or `kind`, found both")
    kind, name = args.kind, args.metadata.name
    if args.resource:
        kind, slash, name = args.resource.partition("/")
        if not kind or "/" in name or (slash and not name):
            raise ext_sdk.InvalidArgs("resource", f"expected KIND/NAME, such as pod/nginx, found {args.resource!r}")
        if name and args.metadata.name:
            raise ext_sdk.InvalidArgs("metadata.name", "the name is also in `resource`")
        name = name or args.metadata.name
    if not kind:
        raise ext_sdk.InvalidArgs("resource", "expected a kind and a name, such as pod/nginx, or `kind` and `metadata`")
    if named and not name:
        field = "resource" if args.resource else "metadata.name"
        raise ext_sdk.InvalidArgs(field, f"expected a kind and a name, such as {kind}/NAME; found no name")
    given = {namespace for namespace in (args.namespace, args.metadata.namespace) if namespace}
    if len(given) > 1:
        raise ext_sdk.InvalidArgs("namespace", f"expected one namespace, found {' and '.join(sorted(given))}")
    resource = resource_of(kind, args.api_version or None, context, client, patient=patient)
    if everywhere or not resource.namespaced:
        return Target(resource, "", name)
    return Target(resource, namespace_of(context, client, "".join(given)), name)


def resource_of(
    kind: str, api_version: str | None, context: ext_sdk.Context, client: Client, *, patient: bool = False
) -> Resource:
    """Return the kind with a name; see target_of and Discovery.resource."""
    if known := client.discovery.cached(kind, api_version):
        return known

    def query() -> Resource:
        return client.discovery.resource(kind, api_version, deadline=context.deadline)

    return retry_until_deadline(query, context.deadline) if patient else query()


def namespace_missing(target: Target, client: Client, deadline: ext_sdk.Deadline) -> str:
    """Return an error text if the namespace of a target does not exist; "" if it exists, or can't be read."""
    if not target.namespace:
        return ""
    path = core_path("namespaces", name=target.namespace)
    try:
        client.request("GET", path, deadline=deadline, retry=False)
    except NotFound:
        return f"namespace {target.namespace} does not exist; create it with create-namespace"
    except KubernetesError:  # a user who may not read namespaces may be right all the same
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
        if selector and (self.target.name or self.target.resource.kind != "Pod"):
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
    wanted = given or text(pod, "metadata", "annotations", DEFAULT_CONTAINER)
    if wanted in names:
        return wanted
    if given or not names:
        name = text(pod, "metadata", "name")
        raise ext_sdk.OperationFailed(
            f"pod/{name} has no container {given!r}",
            error=f"expected a container of pod/{name}: {', '.join(names)}; found {given!r}",
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
    found = pods.read()
    if found and text(found[0], "status", "phase") == "Running":
        return found[0]
    phases = [f"{text(pod, 'metadata', 'name')} is {text(pod, 'status', 'phase') or 'new'}" for pod in found[:5]]
    raise ext_sdk.OperationFailed(
        f"no running pod of {pods.target.where}",
        error=f"expected a running pod of {pods.target.where}, found {', '.join(phases) or 'none'}",
    )
