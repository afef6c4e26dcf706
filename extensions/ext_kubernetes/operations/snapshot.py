"""Operations `snapshot` and `assert-changes`: keep the state of objects, and check what differs later."""

from __future__ import annotations

import json
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta, field

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.discovery import core_path
from ext_kubernetes.api.errors import Forbidden, KubernetesError, NotFound, error_context
from ext_kubernetes.config import ClusterArgs
from ext_kubernetes.manifests.bulk import run_parallel
from ext_kubernetes.objects.fields import LAST_APPLIED, PLACEHOLDER, has_hidden, items, marked, members, text
from ext_kubernetes.objects.matching import KEYS, NOTHING, format_value
from ext_kubernetes.targets import TimeLimit, kinds_of, namespace_of
from ext_sdk.core.text import counted
from ext_sdk.expect.changes import (
    DEFAULT_NAME,
    ChangesArgs,
    Name,
    Only,
    Pattern,
    Required,
    Since,
    Snapshots,
    compare,
    conclude_changes,
    matches,
)
from ext_sdk.expect.check import difference
from ext_sdk.expect.json_equality import equal, member_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ext_kubernetes.api.client import Client
    from ext_kubernetes.api.discovery import Resource
    from ext_kubernetes.objects.yaml_loader import Object


class SnapshotArgs(ClusterArgs):
    """Arguments of `snapshot`."""

    name: Annotated[
        Name, Meta(description="Name for `assert-changes`; a previous snapshot of this name is replaced")
    ] = DEFAULT_NAME
    resource: Annotated[
        str,
        Meta(description="Kinds, such as deploy,svc, or a category: all; default: all kinds that have namespaces"),
    ] = ""
    namespace: Annotated[
        str | list[str],
        Meta(
            description="Namespace, or several, whose names are then in front of those of objects: web/deployment/api. "
            "Default: the one created by create-namespace, or the configured one"
        ),
    ] = ""
    all_namespaces: Annotated[bool, Meta(description="All namespaces, also those that are created later")] = False
    selector: Annotated[str, Meta(description="Label selector, such as app=web; default: all objects")] = ""
    exclude: Annotated[
        list[Pattern],
        Meta(
            description="Patterns of objects to leave out, now and in `assert-changes`, such as secret/* or "
            "configmap/tmp-?; ** is for any number of components"
        ),
    ] = field(default_factory=list)
    owned: Annotated[
        bool,
        Meta(
            description="Include objects that a controller created for others, such as pods of a Deployment or volume "
            "claims of a StatefulSet"
        ),
    ] = False
    timeout: TimeLimit = ext_sdk.Duration.parse("25s")

    def __post_init__(self) -> None:
        if self.all_namespaces and self.namespace:
            raise ValueError("expected `namespace` or `allNamespaces`, found both")
        if "/" in self.resource:
            raise ValueError(f"resource: expected kinds without a name, such as deploy,svc; found {self.resource!r}")
        if isinstance(self.namespace, list) and not (self.namespace and all(self.namespace)):
            raise ValueError(f"namespace: expected names of namespaces, found {self.namespace}")


class AssertChangesArgs(ClusterArgs):
    """Arguments of `assert-changes`."""

    since: Since = DEFAULT_NAME
    only: Only = field(default_factory=list)
    required: Required = field(default_factory=list)
    timeout: TimeLimit = ext_sdk.Duration.parse("25s")


class Scope(NamedTuple):
    """Objects of a snapshot, as the user chose them.

    Attributes:
        resource: kinds; "" for all that have namespaces, and the namespaces themselves.
        namespaces: "" as the only one for all, and for cluster-scoped kinds.
    """

    server: str
    resource: str
    namespaces: tuple[str, ...]
    selector: str
    exclude: tuple[str, ...]
    owned: bool

    @property
    def where(self) -> str:
        """Return the namespaces, for messages."""
        if self.namespaces == ("",):
            return "the cluster"
        return f"namespace{'s' if len(self.namespaces) > 1 else ''} {', '.join(self.namespaces)}"


