"""What a user means: `pod/nginx`, `deploy/web`, `certificates.cert-manager.io/x`, or apiVersion, kind and metadata.

The namespace is the one that is given; else the one that this task made with create-namespace (see
own_namespaces); else, if it called none, that of the configuration, of the kubeconfig's context; else `default`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta

import ext_sdk

from .config import config_of
from .errors import KubernetesError, NotFound
from .own_namespaces import existence, own_namespaces
from .paths import core_path
from .waiting import persistently

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .client import Client
    from .discovery import Resource
    from .paths import ApiPath

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
def telling_namespace(target: Target, client: Client, deadline: ext_sdk.Deadline) -> Iterator[None]:
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

    return persistently(ask, context.deadline) if patient else ask()


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
