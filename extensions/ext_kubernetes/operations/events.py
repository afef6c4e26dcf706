"""`events`: what the cluster noted about an object, or in a namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.errors import error_context
from ext_kubernetes.objects.fields import text
from ext_kubernetes.polling import Verdict
from ext_kubernetes.targets import Target, TargetArgs, namespace_of, resource_of, target_of
from ext_kubernetes.waiting.failure_report import event_time, event_told, wait_failure
from ext_kubernetes.waiting.waiter import Timeout, wait_for
from ext_sdk.expect import Integer, check_integer

if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_kubernetes.objects.yaml_loader import Object


MOST_TOLD = 5  # in the message of a failure


class EventsArgs(TargetArgs):
    """About what, and which; without an object, all of the namespace."""

    reason: Annotated[str, Meta(description="Only those with this reason: BackOff")] = ""
    type: Annotated[Literal["", "Normal", "Warning"], Meta(description="Only those of this type")] = ""
    contains: Annotated[str, Meta(description="Only those with this text in the message")] = ""
    count: Annotated[
        Integer | UnsetType,
        Meta(description="How many there must be, such as 0 or {gte: 1}; waits until it is so"),
    ] = UNSET
    timeout: Timeout = ext_sdk.Duration.parse("10s")


def events(args: EventsArgs, context: ext_sdk.Context) -> ext_sdk.Result:
    """List the events of an object, or of a namespace, the latest first; with `count`, wait until there are so many."""
    client = client_for(context)
    patient = args.count is not UNSET
    about = target_of(args, context, client, patient=patient) if args.resource or args.kind else None
    namespace = (about.namespace or "default") if about else namespace_of(context, client, args.namespace)
    target = Target(resource_of("events", "v1", context, client, patient=patient), namespace, "")
    wanted = _wanted(args, about)
    found: list[Object] = []

    def judge(objects: list[Object]) -> Verdict:
        found[:] = sorted(filter(wanted, objects), key=event_time, reverse=True)
        told = "; ".join(event_told(event) for event in found[:2])
        return Verdict(done=_holds(args.count, len(found)), status=f"{_number(found)}{f': {told}' if told else ''}")

    with error_context(f"failed to list events in namespace {namespace}"):
        seen = wait_for(target, judge, context, client)
    outputs: dict[str, str | int | bool] = {
        "count": len(found),
        "events": "\n".join(event_told(event) for event in found),
        "reasons": ",".join(dict.fromkeys(text(event, "reason") for event in found)),
    }
    if seen.waited.done:
        return ext_sdk.Result.ok(f"Found {_number(found)}{f' of {about}' if about else ''}", outputs=outputs)
    what = f"events{f' of {about}' if about else ''}{f' with reason {args.reason}' if args.reason else ''}"
    told = "".join(f"\n  {event_told(event)}" for event in found[:MOST_TOLD])
    error = (
        f"expected another number of {what} in namespace {namespace}, found {len(found)} after "
        f"{seen.waited.seconds:.1f} s; {_checks(args.count, len(found))}{told}"
    )
    return wait_failure(seen, what, context, client, timeout=args.timeout, outputs=outputs, error=error, tell=False)


def _wanted(args: EventsArgs, about: Target | None) -> Callable[[Object], bool]:
    """Tells whether an event is one of those that are asked for."""
    fixed: dict[tuple[str, ...], str] = {("reason",): args.reason, ("type",): args.type}
    if about is not None:
        fixed |= {("involvedObject", "kind"): about.resource.kind, ("involvedObject", "name"): about.name}

    def wanted(event: Object) -> bool:
        return args.contains in text(event, "message") and all(
            text(event, *path) == value for path, value in fixed.items() if value
        )

    return wanted


def _number(found: list[Object]) -> str:
    return f"{len(found)} event{'' if len(found) == 1 else 's'}"


def _holds(count: Integer | UnsetType, found: int) -> bool:
    return isinstance(count, UnsetType) or all(check.ok for check in check_integer(count, found, where="events"))


def _checks(count: Integer | UnsetType, found: int) -> str:
    checks = [] if isinstance(count, UnsetType) else check_integer(count, found, where="number of events")
    return "; ".join(str(check) for check in checks if not check.ok)


OPERATIONS = (ext_sdk.Operation("events", events, {"resource": "pod/nginx", "type": "Normal"}),)
