"""Operations `condition`, `wait` and `stable`: an object has a condition or value, is ready or deleted, or stays so."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.errors import error_context
from ext_kubernetes.objects.conditions import condition_of
from ext_kubernetes.objects.fields import identity, items, number, text
from ext_kubernetes.objects.jsonpath import problem, text_of, values
from ext_kubernetes.objects.secret_data import has_hidden
from ext_kubernetes.polling import Verdict
from ext_kubernetes.targets import TargetArgs
from ext_kubernetes.waiting.failure_report import wait_failure
from ext_kubernetes.waiting.pod_failures import PodCheck
from ext_kubernetes.waiting.predicates import (
    IsReady,
    Value,
    condition_verdict,
    display_name,
    resolve_target,
    value_verdict,
    verdict_for_target,
)
from ext_kubernetes.waiting.waiter import MINUTE, Require, Selector, Timeout, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.yaml_loader import Object
    from ext_kubernetes.targets import Target
    from ext_kubernetes.waiting.waiter import WaitResult


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
    target = resolve_target(args, args.selector, context, client)

    def judge(item: Object) -> Verdict:
        return condition_verdict(item, args.condition_type, args.status)

    with error_context(f"failed to check condition {args.condition_type} of {target}"):
        seen = wait_for(
            target, verdict_for_target(target, judge, args.require), context, client, selector=args.selector
        )
    wanted = f"condition {args.condition_type}={args.status}"
    if not seen.waited.done:
        return wait_failure(seen, wanted, context, client, timeout=args.timeout, outputs=condition_outputs(seen, args))
    message = f"{display_name(target)} {args.condition_type}={args.status}"
    return ext_sdk.Result.ok(message, outputs=condition_outputs(seen, args))


def condition_outputs(seen: WaitResult, args: ConditionArgs) -> dict[str, str | int | bool]:
    """The last condition of the first object, and how many there were."""
    outputs: dict[str, str | int | bool] = {"count": len(seen.objects), "seconds": f"{seen.waited.seconds:.3f}"}
    found = condition_of(seen.objects[0], args.condition_type) if seen.objects else None
    if found is not None:
        outputs |= {"status": found.status, "reason": found.reason, "message": found.message}
    return outputs


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
    target = resolve_target(args, args.selector, context, client)
    wanted, judge = _wish(args, target, context, client)
    with error_context(f"failed to wait for {target}"):
        seen = wait_for(target, judge, context, client, selector=args.selector)
    outputs, secret = _outputs(seen, args)
    if seen.waited.done:
        told = f" condition {args.condition}={args.status}" if args.condition else f": {wanted}"
        name = f"{target.resource.kind}/{target.name}" if target.name else target.resource.name
        return ext_sdk.Result.ok(f"{name}{told}", outputs=outputs, secret_outputs=secret)
    message = f"{display_name(target)} {target.are} not {wanted}"
    if args.condition:
        message = f"Condition {args.condition}={args.status} not met"
    elif args.json_path:
        message = f"{display_name(target)}: {wanted} not found"
    return wait_failure(seen, wanted, context, client, timeout=args.timeout, outputs=outputs, message=message)


def _wish(
    args: WaitArgs, target: Target, context: ext_sdk.Context, client: Client
) -> tuple[str, Callable[[list[Object]], Verdict]]:
    """What is waited for, in words, and how to tell whether it is so."""
    if args.for_ == "deleted":
        return "deleted", IsDeleted()
    if args.for_ == "exists":
        least = 1 if isinstance(args.require, str) else args.require
        return "there", lambda objects: Verdict(len(objects) >= least, _count(objects, target))
    if args.for_ == "ready":
        return "ready", verdict_for_target(
            target, IsReady(PodCheck(client, context.deadline), fail_fast=args.fail_fast), args.require
        )
    if args.json_path:
        wanted = f"a value at {args.json_path}" if args.value is UNSET else f"{args.json_path}={text_of([args.value])}"
        return wanted, verdict_for_target(
            target, lambda item: value_verdict(item, args.json_path, args.value), args.require
        )
    return (
        f"condition {args.condition}={args.status}",
        verdict_for_target(target, lambda item: condition_verdict(item, args.condition, args.status), args.require),
    )


class IsDeleted:
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


def _outputs(seen: WaitResult, args: WaitArgs) -> tuple[dict[str, str | int | bool], dict[str, str | int | bool]]:
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


def _count(objects: list[Object], target: Target) -> str:
    if target.name:
        return "it is there" if objects else "NotFound"
    return f"{len(objects)} found"


class StableArgs(TargetArgs, one_of=("condition", "json_path", "ready")):
    """What must hold, and for how long; `condition`, `jsonPath` or `ready`."""

    for_: Annotated[ext_sdk.Duration, Meta(description="How long it must hold without a change: 5s")] = field(
        name="for"
    )
    condition: Annotated[str, Meta(description="A condition of this type: Ready")] = ""
    status: Annotated[str, Meta(description="Of that condition")] = "True"
    json_path: Annotated[
        str,
        Meta(
            description="The value at this JSONPath does not change, such as $.status.containerStatuses[0].restartCount"
        ),
    ] = field(default="", name="jsonPath")
    value: Annotated[Value | UnsetType, Meta(description="And the value is this")] = UNSET
    ready: Annotated[bool, Meta(description="It is ready, and no container of it (of a pod) is restarted")] = False
    selector: Selector = ""
    timeout: Timeout = MINUTE

    def __post_init__(self) -> None:
        if self.value is not UNSET and not self.json_path:
            raise ValueError("`value` is for `jsonPath`")
        if self.json_path and (wrong := problem(self.json_path)):
            raise ValueError(f"jsonPath: {wrong}")
        if not 0 < self.for_.seconds <= self.timeout.seconds:
            raise ValueError(
                f"for: expected a duration over 0 and not over `timeout` ({self.timeout}), found {self.for_}"
            )


def stable(args: StableArgs, context: ext_sdk.Context) -> ext_sdk.Result:
    """Verify that a condition or a value of an object holds, unchanged, for a duration.

    If it does not hold yet, or changes, the duration begins anew, until the timeout.
    """
    client = client_for(context)
    target = resolve_target(args, args.selector, context, client)
    ready = IsReady(PodCheck(client, context.deadline), fail_fast=False)
    steady = StableFor(args.for_.seconds, lambda item: _state(item, args, ready))
    with error_context(f"failed to watch {target}"):
        seen = wait_for(target, steady, context, client, selector=args.selector)
    outputs: dict[str, str | int | bool] = {
        "changes": steady.changes,
        "count": len(seen.objects),
        "seconds": f"{seen.waited.seconds:.3f}",
    }
    wanted = f"{_wanted(args)} for {args.for_}"
    if seen.waited.done:
        return ext_sdk.Result.ok(f"{display_name(target)}: {wanted}", outputs=outputs)
    return wait_failure(seen, wanted, context, client, timeout=args.timeout, outputs=outputs)


class StableFor:
    """Tells whether all objects have been in the same good state for so long.

    Args:
        seconds: how long.
        state: of one object: whether it is good, in words, and what must not change meanwhile.
        clock: gives seconds.

    Attributes:
        changes: how often the state was another one than before.
    """

    def __init__(
        self,
        seconds: float,
        state: Callable[[Object], tuple[Verdict, object]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._state = state
        self._clock = clock
        self._since: float | None = None
        self._last: tuple[object, bool] | None = None
        self._history: list[str] = []
        self.changes = 0

    def __call__(self, objects: list[Object]) -> Verdict:
        now = self._clock()
        states = [(text(item, "metadata", "uid"), *self._state(item)) for item in objects]
        good = bool(states) and all(verdict.done for _, verdict, _ in states)
        told = "; ".join(dict.fromkeys(verdict.status for _, verdict, _ in states)) or "NotFound"
        state = sorted((uid, repr(kept)) for uid, _, kept in states)
        if self._last is not None and (state != self._last[0] or good != self._last[1]):
            self.changes += 1
            self._since = None
        if self._history[-1:] != [told]:
            self._history = [*self._history[-4:], told]
        self._last = (state, good)
        if not good:
            self._since = None
            return Verdict(done=False, status=self._told(told))
        self._since = now if self._since is None else self._since
        left = self._seconds - (now - self._since)
        return Verdict(done=left <= 0, status=self._told(told), again=max(left, 0.0))

    def _told(self, now: str) -> str:
        if not self.changes:
            return now
        return f"{now} ({self.changes} change{'s' if self.changes > 1 else ''}: {' → '.join(self._history)})"


def _state(item: Object, args: StableArgs, ready: IsReady) -> tuple[Verdict, object]:
    """Whether it holds for an object, and what must not change."""
    if args.condition:
        found = condition_of(item, args.condition)
        return condition_verdict(item, args.condition, args.status), found and found.since
    if args.json_path:
        return value_verdict(item, args.json_path, args.value), text_of(values(args.json_path, item))
    return ready(item), _restarts(item)


def _restarts(item: Object) -> list[tuple[str, int]]:
    return [(text(one, "name"), number(one, "restartCount")) for one in items(item, "status", "containerStatuses")]


def _wanted(args: StableArgs) -> str:
    if args.condition:
        return f"condition {args.condition}={args.status}"
    if args.json_path:
        return f"{args.json_path}{f'={args.value}' if args.value is not UNSET else ' unchanged'}"
    return "ready, without restarts,"


OPERATIONS = (
    ext_sdk.Operation("condition", condition, {"resource": "pod/nginx", "conditionType": "Ready", "timeout": "20s"}),
    ext_sdk.Operation("wait", wait, {"resource": "deploy/web", "for": "ready", "timeout": "20s"}),
    ext_sdk.Operation("stable", stable, {"resource": "pod/nginx", "condition": "Ready", "for": "1s", "timeout": "20s"}),
)
