"""`patch`: change parts of an object."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

import ext_sdk

from .apply import MANAGER, DryRun, Subresource, Validation, options
from .client import Request, client_for
from .errors import ApiError, doing
from .manifests import Json  # noqa: TC001 - msgspec reads it
from .naming import TargetArgs, target_of
from .objects import identity, members

CONTENT_TYPES = {
    "strategic": "application/strategic-merge-patch+json",
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
}


class Patch(TargetArgs):
    """Which object, and what to change of it."""

    patch: Annotated[
        dict[str, Json] | list[dict[str, Json]],
        Meta(description="The members to change, null for those to remove; or a list of JSON Patch operations"),
    ]
    type: Annotated[
        Literal["auto", "strategic", "merge", "json"],
        Meta(
            description="auto: json for a list; else strategic, which merges lists by their keys, and "
            "merge for kinds that don't know it"
        ),
    ] = "auto"
    subresource: Subresource = ""
    dry_run: DryRun = False
    strict: Validation = True
    timeout: ext_sdk.Duration = ext_sdk.Duration.parse("25s")

    def __post_init__(self) -> None:
        if (self.type == "json") != isinstance(self.patch, list) and self.type != "auto":
            raise ValueError("expected a list of operations as `patch` for type json, and an object for all others")


def patch(args: Patch, context: ext_sdk.Context) -> ext_sdk.Result:
    """Change parts of an object, or of its subresource, by a strategic merge, a JSON merge patch or a JSON patch."""
    client = client_for(context)
    target = target_of(args, context, client)
    path = target.resource.path(target.namespace, target.name, args.subresource)
    query = [("fieldManager", MANAGER), *options(dry_run=args.dry_run, strict=args.strict)]
    kinds = [args.type] if args.type != "auto" else ["json"] if isinstance(args.patch, list) else ["strategic", "merge"]
    for kind in kinds:
        request = Request("PATCH", path, query, args.patch, CONTENT_TYPES[kind])
        try:
            with doing(f"failed to patch {target.where}"):
                found = members(client.ask(request, deadline=context.deadline).value)
        except ApiError as error:
            if error.status == 415 and kind != kinds[-1]:  # a custom resource
                continue
            raise
        return ext_sdk.Result.ok(f"{'Would patch' if args.dry_run else 'Patched'} {target}", outputs=identity(found))
    raise AssertionError("the last kind of patch returns or raises")


OPERATIONS = (
    ext_sdk.Operation("patch", patch, {"resource": "configmap/settings", "patch": {"data": {"colour": "green"}}}),
)
