"""Client-side apply: objects become as `kubectl apply` would make them, so that a later `kubectl apply` continues it.

The last applied manifest is in an annotation of the object. Server-side apply is in `operations.apply`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import ext_sdk
from ext_kubernetes.api.connection import Request
from ext_kubernetes.api.errors import AlreadyExists, Conflict, KubernetesError, NotFound
from ext_kubernetes.objects.fields import members
from ext_kubernetes.objects.secret_data import LAST_APPLIED
from ext_kubernetes.objects.strategic_merge import (
    STRATEGIC_MERGE_PATCH,
    NoMergeKey,
    last_applied,
    three_way_patch,
    with_last_applied,
    without_nulls,
)
from ext_sdk.expect.json_equality import NotJson

from .write import MERGE_PATCH, same_content

if TYPE_CHECKING:
    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.yaml_loader import Object

    from .bulk import Item


CLIENT_SIDE_MANAGER = "kubectl-client-side-apply"  # kubectl's own, so that both own the same fields
ATTEMPTS = 5  # if other clients change the object at the same time


def apply_client_side(
    item: Item, query: list[tuple[str, str]], context: ext_sdk.Context, client: Client
) -> tuple[Object, str]:
    """Apply an object as `kubectl apply` does; return it as stored, and `created`, `configured` or `unchanged`.

    Args:
        query: of the writing request.

    Raises:
        ext_sdk.OperationFailed: the patch can't be made.
        KubernetesError: a request failed.
    """
    modified = with_last_applied(item.object)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            current = members(client.request("GET", item.path(), deadline=context.deadline))
        except NotFound:
            request = Request("POST", item.resource.path(item.namespace), query, without_nulls(modified))
            try:
                return members(client.ask(request, deadline=context.deadline).value), "created"
            except AlreadyExists:
                if attempt == ATTEMPTS:
                    raise
                continue
        patch, content_type = _patch(item, modified, current, context, client)
        if not patch:
            return current, "unchanged"
        try:
            response = client.ask(Request("PATCH", item.path(), query, patch, content_type), deadline=context.deadline)
        except Conflict:
            if attempt == ATTEMPTS or "resourceVersion" in members(modified, "metadata"):
                raise
            continue
        stored = members(response.value)
        ignored = {} if "status" in patch else {"status": None}  # its controller may have changed it meanwhile
        return stored, "unchanged" if same_content(current | ignored, stored | ignored) else "configured"
    raise AssertionError("the last attempt returns or raises")


def _patch(
    item: Item, modified: Object, current: Object, context: ext_sdk.Context, client: Client
) -> tuple[Object, str]:
    """Return the patch, and its media type. Raises OperationFailed if it can't be made."""
    resource = item.resource
    try:
        rules = client.discovery.merge_rules(resource, deadline=context.deadline)
    except KubernetesError as failure:
        failure.error = f"client-side apply requires the schema of {resource.api_version}: {failure.error}"
        raise
    try:
        original = last_applied(current)
    except NotJson as error:
        raise ext_sdk.OperationFailed(
            "its last applied manifest can't be read",
            error=f"expected JSON in the annotation {LAST_APPLIED}: {error}; remove the annotation",
        ) from error
    try:
        patch = three_way_patch(original, modified, current, rules, resource.kind)
    except NoMergeKey as error:
        raise ext_sdk.OperationFailed("a list can't be merged", error=str(error)) from error
    return patch, STRATEGIC_MERGE_PATCH if rules.kinds.get(resource.kind) else MERGE_PATCH
