"""The clients of a process: one for each kubeconfig, context and state of the files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_kubernetes.settings import Source, source_of
from ext_sdk.clients import KeptClients

from .client import Client

if TYPE_CHECKING:
    import ext_sdk


class Clients(KeptClients[Source, Client]):
    """Keeps them; one whose files have changed is another one."""

    def make(self, settings: Source) -> Client:
        return Client(settings)


def client_for(context: ext_sdk.Context) -> Client:
    """The client of a call; no server is asked for anything yet.

    Raises:
        NoConfiguration: there is no kubeconfig, or it can't be used.
    """
    client = context.extension_state(Clients).get(source_of(context))
    for name, value in client.connect(context.deadline).secrets():
        context.secrets.add(name, value)
    return client
