"""`wait`: until an object has a condition or a value, is ready, is there, or is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_sdk.expect.json_values import equal

from .awaiting import MINUTE, Require, Selector, Timeout, await_target
from .client import client_for
from .condition import chosen, condition_verdict, described, judged
from .errors import doing
from .jsonpath import problem, text_of, values
from .naming import TargetArgs
from .objects import identity, text
from .pods import PodCheck
from .readiness import readiness_of
from .secret_data import has_hidden, masked
from .story import in_vain
from .waiting import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from .awaiting import Seen
    from .client import Client
    from .manifests import Object
    from .naming import Target

Value = str | int | float | bool


class WaitArgs(TargetArgs, one_of=("for_", "condition", "json_path")):
    """What to wait for; one of `for`, `condition` and `jsonPath`."""

    condition: Annotated[str, Meta(description="A condition of this type, in any case: Available")] = ""
    status: Annotated[str, Meta(description="Of that condition")] = "True"
    json_path: Annotated[
        str,
        Meta(description="A value at this JSONPath: $.status.phase (RFC 9535), or {.status.phase} as kubectl has it"),
    ] = field(default="", name="jsonPath")
    value: Annotated[
        Value | UnsetType,
        Meta(description="What the value is; any at all if left out. A text also stands for a number"),
    ] = UNSET
    for_: Annotated[
        Literal["", "ready", "exists", "deleted"],
        Meta(
            description="ready: by the rules of kstatus for its kind, rollouts and jobs and custom resources too; a "
            "restarted container must have run longer than the last time, or a minute; exists: it is there; deleted: "
            "it is gone, or another one has its name"
        ),
    ] = field(default="", name="for")
    fail_fast: Annotated[
        bool,
        Meta(
            description="With `ready`: fail as soon as it can't become so by itself, such as in a crash loop (a "
            "container failed again after a restart), ImagePullBackOff, when unschedulable for 15 s, failed, or "
            "ProgressDeadlineExceeded"
        ),
    ] = True
    selector: Selector = ""
    require: Require = "all"
    timeout: Timeout = MINUTE

    def __post_init__(self) -> None:
        if self.value is not UNSET and not self.json_path:
            raise ValueError("`value` is for `jsonPath`")
        if self.json_path and (wrong := problem(self.json_path)):
            raise ValueError(f"jsonPath: {wrong}")


def wait(args: WaitArgs, context: ext_sdk.Context) -> ext_sdk.Result:
    """Wait until an object, or several, have a condition or a value, are ready, are there, or are gone.

    An object that does not exist yet is waited for. The failure tells its status, conditions, containers and events.
    """
    client = client_for(context)
    target = chosen(args, args.selector, context, client)
    wanted, judge = _wish(args, target, context, client)
    with doing(f"failed to wait for {target}"):
        seen = await_target(target, judge, context, client, selector=args.selector)
    outputs, secret = _outputs(seen, args)
    if seen.waited.done:
        told = f" condition {args.condition}={args.status}" if args.condition else f": {wanted}"
        name = f"{target.resource.kind}/{target.name}" if target.name else target.resource.name
        return ext_sdk.Result.ok(f"{name}{told}", outputs=outputs, secret_outputs=secret)
    message = f"{described(target)} {target.are} not {wanted}"
    if args.condition:
        message = f"Condition {args.condition}={args.status} not met"
    elif args.json_path:
        message = f"{described(target)}: {wanted} not found"
    return in_vain(seen, wanted, context, client, timeout=args.timeout, outputs=outputs, message=message)


def _wish(
    args: WaitArgs, target: Target, context: ext_sdk.Context, client: Client
) -> tuple[str, Callable[[list[Object]], Verdict]]:
    """What is waited for, in words, and how to tell whether it is so."""
    if args.for_ == "deleted":
        return "deleted", Deleted()
    if args.for_ == "exists":
        least = 1 if isinstance(args.require, str) else args.require
        return "there", lambda objects: Verdict(len(objects) >= least, _count(objects, target))
    if args.for_ == "ready":
        return "ready", judged(
            target, Ready(PodCheck(client, context.deadline), fail_fast=args.fail_fast), args.require
        )
    if args.json_path:
        wanted = f"a value at {args.json_path}" if args.value is UNSET else f"{args.json_path}={text_of([args.value])}"
        return wanted, judged(target, lambda item: value_verdict(item, args.json_path, args.value), args.require)
    return (
        f"condition {args.condition}={args.status}",
        judged(target, lambda item: condition_verdict(item, args.condition, args.status), args.require),
    )


class Ready:
    """Tells whether an object is ready, and whether it ever will be.

    Args:
        pods: asks about those of workloads.
        fail_fast: whether to give up early.
    """

    def __init__(self, pods: PodCheck, *, fail_fast: bool = True) -> None:
        self._pods = pods
        self._fail_fast = fail_fast

    def __call__(self, item: Object) -> Verdict:
        readiness = readiness_of(item)
        if readiness.state == "ready":
            crashing = self._pods.crashing(item)
            if crashing is None:
                return Verdict(done=True, status=readiness.text)
            readiness = crashing
        hopeless = readiness.text if readiness.state == "failed" else ""
        if self._fail_fast and not hopeless:
            hopeless = self._pods.hopeless(item)
        return Verdict(
            done=False,
            status=readiness.text,
            hopeless=hopeless if self._fail_fast else "",
            again=readiness.again,
        )


class Deleted:
    """Tells whether the objects that were there at the first look are gone; others of their names don't count."""

    def __init__(self) -> None:
        self._first: set[str] | None = None

    def __call__(self, objects: list[Object]) -> Verdict:
        uids = {text(item, "metadata", "uid"): item for item in objects}
        if self._first is None:
            self._first = set(uids)
        left = [item for uid, item in uids.items() if uid in self._first]
        if not left:
            return Verdict(done=True, status="gone")
        terminating = sum(bool(text(item, "metadata", "deletionTimestamp")) for item in left)
        return Verdict(done=False, status=f"{len(left)} still there, {terminating} of them being deleted")


