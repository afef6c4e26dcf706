"""The order in which the objects of a manifest are sent.

What others can't be without goes first, in waves; within a wave all go at once. All else goes as the manifest has it,
for who wrote it knows what custom resources need; what comes one after the other and is of one kind goes at once.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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


def wave_of(name: str) -> int:
    """The number of a kind's wave; one more than the last where it has none.

    Args:
        name: of the kind, as Resource has it: `configmaps`, `deployments.apps`.
    """
    return next((number for number, names in enumerate(WAVES) if name in names), len(WAVES))


def batches(names: Sequence[str]) -> Iterator[list[int]]:
    """What is sent at once, batch after batch: positions in `names`, the kinds of the objects as wave_of takes them."""

    def key(index: int) -> tuple[int, str]:
        wave = wave_of(names[index])
        return wave, names[index] if wave == len(WAVES) else ""

    in_waves = sorted(range(len(names)), key=lambda index: wave_of(names[index]))
    for _, batch in groupby(in_waves, key):
        yield list(batch)
