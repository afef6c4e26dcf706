"""The clients of a process: one for each kubeconfig, context and state of the files."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ext_kubernetes import settings

from .client import Client

if TYPE_CHECKING:
    import ext_sdk
    from ext_kubernetes.settings import Source


class Clients:
    """Keeps them; safe in several threads."""

    def __init__(self) -> None:
        self._clients: dict[Source, Client] = {}
        self._lock = threading.Lock()

    def get(self, source: Source) -> Client:
        """The client of a source, made at the first call; one whose files have changed makes room."""
        with self._lock:
            client = self._clients.get(source)
            if client is None:
                client = self._clients[source] = Client(source)
            return client

    def close(self) -> None:
        """End all connections."""
        with self._lock:
            clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()


def client_for(context: ext_sdk.Context) -> Client:
    """The client of a call; no server is asked for anything yet.

    Raises:
        NoConfiguration: there is no kubeconfig, or it can't be used.
    """
    client = context.extension_state(Clients).get(settings.source_of(context))
    for name, value in client.connect().secrets():
        context.secrets.add(name, value)
    return client
