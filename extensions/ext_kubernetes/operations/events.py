"""Operation `events`: events of an object or of a namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.errors import error_context
from ext_kubernetes.manifests.write import read
from ext_kubernetes.objects.fields import text
from ext_kubernetes.polling import Verdict
from ext_kubernetes.targets import Target, TargetArgs, namespace_of, resource_of
from ext_kubernetes.waiting.failure_report import describe_event, duration_text, event_time, wait_failure
from ext_kubernetes.waiting.waiter import Timeout, check_namespace, resolve_target, wait_for
from ext_sdk.core.text import counted
from ext_sdk.expect import Integer, check_integer
from ext_sdk.expect.check import failures

from . import DONE_IF_WAITED, FAILED_WAIT

if TYPE_CHECKING:
    from ext_kubernetes.objects.fields import Outputs
    from ext_kubernetes.objects.yaml_loader import Object


MOST_EVENTS = 5  # in the error


class EventsArgs(TargetArgs):
    """Arguments of `events`; without an object or kind, the events of the namespace."""

    selector: Annotated[
        str,
        Meta(description="Only events of the objects with these labels, such as app=web; with a kind in `resource`"),
    ] = ""
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
    """List events, newest first: of an object, of a kind, of the objects with labels, or of the namespace.

    With `count`, the operation waits for that number of events.
    """
    client = client_for(context, args)
    retry = args.count is not UNSET
    about = None
    if args.resource or args.kind:
        about = resolve_target(args, args.selector, context, client, retry=retry)
    elif args.selector:
        raise ext_sdk.InvalidArgs("selector", "expected a kind in `resource`, such as pods, found none")
    namespace = (about.namespace or "default") if about else namespace_of(context, client, args.namespace)
    target = Target(resource_of("events", "v1", context, client, retry=retry), namespace, "")
    fields: dict[tuple[str, ...], str] = {("reason",): args.reason, ("type",): args.type}
    kinds = set()
    if about is not None:
        fields |= {("involvedObject", "name"): about.name}
        kinds = {resource.kind for resource in about.resources}
    named = not (about and about.name)
    matching: list[Object] = []
    selected: set[str] = set()  # uids of the objects with the labels, including those that are deleted meanwhile

    def is_wanted(event: Object) -> bool:
        return (
            args.contains in text(event, "message")
            and (not kinds or text(event, "involvedObject", "kind") in kinds)
            and (not args.selector or text(event, "involvedObject", "uid") in selected)
            and all(text(event, *path) == value for path, value in fields.items() if value)
        )

    labelled = f" with labels {args.selector}" if args.selector else ""
    subject = f" of {about}{labelled}" if about else ""
    expected = f"events{subject}{f' with reason {args.reason}' if args.reason else ''}"

    def count_failures() -> list[str]:
        where = f"number of {expected} in namespace {namespace}"
        count = args.count
        return [] if isinstance(count, UnsetType) else failures(check_integer(count, len(matching), where=where))

    def evaluate(objects: list[Object]) -> Verdict:
        if about is not None and args.selector:
            found = read(about, args.selector, context, client, ignore_not_found=True)
            selected.update(text(item, "metadata", "uid") for item in found)
        matching[:] = sorted(filter(is_wanted, objects), key=event_time, reverse=True)
        newest = "; ".join(describe_event(event, named=named) for event in matching[:2])
        return Verdict(
            done=not count_failures(), status=f"{counted(len(matching), 'event')}{f': {newest}' if newest else ''}"
        )

    with error_context(f"failed to list events in namespace {namespace}"):
        result = wait_for(target, evaluate, context, client)
    lines = [describe_event(event, named=named) for event in matching]
    outputs: Outputs = {
        "count": len(matching),
        "events": "\n".join(lines),
        "reasons": ",".join(dict.fromkeys(text(event, "reason") for event in matching)),
    }
    if result.outcome.done:
        if retry and not matching:
            check_namespace(target, context, client)
        outputs |= {"done": True} if retry else {}
        return ext_sdk.Result.ok(f"Found {counted(len(matching), 'event')}{subject}", outputs=outputs)
    newest = [f"  {line}" for line in lines[:MOST_EVENTS]]
    last = f"last found {counted(len(matching), 'event')}{duration_text(result, context, args.timeout)}"
    error = "\n".join([*count_failures(), last, *newest])
    return wait_failure(
        result,
        expected,
        context,
        client,
        args,
        outputs=outputs,
        message=f"another number of {expected} than expected",
        error=error,
        describe=False,
    )


OPERATIONS = (
    ext_sdk.Operation(
        "events",
        events,
        {"resource": "pod/nginx", "type": "Normal"},
        outputs=(
            {
                "count": "number of events",
                "events": "the events, one per line, latest first; each names its object unless `resource` names it",
                "reasons": "their reasons, separated by commas",
            }
            | DONE_IF_WAITED
            | FAILED_WAIT
            | {"seconds?": "duration in seconds, if the wait did not succeed"}
        ),
        title="Check events",
        read_only=True,
    ),
)
