"""The end of a connection that still has something to say."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress

import trustme

from ext_kubernetes.api.streams import cut


def encrypted_pair() -> tuple[ssl.SSLSocket, ssl.SSLSocket]:
    """Two ends of a connection with TLS: server and client."""
    authority = trustme.CA()
    serving, asking = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("pod.invalid").configure_cert(serving)
    authority.configure_trust(asking)
    one, other = socket.socketpair()
    ends: list[ssl.SSLSocket] = []
    accepting = threading.Thread(target=lambda: ends.append(serving.wrap_socket(one, server_side=True)))
    accepting.start()
    client = asking.wrap_socket(other, server_hostname="pod.invalid")
    accepting.join()
    return ends[0], client


def test_ciphertext_is_not_taken_for_data_after_the_cut() -> None:
    server, client = encrypted_pair()
    with server, client:
        server.sendall(b"y" * 50_000)  # which nobody has read yet
        assert client.recv(1) == b"y"
        cut(client)
        received = b""
        with suppress(OSError):
            while data := client.recv(1000):
                received += data
        assert set(received) <= {ord("y")}


def test_a_cut_wakes_who_reads() -> None:
    server, client = encrypted_pair()
    ended = threading.Event()

    def read() -> None:
        with suppress(OSError):
            client.recv(1)
        ended.set()

    with server, client:
        reader = threading.Thread(target=read)
        reader.start()
        cut(client)
        assert ended.wait(20)
        reader.join()
