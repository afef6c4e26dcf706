"""Operations `cordon`, `uncordon`, `taint` and `drain`: prepare nodes, and move their pods away."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.discovery import core_path
from ext_kubernetes.api.errors import ApiError, Conflict, NotFound, error_context
from ext_kubernetes.config import ClusterArgs, ExpectedRefusal
from ext_kubernetes.manifests.bulk import run_parallel
from ext_kubernetes.manifests.write import IgnoreNotFound, merge, read
from ext_kubernetes.objects.fields import at, items, members, text
from ext_kubernetes.pods import ended
from ext_kubernetes.polling import Verdict, wait_until
from ext_kubernetes.targets import Target, TimeLimit, resource_of
from ext_sdk.core.text import counted

from . import DONE, REFUSAL

if TYPE_CHECKING:
    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.fields import Outputs
    from ext_kubernetes.objects.yaml_loader import Object


class NodesArgs(ClusterArgs, one_of=("node", "selector")):
    """Common arguments of operations on nodes."""

    node: Annotated[str | list[str], Meta(description="Name of a node, or of several")] = ""
    selector: Annotated[str, Meta(description="Label selector of nodes; replaces `node`")] = ""
    ignore_not_found: IgnoreNotFound = False


class Cordon(NodesArgs):
    """Arguments of `cordon` and `uncordon`."""

    expect: ExpectedRefusal = UNSET
    timeout: TimeLimit = ext_sdk.Duration.parse("25s")


class Nodes:
    """The nodes that arguments name.

    Attributes:
        target: the kind.
        missing: names of nodes that do not exist; always empty without `ignoreNotFound`.
    """

    def __init__(self, args: NodesArgs, context: ext_sdk.Context, client: Client) -> None:
        self.target = Target(resource_of("nodes", "v1", context, client), "", "", args.selector)
        self.missing: list[str] = []
        self._args = args
        self._context = context
        self._client = client

    def read(self) -> list[Object]:
        """Return the nodes. Raises NotFound, or OperationFailed if no node has the labels."""
        ignored = self._args.ignore_not_found
        if self._args.selector:
            return read(self.target, self._args.selector, self._context, self._client, ignore_not_found=ignored)
        given = [self._args.node] if isinstance(self._args.node, str) else self._args.node
        if not given:
            raise ext_sdk.InvalidArgs("node", "expected names of nodes, found an empty list")
        if not all(name.removeprefix("node/") for name in given):  # the path of an empty name is that of all nodes
            raise ext_sdk.InvalidArgs("node", "expected names of nodes, found an empty one")
        found: list[Object] = []
        for name in dict.fromkeys(name.removeprefix("node/") for name in given):
            target = self.target._replace(name=name)
            nodes = read(target, "", self._context, self._client, ignore_not_found=ignored)
            self.missing += [] if nodes else [name]
            found += nodes
        return found

    def cordon(self, nodes: list[Object], *, unschedulable: bool) -> int:
        """Mark nodes; return the number of those that had another state."""
        other = [node for node in nodes if (at(node, "spec", "unschedulable") is True) != unschedulable]
        change: Object = {"spec": {"unschedulable": unschedulable or None}}
        run_parallel(lambda node: merge(self.target, node, change, self._context, self._client), other)
        return len(other)

    def outputs(self, nodes: list[Object], changed: int) -> Outputs:
        """Return the common outputs."""
        return {"count": len(nodes), "changed": changed, "nodes": "\n".join(map(name_of, nodes))}

    def describe(self, nodes: list[Object]) -> str:
        """Return `node worker` or `2 nodes`, with the missing ones, for messages."""
        named = f"node {name_of(nodes[0])}" if len(nodes) == 1 else counted(len(nodes), "node")
        return named + (f" ({', '.join(self.missing)} not found, ignored)" if self.missing else "")


def name_of(item: Object) -> str:
    """Return the name of an object."""
    return text(item, "metadata", "name")


def cordon(args: Cordon, context: ext_sdk.Context) -> ext_sdk.Result:
    """Mark nodes as unschedulable, so that no new pods are assigned to them."""
    return _mark(args, context, unschedulable=True)


def uncordon(args: Cordon, context: ext_sdk.Context) -> ext_sdk.Result:
    """Mark nodes as schedulable again, also after `drain`."""
    return _mark(args, context, unschedulable=False)


def _mark(args: Cordon, context: ext_sdk.Context, *, unschedulable: bool) -> ext_sdk.Result:
    client = client_for(context, args)
    nodes = Nodes(args, context, client)
    with error_context(f"failed to {'cordon' if unschedulable else 'uncordon'}"):
        found = nodes.read()
        changed = nodes.cordon(found, unschedulable=unschedulable)
    past = "Cordoned" if unschedulable else "Uncordoned"
    unchanged = " (no change)" if found and not changed else ""
    return ext_sdk.Result.ok(f"{past} {nodes.describe(found)}{unchanged}", outputs=nodes.outputs(found, changed))


EFFECTS = "NoSchedule|PreferNoSchedule|NoExecute"
TAINT = rf"^[^=:\s]+(=[^=:\s]*)?(:({EFFECTS}))?-?$"
_PARTS = re.compile(rf"(?P<key>[^=:\s]+?)(?P<value>=[^=:\s]*?)?(?::(?P<effect>{EFFECTS}))?(?P<removed>-)?")
MOST_CONFLICTS = 5


class Taint(NodesArgs):
    """Arguments of `taint`."""

    taints: Annotated[
        list[Annotated[str, Meta(pattern=TAINT)]],
        Meta(description="Taints as in kubectl: key=value:NoSchedule, key:NoExecute; key:EFFECT- or key- removes"),
    ] = field(default_factory=list)
    overwrite: Annotated[bool, Meta(description="Change existing values; false: an existing value is a failure")] = True
    expect: ExpectedRefusal = UNSET
    timeout: TimeLimit = ext_sdk.Duration.parse("25s")

    def __post_init__(self) -> None:
        if not self.taints:
            raise ValueError("taints: expected at least one taint, such as key=value:NoSchedule")
        for index, given in enumerate(self.taints):
            parts = _PARTS.fullmatch(given)
            if parts is not None and parts["removed"] is None and parts["effect"] is None:
                raise ValueError(
                    f"taints[{index}]: expected an effect ({EFFECTS.replace('|', ', ')}) in {given!r}, such as "
                    f"{given}:NoSchedule; only a removal, {given}-, may omit it"
                )


def taint(args: Taint, context: ext_sdk.Context) -> ext_sdk.Result:
    """Add, change or remove taints of nodes."""
    client = client_for(context, args)
    nodes = Nodes(args, context, client)
    with error_context("failed to change taints"):
        found = nodes.read()
        results = [_taint(node, args, nodes.target, context, client) for node in found]
    changed = sum(changed for _, changed in results)
    outputs = nodes.outputs(found, changed)
    if len(results) == 1:
        outputs["taints"] = "\n".join(map(_shown, results[0][0]))
    unchanged = " (no change)" if found and not changed else ""
    return ext_sdk.Result.ok(f"Changed taints of {nodes.describe(found)}{unchanged}", outputs=outputs)


def _taint(
    node: Object, args: Taint, target: Target, context: ext_sdk.Context, client: Client
) -> tuple[list[Object], bool]:
    """Change the taints of a node. Return its taints, and True if they have changed."""
    conflicts = 0
    while True:
        present = items(node, "spec", "taints")
        taints = changed_taints(present, args, name_of(node))
        if taints == present:
            return taints, False
        version = text(node, "metadata", "resourceVersion")  # the list is replaced, and controllers change it, too
        change: Object = {"metadata": {"resourceVersion": version}, "spec": {"taints": taints}}
        try:
            merge(target, node, change, context, client)
        except Conflict:
            conflicts += 1
            if conflicts == MOST_CONFLICTS:
                raise
            (node,) = read(target._replace(name=name_of(node)), "", context, client)
        else:
            return taints, True


def changed_taints(present: list[Object], args: Taint, node: str) -> list[Object]:
    """Return the taints of a node after a change.

    Raises:
        ext_sdk.OperationFailed: a taint to remove does not exist, or one has another value and must not be changed.
    """
    taints = list(present)
    for given in args.taints:
        parts = _PARTS.fullmatch(given)
        if parts is None:
            raise ext_sdk.InvalidArgs("taints", f"expected a taint, such as key=value:NoSchedule, found {given!r}")
        key, effect, value = parts["key"], parts["effect"], (parts["value"] or "=")[1:]
        same = [old for old in taints if text(old, "key") == key and effect in {None, text(old, "effect")}]
        if parts["removed"]:
            if not same and not args.ignore_not_found:
                raise ext_sdk.OperationFailed(
                    f"node {node} has no taint {given[:-1]}",
                    error=f"expected a taint {given[:-1]} of node {node}, found "
                    f"{', '.join(map(_shown, taints)) or 'no taints'}; set `ignoreNotFound: true` to treat that as "
                    "success",
                )
            taints = [old for old in taints if old not in same]
            continue
        if same and text(same[0], "value") == value:
            continue
        if same and not args.overwrite:
            raise ext_sdk.OperationFailed(
                f"node {node} has {_shown(same[0])} already",
                error=f"expected no taint {key} with effect {effect} of node {node}, found {_shown(same[0])}; nothing "
                "was changed. Set `overwrite: true` to change it",
            )
        new: Object = {"key": key, **({"value": value} if value else {}), "effect": effect}
        taints = [old for old in taints if old not in same] + [new]
    return taints


def _shown(taint: Object) -> str:
    value = text(taint, "value")
    return f"{text(taint, 'key')}{'=' if value else ''}{value}:{text(taint, 'effect')}"


class Drain(NodesArgs):
    """Arguments of `drain`."""

    pod_selector: Annotated[str, Meta(description="Label selector of the pods to evict; default: all")] = ""
    ignore_daemon_sets: Annotated[
        bool, Meta(description="Leave pods of DaemonSets on the node; false: they are a failure")
    ] = field(default=True, name="ignoreDaemonSets")
    delete_empty_dir_data: Annotated[
        bool, Meta(description="Also evict pods with emptyDir volumes, whose data is lost")
    ] = False
    force: Annotated[bool, Meta(description="Also evict pods without a controller, which are not created again")] = (
        False
    )
    disable_eviction: Annotated[
        bool, Meta(description="Delete pods instead of evicting them, regardless of disruption budgets")
    ] = False
    grace_period: Annotated[
        Annotated[int, Meta(ge=0)] | UnsetType,
        Meta(description="Grace period of pods in seconds; 0 kills them immediately"),
    ] = UNSET
    expect: ExpectedRefusal = UNSET
    on_timeout: ext_sdk.OnTimeout = "fail"
    timeout: TimeLimit = ext_sdk.Duration.parse("60s")


MIRROR = "kubernetes.io/config.mirror"  # annotation of a static pod, which only its kubelet can delete
MOST_NAMED = 10


class Eviction(NamedTuple):
    """Pods of nodes, by the way in which a drain treats them.

    Attributes:
        evicted: to be evicted.
        left: remain on the node: of DaemonSets, and static ones.
        problems: must not be evicted: the reason of each.
    """

    evicted: list[Object]
    left: list[Object]
    problems: list[str]


def plan_of(pods: list[Object], args: Drain) -> Eviction:
    """Divide pods by the rules of `kubectl drain`."""
    plan = Eviction([], [], [])
    for pod in pods:
        metadata = members(pod, "metadata")
        owner = next((owner for owner in items(metadata, "ownerReferences") if owner.get("controller") is True), {})
        if MIRROR in members(metadata, "annotations"):
            plan.left.append(pod)
            continue
        if ended(pod) or text(metadata, "deletionTimestamp"):
            plan.evicted.append(pod)
            continue
        if text(owner, "kind") == "DaemonSet":
            if args.ignore_daemon_sets:
                plan.left.append(pod)
            else:
                plan.problems.append(f"{place_of(pod)} belongs to a DaemonSet (set `ignoreDaemonSets: true`)")
            continue
        if not owner and not args.force:
            plan.problems.append(f"{place_of(pod)} has no controller that would replace it (set `force: true`)")
        elif not args.delete_empty_dir_data and any("emptyDir" in volume for volume in items(pod, "spec", "volumes")):
            plan.problems.append(f"{place_of(pod)} has data in an emptyDir volume (set `deleteEmptyDirData: true`)")
        else:
            plan.evicted.append(pod)
    return plan


def place_of(pod: Object) -> str:
    """Return the namespace and name of a pod: `web/nginx`."""
    return f"{text(pod, 'metadata', 'namespace')}/{name_of(pod)}"


def drain(args: Drain, context: ext_sdk.Context) -> ext_sdk.Result:
    """Cordon nodes, evict their pods, and wait until the pods are gone; `uncordon` makes the nodes usable again.

    The rules are those of `kubectl drain`: disruption budgets are respected, static pods stay, and pods that would lose
    data or not be created again are a failure before any pod is evicted.
    """
    client = client_for(context, args)
    nodes = Nodes(args, context, client)
    with error_context("failed to drain"):
        found = nodes.read()
        changed = nodes.cordon(found, unschedulable=True)
        evictor = _Evictor(args, list(map(name_of, found)), context, client)
        if problems := plan_of(evictor.pods(), args).problems:
            more = f"; and {len(problems) - MOST_NAMED} more" if len(problems) > MOST_NAMED else ""
            raise ext_sdk.OperationFailed(
                f"{nodes.describe(found)} cannot be drained: {counted(len(problems), 'pod')} must not be evicted",
                error=f"no pod was evicted, but the nodes are cordoned: {'; '.join(problems[:MOST_NAMED])}{more}",
                outputs=nodes.outputs(found, changed) | evictor.outputs(),
            )
        outcome = wait_until(evictor.check, context.deadline)
    outputs = nodes.outputs(found, changed) | evictor.outputs() | {"seconds": f"{outcome.seconds:.3f}"}
    outputs["done"] = outcome.done
    evicted = counted(len(evictor.evicted), "pod")
    if outcome.done:
        return ext_sdk.Result.ok(f"Drained {nodes.describe(found)}: {evicted} evicted", outputs=outputs)
    status = outcome.verdict.status if outcome.verdict else "no response"
    error = f"; the last poll failed: {outcome.last_error.error}" if outcome.last_error else ""
    failure = ext_sdk.Result.failed(
        f"{nodes.describe(found)} not drained after {outcome.seconds:.1f} s",
        error=f"expected no evictable pods after {outcome.seconds:.1f} s, found {status}{error}",
        outputs=outputs,
    )
    timed_out = outcome.timed_out and not context.deadline.stopped.is_set()
    return ext_sdk.conclude_wait(failure, args.on_timeout, timed_out=timed_out, last_seen=status)


class _Evictor:
    """Evicts the pods of nodes, at each poll those that are left.

    Attributes:
        evicted: places of the pods whose eviction was accepted, in order.
    """

    def __init__(self, args: Drain, nodes: list[str], context: ext_sdk.Context, client: Client) -> None:
        self.evicted: dict[str, str] = {}  # by uid
        self._args = args
        self._nodes = nodes
        self._context = context
        self._client = client
        self._left: list[str] = []

    def outputs(self) -> Outputs:
        """Return the outputs on pods."""
        return {"evicted": "\n".join(self.evicted.values()), "left": "\n".join(self._left)}

    def pods(self) -> list[Object]:
        """Return the pods on the nodes."""
        query = [("labelSelector", self._args.pod_selector)] if self._args.pod_selector else []
        found: list[Object] = []
        for node in self._nodes:
            fields = [("fieldSelector", f"spec.nodeName={node}"), *query]
            listed = self._client.request("GET", core_path("pods"), query=fields, deadline=self._context.deadline)
            found += items(listed, "items")
        return found

    def check(self, age: float) -> Verdict:
        """Evict the pods that are left."""
        del age
        plan = plan_of(self.pods(), self._args)
        self._left = sorted(map(place_of, plan.left))
        pending = [*plan.problems, *run_parallel(self._evict, plan.evicted)]
        more = f"; and {len(pending) - MOST_NAMED} more" if len(pending) > MOST_NAMED else ""
        return Verdict(not pending, f"{counted(len(pending), 'pod')}: {'; '.join(pending[:MOST_NAMED])}{more}")

    def _evict(self, pod: Object) -> str:
        """Evict a pod unless that was done before; return its state."""
        uid, place = text(pod, "metadata", "uid"), place_of(pod)
        if uid in self.evicted or text(pod, "metadata", "deletionTimestamp"):
            return f"{place} is terminating"
        options: Object = {"preconditions": {"uid": uid}} if uid else {}
        if self._args.grace_period is not UNSET:
            options["gracePeriodSeconds"] = self._args.grace_period
        name, namespace = name_of(pod), text(pod, "metadata", "namespace")
        try:
            if self._args.disable_eviction:
                path = core_path("pods", namespace, name)
                self._client.request("DELETE", path, body=options, deadline=self._context.deadline)
            else:
                body: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "deleteOptions": options}
                body["metadata"] = {"name": name, "namespace": namespace}
                path = core_path("pods", namespace, name, "eviction")
                self._client.request("POST", path, body=body, deadline=self._context.deadline, retry=False)
        except (NotFound, Conflict):  # it is gone, or another pod has its name
            pass
        except ApiError as error:
            if error.status != 429:
                raise
            budgets = "; ".join(message for _, _, message in error.causes if message)
            return f"{place} is protected by a disruption budget: {budgets or error.text}"
        self.evicted[uid] = place
        return f"{place} is terminating"


NODES = {
    "count": "number of nodes",
    "changed": "number of nodes whose state was changed",
    "nodes": "names of the nodes, one per line",
}

OPERATIONS = (
    ext_sdk.Operation(
        "cordon",
        cordon,
        {"node": "worker"},
        outputs=NODES | REFUSAL,
        title="Cordon node",
        idempotent=True,
    ),
    ext_sdk.Operation(
        "uncordon",
        uncordon,
        {"node": "worker"},
        outputs=NODES | REFUSAL,
        title="Uncordon node",
        idempotent=True,
    ),
    ext_sdk.Operation(
        "taint",
        taint,
        {"node": "worker", "taints": ["dedicated=batch:NoSchedule"]},
        outputs=NODES
        | {"taints?": "taints of the node after the change, one per line, if there is one node"}
        | REFUSAL,
        title="Taint node",
        idempotent=True,
    ),
    ext_sdk.Operation(
        "drain",
        drain,
        {"node": "worker", "timeout": "25s"},
        outputs=(
            NODES
            | {
                "evicted": "evicted pods as NAMESPACE/NAME, one per line",
                "left": "pods that stay on the nodes (of DaemonSets, and static ones), one per line",
                "seconds?": "duration in seconds, unless a pod must not be evicted",
                "done?": DONE["done"],
            }
            | REFUSAL
        ),
        title="Drain node",
        idempotent=True,
    ),
)
