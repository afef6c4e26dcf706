"""What the connections of one client have in common; hashable, for requests with the same settings share them."""

from __future__ import annotations

from typing import Literal, NamedTuple

from .ssrf_guard import Guard

HttpVersion = Literal["1.1", "2", "auto"]


class Tls(NamedTuple):
    """How servers and this client prove who they are.

    Attributes:
        ca: certificates of authorities, PEM, in place of the system's; "" for those.
        certificate: of this client, PEM, with its chain; "" for none.
        key: of that certificate, PEM.
        key_password: of the key, where it is encrypted.
        insecure: whether any server is believed.
        server_name: to ask for, in place of the URL's host; "" for that.
    """

    ca: str = ""
    certificate: str = ""
    key: str = ""
    key_password: str = ""
    insecure: bool = False
    server_name: str = ""


class Proxy(NamedTuple):
    """An HTTP proxy: its URL without credentials, and these; headers for it alone."""

    url: str
    auth: tuple[bytes, bytes] | None = None
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Settings(NamedTuple):
    """The settings of a client.

    Attributes:
        guard: what may be reached.
        tls: see Tls.
        proxy: to go through; None: none.
        unix_socket: path of a socket to connect to, whatever the URL says; "" for none.
        resolve: ((host, port), address) pairs, in place of what the system knows; port 0 is any.
        http_version: "auto" asks the server by ALPN.
    """

    guard: Guard = Guard()
    tls: Tls = Tls()
    proxy: Proxy | None = None
    unix_socket: str = ""
    resolve: tuple[tuple[tuple[str, int], str], ...] = ()
    http_version: HttpVersion = "1.1"
