"""Settings of a client; hashable, because requests with equal settings share a client and its connections."""

from __future__ import annotations

from typing import Literal, NamedTuple

from .url import Guard

HttpVersion = Literal["1.1", "2", "auto"]


RECORDER = "EXT_RECORDER_PROXY"  # `ext-recorder run` records: its proxy, whose authority is in SSL_CERT_FILE, is used


class Tls(NamedTuple):
    """TLS settings.

    Attributes:
        ca: CA certificates in PEM; "" for those of the system.
        certificate: client certificate with its chain, in PEM; "" for none.
        key: key of the client certificate, in PEM.
        key_password: of an encrypted key.
        server_name: for SNI; "" for the URL's host.
    """

    ca: str = ""
    certificate: str = ""
    key: str = ""
    key_password: str = ""
    insecure: bool = False
    server_name: str = ""


class Proxy(NamedTuple):
    """HTTP proxy: its URL without user information, and (user, password)."""

    url: str
    auth: tuple[bytes, bytes] | None = None


class Settings(NamedTuple):
    """Settings of a client.

    Attributes:
        proxy: None for a direct connection.
        unix_socket: path of a socket to connect to, instead of the URL's host; "" for none.
        resolve: ((host, port), address) pairs, instead of the system's resolver; port 0 is any port.
        http_version: "auto" negotiates by ALPN.
    """

    guard: Guard = Guard()
    tls: Tls = Tls()
    proxy: Proxy | None = None
    unix_socket: str = ""
    resolve: tuple[tuple[tuple[str, int], str], ...] = ()
    http_version: HttpVersion = "1.1"
