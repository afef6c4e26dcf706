"""Wait for a target: informer, predicate and deadline."""

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
    Meta(description="In place of a name: labels, such as app=web,tier!=test. All objects that have them are meant"),
]

Require = Annotated[
    Literal["all", "any"] | Annotated[int, Meta(ge=1)],
    Meta(
        description="Of several objects, how many it must be true of: all that there are (one at least), any, or so "
        "many at least"
    ),
]

Timeout = Annotated[
    ext_sdk.Duration,
    Meta(description="How long; 0s looks once. Hosts give a call some 30 s, and this ends before that"),
]

MINUTE = ext_sdk.Duration.parse("60s")


class WaitResult(NamedTuple):
    """How a wait ended, and what there was at its end.

    Attributes:
        waited: see WaitOutcome.
        objects: that were there at the last look.
        target: what was waited for.
    """

    waited: WaitOutcome
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
    """Look at an object, or at several, until it is so, until it never will be, or until the deadline.

    Args:
        target: the object; without a name, all of its kind.
        judge: what is to be thought of the objects that are there.
        context: of the call, with the deadline.
        client: of the server.
        selector: of labels.

    Raises:
        KubernetesError: it can't be seen, and that will not pass.
    """
    told: list[str] = []
    found: list[Object] = []
    with subscribe(target, context, client, selector=selector) as subscription:

        def check(age: float) -> Verdict:
            found[:] = map(marked, subscription.see(age, context.deadline))
            verdict = judge(found)
            if told[-1:] != [verdict.status]:
                told.append(verdict.status)
                context.log.info(f"{target}: {verdict.status}")
            return verdict._replace(age=subscription.age())

        waited = wait_until(
            check,
            context.deadline,
            lambda seconds: subscription.wait(seconds, context.deadline),
            pace=subscription.pace,
        )
    return WaitResult(waited, found, target)


def combine_verdicts(
    objects: Sequence[Object], judge: Callable[[Object], Verdict], require: Literal["all", "any"] | int
) -> Verdict:
    """The verdict on several objects, of the verdicts on each.

    Args:
        objects: that are there.
        judge: of one.
        require: how many must be done.
    """
    verdicts = [(text(item, "metadata", "name"), judge(item)) for item in objects]
    done = sum(verdict.done for _, verdict in verdicts)
    wanted = {"all": max(1, len(verdicts)), "any": 1}.get(require, 0) if isinstance(require, str) else require
    hopeless = [f"{name}: {verdict.hopeless}" for name, verdict in verdicts if verdict.hopeless]
    open_ = [f"{name}: {verdict.status}" for name, verdict in verdicts if not verdict.done]
    again = min((verdict.again for _, verdict in verdicts if verdict.again is not None), default=None)
    never = len(hopeless) if len(verdicts) - len(hopeless) < wanted else 0
    status = f"{done} of {len(verdicts)}" + (
        f" ({'; '.join(open_[:5])}{'; …' if len(open_) > 5 else ''})" if open_ else ""
    )
    return Verdict(done >= wanted, status, "; ".join(hopeless[:5]) if never else "", again)