class Entry(NamedTuple):
    """State of an object.

    Attributes:
        deleted: its deletion was requested.
        content: what a user can set, as JSON.
    """

    kind: str
    uid: str
    deleted: bool
    content: str


class ClusterState(NamedTuple):
    """Snapshot of objects.

    Attributes:
        entries: by name, such as deployment/web.
        scaled: names of the objects whose number of replicas an autoscaler sets.
        claims: names, without numbers, of the volume claims that StatefulSets create.
    """

    scope: Scope
    entries: dict[str, Entry]
    scaled: frozenset[str]
    claims: tuple[str, ...]


def snapshot(args: SnapshotArgs, context: ext_sdk.Context) -> ext_sdk.Result:
    """Keep the state of the objects in a namespace, for `assert-changes`.

    States that controllers write do not count: `status`, events, leases, endpoints, objects that a controller owns.
    Snapshots belong to the workdir and scope, and exist until the extension exits.
    """
    client = client_for(context, args)
    snapshots = context.state(Snapshots[ClusterState])
    kinds = kinds_of(args.resource, None, context, client) if args.resource else ()
    if args.all_namespaces or (kinds and not any(kind.namespaced for kind in kinds)):
        namespaces = [""]
    else:
        given = args.namespace if isinstance(args.namespace, list) else [args.namespace]
        namespaces = list(dict.fromkeys(namespace_of(context, client, one) for one in given))
    scope = Scope(client.server, args.resource, tuple(namespaces), args.selector, tuple(args.exclude), args.owned)
    state = StateReader(scope, context, client).read()
    snapshots.keep(args.name, state)
    return ext_sdk.Result.ok(
        f"Kept the state of {counted(len(state.entries), 'object')} in {scope.where} as {args.name!r}",
        outputs={"name": args.name, "namespace": "\n".join(filter(None, namespaces)), "count": len(state.entries)},
    )


def assert_changes(args: AssertChangesArgs, context: ext_sdk.Context) -> ext_sdk.Result:
    """Check which objects were added, changed or removed since `snapshot`; by default none may be.

    Objects have names such as deployment/web; in patterns, deploy/web and deployments/web match it, too. An object that
    was deleted and created again is a change, even if it is equal otherwise.
    """
    before = context.state(Snapshots[ClusterState]).get(args.since)
    client = client_for(context, args)
    if client.server != before.scope.server:
        raise ext_sdk.InvalidArgs(
            "since",
            f"expected a snapshot of {client.server}, found {args.since!r} of {before.scope.server}; set `context` and "
            "`kubeconfig` as in `snapshot`",
        )
    reader = StateReader(before.scope, context, client)
    after = reader.read(before=before)
    # Objects that are being deleted and were not in the snapshot had been deleted before, or are gone soon.
    entries = {name: entry for name, entry in after.entries.items() if name in before.entries or not entry.deleted}
    changes = compare(before.entries, entries, difference_of)
    only, required = (list(map(reader.canonical, patterns)) for patterns in (args.only, args.required))
    return conclude_changes(
        ChangesArgs(since=args.since, only=only, required=required),
        changes,
        names=before.entries.keys() | entries.keys(),
        done=f"Compared {counted(len(entries), 'object')} in {before.scope.where} with snapshot {args.since!r}",
        advice=f"patterns match names such as {next(iter(before.entries | entries), 'deployment/web')}",
    )


# Kinds that only components of the cluster write, by their names as in Resource; and API groups of such kinds.
LEFT_OUT = frozenset(
    {
        "endpoints",
        "events",
        "events.events.k8s.io",
        "leases.coordination.k8s.io",
        "leasecandidates.coordination.k8s.io",
        "csistoragecapacities.storage.k8s.io",
    }
)
LEFT_OUT_GROUPS = frozenset({"metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"})
ROOT_CERTIFICATES = frozenset({"kube-root-ca.crt", "openshift-service-ca.crt"})  # ConfigMaps of every namespace
MOST_OBJECTS = 20_000  # of one snapshot, which is in memory
MOST_BYTES = 64 * 1024 * 1024
ANY_NAME = "\0\0"  # a component that only wildcards match

