"""Operations `condition`, `wait` and `stable`: wait for a condition, value, readiness or deletion of objects."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.errors import error_context
from ext_kubernetes.objects.fields import condition_of, has_hidden, identity, items, named, number, text
from ext_kubernetes.objects.kubectl_jsonpath import problem, text_of, values
from ext_kubernetes.polling import Verdict
from ext_kubernetes.targets import TargetArgs, absent_namespace
from ext_kubernetes.waiting.failure_report import wait_failure
from ext_kubernetes.waiting.waiter import (
    MINUTE,
    FailFast,
    IsReady,
    PodCheck,
    Require,
    Selector,
    Timeout,
    Value,
    check_namespace,
    condition_verdict,
    display_name,
    resolve_target,
    value_verdict,
    verdict_for_target,
    wait_for,
)

from . import DONE, FAILED_WAIT, ONE, REPORT, SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.fields import Outputs
    from ext_kubernetes.objects.yaml_loader import Object
    from ext_kubernetes.targets import Target


class ConditionArgs(TargetArgs):
    """Arguments of `condition`."""

    resource: Annotated[
        str,
        Meta(description="Kind and name: pod/nginx, deploy/web; a kind only: with `selector`, or all of the namespace"),
    ]
    condition_type: Annotated[str, Meta(description="Condition type, case-insensitive: Ready", min_length=1)]
    status: Annotated[
        str, Meta(description="Expected status: True, False, Unknown, or another status that the kind has")
    ] = "True"
    selector: Selector = ""
    require: Require = "all"
    timeout: Timeout = MINUTE
    on_timeout: ext_sdk.OnTimeout = "fail"


def condition(args: ConditionArgs, context: ext_sdk.Context) -> ext_sdk.Result:
    """Verify a condition of an object, and wait for it until the timeout.

    A condition of an older generation of the object is ignored. The object need not exist at first.
    """
    client = client_for(context, args)
    target = resolve_target(args, args.selector, context, client)
    evaluate = verdict_for_target(
        target, partial(condition_verdict, type=args.condition_type, status=args.status), args.require
    )
    with error_context(f"failed to check condition {args.condition_type} of {target}"):
        result = wait_for(target, evaluate, context, client, selector=args.selector)
    outputs: Outputs = {"count": len(result.objects), "seconds": f"{result.outcome.seconds:.3f}"}
    last = condition_of(result.objects[0], args.condition_type) if result.objects else None
    if last is not None:
        outputs |= {"status": last.status, "reason": last.reason, "message": last.message}
    if not result.outcome.done:
        expected = f"condition {args.condition_type}={args.status}"
        return wait_failure(result, expected, context, client, args, outputs=outputs)
    message = f"{display_name(target)} {args.condition_type}={args.status}"
    return ext_sdk.Result.ok(message, outputs=outputs | {"done": True})


ConditionStatus = Annotated[str, Meta(description="Expected status of the condition")]
JSON_PATH = "JSONPath: $.status.phase (RFC 9535) or {.status.phase} (kubectl)"


def _check_value(path: str, value: object) -> None:
    """Raise ValueError for an invalid path, or a value without a path."""
    if value is not UNSET and not path:
        raise ValueError("`value` requires `jsonPath`")
    if path and (wrong := problem(path)):
        raise ValueError(f"jsonPath: {wrong}")


class WaitArgs(TargetArgs, one_of=("for_", "condition", "json_path")):
    """Arguments of `wait`."""

    condition: Annotated[str, Meta(description="Type of a condition to wait for, case-insensitive: Available")] = ""
    status: ConditionStatus = "True"
    json_path: Annotated[str, Meta(description=f"Path of a value to wait for. {JSON_PATH}")] = field(
        default="", name="jsonPath"
    )
    value: Annotated[
        Value | UnsetType,
        Meta(description="Expected value; any value if omitted. A string also matches the equal number"),
    ] = UNSET
    for_: Annotated[
        Literal["", "ready", "exists", "deleted"],
        Meta(
            description="ready: by the kstatus rules of the kind, also for rollouts, jobs and custom resources (a "
            "restarted container must run longer than the last time, or for a minute); exists; deleted: the object "
            "is gone, or another one has its name"
        ),
    ] = field(default="", name="for")
    fail_fast: FailFast = True
    selector: Selector = ""
    require: Require = "all"
    timeout: Timeout = MINUTE
    on_timeout: ext_sdk.OnTimeout = "fail"

    def __post_init__(self) -> None:
        _check_value(self.json_path, self.value)


def wait(args: WaitArgs, context: ext_sdk.Context) -> ext_sdk.Result:
    """Wait until objects have a condition or value, are ready, exist or are deleted.

    The objects need not exist at first. A failure reports their status, conditions, containers and events.
    """
    client = client_for(context, args)
    target = resolve_target(args, args.selector, context, client)
    expected, evaluate = _predicate(args, target, context, client)
    with error_context(f"failed to wait for {target}"):
        result = wait_for(target, evaluate, context, client, selector=args.selector)
    secret: Outputs = {}
    outputs: Outputs = {
        "count": len(result.objects),
        "status": result.outcome.verdict.status if result.outcome.verdict else "",
        "seconds": f"{result.outcome.seconds:.3f}",
    }
    if len(result.objects) == 1:
        outputs |= identity(result.objects[0])
        if args.json_path:
            selected = values(args.json_path, result.objects[0])
            (secret if has_hidden(selected) else outputs)["value"] = text_of(selected)
    name = display_name(target)
    if result.outcome.done:
        kind_and_name = f"{target.resource.kind}/{target.name}" if target.name else name
        message = f"{kind_and_name}{' ' if args.condition else ': '}{expected}"
        if args.for_ == "deleted":
            message += absent_namespace(target, client, context.deadline)
        return ext_sdk.Result.ok(message, outputs=outputs | {"done": True}, secret_outputs=secret)
    message = f"{name} {target.are} not {expected}"
    if args.condition:
        message = f"Condition {args.condition}={args.status} not met"
    elif args.json_path:
        message = f"{name}: {expected} not found"
    return wait_failure(
        result,
        expected,
        context,
        client,
        args,
        outputs=outputs,
        message=message,
    )


def _predicate(
    args: WaitArgs, target: Target, context: ext_sdk.Context, client: Client
) -> tuple[str, Callable[[list[Object]], Verdict]]:
    """Return the expected state as text, and its predicate."""
    if args.for_ == "deleted":
        return "deleted", IsDeleted()
    if args.for_ == "exists":
        least = 1 if isinstance(args.require, str) else args.require

        def exists(objects: list[Object]) -> Verdict:
            named = "found" if objects else "NotFound"
            return Verdict(len(objects) >= least, named if target.name else f"{len(objects)} found")

        return "present", exists
    evaluate: Callable[[Object], Verdict]
    if args.for_ == "ready":
        expected, evaluate = "ready", IsReady(PodCheck(client, context.deadline), fail_fast=args.fail_fast)
    elif args.json_path:
        expected = (
            f"a value at {args.json_path}" if args.value is UNSET else f"{args.json_path}={text_of([args.value])}"
        )
        evaluate = partial(value_verdict, path=args.json_path, expected=args.value)
    else:
        expected = f"condition {args.condition}={args.status}"
        evaluate = partial(condition_verdict, type=args.condition, status=args.status)
    return expected, verdict_for_target(target, evaluate, args.require)


class IsDeleted:
    """Predicate: the objects that existed at the first poll are gone; later ones of the same names are ignored."""

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
        return Verdict(done=False, status=f"{len(left)} left, {terminating} of them being deleted")


class StableArgs(TargetArgs, one_of=("condition", "json_path", "ready", "absent")):
    """Arguments of `stable`."""

    for_: Annotated[
        ext_sdk.Duration, Meta(description="Duration for which the state must hold without a change: 5s")
    ] = field(name="for")
    condition: Annotated[str, Meta(description="Type of a condition that must hold: Ready")] = ""
    status: ConditionStatus = "True"
    json_path: Annotated[
        str,
        Meta(
            description="JSONPath of a value that must not change, such as $.status.containerStatuses[0].restartCount"
        ),
    ] = field(default="", name="jsonPath")
    value: Annotated[Value | UnsetType, Meta(description="Expected value at `jsonPath`; any value if omitted")] = UNSET
    ready: Annotated[bool, Meta(description="The object must be ready; containers of a pod must not restart")] = False
    absent: Annotated[bool, Meta(description="No such object may exist, in a namespace that exists")] = False
    selector: Selector = ""
    timeout: Timeout = MINUTE
    on_timeout: ext_sdk.OnTimeout = "fail"

    def __post_init__(self) -> None:
        _check_value(self.json_path, self.value)
        if not 0 < self.for_.seconds <= self.timeout.seconds:
            raise ValueError(
                f"for: expected a duration over 0 and not over `timeout` ({self.timeout}), found {self.for_}"
            )


def stable(args: StableArgs, context: ext_sdk.Context) -> ext_sdk.Result:
    """Verify that a condition, a value, readiness or absence holds, unchanged, for a duration.

    If the state does not hold yet, or changes, the duration starts again, until the timeout.
    """
    client = client_for(context, args)
    target = resolve_target(args, args.selector, context, client)
    if args.absent:
        check_namespace(target, context, client)
    expected, state = held_state(args, IsReady(PodCheck(client, context.deadline), fail_fast=False))
    predicate = StableFor(args.for_.seconds, state, absent=args.absent)
    with error_context(f"failed to watch {target}"):
        result = wait_for(target, predicate, context, client, selector=args.selector)
    outputs: Outputs = {
        "changes": predicate.changes,
        "count": len(result.objects),
        "seconds": f"{result.outcome.seconds:.3f}",
    }
    expected = f"{expected} for {args.for_}"
    if args.absent:
        check_namespace(target, context, client)
    if result.outcome.done:
        return ext_sdk.Result.ok(f"{display_name(target)}: {expected}", outputs=outputs | {"done": True})
    return wait_failure(result, expected, context, client, args, outputs=outputs)


def held_state(
    args: StableArgs, ready: Callable[[Object], Verdict]
) -> tuple[str, Callable[[Object], tuple[Verdict, object]]]:
    """Return the state that must hold as text, and its function for StableFor."""
    if args.condition:
        expected = f"condition {args.condition}={args.status}"

        def state(item: Object) -> tuple[Verdict, object]:
            last = condition_of(item, args.condition)
            return condition_verdict(item, args.condition, args.status), last and last.since

    elif args.json_path:
        expected = f"{args.json_path}{f'={args.value}' if args.value is not UNSET else ' unchanged'}"

        def state(item: Object) -> tuple[Verdict, object]:
            return value_verdict(item, args.json_path, args.value), text_of(values(args.json_path, item))

    elif args.absent:
        expected = "absent"

        def state(item: Object) -> tuple[Verdict, object]:
            return Verdict(done=False, status=f"{named(item)} exists"), None

    else:
        expected = "ready, without restarts,"

        def state(item: Object) -> tuple[Verdict, object]:
            statuses = items(item, "status", "containerStatuses")
            return ready(item), [(text(status, "name"), number(status, "restartCount")) for status in statuses]

    return expected, state


class StableFor:
    """Predicate: all objects have been in the same good state for a number of seconds.

    Args:
        state: returns for an object the verdict on its state, and a value that must not change.
        absent: the good state is that no object exists.

    Attributes:
        changes: number of polls at which the state differed from that of the previous poll.
    """

    def __init__(
        self,
        seconds: float,
        state: Callable[[Object], tuple[Verdict, object]],
        clock: Callable[[], float] = time.monotonic,
        *,
        absent: bool = False,
    ) -> None:
        self._seconds = seconds
        self._state = state
        self._absent = absent
        self._clock = clock
        self._since: float | None = None
        self._last: tuple[object, bool] | None = None
        self._history: list[str] = []
        self.changes = 0

    def __call__(self, objects: list[Object]) -> Verdict:
        now = self._clock()
        states = [(text(item, "metadata", "uid"), *self._state(item)) for item in objects]
        good = all(verdict.done for _, verdict, _ in states) and bool(states) != self._absent
        statuses = dict.fromkeys(verdict.status for _, verdict, _ in states)
        status = "; ".join(statuses) or ("absent" if self._absent else "NotFound")
        state = sorted((uid, repr(kept)) for uid, _, kept in states)
        if self._last is not None and (state != self._last[0] or good != self._last[1]):
            self.changes += 1
            self._since = None
        if self._history[-1:] != [status]:
            self._history = [*self._history[-4:], status]
        self._last = (state, good)
        if self.changes:
            plural = "s" if self.changes > 1 else ""
            status = f"{status} ({self.changes} change{plural}: {' → '.join(self._history)})"
        if not good:
            self._since = None
            return Verdict(done=False, status=status)
        self._since = now if self._since is None else self._since
        left = self._seconds - (now - self._since)
        return Verdict(done=left <= 0, status=status, recheck_after=max(left, 0.0))


WAITED = (
    SECONDS
    | DONE
    | {"count": "number of objects at the end", "status": "last seen state", "attempts?": FAILED_WAIT["attempts?"]}
    | REPORT
)

OPERATIONS = (
    ext_sdk.Operation(
        "condition",
        condition,
        {"resource": "pod/nginx", "conditionType": "Ready", "timeout": "20s"},
        outputs=(
            WAITED
            | {
                "status": "status of the condition; if the wait did not succeed, the last seen state",
                "reason?": "reason of the condition, if it exists",
                "message?": "message of the condition, if it exists",
            }
        ),
        title="Wait for condition",
        read_only=True,
    ),
    ext_sdk.Operation(
        "wait",
        wait,
        {"resource": "deploy/web", "for": "ready", "timeout": "20s"},
        outputs=WAITED | ONE | {"value?": "the value, if `jsonPath` is given"},
        title="Wait for objects",
        read_only=True,
    ),
    ext_sdk.Operation(
        "stable",
        stable,
        {"resource": "pod/nginx", "condition": "Ready", "for": "1s", "timeout": "20s"},
        outputs=(
            SECONDS
            | DONE
            | {"changes": "number of changes of the state", "count": "number of objects at the end"}
            | FAILED_WAIT
            | REPORT
        ),
        title="Check that condition stays",
        read_only=True,
    ),
)
