"""Web site for the tests of recorded HTTP: responses of all kinds, by the first segment of the path."""

from __future__ import annotations

import gzip
import json
import ssl
import zlib
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

import trustme

from tests.support.http_stub import Stub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.http_stub import Asked, Handler

BIG = 100 * 1024 * 1024  # bytes
BINARY = bytes(range(256)) * 7


@cache
def bomb() -> bytes:
    """Return some 100 KB that become 100 MB. Call it before a client waits for them."""
    packing = zlib.compressobj(wbits=31)
    return b"".join([*(packing.compress(bytes(1024 * 1024)) for _ in range(100)), packing.flush()])


def _default(handler: Handler, asked: Asked) -> None:
    if asked.method == "POST":
        handler.answer(201, asked.body)
    else:
        handler.answer(200, json.dumps({"path": asked.path, "number": asked.number}))


def _headers(handler: Handler, _: Asked) -> None:
    handler.send_response(200)
    for name, value in (("X-Twice", "b"), ("x-other", "1"), ("X-Twice", "a"), ("Set-Cookie", "k=v; Path=/")):
        handler.send_header(name, value)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def _chunked(handler: Handler, _: Asked) -> None:
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for piece in (b"one", b"two\0\xff", b"three" * 100, b""):
        handler.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))


def _events(handler: Handler, _: Asked) -> None:
    """Send server-sent events without an end: the client closes the connection."""
    handler.begin("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    for number in range(3):
        handler.wfile.write(b"data: %d\n\n" % number)
    handler.rfile.read()


def _big(handler: Handler, asked: Asked) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(BIG))
    handler.end_headers()
    for _ in range(BIG // 65_536):
        handler.wfile.write(b"x" * 65_536)


def _silence(handler: Handler, _: Asked) -> None:
    """Send nothing until the client closes the connection."""
    handler.rfile.read()
    handler.close_connection = True


ROUTES = {
    "big": _big,
    "binary": lambda handler, _: handler.answer(200, BINARY),
    "bomb": lambda handler, _: handler.answer(200, bomb(), {"Content-Encoding": "gzip"}),
    "chunked": _chunked,
    "count": lambda handler, asked: handler.answer(200, str(asked.number)),
    "echo": lambda handler, asked: handler.json({"headers": dict(asked.headers)}),
    "events": _events,
    "gzip": lambda handler, _: handler.answer(200, gzip.compress(b"plain " * 1000), {"Content-Encoding": "gzip"}),
    "headers": _headers,
    "redirect": lambda handler, _: handler.answer(302, b"", {"Location": "/count/redirected"}),
    "reset": lambda handler, _: handler.reset(),
    "short": lambda handler, _: handler.begin("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this"),
    "silence": _silence,
    "websocket": lambda handler, _: handler.begin(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    ),
}


def _site(handler: Handler, asked: Asked) -> None:
    kind = asked.path.split("/")[1].partition("?")[0]
    (_default if asked.method == "POST" else ROUTES.get(kind, _default))(handler, asked)


@contextmanager
def serving(certificates: Path | None = None, port: int = 0) -> Iterator[Stub]:
    """Serve the site; with TLS if a folder for certificates is given, whose authority is `ca.pem` there."""
    context = None
    if certificates is not None:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(certificates / "ca.pem"))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
    with Stub(context, port=port, default=_site) as server:
        yield server
