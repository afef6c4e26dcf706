"""`apply`: make objects, or make them what a manifest says, by server-side apply."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

import ext_sdk

from .client import Request, client_for
from .earlier import Earlier
from .objects import members, text
from .sending import Item, Outcome, attempt, concluded, send_all
from .sources import SourceArgs, manifests_of

if TYPE_CHECKING:
    from .client import Client
    from .manifests import Object

MANAGER = "ext-kubernetes"
APPLY_PATCH = "application/apply-patch+yaml"
WORDS = ("created", "configured", "unchanged")
BOOKKEEPING = frozenset({"managedFields", "resourceVersion", "generation"})
Namespace = Annotated[
    str,
    Meta(
        description="For objects that name none; by default the one that create-namespace made, or the configured one"
    ),
]
DryRun = Annotated[bool, Meta(description="Let the server check everything and change nothing")]
Validation = Annotated[bool, Meta(description="Take fields that the kind does not have for errors")]

Subresource = Annotated[str, Meta(description="Such as status or scale")]


class Apply(SourceArgs, one_of=("file", "manifest", "url", "kustomize")):
    """What to apply, and how."""

    namespace: Namespace = ""
    force: Annotated[bool, Meta(description="Take over fields that somebody else manages")] = False
    dry_run: DryRun = False
    strict: Validation = True
    field_manager: Annotated[str, Meta(description="Who is to manage the fields", min_length=1)] = MANAGER
    wait: Annotated[bool, Meta(description="Until all of it is ready, by the rules of `wait` with `for: ready`")] = (
        False
    )
    timeout: Annotated[ext_sdk.Duration, Meta(description="For all of it")] = ext_sdk.Duration.parse("25s")


def apply(args: Apply, context: ext_sdk.Context) -> ext_sdk.Result:
    """Make objects, or change them into what a manifest says, by server-side apply; tells what was changed.

    A conflict with another manager fails, naming it and the field, unless `force` takes the field over. Unknown fields
    are errors. Namespaces, definitions of custom resources and what pods need go first, all else as it is written.
    A later `kubectl apply` of another tool does not remove fields that were set here: see docs/evals.md.
    """
    manifests = manifests_of(args, context)
    client = client_for(context)
    kinds = Counter((text(one.object, "apiVersion"), text(one.object, "kind")) for one in manifests)
    earlier = Earlier(kinds, context, client)

    def send(item: Item) -> Outcome:
        return attempt(item, lambda: applied(item, args, context, client, earlier))

    outcomes = send_all(manifests, context, client, args.namespace, send)
    if args.wait and not args.dry_run and not any(outcome.failure for outcome in outcomes):
        from .settling import unsettled  # which stands on operations, as this does

        if failure := unsettled(outcomes, context, client, args.timeout):
            return failure
    counts = Counter(outcome.word for outcome in outcomes)
    outputs: dict[str, str | int | bool] = {word: counts[word] for word in WORDS}
    return concluded(outcomes, "Would apply" if args.dry_run else "Applied", outputs)


def applied(item: Item, args: Apply, context: ext_sdk.Context, client: Client, earlier: Earlier) -> tuple[Object, str]:
    """Apply one object; the server's answer, and what that was: one of WORDS, or `applied` where nobody knows."""
    if not item.name:
        return _created(item, args, context, client)
    before = earlier.whole(item) if args.dry_run else None
    version = None if args.dry_run else earlier.version(item)
    query = [("fieldManager", args.field_manager), ("force", "true" if args.force else "false"), *_common(args)]
    request = Request("PATCH", item.path(), query, item.object, APPLY_PATCH)
    answer = client.ask(request, deadline=context.deadline)
    found = members(answer.value)
    if answer.status == 201:
        return found, "created"
    if before:
        return found, "unchanged" if _content(before) == _content(found) else "configured"
    if version:
        return found, "unchanged" if version == text(found, "metadata", "resourceVersion") else "configured"
    return found, "applied"


def _content(item: Object) -> Object:
    """An object without what a dry run changes of itself."""
    metadata = {key: value for key, value in members(item, "metadata").items() if key not in BOOKKEEPING}
    return item | {"metadata": metadata}


def _created(item: Item, args: Apply, context: ext_sdk.Context, client: Client) -> tuple[Object, str]:
    """Server-side apply needs a name; who wants one generated wants a new object."""
    query = [("fieldManager", args.field_manager), *_common(args)]
    request = Request("POST", item.path(), query, item.object)
    return members(client.ask(request, deadline=context.deadline).value), "created"


def _common(args: Apply) -> list[tuple[str, str]]:
    return options(dry_run=args.dry_run, strict=args.strict)


def options(*, dry_run: bool, strict: bool = True) -> list[tuple[str, str]]:
    """The query of a request that changes something."""
    return [("fieldValidation", "Strict" if strict else "Ignore"), *([("dryRun", "All")] if dry_run else [])]


OPERATIONS = (
    ext_sdk.Operation(
        "apply",
        apply,
        {
            "manifest": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {colour: blue}\n",
        },
    ),
)
