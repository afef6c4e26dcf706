"""Operation `apply`: create or update objects by server-side apply."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.connection import Request
from ext_kubernetes.api.errors import KubernetesError, NotFound
from ext_kubernetes.manifests.bulk import Item, Outcome, bulk_result, send_manifests, try_send
from ext_kubernetes.manifests.sources import SourceArgs, manifests_of
from ext_kubernetes.manifests.write_options import MANAGER, DryRun, Namespace, Validation, write_options
from ext_kubernetes.objects.fields import items, members, text
from ext_kubernetes.targets import Target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ext_kubernetes.api.client import Client
    from ext_kubernetes.api.discovery import Resource
    from ext_kubernetes.objects.yaml_loader import Object


APPLY_PATCH = "application/apply-patch+yaml"
WORDS = ("created", "configured", "unchanged")
BOOKKEEPING = frozenset({"managedFields", "resourceVersion", "generation"})


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
    earlier = PreviousVersions(kinds, context, client)

    def send(item: Item) -> Outcome:
        return try_send(item, lambda: applied(item, args, context, client, earlier))

    outcomes = send_manifests(manifests, context, client, args.namespace, send)
    settles = args.wait and not args.dry_run and not any(outcome.failure for outcome in outcomes)
    if settles:
        from ext_kubernetes.waiting.all_ready import wait_until_ready  # its imports take as long as a small apply

        targets = [
            Target(each.item.resource, each.item.namespace, text(each.object, "metadata", "name")) for each in outcomes
        ]
        if failure := wait_until_ready(targets, context, client, args.timeout):
            return failure
    counts = Counter(outcome.word for outcome in outcomes)
    outputs: dict[str, str | int | bool] = {word: counts[word] for word in WORDS}
    return bulk_result(outcomes, "Would apply" if args.dry_run else "Applied", outputs)


def applied(
    item: Item, args: Apply, context: ext_sdk.Context, client: Client, earlier: PreviousVersions
) -> tuple[Object, str]:
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
    return write_options(dry_run=args.dry_run, strict=args.strict)


MOST_GETS = 3  # objects of a kind that are asked for one by one
PARTIAL = "application/json;as=PartialObjectMetadata{list};g=meta.k8s.io;v=v1,application/json"


class PreviousVersions:
    """The versions before; safe in several threads.

    Args:
        counts: how many objects of each (apiVersion, kind) are to be applied.
        context: of the call.
        client: of the server.
    """

    def __init__(self, counts: Mapping[tuple[str, str], int], context: ext_sdk.Context, client: Client) -> None:
        self._counts = counts
        self._context = context
        self._client = client
        self._lock = threading.Lock()
        self._listed: dict[tuple[Resource, str], dict[str, str] | None] = {}

    def version(self, item: Item) -> str | None:
        """The version of an object: "" where there was none, None where that can't be found out."""
        try:
            if self._counts[text(item.object, "apiVersion"), text(item.object, "kind")] > MOST_GETS:
                listed = self._list(item.resource, item.namespace)
                return None if listed is None else listed.get(item.name, "")
            found = self._get(item, PARTIAL.format(list=""))
        except NotFound:
            return ""
        except KubernetesError:  # who may apply may not be allowed to read
            return None
        return text(found, "metadata", "resourceVersion")

    def whole(self, item: Item) -> Object | None:
        """The object as it was; an empty one where there was none, None where that can't be found out."""
        try:
            return self._get(item, "application/json")
        except NotFound:
            return {}
        except KubernetesError:
            return None

    def _get(self, item: Item, accept: str) -> Object:
        return members(self._client.request("GET", item.path(), accept=accept, deadline=self._context.deadline))

    def _list(self, resource: Resource, namespace: str) -> dict[str, str] | None:
        """Versions by name; asked for once, and whoever needs them too waits for that."""
        with self._lock:
            key = (resource, namespace)
            if key not in self._listed:
                try:
                    found = self._client.request(
                        "GET",
                        resource.path(namespace),
                        accept=PARTIAL.format(list="List"),
                        deadline=self._context.deadline,
                    )
                except KubernetesError:
                    self._listed[key] = None
                else:
                    self._listed[key] = {
                        text(one, "metadata", "name"): text(one, "metadata", "resourceVersion")
                        for one in items(found, "items")
                    }
            return self._listed[key]


OPERATIONS = (
    ext_sdk.Operation(
        "apply",
        apply,
        {
            "manifest": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {colour: blue}\n",
        },
    ),
)
