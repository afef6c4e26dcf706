"""`scale`: another number of replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType

import ext_sdk

from .awaiting import Timeout, await_target
from .client import client_for
from .condition import judged
from .errors import doing
from .naming import TargetArgs, target_of
from .objects import members, number, text
from .pods import PodCheck
from .readiness import RULES
from .story import in_vain
from .wait import Ready
from .waiting import Verdict, Waited, wait_until
from .writing import MANAGER, MERGE_PATCH

if TYPE_CHECKING:
    from .client import Client
    from .manifests import Object
    from .naming import Target


class Scale(TargetArgs):
    """What to scale, and how far."""

    replicas: Annotated[int, Meta(ge=0, description="How many there shall be")]
    current_replicas: Annotated[
        Annotated[int, Meta(ge=0)] | UnsetType,
        Meta(description="A failure, and no change, if there are not so many now"),
    ] = UNSET
    wait: Annotated[bool, Meta(description="Until all of them are ready, and those that are too many are gone")] = False
    timeout: Timeout = ext_sdk.Duration.parse("60s")


def scale(args: Scale, context: ext_sdk.Context) -> ext_sdk.Result:
    """Set the number of replicas of a Deployment, StatefulSet, ReplicaSet, or of any kind that has a scale."""
    client = client_for(context)
    target = target_of(args, context, client)
    if "scale" not in target.resource.subresources:
        raise ext_sdk.InvalidArgs("resource", f"{target.resource.kind} can't be scaled: it has no subresource scale")
    with doing(f"failed to scale {target.where}"):
        before = _scaled(target, args, context, client)
    outputs: dict[str, str | int | bool] = {"replicas": args.replicas, "previous": before}
    message = f"Scaled {target.resource.kind}/{target.name} from {before} to {args.replicas} replicas"
    if not args.wait:
        return ext_sdk.Result.ok(message, outputs=outputs)
    judge = judged(target, Ready(PodCheck(client, context.deadline)), "all")
    seen = await_target(target, judge, context, client)
    if seen.waited.done and (target.resource.group, target.resource.kind) not in RULES:
        seen = seen._replace(waited=_await_replicas(target, args, context, client))
    if seen.waited.done:
        return ext_sdk.Result.ok(message, outputs=outputs | {"seconds": f"{seen.waited.seconds:.3f}"})
    wanted = f"{args.replicas} replicas"
    return in_vain(seen, wanted, context, client, timeout=args.timeout, outputs=outputs)


def _await_replicas(target: Target, args: Scale, context: ext_sdk.Context, client: Client) -> Waited:
    """Wait until the subresource scale counts as many replicas as wanted: the status of a custom resource may not."""
    path = target.resource.path(target.namespace, target.name, "scale")

    def check(_age: float) -> Verdict:
        found = number(client.request("GET", path, deadline=context.deadline), "status", "replicas")
        return Verdict(found == args.replicas, f"{found} of {args.replicas} replicas, by its subresource scale")

    return wait_until(check, context.deadline, context.deadline.wait)


def _scaled(target: Target, args: Scale, context: ext_sdk.Context, client: Client) -> int:
    """Scale, and give the number of replicas before."""
    path = target.resource.path(target.namespace, target.name, "scale")
    found: Object = members(client.request("GET", path, deadline=context.deadline))
    before = number(found, "spec", "replicas")
    change: dict[str, object] = {"spec": {"replicas": args.replicas}}
    if not isinstance(args.current_replicas, UnsetType):
        if before != args.current_replicas:
            raise ext_sdk.OperationFailed(
                "another number of replicas",
                error=f"expected {args.current_replicas} replicas of {target.where}, found {before}; not changed",
                outputs={"replicas": before},
            )
        # somebody may scale it in this very moment: then the server refuses
        change["metadata"] = {"resourceVersion": text(found, "metadata", "resourceVersion")}
    client.request(
        "PATCH",
        path,
        query=[("fieldManager", MANAGER)],
        body=change,
        content_type=MERGE_PATCH,
        deadline=context.deadline,
    )
    return before


OPERATIONS = (ext_sdk.Operation("scale", scale, {"resource": "deploy/web", "replicas": 3}),)
