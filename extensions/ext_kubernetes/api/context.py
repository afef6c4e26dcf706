"""One context of a kubeconfig, with its connection and its credentials, which are read again when they change."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ext_kubernetes.objects.fields import text
from ext_sdk import Deadline

from .connection import Connection
from .errors import NoConfiguration
from .impersonation import impersonation
from .kubeconfig import Entry, Kubeconfig, read, stamps
from .lazy_import import warm_up

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .impersonation import Headers
    from .kubeconfig import Source


RENEWABLE = frozenset({"exec", "tokenFile", "auth-provider"})  # members of a user that may have another token by now


class KubeContext:
    """One context of a kubeconfig, or the account of the pod; safe in several threads.

    Args:
        source: where it is.

    Attributes:
        renewals: how often the credentials were loaded anew.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._retired: list[Connection] = []  # of older credentials; requests may still be under way on them
        self._known: Kubeconfig | None = None
        self._stamp = source.stamp
        self.renewals = 0

    @property
    def namespace(self) -> str:
        """The one of the kubeconfig's context, or of the pod; "" where there is none."""
        if self.source.in_cluster:
            file = self.source.account / "namespace"
            return file.read_text().strip() if file.is_file() else ""
        found = self._context().get("namespace")
        return found if isinstance(found, str) else ""

    @property
    def user(self) -> str:
        """The user as the kubeconfig names them; "" where it does not."""
        found = "" if self.source.in_cluster else self._context().get("user")
        return found if isinstance(found, str) else ""

    def _context(self) -> Entry:
        return self._kubeconfig().usable(self.source.context)

    def _kubeconfig(self) -> Kubeconfig:
        if self._known is None:
            self._known = read(self.source)
        return self._known

    def connect(self, deadline: Deadline | None = None) -> Connection:
        """The connection; its credentials are loaded at the first call.

        Args:
            deadline: for that; None for none.

        Raises:
            NoConfiguration: there are none, or not in time.
        """
        if (connection := self._connection) is not None:
            return connection
        deadline = deadline or Deadline()
        with self._loading(deadline):
            if self._connection is None:
                warm_up()  # first: then only a part of the YAML library is imported to read the kubeconfig
                self._connection = Connection(self.source, deadline, self._impersonation())
            return self._connection

    def _impersonation(self) -> Headers:
        if self.source.in_cluster:
            return ()
        user = text(self._context(), "user")
        return impersonation(self._kubeconfig().users.get(user, {}), user)

    @contextmanager
    def _loading(self, deadline: Deadline) -> Iterator[None]:
        """Nobody else loads credentials meanwhile: a plugin may take its time."""
        if not (
            self._lock.acquire(blocking=False)
            or self._lock.acquire(timeout=min(deadline.remaining(), threading.TIMEOUT_MAX))
        ):
            raise NoConfiguration(
                "no credentials", error=f"the credentials of {self.source} are not there yet: another call loads them"
            )
        try:
            yield
        finally:
            self._lock.release()

    def close(self) -> None:
        """End the connections."""
        with self._lock:
            connections, self._retired = self._retired, []
            if self._connection is not None:
                connections.append(self._connection)
            self._connection = None
        for connection in connections:
            connection.close()

    def renew(self, seen: int) -> bool:
        """Load the credentials anew: a plugin or a file may have others by now.

        Args:
            seen: renewals, before the request whose credentials were refused.

        Returns:
            whether there may be others; also where somebody else has loaded them since.
        """
        if self.renewals != seen:
            return True
        user = {} if self.source.in_cluster else read(self.source).users.get(self.user, {})
        stamp = stamps(self.source.files)
        rewritten, self._stamp = stamp != self._stamp, stamp
        if not (self.source.in_cluster or RENEWABLE & user.keys() or rewritten):
            return False
        with self._lock:
            self.renewals += 1
            self._known = None
            if self._connection is not None:
                self._retired.append(self._connection)
            self._connection = None
        return True
