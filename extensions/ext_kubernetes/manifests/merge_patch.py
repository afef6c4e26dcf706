"""Read the objects of a target and change them by a JSON merge patch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ext_sdk
from ext_kubernetes.manifests.write_options import MANAGER
from ext_kubernetes.objects.fields import items, members, text

if TYPE_CHECKING:
    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.yaml_loader import Object
    from ext_kubernetes.targets import Target


MERGE_PATCH = "application/merge-patch+json"


def read(target: Target, selector: str, context: ext_sdk.Context, client: Client) -> list[Object]:
    """The object, or all that the selector finds.

    Raises:
        ext_sdk.OperationFailed: there is none.
        KubernetesError: it can't be read.
    """
    if target.name:
        return [members(client.request("GET", target.path, deadline=context.deadline))]
    query = [("labelSelector", selector)] if selector else []
    answer = client.request("GET", target.path, query=query, deadline=context.deadline)
    if found := items(answer, "items"):
        kind = {"kind": target.resource.kind, "apiVersion": target.resource.api_version}
        return [kind | item for item in found]
    where = f" in namespace {target.namespace}" if target.namespace else ""
    labels = f" with labels {selector}" if selector else ""
    raise ext_sdk.OperationFailed(
        f"no {target.resource.name} found", error=f"expected {target.resource.name}{labels}{where}, found none"
    )


def merge(target: Target, item: Object, change: Object, context: ext_sdk.Context, client: Client) -> Object:
    """Merge a change into an object, and give it as it is then. Raises KubernetesError."""
    name = text(item, "metadata", "name")
    path = target.resource.path(text(item, "metadata", "namespace") or target.namespace, name)
    answer = client.request(
        "PATCH",
        path,
        query=[("fieldManager", MANAGER), ("fieldValidation", "Strict")],
        body=change,
        content_type=MERGE_PATCH,
        deadline=context.deadline,
    )
    return members(answer)


def names_of(target: Target, objects: list[Object]) -> str:
    """`Deployment/web`, or `3 pods`."""
    if len(objects) == 1:
        return f"{target.resource.kind}/{text(objects[0], 'metadata', 'name')}"
    return f"{len(objects)} {target.resource.name}"