def value_verdict(item: Object, path: str, wanted: Value | UnsetType) -> Verdict:
    """Whether a path selects the wanted value in an object; or any value, where none is wanted."""
    found = values(path, item)
    told = text_of([masked(value) for value in found])
    if wanted is UNSET:
        return Verdict(done=bool(found) and found != [None] and text_of(found) != "", status=told or "no value")
    same = bool(found) and all(_is(value, wanted) for value in found)
    return Verdict(done=same, status=told if found else "no value")


def _is(found: object, wanted: object) -> bool:
    return equal(found, wanted) or (isinstance(wanted, str) and text_of([found]) == wanted)


def _outputs(seen: Seen, args: WaitArgs) -> tuple[dict[str, str | int | bool], dict[str, str | int | bool]]:
    """Return the outputs, and those that only later steps may see."""
    secret: dict[str, str | int | bool] = {}
    outputs: dict[str, str | int | bool] = {
        "count": len(seen.objects),
        "status": seen.waited.verdict.status if seen.waited.verdict else "",
        "seconds": f"{seen.waited.seconds:.3f}",
    }
    if len(seen.objects) == 1:
        outputs |= identity(seen.objects[0])
        if args.json_path:
            found = values(args.json_path, seen.objects[0])
            (secret if has_hidden(found) else outputs)["value"] = text_of(found)
    return outputs, secret


OPERATIONS = (ext_sdk.Operation("wait", wait, {"resource": "deploy/web", "for": "ready", "timeout": "20s"}),)


def _count(objects: list[Object], target: Target) -> str:
    if target.name:
        return "it is there" if objects else "NotFound"
    return f"{len(objects)} found"
