"""Objects that arguments name (`pod/nginx`, or apiVersion, kind and metadata), and the namespace of an operation.

Hosts give tasks of one folder the same workdir, run them in parallel, and continue after a failed step. Therefore
no namespace is guessed: if the owner of one that create-namespace created is ambiguous, the operation fails and names
the remedies.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta

import ext_sdk
from ext_kubernetes.api.discovery import core_path
from ext_kubernetes.api.errors import KubernetesError, NotFound
from ext_kubernetes.objects.fields import text

from .config import ClusterArgs, KubernetesConfig
from .polling import retry_until_deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ext_kubernetes.api.client import Client
    from ext_kubernetes.api.discovery import ApiPath, Resource
    from ext_kubernetes.objects.yaml_loader import Object


APART = "give each parallel task a `scope` or a folder of its own"


class Created(NamedTuple):
    """A namespace that create-namespace created.

    Attributes:
        prefix: of its generated name; "" for a given name.
        used: it is the default of operations without a namespace.
        turn: position among all calls of create-namespace.
        server: address of its API server.
        adopted: it existed before, so only a call that names it deletes it.
    """

    name: str
    uid: str
    prefix: str
    used: bool
    turn: int
    server: str = ""
    adopted: bool = False


class OwnNamespaces:
    """Namespaces of one workdir and scope; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns = 0
        self._created: list[Created] = []
        self._deleted: set[str] = set()  # uids that can no longer be the default
        self._gone: set[str] = set()  # uids that need no further deletion
        self._failed = ""  # reason of a create-namespace that failed and whose task may yet clean up
        self._failed_use: tuple[int, str] = (0, "")  # turn and reason of the last failure with `use: true`

    def created(self, name: str, uid: str, *, prefix: str, used: bool, server: str = "", adopted: bool = False) -> None:
        """Record a namespace that was created, or adopted; see Created."""
        with self._lock:
            self._turns += 1
            created = Created(name, uid, prefix, used, self._turns, server, adopted)
            for known in [known for known in self._created if known.uid == uid]:
                self._created.remove(known)
                created = known._replace(used=used, turn=self._turns)
            self._created.append(created)

    def failed(self, reason: str, *, used: bool, pending: bool = False) -> None:
        """Record a create-namespace that failed; `pending`: the task is expected to call it again."""
        with self._lock:
            self._turns += 1
            self._failed = self._failed if pending else reason or "unknown"
            if used:
                self._failed_use = (self._turns, reason)

    def deleted(self, uid: str, *, gone: bool) -> None:
        """Record that a namespace is being deleted; `gone`: delete-generated-namespaces need not delete it again."""
        with self._lock:
            self._deleted.add(uid)
            if gone:
                self._gone.add(uid)

    def deleted_by_name(self, name: str, server: str, *, gone: bool = False) -> None:
        """Record that a namespace is being deleted, or is gone, also if it was deleted before."""
        with self._lock:
            uids = [created.uid for created in self._created if (created.name, created.server) == (name, server)]
        for uid in uids:
            self.deleted(uid, gone=gone)

    def cleaned_up(self) -> None:
        """Record a cleanup without namespaces to delete: the task whose create-namespace failed has ended, if any."""
        with self._lock:
            self._failed = ""

    def names(self) -> set[str]:
        """Return the names of all generated namespaces, including deleted ones."""
        with self._lock:
            return {created.name for created in self._created if created.prefix}

    def deleted_names(self, server: str) -> list[str]:
        """Return the names of the namespaces of a server that were deleted, in the order of their creation."""
        with self._lock:
            return [
                created.name
                for created in self._created
                if created.used and not created.adopted and created.server == server and created.uid in self._deleted
            ]

    def generated(self) -> list[Created]:
        """Return the generated namespaces that are still to be deleted, in the order of their creation."""
        with self._lock:
            return [created for created in self._created if created.prefix and created.uid not in self._gone]

    def live(self, server: str) -> list[Created]:
        """Return the namespaces of a server that may be the default."""
        with self._lock:
            return [
                created
                for created in self._created
                if created.used and created.server == server and created.uid not in self._deleted
            ]

    def implicit(self, exists: Callable[[Created], bool], server: str = "") -> str:
        """Return the namespace of operations without one; "" if create-namespace was never called with `use: true`.

        Args:
            exists: queries the server for a namespace; called only if there may be several.
            server: address of the API server of the operation.

        Raises:
            ext_sdk.OperationFailed: the namespace is ambiguous, or was deleted.
        """
        if not self._turns:
            return ""
        with self._lock:
            last_used = max(
                (created.turn for created in self._created if created.used and created.server == server), default=0
            )
            last_failed, reason = self._failed_use
        if not (last_used or last_failed):
            return ""
        live = self._existing(self.live(server), exists)
        if last_failed > last_used:
            raise _ambiguous(f"create-namespace failed: {reason}", live)
        if len(live) == 1:
            return live[0].name
        if live:
            raise _ambiguous("several namespaces were created in this workdir and may belong to other tasks", live)
        raise _ambiguous("the namespace created by create-namespace was deleted", live)

    def certain(self, candidates: Sequence[Created], exists: Callable[[Created], bool]) -> Created | None:
        """Return the one namespace that may be deleted without being named; None if none exists.

        Args:
            exists: see `implicit`.

        Raises:
            ext_sdk.OperationFailed: there are several, or a create-namespace failed, before or since, so that the
                namespace may be another task's.
        """
        left = self._existing(candidates, exists)
        if not left:
            self.cleaned_up()
            return None
        if len(left) == 1 and not self._failed:
            return left[0]
        reason = "another create-namespace failed" if len(left) == 1 else f"{len(left)} are left in this workdir"
        raise ext_sdk.OperationFailed(
            f"no namespace was deleted: {reason}",
            error=f"no namespace was deleted, because any of these may be another task's ({reason}): {listed(left)}; "
            f"name those to delete, or {APART}{f'. The failure: {self._failed}' if self._failed else ''}",
            outputs={"left": "\n".join(created.name for created in left)},
        )

    def _existing(self, candidates: Sequence[Created], exists: Callable[[Created], bool]) -> list[Created]:
        """Return the candidates; if there are several, without those that other clients have deleted."""
        if len(candidates) < 2:
            return list(candidates)
        left = []
        for created in candidates:
            if exists(created):
                left.append(created)
            else:
                self.deleted(created.uid, gone=False)
        return left


