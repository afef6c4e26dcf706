"""Access reviews: permissions of a user, as the API server evaluates them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ext_sdk
from ext_kubernetes.objects.fields import at, text

from .discovery import api_path
from .errors import ApiError

if TYPE_CHECKING:
    from ext_kubernetes.objects.yaml_loader import Object

    from .client import Client


REVIEWS = "authorization.k8s.io"


def require_permission(attributes: Object, context: ext_sdk.Context, client: Client) -> None:
    """Check a permission whose denial could not be reported later.

    Args:
        attributes: of the resource, and the verb.

    Raises:
        ext_sdk.OperationFailed: the server denies it.
    """
    try:
        found = review("SelfSubjectAccessReview", {"resourceAttributes": attributes}, context, client)
    except ApiError:  # a user who may not create reviews may have the permission all the same
        return
    if at(found, "status", "allowed") is not False:
        return
    action = f"{attributes['verb']} {attributes['resource']}/{attributes['subresource']}"
    reason = text(found, "status", "reason")
    raise ext_sdk.OperationFailed(
        f"you may not {action}",
        error=f"expected the permission to {action} in namespace {attributes['namespace']}, found that it is denied"
        f"{f' ({reason})' if reason else ''}. Give the user a Role with that verb and resource",
    )


def review(kind: str, spec: Object, context: ext_sdk.Context, client: Client) -> object:
    """Create an access review, and return it with its status."""
    body = {"apiVersion": f"{REVIEWS}/v1", "kind": kind, "spec": spec}
    return client.request("POST", api_path(REVIEWS, "v1", f"{kind.lower()}s"), body=body, deadline=context.deadline)
