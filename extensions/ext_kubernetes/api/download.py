"""Download of a file from a web server: limited in bytes and time, and never from a cloud's metadata service.

A few redirects are followed, each checked like the first URL. A host name is resolved once, and its address is used, so
that it can't change between check and connection.
"""

from __future__ import annotations

import http
import socket
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urljoin, urlsplit

import ext_sdk
from ext_sdk.metadata_hosts import hands_out_credentials

from .connection import USER_AGENT, transport_error
from .package_patches import warm_up

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse


MOST_HOPS = 5
CONNECT_SECONDS = 5.0
PIECE = 65_536  # bytes read at once
PORTS = {"http": 80, "https": 443}
REDIRECTS = frozenset({301, 302, 303, 307, 308})
HEADERS = {"User-Agent": USER_AGENT, "Accept": "*/*", "Accept-Encoding": "identity"}


def fetch(url: str, deadline: ext_sdk.Deadline, limit: int) -> bytes:
    """Download a file.

    Args:
        url: http or https, without credentials, which would appear in messages.
        deadline: of the entire download.
        limit: maximum number of bytes; a larger file is an error.

    Raises:
        ext_sdk.InvalidArgs: the URL is invalid.
        ext_sdk.OperationFailed: the download failed; the error omits the query, which may hold a token.
    """
    first = current = _parts(url)
    for _ in range(MOST_HOPS + 1):
        response = _get(current, deadline)
        try:
            if response.status not in REDIRECTS:
                return _body(response, current, deadline, limit)
            following = _parts(urljoin(current.geturl(), response.headers.get("Location", "")))
        finally:
            response.close()
        if (current.scheme, following.scheme) == ("https", "http"):
            raise _failed(current, f"a redirect to {shown(following)}, which is not encrypted")
        current = following
    raise _failed(first, f"more than {MOST_HOPS} redirects, the last one to {shown(current)}")


def shown(parts: SplitResult) -> str:
    """Return a URL for messages, without its query, which may hold a token."""
    return parts._replace(query="", fragment="").geturl()


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ext_sdk.InvalidArgs("url", f"expected a URL with http:// or https://: {error}") from error
    if parts.scheme not in PORTS or not parts.hostname or port == 0:
        raise ext_sdk.InvalidArgs("url", f"expected a URL with http:// or https://, found {shown(parts)[:200]!r}")
    if parts.username is not None:
        raise ext_sdk.InvalidArgs("url", "expected a URL without user and password, which messages would show")
    return parts


def _get(parts: SplitResult, deadline: ext_sdk.Deadline) -> BaseHTTPResponse:
    """Send a request to one server; the body of the response is still to be read."""
    warm_up()  # first: only one thread must import the library
    from urllib.request import getproxies, proxy_bypass

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
            raise _failed(parts, f"no response via the proxy: {transport_error(error)}") from error
    port = parts.port or PORTS[parts.scheme]
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise _failed(parts, f"no address for {host}: {error}") from error
    addresses = list(dict.fromkeys(str(info[4][0]) for info in infos))
    for address in addresses:  # one that is forbidden rules out the others, too
        _check(host, address)
    problem = "any address"
    for address in addresses:
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
    raise _failed(parts, f"no response from {problem}")


def _check(host: str, address: str) -> None:
    if hands_out_credentials(address):
        raise ext_sdk.OperationFailed(
            f"{host} is forbidden", error=f"url: {host} is forbidden: clouds serve credentials at that address"
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
                raise _failed(parts, f"no end before the deadline, after {len(data):,} bytes")
    except urllib3.exceptions.HTTPError as error:
        raise _failed(parts, f"a response that broke off: {transport_error(error)}") from error
    return bytes(data)


def _failed(parts: SplitResult, found: str) -> ext_sdk.OperationFailed:
    return ext_sdk.OperationFailed(
        "the manifest can't be downloaded", error=f"url: expected a manifest at {shown(parts)}, found {found}"
    )
