"""Clients that an extension keeps for as long as its process lives: one for each set of settings."""

from __future__ import annotations

import threading
from typing import Generic, Protocol, TypeVar


class Closing(Protocol):
    """What has connections to end."""

    def close(self) -> None: ...


Settings = TypeVar("Settings")
Client = TypeVar("Client", bound=Closing)


class KeptClients(Generic[Settings, Client]):
    """Makes clients, and keeps them; safe in several threads. A subclass says how one is made.

    Attributes:
        most: clients that are kept; the one that was made first makes room. 0: any number.
    """

    most = 0

    def __init__(self) -> None:
        self._clients: dict[Settings, Client] = {}
        self._lock = threading.Lock()

    def make(self, settings: Settings) -> Client:
        """Return a new client of these settings."""
        raise NotImplementedError

    def get(self, settings: Settings) -> Client:
        """Return the client of these settings, made at the first call."""
        with self._lock:
            client = self._clients.get(settings)
            if client is None:
                if self.most and len(self._clients) >= self.most:
                    del self._clients[next(iter(self._clients))]  # its connections end when nobody uses it any more
                client = self._clients[settings] = self.make(settings)
            return client

    def close(self) -> None:
        """End all connections."""
        with self._lock:
            clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()
