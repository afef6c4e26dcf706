"""Context of a kubeconfig: its connection, and its credentials, which are loaded again when they change."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ext_kubernetes.objects.fields import text
from ext_sdk import Deadline

from .connection import Connection
from .errors import NoConfiguration
from .kubeconfig import impersonation_headers, mtimes_of, read
from .package_patches import warm_up

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .kubeconfig import Kubeconfig, Source


RENEWABLE = frozenset({"exec", "tokenFile", "auth-provider"})  # members of a user whose token may change


class KubeContext:
    """Context of a kubeconfig, or the service account of a pod; thread-safe.

    Attributes:
        generation: number of times that the credentials were loaded again.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._retired: list[Connection] = []  # with previous credentials; they may still have pending requests
        self._kubeconfig: Kubeconfig | None = None
        self._mtimes = source.mtimes
        self.generation = 0

    @property
    def namespace(self) -> str:
        """Return the namespace of the kubeconfig's context, or of the pod; "" without one."""
        if self.source.in_cluster:
            file = self.source.account / "namespace"
            return file.read_text().strip() if file.is_file() else ""
        return text(self._read().usable(self.source.context), "namespace")

    @property
    def user(self) -> str:
        """Return the name of the user in the kubeconfig; "" without one."""
        return "" if self.source.in_cluster else text(self._read().usable(self.source.context), "user")

    def _read(self) -> Kubeconfig:
        if self._kubeconfig is None:
            self._kubeconfig = read(self.source)
        return self._kubeconfig

    def connect(self, deadline: Deadline | None = None) -> Connection:
        """Return the connection; the first call loads the credentials.

        Raises:
            NoConfiguration: the credentials are missing, or could not be loaded before the deadline.
        """
        if (connection := self._connection) is not None:
            return connection
        deadline = deadline or Deadline()
        with self._loading(deadline):
            if self._connection is None:
                warm_up()  # first: then reading the kubeconfig imports only a part of the YAML library
                if self.source.in_cluster:
                    self._connection = Connection(self.source, None, deadline)
                else:
                    user, kubeconfig = self.user, self._read()
                    headers = impersonation_headers(kubeconfig.users.get(user, {}), user)
                    self._connection = Connection(self.source, kubeconfig, deadline, headers)
            return self._connection

    @contextmanager
    def _loading(self, deadline: Deadline) -> Iterator[None]:
        """Hold the lock until the credentials are loaded: a plugin may take some time."""
        if not (
            self._lock.acquire(blocking=False)
            or self._lock.acquire(timeout=min(deadline.remaining(), threading.TIMEOUT_MAX))
        ):
            raise NoConfiguration(
                "no credentials", error=f"the credentials of {self.source} are still being loaded by another call"
            )
        try:
            yield
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            connections, self._retired = self._retired, []
            if self._connection is not None:
                connections.append(self._connection)
            self._connection = None
        for connection in connections:
            connection.close()

    def reload_credentials(self, seen: int) -> bool:
        """Discard the credentials if a plugin or a file may have others; the next `connect` loads them.

        Args:
            seen: generation of the credentials that were rejected.

        Returns:
            True if there may be other credentials, also if another thread has reloaded them.
        """
        if self.generation != seen:
            return True
        user = {} if self.source.in_cluster else read(self.source).users.get(self.user, {})
        mtimes = mtimes_of(self.source.files)
        rewritten, self._mtimes = mtimes != self._mtimes, mtimes
        if not (self.source.in_cluster or RENEWABLE & user.keys() or rewritten):
            return False
        with self._lock:
            self.generation += 1
            self._kubeconfig = None
            if self._connection is not None:
                self._retired.append(self._connection)
            self._connection = None
        return True
