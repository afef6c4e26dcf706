"""Send the objects of manifests in the order of `kubectl apply`, several at a time."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import ext_sdk
from ext_kubernetes.api.errors import SomeFailed, UnknownKind
from ext_kubernetes.objects.fields import identity, items, members, named, text
from ext_kubernetes.objects.yaml_loader import QUOTED, UNREPLACED
from ext_kubernetes.polling import Verdict, wait_until
from ext_kubernetes.targets import namespace_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ext_kubernetes.api.client import Client
    from ext_kubernetes.api.discovery import ApiPath, Resource
    from ext_kubernetes.objects.fields import Outputs
    from ext_kubernetes.objects.yaml_loader import Object

    from .sources import Manifest


MOST_PARALLEL = 8  # requests at a time
MOST_FAILURES = 10  # reported one by one
Input = TypeVar("Input")
Output = TypeVar("Output")


def run_parallel(send: Callable[[Input], Output], items: Sequence[Input]) -> list[Output]:
    """Call `send` for each item, several at a time, and return the results in the order of the items."""
    if len(items) < 2:
        return [send(item) for item in items]
    with ThreadPoolExecutor(min(MOST_PARALLEL, len(items)), "send") as pool:
        return list(pool.map(send, items))


def catching(send: Callable[[Input], Output]) -> Callable[[Input], Output | ext_sdk.OperationFailed]:
    """Return `send` with OperationFailed as a result, so that a failure does not stop the other calls."""

    def attempt(item: Input) -> Output | ext_sdk.OperationFailed:
        try:
            return send(item)
        except ext_sdk.OperationFailed as failure:
            return failure

    return attempt


def combined_failure(
    failed: Sequence[tuple[str, ext_sdk.OperationFailed]], of: int, verb: str, outputs: Outputs
) -> ext_sdk.OperationFailed:
    """Return the failure of an operation that failed for at least one object.

    Args:
        failed: name and failure of these objects.
        of: number of all objects.
        verb: of the operation: `delete`.
    """
    failures = [failure for _, failure in failed]
    if of == 1:
        return _some_failed(failures[0].message, failures[0].error, outputs, failures, of)
    lines = [f"{name}: {failure.error}" for name, failure in failed[:MOST_FAILURES]]
    lines += [f"… and {len(failed) - MOST_FAILURES} more"] if len(failed) > MOST_FAILURES else []
    message = f"failed to {verb} {len(failed)} of {of} objects"
    return _some_failed(message, "\n".join(lines), outputs, failures, of)


def _some_failed(
    message: str, error: str, outputs: Outputs, failures: Sequence[ext_sdk.OperationFailed], of: int
) -> SomeFailed:
    failure = SomeFailed(message, error=error, outputs=outputs)
    failure.failures, failure.succeeded = failures, of - len(failures)
    return failure


DEFINITIONS = 1  # the wave after which new kinds may be served

WAVES = (
    frozenset({"namespaces"}),
    frozenset({"customresourcedefinitions.apiextensions.k8s.io"}),
    # The server rejects pods with an unknown service account or class, and bindings of unknown roles.
    frozenset(
        {
            "clusterroles.rbac.authorization.k8s.io",
            "limitranges",
            "priorityclasses.scheduling.k8s.io",
            "resourcequotas",
            "roles.rbac.authorization.k8s.io",
            "runtimeclasses.node.k8s.io",
            "serviceaccounts",
            "storageclasses.storage.k8s.io",
        }
    ),
    # A pod without one of these starts seconds later than possible; it gets the variables of Services only at start.
    frozenset(
        {
            "clusterrolebindings.rbac.authorization.k8s.io",
            "configmaps",
            "persistentvolumeclaims",
            "persistentvolumes",
            "rolebindings.rbac.authorization.k8s.io",
            "secrets",
            "services",
        }
    ),
)


def apply_wave(name: str) -> int:
    """Return the number of a kind's wave; one more than the last wave if it has none.

    Args:
        name: of the kind, as in Resource: `configmaps`, `deployments.apps`.
    """
    return next((number for number, names in enumerate(WAVES) if name in names), len(WAVES))


def apply_batches(names: Sequence[str]) -> Iterator[list[int]]:
    """Yield batches of objects to send in parallel: indexes of `names`, the names of their kinds."""

    def key(index: int) -> tuple[int, str]:
        wave = apply_wave(names[index])
        return wave, names[index] if wave == len(WAVES) else ""

    in_waves = sorted(range(len(names)), key=lambda index: apply_wave(names[index]))
    for _, batch in groupby(in_waves, key):
        yield list(batch)


MOST_REPORTED = 20  # failures reported one by one
DEFINITION = "CustomResourceDefinition"


class Item(NamedTuple):
    """An object to send.

    Attributes:
        namespace: "" for a cluster-scoped kind.
        place: where it was read, for messages.
    """

    object: Object
    resource: Resource
    namespace: str
    place: str

    @property
    def name(self) -> str:
        """Return the name of the object; "" if the server generates it."""
        return text(self.object, "metadata", "name")

    def path(self, subresource: str = "") -> ApiPath:
        """Return the path of the object."""
        return self.resource.path(self.namespace, self.name, subresource)

    def __str__(self) -> str:
        return named(self.object)


class Outcome(NamedTuple):
    """Result of sending an item: the object as stored and the action, such as `created`; or the failure."""

    item: Item
    object: Object
    action: str
    failure: ext_sdk.OperationFailed | None = None

    def __str__(self) -> str:
        """Return `Job/nightly-x7k2p`, with a generated name."""
        name = text(self.object, "metadata", "name")
        return f"{self.item.resource.kind}/{name}" if name else str(self.item)


def resolve_manifest(manifest: Manifest, context: ext_sdk.Context, client: Client, namespace: str) -> Item:
    """Find the kind and the namespace of an object.

    Raises:
        ext_sdk.OperationFailed: the object has another namespace, or no name.
        KubernetesError: its kind is unknown.
    """
    item = dict(manifest.object)
    kind, api_version = text(item, "kind"), text(item, "apiVersion")
    resource = client.discovery.resource(kind, api_version, deadline=context.deadline)
    metadata = {key: value for key, value in members(item, "metadata").items() if key != "managedFields"}
    own = metadata.get("namespace") or ""
    if not (metadata.get("name") or metadata.get("generateName")):
        raise ext_sdk.OperationFailed(
            f"{kind} has no name", error=f"{manifest.place}: expected metadata.name or metadata.generateName in {kind}"
        )
    if not resource.namespaced:
        metadata.pop("namespace", None)
        return Item(item | {"metadata": metadata}, resource, "", manifest.place)
    if own and namespace and own != namespace:
        raise ext_sdk.OperationFailed(
            f"{named(item)} has another namespace",
            error=f"{manifest.place}: {named(item)} has metadata.namespace {own!r}, but `namespace` is {namespace!r}; "
            "omit one of them",
        )
    resolved = namespace_of(context, client, str(own) or namespace)
    return Item(item | {"metadata": metadata | {"namespace": resolved}}, resource, resolved, manifest.place)


def send_manifests(
    manifests: Sequence[Manifest],
    context: ext_sdk.Context,
    client: Client,
    namespace: str,
    send: Callable[[Item], Outcome],
) -> list[Outcome]:
    """Send objects in the order of their dependencies, several at a time; return outcomes in the order of manifests.

    Nothing is sent if a kind is unknown and not defined by one of the objects.

    Raises:
        ext_sdk.OperationFailed: an object can't be sent at all.
    """
    defined = {
        text(manifest.object, "spec", "names", "kind")
        for manifest in manifests
        if text(manifest.object, "kind") == DEFINITION
    }
    known = {
        index: resolve_manifest(manifest, context, client, namespace)
        for index, manifest in enumerate(manifests)
        if text(manifest.object, "kind") not in defined
    }
    first = {index: item for index, item in known.items() if apply_wave(item.resource.name) <= DEFINITIONS}
    outcomes = _send_in_order(first, send)
    _wait_for_definitions(list(outcomes.values()), context, client)
    rest = {
        index: known.get(index) or resolve_manifest(manifests[index], context, client, namespace)
        for index in range(len(manifests))
        if index not in outcomes
    }
    outcomes |= _send_in_order(rest, send)
    return [outcomes[index] for index in sorted(outcomes)]


def try_send(item: Item, send: Callable[[], tuple[Object, str]]) -> Outcome:
    """Return the outcome of sending an item, also if it fails."""
    try:
        stored, action = send()
    except ext_sdk.OperationFailed as failure:
        if "${" in repr(item.object):
            failure.error += UNREPLACED
        elif "expected numeric" in failure.error:
            failure.error += QUOTED
        return Outcome(item, {}, "failed", failure)
    return Outcome(item, stored, action)


def bulk_result(outcomes: Sequence[Outcome], verb: str, outputs: Outputs | None = None) -> ext_sdk.Result:
    """Return the result of an operation if all objects succeeded.

    Args:
        verb: the operation as a past participle: `Applied`.

    Raises:
        SomeFailed: at least one failed.
    """
    failed = [outcome for outcome in outcomes if outcome.failure]
    done = [outcome for outcome in outcomes if not outcome.failure]
    all_outputs: Outputs = {
        "count": len(done),
        "resources": "\n".join(f"{outcome} {outcome.action}" for outcome in outcomes),
        **(outputs or {}),
    }
    if len(done) == 1:
        all_outputs |= identity(done[0].object)
    if not failed:
        subject = f"{len(done)} objects"
        if len(done) == 1:
            subject = f"{done[0].item.resource.kind}/{all_outputs.get('name') or done[0].item.name}"
        actions = Counter(outcome.action for outcome in done)
        counts = ", ".join(f"{count} {action}" for action, count in actions.items())
        if len(done) == 1:
            counts = next(iter(actions))
        # `Created` alone is enough if all objects were created.
        if not all(verb.lower().endswith(action) or verb == f"Would {action.removesuffix('d')}" for action in actions):
            subject += f" ({counts})"
        return ext_sdk.Result.ok(f"{verb} {subject}", outputs=all_outputs)
    lines = [
        f"{outcome.item} ({outcome.item.place}): {outcome.failure.error}"
        for outcome in failed[:MOST_REPORTED]
        if outcome.failure
    ]
    lines += [f"… and {len(failed) - MOST_REPORTED} more"] if len(failed) > MOST_REPORTED else []
    message = f"{failed[0].item}: {failed[0].failure}"
    if len(outcomes) > 1:
        message = f"{verb} {len(done)} of {len(outcomes)} objects"
    failures = [outcome.failure for outcome in failed if outcome.failure]
    raise _some_failed(message, "\n".join(lines), all_outputs, failures, len(outcomes))


def _send_in_order(by_index: Mapping[int, Item], send: Callable[[Item], Outcome]) -> dict[int, Outcome]:
    indexes = list(by_index)
    outcomes: dict[int, Outcome] = {}
    for positions in apply_batches([item.resource.name for item in by_index.values()]):
        batch = [indexes[position] for position in positions]
        to_send = [by_index[index] for index in batch]
        if len({(item.resource, item.namespace, item.name) for item in to_send}) < len(to_send):
            results = [send(item) for item in to_send]  # the order matters for an object that occurs twice
        else:
            results = run_parallel(send, to_send)
        outcomes |= zip(batch, results, strict=True)
    return outcomes


def _wait_for_definitions(outcomes: Iterable[Outcome], context: ext_sdk.Context, client: Client) -> None:
    """Wait until the server serves the kinds of new definitions, or until the deadline."""
    expected: list[tuple[str, str]] = []
    for outcome in outcomes:
        if outcome.failure or outcome.item.resource.kind != DEFINITION:
            continue
        spec = members(outcome.object, "spec")
        kind, group = text(spec, "names", "kind"), text(spec, "group")
        versions = [text(version, "name") for version in items(spec, "versions") if version.get("served") is True]
        expected += [(kind, f"{group}/{version}") for version in versions]

    def check(_age: float) -> Verdict:
        try:
            for kind, api_version in expected:
                client.discovery.resource(kind, api_version, deadline=context.deadline)
        except UnknownKind as error:
            return Verdict(done=False, status=error.message)
        return Verdict(done=True, status="served")

    wait_until(check, context.deadline)
