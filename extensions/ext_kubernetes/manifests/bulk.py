"""Send the objects of manifests in the order of `kubectl apply`, several at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import ext_sdk
from ext_kubernetes.api.errors import UnknownKind
from ext_kubernetes.objects.fields import items, members, named, text
from ext_kubernetes.objects.yaml_loader import UNREPLACED
from ext_kubernetes.polling import Verdict, wait_until
from ext_kubernetes.targets import namespace_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ext_kubernetes.api.client import Client
    from ext_kubernetes.api.discovery import Resource
    from ext_kubernetes.api.paths import ApiPath
    from ext_kubernetes.objects.yaml_loader import Object

    from .sources import Manifest


MOST_PARALLEL = 8  # requests at a time
MOST_FAILURES = 10  # failures that are reported one by one
Input = TypeVar("Input")
Output = TypeVar("Output")


def run_parallel(send: Callable[[Input], Output], items: Sequence[Input]) -> list[Output]:
    """Call `send` for each item, several at a time, and return the results in the order of the items."""
    if len(items) < 2:
        return [send(item) for item in items]
    with ThreadPoolExecutor(min(MOST_PARALLEL, len(items)), "send") as pool:
        return list(pool.map(send, items))


def catching(send: Callable[[Input], Output]) -> Callable[[Input], Output | ext_sdk.OperationFailed]:
    """Return `send`, with OperationFailed as a result, so that one failure does not keep others from being sent."""

    def attempt(item: Input) -> Output | ext_sdk.OperationFailed:
        try:
            return send(item)
        except ext_sdk.OperationFailed as failure:
            return failure

    return attempt


def combined_failure(
    failed: Sequence[tuple[str, ext_sdk.OperationFailed]], of: int, what: str, outputs: ext_sdk.result.Outputs
) -> ext_sdk.OperationFailed:
    """Return the failure of an operation of which one or several objects failed.

    Args:
        failed: name of each such object, and why; at least one.
        of: number of all objects.
        what: the verb: `delete`.
        outputs: of the operation.
    """
    if of == 1:
        return ext_sdk.OperationFailed(failed[0][1].message, error=failed[0][1].error, outputs=outputs)
    lines = [f"{name}: {failure.error}" for name, failure in failed[:MOST_FAILURES]]
    lines += [f"… and {len(failed) - MOST_FAILURES} more"] if len(failed) > MOST_FAILURES else []
    message = f"failed to {what} {len(failed)} of {of} objects"
    return ext_sdk.OperationFailed(message, error="\n".join(lines), outputs=outputs)


DEFINITIONS = 1  # the wave after which kinds may be served that were not before

WAVES = (
    frozenset({"namespaces"}),
    frozenset({"customresourcedefinitions.apiextensions.k8s.io"}),
    # The server refuses pods whose account or class it does not know, and bindings of roles that it can't look into.
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
    # A pod that misses one of these waits for it, some seconds too long; of services it learns only when it starts.
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
    """The number of a kind's wave; one more than the last where it has none.

    Args:
        name: of the kind, as Resource has it: `configmaps`, `deployments.apps`.
    """
    return next((number for number, names in enumerate(WAVES) if name in names), len(WAVES))


def apply_batches(names: Sequence[str]) -> Iterator[list[int]]:
    """What is sent at once, batch after batch: positions in `names`, the kinds of the objects as wave_of takes them."""

    def key(index: int) -> tuple[int, str]:
        wave = apply_wave(names[index])
        return wave, names[index] if wave == len(WAVES) else ""

    in_waves = sorted(range(len(names)), key=lambda index: apply_wave(names[index]))
    for _, batch in groupby(in_waves, key):
        yield list(batch)


MOST_TOLD = 20  # failures that are told one by one
DEFINITION = "CustomResourceDefinition"


class Item(NamedTuple):
    """An object on its way.

    Attributes:
        object: as it is sent.
        resource: its kind.
        namespace: "" for a kind that has none.
        place: where it was read.
    """

    object: Object
    resource: Resource
    namespace: str
    place: str

    @property
    def name(self) -> str:
        """Of the object; "" where the server is to choose one."""
        return text(self.object, "metadata", "name")

    def path(self, subresource: str = "") -> ApiPath:
        """Of the object."""
        return self.resource.path(self.namespace, self.name, subresource)

    def __str__(self) -> str:
        return named(self.object)


class Outcome(NamedTuple):
    """What became of an item: what the server answered, and a word for it; or why not."""

    item: Item
    object: Object
    word: str
    failure: ext_sdk.OperationFailed | None = None

    def __str__(self) -> str:
        """`Job/nightly-x7k2p`: with the name that the server has chosen."""
        name = text(self.object, "metadata", "name")
        return f"{self.item.resource.kind}/{name}" if name else str(self.item)


def resolve_manifest(manifest: Manifest, context: ext_sdk.Context, client: Client, namespace: str) -> Item:
    """Find out the kind and the namespace of an object.

    Args:
        manifest: the object.
        context: of the call.
        client: knows the kinds.
        namespace: as the arguments have it; "" for none.

    Raises:
        ext_sdk.OperationFailed: it is meant for another namespace, or has no name.
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
            f"{named(item)} is of another namespace",
            error=f"{manifest.place}: {named(item)} has metadata.namespace {own!r}, but `namespace` is {namespace!r}; "
            "leave one of them out",
        )
    where = namespace_of(context, client, str(own) or namespace)
    return Item(item | {"metadata": metadata | {"namespace": where}}, resource, where, manifest.place)


