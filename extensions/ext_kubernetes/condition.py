"""`condition`: an object has a condition, or gets it in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

import ext_sdk

from .awaiting import MINUTE, Require, Selector, Timeout, await_target, of_each
from .client import client_for
from .conditions import condition_of, has, status_of
from .errors import doing
from .naming import TargetArgs, target_of
from .story import in_vain
from .waiting import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from .awaiting import Seen
    from .client import Client
    from .manifests import Object
    from .naming import Target


class ConditionArgs(TargetArgs):
    """Which condition of what."""

    resource: Annotated[
        str,
        Meta(description="Kind and name: pod/nginx, deploy/web; or a kind alone, with `selector` or for all of them"),
    ]
    condition_type: Annotated[str, Meta(description="Condition type, in any case: Ready", min_length=1)]
    status: Annotated[str, Meta(description="Expected status: True, False, Unknown, or what the kind has")] = "True"
    selector: Selector = ""
    require: Require = "all"
    timeout: Timeout = MINUTE


def condition(args: ConditionArgs, context: ext_sdk.Context) -> ext_sdk.Result:
    """Verify a condition of an object, waiting for it if it is not there yet.

    A condition of an older generation of the object does not count. An object that does not exist yet is waited for.
    """
    client = client_for(context)
    target = chosen(args, args.selector, context, client)

    def judge(item: Object) -> Verdict:
        return condition_verdict(item, args.condition_type, args.status)

    with doing(f"failed to check condition {args.condition_type} of {target}"):
        seen = await_target(target, judged(target, judge, args.require), context, client, selector=args.selector)
    wanted = f"condition {args.condition_type}={args.status}"
    if not seen.waited.done:
        return in_vain(seen, wanted, context, client, timeout=args.timeout, outputs=condition_outputs(seen, args))
    message = f"{described(target)} {args.condition_type}={args.status}"
    return ext_sdk.Result.ok(message, outputs=condition_outputs(seen, args))


def chosen(
    args: TargetArgs, selector: str, context: ext_sdk.Context, client: Client, *, patient: bool = True
) -> Target:
    """What is meant: one object, or all of a kind.

    Raises:
        ext_sdk.InvalidArgs: both a name and a selector are given, or `metadata` without either: a name was forgotten.
    """
    target = target_of(args, context, client, named=False, patient=patient)
    if "metadata" in context.given and not (target.name or selector):
        raise ext_sdk.InvalidArgs("metadata.name", "this is required; for all of the kind leave `metadata` out")
    if target.name and selector:
        raise ext_sdk.InvalidArgs("selector", f"expected a name ({target.name!r}) or a selector, found both")
    return target._replace(selector=selector)


def judged(
    target: Target, judge: Callable[[Object], Verdict], require: Literal["all", "any"] | int
) -> Callable[[list[Object]], Verdict]:
    """The verdict on what there is: on the one object, or on all of them."""

    def of_all(objects: list[Object]) -> Verdict:
        if not target.name:
            return of_each(objects, judge, require)
        return judge(objects[0]) if objects else Verdict(done=False, status="NotFound")

    return of_all


def condition_verdict(item: Object, type: str, status: str) -> Verdict:
    """Whether an object has a condition with this status."""
    return Verdict(has(item, type, status), status_of(item, type))


def condition_outputs(seen: Seen, args: ConditionArgs) -> dict[str, str | int | bool]:
    """The last condition of the first object, and how many there were."""
    outputs: dict[str, str | int | bool] = {"count": len(seen.objects), "seconds": f"{seen.waited.seconds:.3f}"}
    found = condition_of(seen.objects[0], args.condition_type) if seen.objects else None
    if found is not None:
        outputs |= {"status": found.status, "reason": found.reason, "message": found.message}
    return outputs


def described(target: Target) -> str:
    """`Pod nginx`, `pods`, for messages."""
    return f"{target.resource.kind} {target.name}" if target.name else target.resource.name


OPERATIONS = (
    ext_sdk.Operation("condition", condition, {"resource": "pod/nginx", "conditionType": "Ready", "timeout": "20s"}),
)