# Kinds that the controller of an owner creates, by the group and kind of the owner; any user can name an owner.
DEPENDENTS = {
    "/Node": {"Pod"},
    "/Pod": {"PersistentVolumeClaim", "ResourceClaim"},
    "/ReplicationController": {"Pod"},
    "/Service": {"EndpointSlice"},
    "apps/DaemonSet": {"ControllerRevision", "Pod"},
    "apps/Deployment": {"ReplicaSet"},
    "apps/ReplicaSet": {"Pod"},
    "apps/StatefulSet": {"ControllerRevision", "PersistentVolumeClaim", "Pod"},
    "batch/CronJob": {"Job"},
    "batch/Job": {"Pod"},
}
# Kinds that count with an owner of a custom kind, too, although its controller may have created them.
ALWAYS_COUNTED = {"ClusterRole", "ClusterRoleBinding", "ConfigMap", "Role", "RoleBinding", "Secret", "ServiceAccount"}
BUILT_IN_GROUPS = frozenset({
    "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "certificates.k8s.io",
    "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io", "networking.k8s.io",
    "node.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io",
})  # fmt: skip
MANUAL = "cronjob.kubernetes.io/instantiate"  # annotation of a Job that a user created from a CronJob


def is_dependent(item: Object) -> bool:
    """Return True if the controller of its owner has created an object, as far as its kind and owner show."""
    owner = next((one for one in items(item, "metadata", "ownerReferences") if one.get("controller") is True), None)
    if owner is None or MANUAL in members(item, "metadata", "annotations"):
        return False
    group, kind = text(owner, "apiVersion").rpartition("/")[0], text(item, "kind")
    if "." in group and group not in BUILT_IN_GROUPS:
        return kind not in ALWAYS_COUNTED
    return kind in DEPENDENTS.get(f"{group}/{text(owner, 'kind')}", ())


