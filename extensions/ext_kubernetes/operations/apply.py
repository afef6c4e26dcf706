"""Operation `apply`: create or update objects by server-side apply, or as `kubectl apply` does.

After client-side apply, a later `kubectl apply` continues it: the last applied manifest is in an annotation of the
object.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.connection import Request
from ext_kubernetes.api.errors import AlreadyExists, Conflict, KubernetesError, NotFound
from ext_kubernetes.config import ExpectedRefusal  # noqa: TC001 - msgspec reads it
from ext_kubernetes.manifests.bulk import Item, Outcome, bulk_result, send_manifests, try_send
from ext_kubernetes.manifests.sources import SourceArgs, manifests_of
from ext_kubernetes.manifests.write import (
    MANAGER,
    MERGE_PATCH,
    DryRun,
    Namespace,
    Validation,
    same_content,
    write_options,
)
from ext_kubernetes.objects.fields import LAST_APPLIED, items, members, text
from ext_kubernetes.objects.strategic_merge import (
    STRATEGIC_MERGE_PATCH,
    NoMergeKey,
    last_applied,
    three_way_patch,
    with_last_applied,
    without_nulls,
)
from ext_kubernetes.targets import Target, TimeLimitOfWait
from ext_sdk.expect.json_equality import NotJson

from . import DONE_IF_WAITED, FAILED_WAIT, REFUSAL, REPORT, SENT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ext_kubernetes.api.client import Client
    from ext_kubernetes.api.discovery import Resource
    from ext_kubernetes.manifests.bulk import Item
    from ext_kubernetes.objects.fields import Outputs
    from ext_kubernetes.objects.yaml_loader import Object

APPLY_PATCH = "application/apply-patch+yaml"
ACTIONS = ("created", "configured", "unchanged")


class Apply(SourceArgs, one_of=("file", "manifest", "url", "kustomize")):
    """Arguments of `apply`."""

    namespace: Namespace = ""
    client_side: Annotated[
        bool,
        Meta(
            description="Apply as `kubectl apply` without --server-side does, so that a later `kubectl apply` removes "
            "fields that its manifest leaves out"
        ),
    ] = False
    force: Annotated[bool, Meta(description="Take ownership of fields that another manager owns")] = False
    dry_run: DryRun = False
    strict: Validation = True
    field_manager: Annotated[
        str,
        Meta(description=f"Name of the field manager; default: {MANAGER}, with `clientSide` {CLIENT_SIDE_MANAGER}"),
    ] = ""
    wait: Annotated[
        bool, Meta(description="Wait until all objects are ready, by the rules of `wait` with `for: ready`")
    ] = False
    expect: ExpectedRefusal = UNSET
    timeout: TimeLimitOfWait = ext_sdk.Duration.parse("25s")
    on_timeout: ext_sdk.OnTimeout = "fail"

    def __post_init__(self) -> None:
        if self.client_side and self.force:
            raise ValueError("`force` is for server-side apply: client-side apply has no conflicts; omit one of them")


def apply(args: Apply, context: ext_sdk.Context) -> ext_sdk.Result:
    """Create or update objects from manifests by server-side apply, and report what changed.

    A conflict with another field manager is a failure that names the manager and the field, unless `force` is true.
    Unknown fields are errors. Namespaces, CustomResourceDefinitions and dependencies of pods are sent first, all other
    objects in the order of the manifest. If the agent uses `kubectl apply`, set `clientSide: true`: otherwise its
    `kubectl apply` does not remove fields that were set here.
    """
    manifests = manifests_of(args, context)
    client = client_for(context, args)
    kinds = Counter((text(manifest.object, "apiVersion"), text(manifest.object, "kind")) for manifest in manifests)
    previous = PreviousVersions(kinds, context, client)

    def send(item: Item) -> Outcome:
        return try_send(item, lambda: apply_item(item, args, context, client, previous))

    outcomes = send_manifests(manifests, context, client, args.namespace, send)
    counts = Counter(outcome.action for outcome in outcomes)
    outputs: Outputs = {action: counts[action] for action in ACTIONS}
    if args.wait and not args.dry_run and not any(outcome.failure for outcome in outcomes):
        from ext_kubernetes.waiting.failure_report import wait_until_ready  # takes as long as a small apply

        targets = [
            Target(outcome.item.resource, outcome.item.namespace, text(outcome.object, "metadata", "name"))
            for outcome in outcomes
        ]
        applied = bulk_result(outcomes, "Applied", outputs)
        if failure := wait_until_ready(
            targets,
            context,
            client,
            args,
            outputs={**applied.outputs},
            message="{target} was applied, but {are} not ready",
        ):
            return failure
        outputs["done"] = True
    return bulk_result(outcomes, "Would apply" if args.dry_run else "Applied", outputs)


def apply_item(
    item: Item, args: Apply, context: ext_sdk.Context, client: Client, previous: PreviousVersions
) -> tuple[Object, str]:
    """Apply an object; return it as stored, and one of ACTIONS, or `applied` if the previous state is unknown."""
    manager = args.field_manager or (CLIENT_SIDE_MANAGER if args.client_side else MANAGER)
    query = [("fieldManager", manager), *write_options(dry_run=args.dry_run, strict=args.strict)]
    if not item.name:  # applying requires a name; metadata.generateName means a new object
        request = Request("POST", item.path(), query, item.object)
        return members(client.ask(request, deadline=context.deadline).value), "created"
    if args.client_side:
        return apply_client_side(item, query, context, client)
    before = previous.object(item) if args.dry_run else None
    version = None if args.dry_run else previous.resource_version(item)
    query.insert(1, ("force", "true" if args.force else "false"))
    response = client.ask(Request("PATCH", item.path(), query, item.object, APPLY_PATCH), deadline=context.deadline)
    stored = members(response.value)
    if response.status == 201:
        return stored, "created"
    if before:
        return stored, "unchanged" if same_content(before, stored) else "configured"
    if version:
        return stored, "unchanged" if version == text(stored, "metadata", "resourceVersion") else "configured"
    return stored, "applied"


MOST_GETS = 3  # objects of a kind that are read one by one; more are listed
PARTIAL = "application/json;as=PartialObjectMetadata{list};g=meta.k8s.io;v=v1,application/json"


class PreviousVersions:
    """State of the objects before they are applied; thread-safe.

    Args:
        counts: number of objects to apply for each (apiVersion, kind).
    """

    def __init__(self, counts: Mapping[tuple[str, str], int], context: ext_sdk.Context, client: Client) -> None:
        self._counts = counts
        self._context = context
        self._client = client
        self._lock = threading.Lock()
        self._listed: dict[tuple[Resource, str], dict[str, str] | None] = {}

    def resource_version(self, item: Item) -> str | None:
        """Return the resourceVersion of an object; "" if it did not exist, None if it can't be read."""
        try:
            if self._counts[text(item.object, "apiVersion"), text(item.object, "kind")] > MOST_GETS:
                key, path = (item.resource, item.namespace), item.resource.path(item.namespace)
                with self._lock:  # the first caller sends the request, concurrent callers wait for it
                    if key not in self._listed:
                        self._listed[key] = None
                        accept = PARTIAL.format(list="List")
                        listed = self._client.request("GET", path, accept=accept, deadline=self._context.deadline)
                        self._listed[key] = {
                            text(item, "metadata", "name"): text(item, "metadata", "resourceVersion")
                            for item in items(listed, "items")
                        }
                versions = self._listed[key]
                return None if versions is None else versions.get(item.name, "")
            previous = self._get(item, PARTIAL.format(list=""))
        except NotFound:
            return ""
        except KubernetesError:  # a user who may apply may still not be allowed to read
            return None
        return text(previous, "metadata", "resourceVersion")

    def object(self, item: Item) -> Object | None:
        """Return the object; an empty one if it did not exist, None if it can't be read."""
        try:
            return self._get(item, "application/json")
        except NotFound:
            return {}
        except KubernetesError:
            return None

    def _get(self, item: Item, accept: str) -> Object:
        return members(self._client.request("GET", item.path(), accept=accept, deadline=self._context.deadline))


