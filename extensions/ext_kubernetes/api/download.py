"""A file from a web server: bounded in bytes and time, and never from where clouds hand out credentials.

Redirects are followed, a few of them, each looked at like the first address. A name is looked up once and what it means
is connected to, so that it can't mean something else a moment later.
"""

from __future__ import annotations

import http
import socket
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import ext_sdk
from ext_sdk.net.metadata_hosts import hands_out_credentials

from .connection import USER_AGENT, transport_error

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse


MOST_HOPS = 5
CONNECT_SECONDS = 5.0
PIECE = 65_536  # bytes read at once
PORTS = {"http": 80, "https": 443}
REDIRECTS = frozenset({301, 302, 303, 307, 308})
HEADERS = {"User-Agent": USER_AGENT, "Accept": "*/*", "Accept-Encoding": "identity"}


def fetch(url: str, deadline: ext_sdk.Deadline, limit: int) -> bytes:
    """GET what is at an address.

    Args:
        url: http or https; without credentials, which would end up in messages.
        deadline: for all of it.
        limit: bytes; more are an error.

    Raises:
        ext_sdk.InvalidArgs: it is no such address.
        ext_sdk.OperationFailed: it can't be had; the text has no query, which may hold a token.
    """
    asked = _parts(url)
    here = asked
    for _ in range(MOST_HOPS + 1):
        response = _get(here, deadline)
        try:
            if response.status not in REDIRECTS:
                return _body(response, here, deadline, limit)
            following = _parts(urljoin(here.geturl(), response.headers.get("Location", "")))
        finally:
            response.close()
        if (here.scheme, following.scheme) == ("https", "http"):
            raise _failed(here, f"a redirect to {shown(following)}, which is not encrypted")
        here = following
    raise _failed(asked, f"more than {MOST_HOPS} redirects, the last one to {shown(here)}")


def shown(parts: SplitResult) -> str:
    """An address for messages: its query may hold a token."""
    return parts._replace(query="", fragment="").geturl()


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ext_sdk.InvalidArgs("url", f"expected an address with http:// or https://: {error}") from error
    if parts.scheme not in PORTS or not parts.hostname or port == 0:
        raise ext_sdk.InvalidArgs("url", f"expected an address with http:// or https://, found {shown(parts)[:200]!r}")
    if parts.username is not None:
        raise ext_sdk.InvalidArgs("url", "expected an address without user and password, which messages would show")
    return parts


def _get(parts: SplitResult, deadline: ext_sdk.Deadline) -> BaseHTTPResponse:
    """Ask one server; the body of its answer is still to be read."""
    import urllib3

    host = parts.hostname or ""
    _check(host, host)
    proxy = getproxies().get(parts.scheme)
    timeout = urllib3.Timeout(CONNECT_SECONDS, max(0.1, deadline.remaining()))
    if proxy and not proxy_bypass(host):
        try:
            return urllib3.ProxyManager(proxy).request(
                "GET", parts.geturl(), headers=HEADERS, timeout=timeout, retries=False, preload_content=False,
                redirect=False,
            )  # fmt: skip
        except urllib3.exceptions.HTTPError as error:
            raise _failed(parts, f"no answer by way of the proxy: {transport_error(error)}") from error
    port = parts.port or PORTS[parts.scheme]
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    problem = "nothing"
    for address in _addresses(parts, host, port):
        pool: urllib3.HTTPConnectionPool
        if parts.scheme == "https":
            pool = urllib3.HTTPSConnectionPool(address, port, server_hostname=host, assert_hostname=host)
        else:
            pool = urllib3.HTTPConnectionPool(address, port)
        try:
            return pool.request(
                "GET", target, headers=HEADERS | {"Host": parts.netloc}, timeout=timeout, retries=False,
                preload_content=False, redirect=False, assert_same_host=False,
            )  # fmt: skip
        except urllib3.exceptions.HTTPError as error:
            problem = f"{address}, port {port}: {transport_error(error)}"
    raise _failed(parts, f"no answer from {problem}")


def _addresses(parts: SplitResult, host: str, port: int) -> list[str]:
    """What a name means; none of it may be forbidden."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise _failed(parts, f"no server of the name {host}: {error}") from error
    addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
    for address in addresses:
        _check(host, address)
    return addresses


def _check(host: str, address: str) -> None:
    if hands_out_credentials(address):
        raise ext_sdk.OperationFailed(
            f"{host} is not asked", error=f"url: {host} is not asked: clouds hand out credentials at that address"
        )


def _body(response: BaseHTTPResponse, parts: SplitResult, deadline: ext_sdk.Deadline, limit: int) -> bytes:
    import urllib3

    if response.status != http.HTTPStatus.OK:
        raise _failed(parts, f"HTTP status {response.status} {response.reason or ''}".rstrip())
    data = bytearray()
    try:
        while piece := response.read1(PIECE):
            data += piece
            if len(data) > limit:
                raise _failed(parts, f"more than {limit:,} bytes")
            if deadline.expired:
                raise _failed(parts, f"no end in time, after {len(data):,} bytes")
    except urllib3.exceptions.HTTPError as error:
        raise _failed(parts, f"an answer that broke off: {transport_error(error)}") from error
    return bytes(data)


def _failed(parts: SplitResult, found: str) -> ext_sdk.OperationFailed:
    return ext_sdk.OperationFailed(
        "the manifest can't be fetched", error=f"url: expected a manifest at {shown(parts)}, found {found}"
    )
