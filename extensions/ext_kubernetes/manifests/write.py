"""Common parts of writing operations: arguments, query parameters, and JSON merge patches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

import ext_sdk
from ext_kubernetes.api.errors import NotFound
from ext_kubernetes.objects.fields import members, text

if TYPE_CHECKING:
    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.yaml_loader import Object
    from ext_kubernetes.targets import Target


MANAGER = "ext-kubernetes"
MERGE_PATCH = "application/merge-patch+json"
BOOKKEEPING = frozenset({"managedFields", "resourceVersion", "generation"})  # changed by a dry run itself

Namespace = Annotated[
    str,
    Meta(
        description="Namespace of objects that have none; default: the one created by create-namespace, or the "
        "configured one"
    ),
]

DryRun = Annotated[bool, Meta(description="Let the server validate the request without changing anything")]
Validation = Annotated[bool, Meta(description="Reject fields that the kind does not have")]
IgnoreNotFound = Annotated[bool, Meta(description="Treat a missing object as success")]
Subresource = Annotated[str, Meta(description="Subresource, such as status or scale; default: the object itself")]


def write_options(*, dry_run: bool, strict: bool = True) -> list[tuple[str, str]]:
    """Return the query parameters of a writing request."""
    return [("fieldValidation", "Strict" if strict else "Ignore"), *([("dryRun", "All")] if dry_run else [])]


def same_content(before: Object, after: Object) -> bool:
    """Return True if an object did not change, apart from the server's bookkeeping."""
    first, second = (
        item | {"metadata": {key: value for key, value in members(item, "metadata").items() if key not in BOOKKEEPING}}
        for item in (before, after)
    )
    return first == second


def read(
    target: Target, selector: str, context: ext_sdk.Context, client: Client, *, ignore_not_found: bool = False
) -> list[Object]:
    """Return the object, or all objects that the selector matches.

    Args:
        ignore_not_found: return an empty list if none exists.

    Raises:
        ext_sdk.OperationFailed: the selector matches no object.
        KubernetesError: the request failed.
    """
    if target.name:
        try:
            return [members(client.request("GET", target.path, deadline=context.deadline))]
        except NotFound:
            if not ignore_not_found:
                raise
            return []
    query = [("labelSelector", selector)] if selector else []
    objects: list[Object] = []
    for one in target.each:
        objects += client.list(one.resource, target.namespace, query, deadline=context.deadline)
    if not objects and not ignore_not_found:
        expected = target._replace(selector=selector).where
        raise ext_sdk.OperationFailed(f"no {target} found", error=f"expected {expected}, found none")
    return objects


def merge(target: Target, item: Object, change: Object, context: ext_sdk.Context, client: Client) -> Object:
    """Merge a change into an object, and return it as stored. Raises KubernetesError."""
    name = text(item, "metadata", "name")
    path = target.resource_of(item).path(text(item, "metadata", "namespace") or target.namespace, name)
    merged = client.request(
        "PATCH",
        path,
        query=[("fieldManager", MANAGER), ("fieldValidation", "Strict")],
        body=change,
        content_type=MERGE_PATCH,
        deadline=context.deadline,
    )
    return members(merged)


def names_of(target: Target, objects: list[Object]) -> str:
    """Return `Deployment/web` or `3 pods`, for messages."""
    if len(objects) == 1:
        return f"{target.resource_of(objects[0]).kind}/{text(objects[0], 'metadata', 'name')}"
    return f"{len(objects)} {'objects' if target.others else target.resource.name}"