APPLIED = SENT | {
    "created": "number of created objects",
    "configured": "number of changed objects",
    "unchanged": "number of unchanged objects",
}

OPERATIONS = (
    ext_sdk.Operation(
        "apply",
        apply,
        {
            "manifest": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {colour: blue}\n",
        },
        outputs=(
            APPLIED
            | DONE_IF_WAITED
            | FAILED_WAIT
            | {"seconds?": "duration in seconds, if the wait did not succeed"}
            | REPORT
            | REFUSAL
        ),
        title="Apply manifests",
        idempotent=True,
    ),
)


CLIENT_SIDE_MANAGER = "kubectl-client-side-apply"  # kubectl's own, so that both own the same fields
ATTEMPTS = 5  # if other clients change the object at the same time


def apply_client_side(
    item: Item, query: list[tuple[str, str]], context: ext_sdk.Context, client: Client
) -> tuple[Object, str]:
    """Apply an object as `kubectl apply` does; return it as stored, and `created`, `configured` or `unchanged`.

    Args:
        query: of the writing request.

    Raises:
        ext_sdk.OperationFailed: the patch can't be made.
        KubernetesError: a request failed.
    """
    modified = with_last_applied(item.object)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            current = members(client.request("GET", item.path(), deadline=context.deadline))
        except NotFound:
            request = Request("POST", item.resource.path(item.namespace), query, without_nulls(modified))
            try:
                return members(client.ask(request, deadline=context.deadline).value), "created"
            except AlreadyExists:
                if attempt == ATTEMPTS:
                    raise
                continue
        patch, content_type = _patch(item, modified, current, context, client)
        if not patch:
            return current, "unchanged"
        try:
            response = client.ask(Request("PATCH", item.path(), query, patch, content_type), deadline=context.deadline)
        except Conflict:
            if attempt == ATTEMPTS or "resourceVersion" in members(modified, "metadata"):
                raise
            continue
        stored = members(response.value)
        ignored = {} if "status" in patch else {"status": None}  # its controller may have changed it meanwhile
        return stored, "unchanged" if same_content(current | ignored, stored | ignored) else "configured"
    raise AssertionError("the last attempt returns or raises")


def _patch(
    item: Item, modified: Object, current: Object, context: ext_sdk.Context, client: Client
) -> tuple[Object, str]:
    """Return the patch, and its media type. Raises OperationFailed if it can't be made."""
    resource = item.resource
    try:
        rules = client.discovery.merge_rules(resource, deadline=context.deadline)
    except KubernetesError as failure:
        failure.error = f"client-side apply requires the schema of {resource.api_version}: {failure.error}"
        raise
    try:
        original = last_applied(current)
    except NotJson as error:
        raise ext_sdk.OperationFailed(
            "its last applied manifest can't be read",
            error=f"expected JSON in the annotation {LAST_APPLIED}: {error}; remove the annotation",
        ) from error
    try:
        patch = three_way_patch(original, modified, current, rules, resource.kind)
    except NoMergeKey as error:
        raise ext_sdk.OperationFailed("a list can't be merged", error=str(error)) from error
    return patch, STRATEGIC_MERGE_PATCH if rules.kinds.get(resource.kind) else MERGE_PATCH
