"""Namespaces that create-namespace created in one workdir and scope: the default one, and those to clean up.

Hosts give tasks of one folder the same workdir, run them in parallel, and continue after a failed step. Therefore
nothing is guessed: if the owner of a namespace is ambiguous, the operation fails and names the remedies.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

import ext_sdk
from ext_kubernetes.api.errors import KubernetesError, NotFound
from ext_kubernetes.api.paths import core_path
from ext_kubernetes.objects.fields import text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ext_kubernetes.api.client import Client

APART = "give each parallel task a `scope` or a folder of its own"


class Created(NamedTuple):
    """A namespace that create-namespace created.

    Attributes:
        prefix: of its generated name; "" for a given name.
        used: it is the default of operations without a namespace.
        turn: position among all calls of create-namespace.
    """

    name: str
    uid: str
    prefix: str
    used: bool
    turn: int


class OwnNamespaces:
    """Namespaces of one workdir and scope; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns = 0
        self._created: list[Created] = []
        self._deleted: set[str] = set()  # uids that can no longer be the default
        self._gone: set[str] = set()  # uids that need no further deletion
        self._failed = False  # a create-namespace failed, and its task may yet clean up
        self._failed_use: tuple[int, str] = (0, "")  # turn and reason of the last failure with `use: true`

    def created(self, name: str, uid: str, *, prefix: str, used: bool) -> None:
        """Record a namespace that was created."""
        with self._lock:
            self._turns += 1
            self._created.append(Created(name, uid, prefix, used, self._turns))

    def failed(self, reason: str, *, used: bool) -> None:
        """Record a create-namespace that failed."""
        with self._lock:
            self._turns += 1
            self._failed = True
            if used:
                self._failed_use = (self._turns, reason)

    def deleted(self, uid: str, *, gone: bool) -> None:
        """Record that a namespace is being deleted; `gone`: delete-generated-namespaces need not delete it again."""
        with self._lock:
            self._deleted.add(uid)
            if gone:
                self._gone.add(uid)

    def cleaned_up(self) -> None:
        """Record a cleanup without namespaces to delete: the task whose create-namespace failed has ended, if any."""
        with self._lock:
            self._failed = False

    def names(self) -> set[str]:
        """Return the names of all generated namespaces, including deleted ones."""
        with self._lock:
            return {created.name for created in self._created if created.prefix}

    def generated(self) -> list[Created]:
        """Return the generated namespaces that are still to be deleted, in the order of their creation."""
        with self._lock:
            return [created for created in self._created if created.prefix and created.uid not in self._gone]

    def live(self) -> list[Created]:
        """Return the namespaces that may be the default."""
        with self._lock:
            return [created for created in self._created if created.used and created.uid not in self._deleted]

    def implicit(self, exists: Callable[[Created], bool]) -> str:
        """Return the namespace of operations without one; "" if create-namespace was never called with `use: true`.

        Args:
            exists: queries the server for a namespace; called only if there may be several.

        Raises:
            ext_sdk.OperationFailed: the namespace is ambiguous, or was deleted.
        """
        with self._lock:
            last_used = max((created.turn for created in self._created if created.used), default=0)
            last_failed, reason = self._failed_use
        if not (last_used or last_failed):
            return ""
        live = self._existing(self.live(), exists)
        if last_failed > last_used:
            raise _ambiguous(f"create-namespace failed: {reason}", live)
        if len(live) == 1:
            return live[0].name
        if live:
            raise _ambiguous("several namespaces were created in this workdir and may belong to other tasks", live)
        raise _ambiguous("the namespace created by create-namespace was deleted", live)

    def certain(self, candidates: Sequence[Created], exists: Callable[[Created], bool]) -> Created | None:
        """Return the one namespace that may be deleted without being named; None if none exists.

        Args:
            exists: see `implicit`.

        Raises:
            ext_sdk.OperationFailed: there are several, or a create-namespace failed, before or since, so that the
                namespace may be another task's.
        """
        left = self._existing(candidates, exists)
        if not left:
            self.cleaned_up()
            return None
        if len(left) == 1 and not self._failed:
            return left[0]
        reason = "another create-namespace failed" if len(left) == 1 else f"{len(left)} are left in this workdir"
        raise ext_sdk.OperationFailed(
            f"no namespace was deleted: {reason}",
            error=f"no namespace was deleted, because any of these may be another task's ({reason}): {listed(left)}; "
            f"name those to delete, or {APART}",
            outputs={"left": "\n".join(created.name for created in left)},
        )

    def _existing(self, candidates: Sequence[Created], exists: Callable[[Created], bool]) -> list[Created]:
        """Return the candidates; if there are several, without those that other clients have deleted."""
        if len(candidates) < 2:
            return list(candidates)
        left = []
        for created in candidates:
            if exists(created):
                left.append(created)
            else:
                self.deleted(created.uid, gone=False)
        return left


def own_namespaces(context: ext_sdk.Context) -> OwnNamespaces:
    """Return the namespaces of the call's workdir and scope."""
    return context.state(OwnNamespaces)


def existence(context: ext_sdk.Context, client: Client) -> Callable[[Created], bool]:
    """Return a function that queries if a namespace exists and is not being deleted."""

    def exists(created: Created) -> bool:
        try:
            item = client.request("GET", core_path("namespaces", name=created.name), deadline=context.deadline)
        except NotFound:
            return False
        except KubernetesError:  # unknown: it may exist
            return True
        return text(item, "metadata", "uid") == created.uid and not text(item, "metadata", "deletionTimestamp")

    return exists


def listed(namespaces: Sequence[Created]) -> str:
    """Return the names, for messages."""
    return ", ".join(
        f"{created.name} (prefix {created.prefix})" if created.prefix else created.name for created in namespaces
    )


def _ambiguous(reason: str, live: Sequence[Created]) -> ext_sdk.OperationFailed:
    names = f": {listed(live)}" if live else ""
    return ext_sdk.OperationFailed(
        f"no namespace for this operation: {reason}"[:200],
        error=f"no namespace for this operation: {reason}{names}; set `namespace`, such as "
        f"`namespace: ${{NAME.name}}` with the outputs of a create-namespace with `as: NAME`, or {APART}. "
        "`namespace: default` must be set explicitly, too",
    )