def namespace_exists(context: ext_sdk.Context, client: Client, created: Created) -> bool:
    """Query if a namespace exists and is not being deleted; return True if the server does not say."""
    try:
        item = client.request("GET", core_path("namespaces", name=created.name), deadline=context.deadline)
    except NotFound:
        return False
    except KubernetesError:
        return True
    return text(item, "metadata", "uid") == created.uid and not text(item, "metadata", "deletionTimestamp")


def listed(namespaces: Sequence[Created]) -> str:
    """Return the names, for messages."""
    return ", ".join(
        f"{created.name} (prefix {created.prefix})" if created.prefix else created.name for created in namespaces
    )


def _ambiguous(reason: str, live: Sequence[Created]) -> ext_sdk.OperationFailed:
    names = f": {listed(live)}" if live else ""
    return ext_sdk.OperationFailed(
        f"no namespace for this operation: {reason}"[:200],
        error=f"no namespace for this operation: {reason}{names}; set `namespace`, such as "
        f"`namespace: ${{NAME.name}}` with the outputs of a create-namespace with `as: NAME`, or {APART}. "
        "`namespace: default` must be set explicitly, too",
    )


DEFAULT_NAMESPACE = "default"


TimeLimit = Annotated[ext_sdk.Duration, Meta(description="Time limit of the operation")]
TimeLimitOfWait = Annotated[ext_sdk.Duration, Meta(description="Time limit of the operation, including the wait")]


class Metadata(ext_sdk.Args, forbid_unknown_fields=False):
    """Name and namespace, as in a manifest; other members, such as labels, are accepted and ignored."""

    name: Annotated[str, Meta(description="Name of the object")] = ""
    namespace: Annotated[str, Meta(description="Namespace of the object")] = ""