class StateReader:
    """Reads the objects of a scope."""

    def __init__(self, scope: Scope, context: ext_sdk.Context, client: Client) -> None:
        self._scope = scope
        self._context = context
        self._client = client
        self._names: dict[Resource, str] = {}  # of kinds, as in the names of entries
        self._exclude: list[str] = []
        self._count = 0
        self._kept: dict[str, Entry] = {}  # of the snapshot; they are compared, whatever owner they have now
        self._several = len(scope.namespaces) > 1 or "" in scope.namespaces

    def read(self, *, before: ClusterState | None = None) -> ClusterState:
        """Return the state.

        Args:
            before: the snapshot that it is compared with; None for a snapshot, which leaves out objects that are being
                deleted, and the number of replicas of those that an autoscaler scales.

        Raises:
            ext_sdk.OperationFailed: there are too many objects, or a namespace does not exist.
            KubernetesError: a request failed.
        """
        self._kept = before.entries if before else {}
        kinds = self._kinds()
        self._exclude = list(map(self.canonical, self._scope.exclude))
        # Without the kinds that the patterns exclude entirely: a user may not be allowed to read them.
        start = f"{ANY_NAME}/" if self._several else ""
        every = {kind: f"{start}{self._names[kind]}/{ANY_NAME}" for kind in kinds}
        kinds = [kind for kind in kinds if not any(matches(pattern, every[kind]) for pattern in self._exclude)]
        lists = [(kind, name) for kind in kinds for name in (self._scope.namespaces if kind.namespaced else ("",))]
        namespaces = self._namespaces(missing_ok=before is not None)
        objects = {name: item for name, item in namespaces if not self._is_left_out(name, item)}
        uids = set()
        for listed in run_parallel(self._list, lists):
            for name, item in listed.items():
                if (uid := text(item, "metadata", "uid")) not in uids:  # two API groups may serve one object
                    objects[name] = item
                    uids.add(uid)
        claims = before.claims if before else ()  # they remain if the StatefulSet is deleted
        if not self._scope.owned:
            claims += tuple(prefix for item in objects.values() for prefix in self._claims_of(item))
            objects = {name: item for name, item in objects.items() if not is_claim(name, claims)}
        scaled = before.scaled if before else frozenset(filter(None, map(self._scaled_by, objects.values())))
        entries = {}
        for name, item in objects.items():
            deleted = bool(text(item, "metadata", "deletionTimestamp"))
            if before or not deleted:
                content = json.dumps(settable(item, scaled=name in scaled), sort_keys=True)
                entries[name] = Entry(text(item, "kind"), text(item, "metadata", "uid"), deleted, content)
        self._check_size(len(entries), sum(len(entry.content) for entry in entries.values()))
        return ClusterState(self._scope, entries, scaled, claims)

    def _check_size(self, count: int, size: int = 0) -> None:
        if count > MOST_OBJECTS or size > MOST_BYTES:
            raise ext_sdk.OperationFailed(
                f"{self._scope.where} has too many objects",
                error=f"expected at most {MOST_OBJECTS:,} objects of {MOST_BYTES >> 20} MiB, found {count:,} of "
                f"{size >> 20} MiB; `resource`, `selector` and `exclude` choose fewer",
            )

    def canonical(self, pattern: str) -> str:
        """Return a pattern with the name of a kind as in names: `deployment/web` for `deploy/web`."""
        *before, kind, name = ("", *pattern.split("/"))
        if kind and (known := self._client.discovery.cached(kind)):
            kind = self._names.get(known, known.kind.lower())
        return "/".join([*before, kind, name][1:])

    def _kinds(self) -> list[Resource]:
        """Return the chosen kinds, and set their names."""
        if self._scope.resource:
            kinds = list(kinds_of(self._scope.resource, None, self._context, self._client))
        else:
            listable = self._client.discovery.listable(self._context.deadline)
            chosen = (kind for kind in listable if kind.namespaced and kind.name not in LEFT_OUT)
            kinds = [kind for kind in chosen if kind.group not in LEFT_OUT_GROUPS]
        taken = set()
        for kind in kinds:
            name = kind.kind.lower()
            self._names[kind] = f"{name}.{kind.group}" if name in taken else name
            taken.add(name)
        return kinds

    def _list(self, what: tuple[Resource, str]) -> dict[str, Object]:
        """Return the objects of a kind in a namespace by name."""
        kind, namespace = what
        query = [("labelSelector", self._scope.selector)] if self._scope.selector else []
        if self._context.deadline.expired:
            raise ext_sdk.OperationFailed(
                f"{kind.name} not read before the deadline",
                error="the time was over before all kinds were read; `resource` and `exclude` choose fewer",
            )
        try:
            with error_context(f"failed to read {kind.name}"):
                listed = self._client.list(kind, namespace, query, deadline=self._context.deadline)
        except NotFound:  # its definition was deleted, and so were the objects
            return {}
        except KubernetesError as error:
            prefix = "**/" if self._several else ""
            error.error += f"; `exclude: ['{prefix}{self._names[kind]}/*']` leaves out {kind.plural}"
            raise
        named = ((self._name_of(self._names[kind], item), item) for item in listed)
        found = {name: item for name, item in named if not self._is_left_out(name, item)}
        self._count += len(found)
        self._check_size(self._count)
        return found

    def _namespaces(self, *, missing_ok: bool) -> Iterator[tuple[str, Object]]:
        """Yield the namespaces by name, if all kinds were chosen.

        Args:
            missing_ok: a namespace that does not exist is left out, so that it counts as removed. If only objects in it
                were chosen, this is a failure in any case.
        """
        chosen = not (self._scope.resource or self._scope.selector)
        for name in self._scope.namespaces:
            path = core_path("namespaces", name=name)
            if not (name or chosen):
                continue
            try:
                with error_context(f"failed to read the objects in {self._scope.where}"):
                    found = members(self._client.request("GET", path, deadline=self._context.deadline))
            except Forbidden:  # a user may be allowed to read only what is in it
                continue
            except NotFound:
                if missing_ok and chosen:
                    continue
                raise
            if chosen:
                for item in [found] if name else items(found, "items"):
                    yield f"namespace/{text(item, 'metadata', 'name')}", item | {"kind": "Namespace"}

    def _name_of(self, kind: str, item: Object) -> str:
        namespace = text(item, "metadata", "namespace") if self._several else ""
        return f"{namespace}{'/' if namespace else ''}{kind}/{text(item, 'metadata', 'name')}"

    def _is_left_out(self, name: str, item: Object) -> bool:
        metadata, kind = members(item, "metadata"), text(item, "kind")
        if kind == "ConfigMap" and text(metadata, "name") in ROOT_CERTIFICATES:
            return True
        if kind == "ServiceAccount" and text(metadata, "name") == "default" and not settable(item):
            return True  # the server creates it, at any time
        owned = not self._scope.owned and name not in self._kept and is_dependent(item)
        return owned or any(matches(pattern, name) for pattern in self._exclude)

    def _claims_of(self, item: Object) -> Iterator[str]:
        """Yield the names, without the number at their end, of the volume claims that a StatefulSet creates."""
        for template in items(item, "spec", "volumeClaimTemplates") if text(item, "kind") == "StatefulSet" else ():
            name = f"{text(template, 'metadata', 'name')}-{text(item, 'metadata', 'name')}-"
            yield self._name_of(
                "persistentvolumeclaim", item | {"metadata": members(item, "metadata") | {"name": name}}
            )

    def _scaled_by(self, item: Object) -> str:
        """Return the name of the object that an autoscaler scales; "" for other objects."""
        if text(item, "kind") != "HorizontalPodAutoscaler":
            return ""
        target = members(item, "spec", "scaleTargetRef")
        metadata = {"name": text(target, "name"), "namespace": text(item, "metadata", "namespace")}
        return self._name_of(text(target, "kind").lower(), {"metadata": metadata})


