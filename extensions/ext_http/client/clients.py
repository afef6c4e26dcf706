"""The clients of a process: one for each set of settings, with the connections that it keeps."""

from __future__ import annotations

from ext_http.settings import Settings
from ext_sdk.clients import KeptClients

from .exchange import Client


class Clients(KeptClients[Settings, Client]):
    """Keeps them."""

    most = 50

    def make(self, settings: Settings) -> Client:
        return Client(settings)