def send_manifests(
    manifests: Sequence[Manifest],
    context: ext_sdk.Context,
    client: Client,
    namespace: str,
    send: Callable[[Item], Outcome],
) -> list[Outcome]:
    """Send objects, in the order that they need and several at a time; outcomes are in the order of the manifests.

    Nothing is sent where a kind is unknown that none of the definitions brings.

    Raises:
        ext_sdk.OperationFailed: an object can't be sent at all.
    """
    defined = {text(one.object, "spec", "names", "kind") for one in manifests if _is_definition(one)}
    known = {
        index: resolve_manifest(one, context, client, namespace)
        for index, one in enumerate(manifests)
        if text(one.object, "kind") not in defined
    }
    first = {index: item for index, item in known.items() if apply_wave(item.resource.name) <= DEFINITIONS}
    outcomes = _in_order(first, send)
    _await_definitions(list(outcomes.values()), context, client)
    rest = [index for index in range(len(manifests)) if index not in outcomes]
    found = {
        index: known.get(index) or resolve_manifest(manifests[index], context, client, namespace) for index in rest
    }
    outcomes |= _in_order(found, send)
    return [outcomes[index] for index in sorted(outcomes)]


def try_send(item: Item, send: Callable[[], tuple[Object, str]]) -> Outcome:
    """The outcome of sending one item, whatever it is."""
    try:
        found, word = send()
    except ext_sdk.OperationFailed as failure:
        if "${" in repr(item.object):
            failure.error += UNREPLACED
        return Outcome(item, {}, "failed", failure)
    return Outcome(item, found, word)


def bulk_result(
    outcomes: Sequence[Outcome], what: str, outputs: ext_sdk.result.Outputs | None = None
) -> ext_sdk.Result:
    """The result: success where nothing failed.

    Args:
        outcomes: of all objects.
        what: the operation, as a past participle: `Applied`.
        outputs: further ones.
    """
    failed = [one for one in outcomes if one.failure]
    done = [one for one in outcomes if not one.failure]
    told: dict[str, str | int | bool] = {
        "count": len(done),
        "resources": "\n".join(f"{one} {one.word}" for one in outcomes),
        **(outputs or {}),
    }
    if len(done) == 1:
        told |= {key: text(done[0].object, "metadata", key) for key in ("name", "namespace", "uid", "resourceVersion")}
    if not failed:
        names = f"{done[0].item.resource.kind}/{told.get('name') or done[0].item.name}" if len(done) == 1 else ""
        words = _words(done, what)
        return ext_sdk.Result.ok(f"{what} {names or f'{len(done)} objects'}{words}", outputs=told)
    lines = [f"{one.item} ({one.item.place}): {one.failure.error}" for one in failed[:MOST_TOLD] if one.failure]
    lines += [f"… and {len(failed) - MOST_TOLD} more"] if len(failed) > MOST_TOLD else []
    first = failed[0].failure
    message = f"{what} {len(done)} of {len(outcomes)} objects" if len(outcomes) > 1 else f"{failed[0].item}: {first}"
    return ext_sdk.Result.failed(message, error="\n".join(lines), outputs=told)


def _words(done: Iterable[Outcome], what: str) -> str:
    """What became of how many, where `Created` or `Replaced` does not say it already."""
    counts: dict[str, int] = {}
    for one in done:
        counts[one.word] = counts.get(one.word, 0) + 1
    if all(what.lower().endswith(word) or what == f"Would {word.removesuffix('d')}" for word in counts):
        return ""
    if sum(counts.values()) == 1:
        return f" ({next(iter(counts))})"
    return f" ({', '.join(f'{count} {word}' for word, count in counts.items())})"


def _in_order(found: Mapping[int, Item], send: Callable[[Item], Outcome]) -> dict[int, Outcome]:
    indices = list(found)
    outcomes: dict[int, Outcome] = {}
    for batch in apply_batches([item.resource.name for item in found.values()]):
        some = [indices[position] for position in batch]
        outcomes |= zip(some, _at_once([found[index] for index in some], send), strict=True)
    return outcomes


def _at_once(found: Sequence[Item], send: Callable[[Item], Outcome]) -> list[Outcome]:
    names = {(one.resource, one.namespace, one.name) for one in found}
    if len(names) < len(found):  # an object that comes twice has an order
        return [send(one) for one in found]
    return run_parallel(send, found)


def _is_definition(manifest: Manifest) -> bool:
    return text(manifest.object, "kind") == DEFINITION


def _await_definitions(outcomes: Iterable[Outcome], context: ext_sdk.Context, client: Client) -> None:
    """Until the server serves the new kinds, or the deadline."""
    wanted: list[tuple[str, str]] = []
    for outcome in outcomes:
        if outcome.failure or outcome.item.resource.kind != DEFINITION:
            continue
        kind, group = text(outcome.object, "spec", "names", "kind"), text(outcome.object, "spec", "group")
        versions = [text(one, "name") for one in items(outcome.object, "spec", "versions") if one.get("served") is True]
        wanted += [(kind, f"{group}/{version}") for version in versions]

    def check(_age: float) -> Verdict:
        try:
            for kind, api_version in wanted:
                client.discovery.resource(kind, api_version, deadline=context.deadline)
        except UnknownKind as error:
            return Verdict(done=False, status=error.message)
        return Verdict(done=True, status="served")

    wait_until(check, context.deadline, context.deadline.wait)