class TargetArgs(ClusterArgs):
    """An object, given by `resource`, or by `kind` and `metadata`."""

    resource: Annotated[
        str,
        Meta(
            description="Kind and name: pod/nginx, deploy/web, certificates.cert-manager.io/x. For several objects "
            "kinds without a name: pods; deploy,svc; or a category: all"
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


class Target(NamedTuple):
    """An object, or with an empty name all objects of a kind, or of several kinds.

    Attributes:
        namespace: "" for a cluster-scoped kind.
        name: "" for all.
        selector: label selector, for messages; "" for none.
        others: further kinds; only without a name.
        given: the kinds as the user named them, for messages, if there are several.
    """

    resource: Resource
    namespace: str
    name: str
    selector: str = ""
    others: tuple[Resource, ...] = ()
    given: str = ""

    @property
    def path(self) -> ApiPath:
        """Return the path of the object or list."""
        return self.resource.path(self.namespace, self.name)

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Return all kinds."""
        return (self.resource, *self.others)

    @property
    def each(self) -> list[Target]:
        """Return the target as one for each kind."""
        return [self._replace(resource=resource, others=(), given="") for resource in self.resources]

    def resource_of(self, item: Object) -> Resource:
        """Return the kind of one of its objects."""
        kind = text(item, "kind"), text(item, "apiVersion")
        same = (resource for resource in self.others if (resource.kind, resource.api_version) == kind)
        return next(same, self.resource)

    def name_of(self, item: Object) -> str:
        """Return the name of one of its objects: `web`, or if there are several kinds `deployment/web`."""
        name = text(item, "metadata", "name")
        return f"{text(item, 'kind').lower()}/{name}" if self.others else name

    @property
    def plural(self) -> str:
        """Return the noun for several of its objects."""
        return "objects" if self.others else self.resource.plural

    def __str__(self) -> str:
        """Return `pod/nginx`, `pods` or `objects of deploy, svc`, for messages."""
        if self.name:
            return f"{self.resource.kind.lower()}/{self.name}"
        return f"objects of {self.given}" if self.others else self.resource.name

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

    The configured namespace is that of the configured kubeconfig, so it is ignored if the operation names another one.

    Raises:
        ext_sdk.OperationFailed: no namespace is given, and the one created for this task is ambiguous.
    """
    return (
        given
        or context.state(OwnNamespaces).implicit(partial(namespace_exists, context, client), client.server)
        or ("" if client.source.of_step else context.config_as(KubernetesConfig).namespace)
        or client.namespace
        or DEFAULT_NAMESPACE
    )


def target_of(
    args: TargetArgs,
    context: ext_sdk.Context,
    client: Client,
    *,
    named: bool = True,
    retry: bool = False,
    everywhere: bool = False,
) -> Target:
    """Return the target that arguments name.

    Args:
        named: a name is required; if not, all objects of the kind, or of several kinds, are meant without one.
        retry: retry transient errors of the server until the deadline, as waits do.
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
        raise ext_sdk.InvalidArgs(
            field, f"expected a kind and a name, such as {kind.partition(',')[0]}/NAME; found no name"
        )
    given = {namespace for namespace in (args.namespace, args.metadata.namespace) if namespace}
    if len(given) > 1:
        raise ext_sdk.InvalidArgs("namespace", f"expected one namespace, found {' and '.join(sorted(given))}")
    resource, *others = kinds_of(kind, args.api_version or None, context, client, retry=retry)
    if others and name:
        kinds = ", ".join(one.plural for one in (resource, *others))
        raise ext_sdk.InvalidArgs("resource", f"expected one kind before a name, found several: {kinds}")
    target = Target(resource, "", name, "", tuple(others), ", ".join(map(str.strip, kind.split(","))))
    if everywhere or not any(resource.namespaced for resource in target.resources):
        return target
    return target._replace(namespace=namespace_of(context, client, "".join(given)))


def kinds_of(
    kinds: str, api_version: str | None, context: ext_sdk.Context, client: Client, *, retry: bool = False
) -> tuple[Resource, ...]:
    """Return the kinds that a text names, such as `deploy,svc` or the category `all`; see Discovery.resource.

    Raises:
        ext_sdk.InvalidArgs: a name is empty.
        KubernetesError: see target_of.
    """
    if known := client.discovery.cached(kinds, api_version):
        return (known,)
    words = list(map(str.strip, kinds.split(",")))
    if not all(words):
        raise ext_sdk.InvalidArgs("resource", f"expected names of kinds, such as deploy,svc; found {kinds!r}")

    def query() -> tuple[Resource, ...]:
        found = [client.discovery.resources(word, api_version, deadline=context.deadline) for word in words]
        return tuple(dict.fromkeys(resource for resources in found for resource in resources))

    return retry_until_deadline(query, context.deadline) if retry else query()


def resource_of(
    kind: str, api_version: str | None, context: ext_sdk.Context, client: Client, *, retry: bool = False
) -> Resource:
    """Return the kind with a name; see target_of and Discovery.resource."""
    if known := client.discovery.cached(kind, api_version):
        return known

    def query() -> Resource:
        return client.discovery.resource(kind, api_version, deadline=context.deadline)

    return retry_until_deadline(query, context.deadline) if retry else query()


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


def absent_namespace(target: Target, client: Client, deadline: ext_sdk.Deadline) -> str:
    """Return the end of a success message if the namespace of a target does not exist; see namespace_missing."""
    missing = namespace_missing(target, client, deadline)
    return f"; {missing.partition(';')[0]}" if missing else ""


@contextmanager
def missing_namespace_context(target: Target, client: Client, deadline: ext_sdk.Deadline) -> Iterator[None]:
    """Add to NotFound that the namespace of the target does not exist, if that is the reason."""
    try:
        yield
    except NotFound as error:
        missing = namespace_missing(target, client, deadline)
        error.error += f". {missing[:1].upper()}{missing[1:]}" if missing else ""
        raise
