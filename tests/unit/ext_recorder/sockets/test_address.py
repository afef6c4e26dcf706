"""Addresses of sockets: their form, and who may connect."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from ext_recorder.errors import UsageError
from ext_recorder.sockets.address import Address, receive, shut

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.ports import NewPort


@pytest.mark.parametrize(
    ("text", "place", "shown"),
    [
        ("tcp:4711", ("127.0.0.1", 4711), "tcp:127.0.0.1:4711"),
        ("tcp:localhost:0", ("localhost", 0), "tcp:localhost:0"),
        ("tcp:[::1]:80", ("::1", 80), "tcp:[::1]:80"),
        ("unix:/run/x.sock", "/run/x.sock", "unix:/run/x.sock"),
    ],
)
def test_an_address_is_a_port_or_a_path(text: str, place: object, shown: str) -> None:
    address = Address.parse(text, "--listen")
    assert (address.place, str(address)) == (place, shown)


@pytest.mark.parametrize("text", ["", "4711", "tcp:", "tcp:65536", "tcp:a:b:1", "tcp:-1", "unix:", "udp:1"])
def test_another_text_is_not_an_address(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--listen .*expected tcp:HOST:PORT or unix:PATH"):
        Address.parse(text, "--listen")


def test_data_passes_in_both_directions_until_the_end(tmp_path: Path) -> None:
    for text in ("tcp:0", f"unix:{tmp_path}/x.sock"):
        listener = Address.parse(text, "--listen").listen()
        with listener.address.connect() as client:
            server = listener.accept()
            assert server is not None
            with server:
                assert receive(server) is None
                client.sendall(b"question")
                shut(client)
                assert receive(server) == b"question"
                assert receive(server) == b""
        listener.close()
        listener.close()
    assert list(tmp_path.iterdir()) == []


def test_a_port_on_which_nothing_listens_does_not_connect_to_itself(
    new_port: NewPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unlucky(socket.socket):
        """Its local port is the one that it connects to, as the system may choose it."""

        def connect(self, address: object) -> None:
            assert isinstance(address, tuple)
            self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.bind(address)
            super().connect(address)
            assert self.getsockname() == self.getpeername()

    address = Address.parse(f"tcp:{new_port()}", "--connect")
    monkeypatch.setattr(socket, "socket", Unlucky)
    with pytest.raises(ConnectionRefusedError):
        address.connect()
