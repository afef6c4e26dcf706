from __future__ import annotations

from ext_sdk.context import ClientCache


class Client:
    def __init__(self, name: str) -> None:
        self.name = name
        self.closed = False

    def close(self) -> None:
        self.closed = True


class Two(ClientCache[str, Client]):
    most = 2

    def make(self, settings: str) -> Client:
        return Client(settings)


def test_settings_have_one_client_until_others_need_its_room() -> None:
    clients = Two()
    first = clients.get("a")
    assert clients.get("a") is first
    clients.get("b")
    clients.get("c")
    assert clients.get("a") is not first


def test_closing_ends_the_clients_that_are_kept() -> None:
    clients = Two()
    kept = [clients.get("a"), clients.get("b")]
    clients.close()
    assert [each.closed for each in kept] == [True, True]
