"""A server for the tests of the HTTP layer: real sockets on loopback, answers of every kind, requests counted."""

from __future__ import annotations

import gzip
import json
import ssl
import struct
import threading
import zlib
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SO_LINGER, SOL_SOCKET
from typing import TYPE_CHECKING

import trustme

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BIG = 100 * 1024 * 1024  # bytes
BINARY = bytes(range(256)) * 7


@cache
def bomb() -> bytes:
    """Some 100 KB that become 100 MB; to be made before a client waits for it."""
    packing = zlib.compressobj(wbits=31)
    return b"".join([*(packing.compress(bytes(1024 * 1024)) for _ in range(100)), packing.flush()])


class Server(ThreadingHTTPServer):
    """Counts its requests, by path."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.counts: dict[str, int] = {}
        self.lock = threading.Lock()
        self.scheme = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    def count(self, path: str) -> int:
        with self.lock:
            self.counts[path] = self.counts.get(path, 0) + 1
            return self.counts[path]

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away in the middle is what some tests are about."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: Server

    def do_GET(self) -> None:
        number = self.server.count(self.path)
        kind = self.path.split("/")[1].partition("?")[0]
        answer = getattr(self, f"get_{kind}", None)
        if answer is not None:
            answer(number)
        else:
            self.answer(json.dumps({"path": self.path, "number": number}).encode())

    def do_POST(self) -> None:
        self.server.count(self.path)
        self.answer(self.rfile.read(int(self.headers["Content-Length"])), status=201)

    def answer(self, body: bytes, *headers: tuple[str, str], status: int = 200) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def get_count(self, number: int) -> None:
        self.answer(str(number).encode())

    def get_binary(self, number: int) -> None:
        self.answer(BINARY)

    def get_gzip(self, number: int) -> None:
        self.answer(gzip.compress(b"plain " * 1000), ("Content-Encoding", "gzip"))

    def get_bomb(self, number: int) -> None:
        self.answer(bomb(), ("Content-Encoding", "gzip"))

    def get_headers(self, number: int) -> None:
        self.answer(b"", ("X-Twice", "b"), ("x-other", "1"), ("X-Twice", "a"), ("Set-Cookie", "k=v; Path=/"))

    def get_echo(self, number: int) -> None:
        self.answer(json.dumps({"headers": dict(self.headers)}).encode(), ("Content-Type", "application/json"))

    def get_chunked(self, number: int) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in (b"one", b"two\0\xff", b"three" * 100):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def get_events(self, number: int) -> None:
        """Server-sent events without an end: it comes when the client goes."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for each in range(3):
            self.wfile.write(b"data: %d\n\n" % each)
        self.wfile.flush()
        self.rfile.read()
        self.close_connection = True

    def get_big(self, number: int) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(BIG))
        self.end_headers()
        for _ in range(BIG // 65_536):
            self.wfile.write(b"x" * 65_536)

    def get_redirect(self, number: int) -> None:
        self.answer(b"", ("Location", "/count/redirected"), status=302)

    def get_reset(self, number: int) -> None:
        self.connection.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def get_short(self, number: int) -> None:
        """Less than was promised."""
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        self.wfile.write(b"only this")
        self.close_connection = True

    def get_silence(self, number: int) -> None:
        """No answer, until the client has had enough."""
        self.wfile.flush()
        self.rfile.read()
        self.close_connection = True

    def get_websocket(self, number: int) -> None:
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.end_headers()
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on stderr."""


@contextmanager
def serving(certificates: Path | None = None, port: int = 0) -> Iterator[Server]:
    """A server; with a folder for certificates, one in TLS, whose authority is `ca.pem` there."""
    server = Server(port)
    if certificates is not None:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(certificates / "ca.pem"))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.scheme = "https"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
