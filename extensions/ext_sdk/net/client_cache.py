"""Cache of clients for the lifetime of an extension: one for each set of settings."""

from __future__ import annotations

import threading
from typing import Generic, Protocol, TypeVar


class Closing(Protocol):
    """Object with connections to close."""

    def close(self) -> None: ...


Settings = TypeVar("Settings")
Client = TypeVar("Client", bound=Closing)


class KeptClients(Generic[Settings, Client]):
    """Cache of clients, which a subclass creates. Thread-safe.

    Attributes:
        most: maximum number of clients; the oldest makes room. 0: unlimited.
    """

    most = 0

    def __init__(self) -> None:
        self._clients: dict[Settings, Client] = {}
        self._lock = threading.Lock()

    def make(self, settings: Settings) -> Client:
        """Return a new client of these settings."""
        raise NotImplementedError

    def get(self, settings: Settings) -> Client:
        """Return the client of these settings; create it at the first call."""
        with self._lock:
            client = self._clients.get(settings)
            if client is None:
                if self.most and len(self._clients) >= self.most:
                    del self._clients[next(iter(self._clients))]  # its connections close when it is no longer used
                client = self._clients[settings] = self.make(settings)
            return client

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()
