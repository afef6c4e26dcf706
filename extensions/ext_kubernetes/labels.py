"""`label` and `annotate`: set, change and remove labels and annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

import ext_sdk

from .awaiting import Selector, Timeout, await_target, of_each
from .bulk import at_once, failure_of, failure_or
from .client import client_for
from .condition import chosen
from .errors import doing
from .naming import TargetArgs
from .objects import identity, members, named, text
from .pods import PodCheck
from .story import in_vain
from .wait import Ready
from .writing import merge, names_of, read

if TYPE_CHECKING:
    from .awaiting import Seen
    from .client import Client
    from .manifests import Object
    from .naming import Target
    from .waiting import Verdict

Values = dict[str, str | None]
Overwrite = Annotated[
    bool, Meta(description="Whether one that is there with another value may be changed; else a failure")
]
All = Annotated[bool, Meta(description="With a kind alone and no selector: all of them are meant")]


class _Values(TargetArgs):
    """What labels and annotations have in common."""

    selector: Selector = ""
    all: All = False
    overwrite: Overwrite = True
    wait: Annotated[bool, Meta(description="Until all of them are ready, by the rules of `wait` with `for: ready`")] = (
        False
    )
    timeout: Timeout = ext_sdk.Duration.parse("25s")


class Label(_Values):
    """Which labels of what."""

    labels: Annotated[Values, Meta(description="Names and values; null removes", min_length=1)]


class Annotate(_Values):
    """Which annotations of what."""

    annotations: Annotated[Values, Meta(description="Names and values; null removes", min_length=1)]


def label(args: Label, context: ext_sdk.Context) -> ext_sdk.Result:
    """Set, change or remove labels of an object, or of all that a selector finds."""
    return _changed(args, "labels", args.labels, context)


def annotate(args: Annotate, context: ext_sdk.Context) -> ext_sdk.Result:
    """Set, change or remove annotations of an object, or of all that a selector finds."""
    return _changed(args, "annotations", args.annotations, context)


def _changed(args: _Values, field: str, wanted: Values, context: ext_sdk.Context) -> ext_sdk.Result:
    client = client_for(context)
    target = chosen(args, args.selector, context, client, patient=False)
    if not (target.name or args.selector or args.all):
        raise ext_sdk.InvalidArgs("resource", "expected a name, a `selector`, or `all: true`, found a kind alone")
    verb = field.removesuffix("s").replace("annotation", "annotate")
    with doing(f"failed to {verb} {target}"):
        found = read(target, args.selector, context, client)
    if not args.overwrite:
        _refuse(found, field, wanted)
    changed = [item for item in found if _differs(item, field, wanted)]
    change: Object = {"metadata": {field: wanted}}

    def send(item: Object) -> Object:
        with doing(f"failed to {verb} {named(item)}"):
            return merge(target, item, change, context, client)

    results = list(zip(map(named, changed), at_once(failure_or(send), changed), strict=True))
    now = [result for _, result in results if not isinstance(result, ext_sdk.OperationFailed)]
    outputs: dict[str, str | int | bool] = {"count": len(found), "changed": len(now)}
    outputs |= identity((now or found)[0]) if len(found) == 1 else {}
    if failed := [(name, result) for name, result in results if isinstance(result, ext_sdk.OperationFailed)]:
        raise failure_of(failed, len(found), verb, outputs)
    if args.wait:
        with doing(f"failed to wait for {target}"):
            seen = _settled(target, found, context, client)
        if not seen.waited.done:
            return in_vain(seen, "ready", context, client, timeout=args.timeout, outputs=outputs)
    verb = {"label": "Labelled", "annotate": "Annotated"}[verb]
    return ext_sdk.Result.ok(f"{verb} {names_of(target, found)}{'' if changed else ' (no change)'}", outputs=outputs)


def _settled(target: Target, found: list[Object], context: ext_sdk.Context, client: Client) -> Seen:
    """Wait until objects are ready: by name, for a selector may not find them by their new labels."""
    names = {text(item, "metadata", "name") for item in found}
    ready = Ready(PodCheck(client, context.deadline))

    def judge(objects: list[Object]) -> Verdict:
        return of_each([item for item in objects if text(item, "metadata", "name") in names], ready, len(names))

    return await_target(target, judge, context, client)


def _differs(item: Object, field: str, wanted: Values) -> bool:
    has = members(item, "metadata", field)
    return any(has.get(name) != value for name, value in wanted.items())


def _refuse(found: list[Object], field: str, wanted: Values) -> None:
    """Nothing is changed where one object has another value. Raises OperationFailed."""
    for item in found:
        has = members(item, "metadata", field)
        for name, value in wanted.items():
            if value is not None and has.get(name) not in {None, value}:
                item_name = members(item, "metadata").get("name")
                raise ext_sdk.OperationFailed(
                    f"{item_name} has {name} already",
                    error=f"expected no {name} among the {field} of {item_name}, found {has.get(name)!r}; "
                    "nothing was changed; `overwrite: true` changes it",
                )


OPERATIONS = (
    ext_sdk.Operation("label", label, {"resource": "pod/nginx", "labels": {"tier": "web"}}),
    ext_sdk.Operation("annotate", annotate, {"resource": "pod/nginx", "annotations": {"note": "seen"}}),
)
