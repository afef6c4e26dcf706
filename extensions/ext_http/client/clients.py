"""The clients of a process: one for each set of settings, with the connections that it keeps."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from .exchange import Client

if TYPE_CHECKING:
    from ext_http.settings import Settings

MOST = 50  # clients that are kept; the one that was made first makes room


class Clients:
    """Keeps them; safe in several threads."""

    def __init__(self) -> None:
        self._clients: dict[Settings, Client] = {}
        self._lock = threading.Lock()

    def get(self, settings: Settings) -> Client:
        """The client of these settings, made at the first call."""
        with self._lock:
            client = self._clients.get(settings)
            if client is None:
                if len(self._clients) >= MOST:
                    del self._clients[next(iter(self._clients))]  # its connections end when nobody uses it any more
                client = self._clients[settings] = Client(settings)
            return client

    def close(self) -> None:
        """End all connections."""
        with self._lock:
            clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()
