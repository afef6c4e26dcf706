"""Operation `events`: events of an object or of a namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.errors import error_context
from ext_kubernetes.objects.fields import text
from ext_kubernetes.polling import Verdict
from ext_kubernetes.targets import Target, TargetArgs, namespace_of, resource_of, target_of
from ext_kubernetes.waiting.failure_report import describe_event, event_time, wait_failure
from ext_kubernetes.waiting.waiter import Timeout, wait_for
from ext_sdk.core.text import counted
from ext_sdk.expect import Integer, check_integer

if TYPE_CHECKING:
    from ext_kubernetes.objects.fields import Outputs
    from ext_kubernetes.objects.yaml_loader import Object


MOST_EVENTS = 5  # in the error


class EventsArgs(TargetArgs):
    """Arguments of `events`; without an object, the events of the namespace."""

    reason: Annotated[str, Meta(description="Only events with this reason, such as BackOff")] = ""
    type: Annotated[Literal["", "Normal", "Warning"], Meta(description="Only events of this type")] = ""
    contains: Annotated[str, Meta(description="Only events with this text in the message")] = ""
    count: Annotated[
        Integer | UnsetType,
        Meta(description="Expected number of events, such as 0 or {gte: 1}; waits until it is met"),
    ] = UNSET
    timeout: Timeout = ext_sdk.Duration.parse("10s")
    on_timeout: ext_sdk.OnTimeout = "fail"


def events(args: EventsArgs, context: ext_sdk.Context) -> ext_sdk.Result:
    """List the events of an object or of a namespace, newest first; with `count`, wait for that number of events."""
    client = client_for(context, args)
    retry = args.count is not UNSET
    about = target_of(args, context, client, retry=retry) if args.resource or args.kind else None
    namespace = (about.namespace or "default") if about else namespace_of(context, client, args.namespace)
    target = Target(resource_of("events", "v1", context, client, retry=retry), namespace, "")
    fields: dict[tuple[str, ...], str] = {("reason",): args.reason, ("type",): args.type}
    if about is not None:
        fields |= {("involvedObject", "kind"): about.resource.kind, ("involvedObject", "name"): about.name}
    matching: list[Object] = []

    def is_wanted(event: Object) -> bool:
        return args.contains in text(event, "message") and all(
            text(event, *path) == value for path, value in fields.items() if value
        )

    def failed_count() -> str:
        checks = [] if isinstance(args.count, UnsetType) else check_integer(args.count, len(matching), where="events")
        return "; ".join(str(check) for check in checks if not check.ok)

    def evaluate(objects: list[Object]) -> Verdict:
        matching[:] = sorted(filter(is_wanted, objects), key=event_time, reverse=True)
        newest = "; ".join(describe_event(event) for event in matching[:2])
        return Verdict(
            done=not failed_count(), status=f"{counted(len(matching), 'event')}{f': {newest}' if newest else ''}"
        )

    with error_context(f"failed to list events in namespace {namespace}"):
        result = wait_for(target, evaluate, context, client)
    lines = [describe_event(event) for event in matching]
    outputs: Outputs = {
        "count": len(matching),
        "events": "\n".join(lines),
        "reasons": ",".join(dict.fromkeys(text(event, "reason") for event in matching)),
    }
    subject = f" of {about}" if about else ""
    if result.outcome.done:
        if args.count is not UNSET:
            outputs |= {"done": True}
        return ext_sdk.Result.ok(f"Found {counted(len(matching), 'event')}{subject}", outputs=outputs)
    expected = f"events{subject}{f' with reason {args.reason}' if args.reason else ''}"
    error = (
        f"expected another number of {expected} in namespace {namespace}, found {len(matching)} after "
        f"{result.outcome.seconds:.1f} s; {failed_count()}" + "".join(f"\n  {line}" for line in lines[:MOST_EVENTS])
    )
    return wait_failure(
        result,
        expected,
        context,
        client,
        timeout=args.timeout,
        on_timeout=args.on_timeout,
        outputs=outputs,
        error=error,
        describe=False,
    )


OPERATIONS = (ext_sdk.Operation("events", events, {"resource": "pod/nginx", "type": "Normal"}),)
