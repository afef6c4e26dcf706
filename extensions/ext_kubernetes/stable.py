"""`stable`: something holds, unchanged, for a while."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk

from .awaiting import MINUTE, Selector, Timeout, await_target
from .client import client_for
from .condition import chosen, condition_verdict, described
from .conditions import condition_of
from .errors import doing
from .jsonpath import problem, text_of, values
from .naming import TargetArgs
from .objects import items, number, text
from .pods import PodCheck
from .story import in_vain
from .wait import Ready, Value, value_verdict
from .waiting import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from .manifests import Object


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
    target = chosen(args, args.selector, context, client)
    ready = Ready(PodCheck(client, context.deadline), fail_fast=False)
    steady = Steady(args.for_.seconds, lambda item: _state(item, args, ready))
    with doing(f"failed to watch {target}"):
        seen = await_target(target, steady, context, client, selector=args.selector)
    outputs: dict[str, str | int | bool] = {
        "changes": steady.changes,
        "count": len(seen.objects),
        "seconds": f"{seen.waited.seconds:.3f}",
    }
    wanted = f"{_wanted(args)} for {args.for_}"
    if seen.waited.done:
        return ext_sdk.Result.ok(f"{described(target)}: {wanted}", outputs=outputs)
    return in_vain(seen, wanted, context, client, timeout=args.timeout, outputs=outputs)


class Steady:
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


def _state(item: Object, args: StableArgs, ready: Ready) -> tuple[Verdict, object]:
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
    ext_sdk.Operation("stable", stable, {"resource": "pod/nginx", "condition": "Ready", "for": "1s", "timeout": "20s"}),
)
