"""Namespaces that create-namespace made for one workdir and scope: which one is implicit, which ones may be deleted.

Hosts give tasks of one folder the same workdir, run them in parallel, and continue after a failed step. So nothing is
guessed here: if it is not certain whose namespace an operation means, the operation fails and names the ways out.
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
    """A namespace that was created here.

    Attributes:
        name: of the namespace.
        uid: of the namespace; a later one of the same name has another.
        prefix: that its name was generated from; "" for a given name.
        used: operations that name no namespace use it.
        turn: position among all calls of create-namespace.
    """

    name: str
    uid: str
    prefix: str
    used: bool
    turn: int


class OwnNamespaces:
    """The namespaces of one workdir and scope; safe in several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns = 0
        self._created: list[Created] = []
        self._deleted: set[str] = set()  # uids of those that were deleted: none of them is implicit
        self._gone: set[str] = set()  # uids of those that need no further deletion
        self._failed = False  # a create-namespace failed, and its task may still try to delete what it lacks
        self._failed_use: tuple[int, str] = (0, "")  # turn of the last one that failed with `use: true`, and why

    # --- What happens -------------------------------------------------------------------------------------------------

    def created(self, name: str, uid: str, *, prefix: str, used: bool) -> None:
        """Note a namespace that was created."""
        with self._lock:
            self._turns += 1
            self._created.append(Created(name, uid, prefix, used, self._turns))

    def failed(self, why: str, *, used: bool) -> None:
        """Note a create-namespace that failed."""
        with self._lock:
            self._turns += 1
            self._failed = True
            if used:
                self._failed_use = (self._turns, why)

    def deleted(self, uid: str, *, gone: bool) -> None:
        """Note that a namespace is being deleted; `gone`: delete-generated-namespaces need not delete it again."""
        with self._lock:
            self._deleted.add(uid)
            if gone:
                self._gone.add(uid)

    def cleaned_up(self) -> None:
        """Note a cleanup that found nothing to delete: the task whose create-namespace failed has ended, if any."""
        with self._lock:
            self._failed = False

    # --- What is known ------------------------------------------------------------------------------------------------

    def names(self) -> set[str]:
        """Return the names of all generated namespaces, deleted ones too."""
        with self._lock:
            return {one.name for one in self._created if one.prefix}

    def generated(self) -> list[Created]:
        """Return the generated namespaces that are still to be deleted, in the order of their creation."""
        with self._lock:
            return [one for one in self._created if one.prefix and one.uid not in self._gone]

    def _live(self) -> list[Created]:
        with self._lock:
            return [one for one in self._created if one.used and one.uid not in self._deleted]

    def implicit(self, exists: Callable[[Created], bool]) -> str:
        """Return the namespace of operations that name none; "" if create-namespace was never called with `use: true`.

        Args:
            exists: asks the server whether a namespace still exists; called only if several may.

        Raises:
            ext_sdk.OperationFailed: it is not certain which one, or the only certain one is not there.
        """
        with self._lock:
            asked = self._failed_use[0] > 0 or any(one.used for one in self._created)
        if not asked:
            return ""
        live = self._existing(self._live(), exists)
        last, why = self._failed_use
        if last > max((one.turn for one in self._created if one.used), default=0):
            raise _unclear(f"create-namespace failed: {why}", live)
        if len(live) == 1:
            return live[0].name
        if live:
            raise _unclear("several namespaces were created in this workdir and may be of other tasks", live)
        raise _unclear("the namespace that create-namespace made was deleted", live)

    def certain(self, found: Sequence[Created], exists: Callable[[Created], bool]) -> Created | None:
        """Return the one namespace that may be deleted without being named; None if none exists.

        Args:
            found: the candidates.
            exists: see `implicit`.

        Raises:
            ext_sdk.OperationFailed: there are several, or a create-namespace failed, before or since, so it may be
                another task's.
        """
        left = self._existing(found, exists)
        if not left:
            self.cleaned_up()
            return None
        if len(left) == 1 and not self._failed:
            return left[0]
        why = "another create-namespace failed" if len(left) == 1 else f"{len(left)} are left in this workdir"
        names = listed(left)
        raise ext_sdk.OperationFailed(
            f"no namespace was deleted: {why}",
            error=f"no namespace was deleted, because any of these may be another task's ({why}): {names}; name those "
            f"to delete, or {APART}",
            outputs={"left": "\n".join(one.name for one in left)},
        )

    def live(self) -> list[Created]:
        """Return the namespaces that may be implicit."""
        return self._live()

    def _existing(self, found: Sequence[Created], exists: Callable[[Created], bool]) -> list[Created]:
        """Leave out those that were deleted by others, if there are several."""
        if len(found) < 2:
            return list(found)
        left = []
        for one in found:
            if exists(one):
                left.append(one)
            else:
                self.deleted(one.uid, gone=False)
        return left


def own_namespaces(context: ext_sdk.Context) -> OwnNamespaces:
    """Return the namespaces of the call's workdir and scope."""
    return context.state(OwnNamespaces)


def existence(context: ext_sdk.Context, client: Client) -> Callable[[Created], bool]:
    """Return a function that returns whether a namespace still exists and is not being deleted."""

    def exists(one: Created) -> bool:
        try:
            found = client.request("GET", core_path("namespaces", name=one.name), deadline=context.deadline)
        except NotFound:
            return False
        except KubernetesError:  # not known: it counts
            return True
        return text(found, "metadata", "uid") == one.uid and not text(found, "metadata", "deletionTimestamp")

    return exists


def listed(found: Sequence[Created]) -> str:
    """Return the names, for messages."""
    return ", ".join(f"{one.name} (prefix {one.prefix})" if one.prefix else one.name for one in found)


def _unclear(why: str, live: Sequence[Created]) -> ext_sdk.OperationFailed:
    names = f": {listed(live)}" if live else ""
    return ext_sdk.OperationFailed(
        f"no namespace for this operation: {why}"[:200],
        error=f"no namespace for this operation: {why}{names}; name one, such as `namespace: ${{NAME.name}}` with the "
        f"outputs of a create-namespace with `as: NAME`, or {APART}. `namespace: default` has to be named, too",
    )
