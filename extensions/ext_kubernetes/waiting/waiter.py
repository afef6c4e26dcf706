"""Wait for the objects of a target, and combine the verdicts on several objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from msgspec import Meta

import ext_sdk
from ext_kubernetes.objects.fields import text
from ext_kubernetes.objects.secret_data import marked
from ext_kubernetes.polling import Verdict, WaitOutcome, wait_until

from .informer import subscribe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.yaml_loader import Object
    from ext_kubernetes.targets import Target


Selector = Annotated[
    str,
    Meta(description="Label selector, such as app=web,tier!=test; replaces a name, and selects all matching objects"),
]

Require = Annotated[
    Literal["all", "any"] | Annotated[int, Meta(ge=1)],
    Meta(
        description="Number of objects that must meet it, if there are several: all of them (at least one), any, or at "
        "least a number"
    ),
]

Timeout = Annotated[
    ext_sdk.Duration,
    Meta(description="Maximum wait; 0s polls once. Capped below the host's call timeout (about 30 s)"),
]

MINUTE = ext_sdk.Duration.parse("60s")


class WaitResult(NamedTuple):
    """End of a wait, and the objects at the last poll."""

    outcome: WaitOutcome
    objects: list[Object]
    target: Target


def wait_for(
    target: Target,
    judge: Callable[[list[Object]], Verdict],
    context: ext_sdk.Context,
    client: Client,
    *,
    selector: str = "",
) -> WaitResult:
    """Poll a target until the wait succeeds or fails permanently, or until the deadline of the call.

    Args:
        judge: returns the verdict on the objects currently present.

    Raises:
        KubernetesError: a permanent error.
    """
    last_status = None
    objects: list[Object] = []
    with subscribe(target, context, client, selector=selector) as watcher:

        def check(age: float) -> Verdict:
            nonlocal last_status
            objects[:] = map(marked, watcher.get(age, context.deadline))
            verdict = judge(objects)
            if verdict.status != last_status:
                last_status = verdict.status
                context.log.info(f"{target}: {verdict.status}")
            return verdict._replace(data_age=watcher.data_age())

        outcome = wait_until(
            check,
            context.deadline,
            wake=lambda seconds: watcher.wait(seconds, context.deadline),
            pace=watcher.pace,
        )
    return WaitResult(outcome, objects, target)


def combine_verdicts(
    objects: Sequence[Object], judge: Callable[[Object], Verdict], require: Literal["all", "any"] | int
) -> Verdict:
    """Return the verdict on several objects.

    Args:
        judge: returns the verdict on one object.
        require: number of objects that must be done.
    """
    verdicts = [(text(item, "metadata", "name"), judge(item)) for item in objects]
    done = sum(verdict.done for _, verdict in verdicts)
    wanted = {"all": max(1, len(verdicts)), "any": 1}.get(require, 0) if isinstance(require, str) else require
    failed = [f"{name}: {verdict.failed_reason}" for name, verdict in verdicts if verdict.failed_reason]
    pending = [f"{name}: {verdict.status}" for name, verdict in verdicts if not verdict.done]
    rechecks = [verdict.recheck_after for _, verdict in verdicts if verdict.recheck_after is not None]
    impossible = bool(failed) and len(verdicts) - len(failed) < wanted
    status = f"{done} of {len(verdicts)}" + (
        f" ({'; '.join(pending[:5])}{'; …' if len(pending) > 5 else ''})" if pending else ""
    )
    reason = "; ".join(failed[:5]) if impossible else ""
    return Verdict(done >= wanted, status, reason, min(rechecks, default=None))