def is_claim(name: str, prefixes: tuple[str, ...]) -> bool:
    """Return True if a name is that of a volume claim of a StatefulSet, which is not owned by it."""
    return name.startswith(prefixes) and name.rpartition("-")[2].isdigit()


# Annotations that controllers write, by their beginning, and fields by kind.
WRITTEN_ANNOTATIONS = (
    LAST_APPLIED,  # a copy of what is compared
    "autoscaling.alpha.kubernetes.io/",
    "cni.projectcalico.org/",
    "control-plane.alpha.kubernetes.io/",
    "csi.volume.kubernetes.io/",
    "deployment.kubernetes.io/",
    "deprecated.daemonset.template.generation",
    "endpoints.kubernetes.io/",
    "k8s.v1.cni.cncf.io/",
    "kubernetes.io/service-account.uid",
    "node.alpha.kubernetes.io/",
    "pv.kubernetes.io/",
    "volume.beta.kubernetes.io/",
    "volume.kubernetes.io/",
    "volumes.kubernetes.io/",
)
WRITTEN_FIELDS: dict[str, tuple[str, ...]] = {
    "Namespace": ("finalizers",),
    "Node": ("podCIDR", "podCIDRs", "providerID"),
    "PersistentVolume": ("claimRef",),
    "PersistentVolumeClaim": ("volumeName",),
    "Pod": ("nodeName",),
}
STANDARD_FINALIZERS = ("foregroundDeletion", "orphan", "kubernetes")
WRITTEN_SECRETS = frozenset({"kubernetes.io/service-account-token"})  # types whose data a controller writes
NODE_TAINTS = "node.kubernetes.io/"  # set by the node controller, and by cordon, which also sets a field


def settable(item: Object, *, scaled: bool = False) -> Object:
    """Return the content of an object without what the server and controllers write.

    Args:
        scaled: an autoscaler writes the number of replicas.
    """
    metadata = members(item, "metadata")
    annotations = members(metadata, "annotations")
    finalizers = metadata.get("finalizers")
    kept: Object = {
        "labels": metadata.get("labels"),
        "annotations": {key: annotations[key] for key in annotations if not key.startswith(WRITTEN_ANNOTATIONS)},
        "ownerReferences": metadata.get("ownerReferences"),
        "finalizers": [
            name
            for name in (finalizers if isinstance(finalizers, list) else ())
            if name not in STANDARD_FINALIZERS and "kubernetes.io/" not in str(name)
        ],
    }
    kind = text(item, "kind")
    spec = members(item, "spec")
    written = (*WRITTEN_FIELDS.get(kind, ()), *(("replicas",) if scaled else ()))
    content = {key: value for key, value in item.items() if key not in {"metadata", "status", "kind", "apiVersion"}}
    if spec:
        content["spec"] = spec = {key: value for key, value in spec.items() if key not in written}
    if text(item, "type") in WRITTEN_SECRETS:
        content.pop("data", None)
    if kind == "Node":
        taints = [taint for taint in items(spec, "taints") if not text(taint, "key").startswith(NODE_TAINTS)]
        content["spec"] = spec | {"taints": taints}
    content["metadata"] = {key: value for key, value in kept.items() if value}
    return {key: value for key, value in content.items() if value not in ({}, [], None)}


