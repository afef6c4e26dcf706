"""Access reviews: whether the current user may do something."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ext_sdk
from ext_kubernetes.objects.fields import at, text

from .errors import ApiError
from .paths import api_path

if TYPE_CHECKING:
    from ext_kubernetes.objects.yaml_loader import Object

    from .client import Client


REVIEWS = "authorization.k8s.io"


def require_permission(attributes: Object, context: ext_sdk.Context, client: Client) -> None:
    """Ask before something whose refusal would be seen by nobody.

    Args:
        attributes: of the resource, and the verb.
        context: of the call.
        client: of the server.

    Raises:
        ext_sdk.OperationFailed: the server says no.
    """
    try:
        found = review("SelfSubjectAccessReview", {"resourceAttributes": attributes}, context, client)
    except ApiError:  # who may not ask may be right all the same
        return
    if at(found, "status", "allowed") is not False:
        return
    what = f"{attributes['verb']} {attributes['resource']}/{attributes['subresource']}"
    reason = text(found, "status", "reason")
    raise ext_sdk.OperationFailed(
        f"you may not {what}",
        error=f"expected to be allowed to {what} in namespace {attributes['namespace']}, found that it is denied"
        f"{f' ({reason})' if reason else ''}. Give the user a Role with that verb and resource",
    )


def review(kind: str, spec: Object, context: ext_sdk.Context, client: Client) -> object:
    """What the server says of an access, or of all."""
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
    return client.request("POST", api_path(REVIEWS, "v1", f"{kind.lower()}s"), body=body, deadline=context.deadline)
