"""Predicates of waits: condition, value and readiness of an object, and of all objects of a target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

import ext_sdk
from ext_kubernetes.objects.conditions import has, status_of
from ext_kubernetes.objects.jsonpath import text_of, values
from ext_kubernetes.objects.readiness import readiness_of
from ext_kubernetes.objects.secret_data import masked
from ext_kubernetes.polling import Verdict
from ext_kubernetes.targets import TargetArgs, target_of
from ext_sdk.expect.json_equality import equal

from .waiter import combine_verdicts

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.yaml_loader import Object
    from ext_kubernetes.targets import Target

    from .pod_failures import PodCheck


Value = str | int | float | bool


class IsReady:
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


def resolve_target(
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


def verdict_for_target(
    target: Target, judge: Callable[[Object], Verdict], require: Literal["all", "any"] | int
) -> Callable[[list[Object]], Verdict]:
    """The verdict on what there is: on the one object, or on all of them."""

    def of_all(objects: list[Object]) -> Verdict:
        if not target.name:
            return combine_verdicts(objects, judge, require)
        return judge(objects[0]) if objects else Verdict(done=False, status="NotFound")

    return of_all


def condition_verdict(item: Object, type: str, status: str) -> Verdict:
    """Whether an object has a condition with this status."""
    return Verdict(has(item, type, status), status_of(item, type))


def display_name(target: Target) -> str:
    """`Pod nginx`, `pods`, for messages."""
    return f"{target.resource.kind} {target.name}" if target.name else target.resource.name