MOST_DIFFERENCES = 4  # of one object in a text


def difference_of(before: Entry, after: Entry) -> str:
    """Return what differs, in lines; "" if nothing does. Values of Secrets are not shown."""
    texts = []
    if before.uid != after.uid:
        texts.append("it was deleted and created again")
    if after.deleted and not before.deleted:
        texts.append("it is being deleted")
    if before.content != after.content:
        old, new = (marked(json.loads(entry.content), entry.kind) for entry in (before, after))
        found = list(differences(old, new))
        more = [f"and {len(found) - MOST_DIFFERENCES} more"] if len(found) > MOST_DIFFERENCES else []
        texts += [*found[:MOST_DIFFERENCES], *more]
    return "\n".join(texts)


def differences(before: object, after: object, path: str = "") -> Iterator[str]:
    """Yield what differs between two values, each with its path; items of lists are compared by key, if any."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            old, new = before.get(key), after.get(key)
            # A missing object is like an empty one, so that the members of the other are shown.
            missing: object = {} if (old or new) and isinstance(old or new, dict) else NOTHING
            pair = (before.get(key, missing), after.get(key, missing))
            yield from differences(*pair, path=f"{path}{member_path(key)}".removeprefix("."))
    elif isinstance(before, list) and isinstance(after, list):
        pairs = _paired(before, after)
        found = [text for place, old, new in pairs for text in differences(old, new, f"{path}[{place}]")]
        yield from found
        if not found and before != after:
            yield f"{path} is in another order"
    elif has_hidden(before) or has_hidden(after):
        if before != after:
            yield f"{path} differs {PLACEHOLDER}"
    elif not equal(before, after):
        was, now = map(format_value, (before, after))
        if isinstance(before, str) and isinstance(after, str):
            was, now = difference(before, after)
        yield f"{path} was {was}, is {now}"


def _paired(before: Sequence[object], after: Sequence[object]) -> Iterator[tuple[str, object, object]]:
    """Yield the items of two lists in pairs, with their place: by a key that identifies all, or else by index."""
    for key in KEYS:
        named = [
            {str(item[key]): item for item in each if isinstance(item, dict) and key in item}
            for each in (before, after)
        ]
        if list(map(len, named)) == [len(before), len(after)]:
            for name in dict.fromkeys(name for each in named for name in each):
                yield f"{key}={name}", named[0].get(name, NOTHING), named[1].get(name, NOTHING)
            return
    for index, (old, new) in enumerate(zip_longest(before, after, fillvalue=NOTHING)):
        yield str(index), old, new


OPERATIONS = (
    ext_sdk.Operation(
        "snapshot",
        snapshot,
        {"exclude": ["secret/tmp-*"]},
        outputs={
            "name": "name of the snapshot",
            "namespace": "the namespaces, one per line; empty for all, and for cluster-wide kinds",
            "count": "number of objects",
        },
        title="Remember state of namespace",
        read_only=True,
    ),
    ext_sdk.Operation(
        "assert-changes",
        assert_changes,
        {"only": ["configmap/*"]},
        outputs={
            "added": "names of new objects, one per line, such as configmap/settings",
            "changed": "names of changed objects, one per line",
            "removed": "names of missing objects, one per line",
            "count": "number of all changes",
        },
        title="Check changes of namespace",
        read_only=True,
    ),
)
