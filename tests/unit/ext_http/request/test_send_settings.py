"""The way to a server: proxies, unix sockets, other addresses for names, HTTP/2."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import h2.config
import h2.connection
import h2.events
import pytest
import trustme

from tests.support.http_stub import Asked, Handler, Server, Stub, echo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.ext_http import Extension


def test_a_proxy_is_asked_for_the_whole_url(http: Extension, stub: Stub) -> None:
    stub.says("http://shop.test/items", "by proxy")
    proxy = stub.origin.replace("://", "://ada:proxy-password-1@")
    result = http.get("http://shop.test/items", proxy=proxy, expect={"body": "by proxy"})
    encoded = base64.b64encode(b"ada:proxy-password-1").decode()
    assert stub.asked[-1].header("proxy-authorization") == f"Basic {encoded}"
    assert "proxy-password-1" not in repr(result)


def test_a_proxy_tunnels_tls(http: Extension, stub: Stub) -> None:
    ca = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("shop.test").configure_cert(context)
    with Stub(context) as shop:
        shop.says("/", "through the tunnel")

        def tunnel(handler: Handler, asked: Asked) -> None:
            handler.close_connection = True
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            with socket.create_connection(("127.0.0.1", shop.port)) as there:
                back = threading.Thread(target=_copy, args=(there, handler.connection), daemon=True)
                back.start()
                _copy(handler.connection, there)

        stub.does(f"shop.test:{shop.port}", tunnel)
        tls = {"ca": ca.cert_pem.bytes().decode()}
        url = f"https://shop.test:{shop.port}/"
        http.get(url, proxy=stub.origin, tls=tls, expect={"body": "through the tunnel"})
    assert stub.asked[-1].method == "CONNECT"


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass


def test_proxies_of_the_environment_are_used_only_where_asked_for(fresh: Callable[..., Extension], stub: Stub) -> None:
    with Stub() as proxy:
        env = {"http_proxy": proxy.origin, "HTTP_PROXY": proxy.origin, "ALL_PROXY": proxy.origin, "no_proxy": ""}
        http = fresh(None, env)
        http.get(stub.says("/", "direct"), expect={"body": "direct"})
        assert proxy.asked == []
        proxy.says("http://shop.test/", "by proxy")
        http.get("http://shop.test/", proxy="env", expect={"body": "by proxy"})
        http = fresh({"proxy": "env"}, env | {"no_proxy": "127.0.0.1"})
        http.get("http://shop.test/", expect={"body": "by proxy"})
        http.get(stub.url(), expect={"body": "direct"})
        http.get(stub.url(), proxy="none", expect={"body": "direct"})


@pytest.mark.parametrize("proxy", ["socks5://x.test:1", "x", "https://x.test", "http://"])
def test_a_proxy_that_can_not_be_is_refused(proxy: str, http: Extension) -> None:
    assert "proxy: expected" in http.refused("request", url="http://shop.test/", proxy=proxy)


class UnixServer(Server):
    address_family = socket.AF_UNIX

    def server_bind(self) -> None:
        self.socket.bind(self.server_address)

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        connection, _ = self.socket.accept()
        return connection, ("unix", 0)


@contextmanager
def on_socket(path: Path) -> Iterator[Stub]:
    server = UnixServer(str(path), Handler)  # type: ignore[arg-type]  # a path in place of host and port
    stub = Stub()
    stub._server.server_close()
    stub._server = server
    server.stub = stub
    stub._thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    with stub:
        yield stub


def test_a_unix_socket_is_connected_to_whatever_the_host(http: Extension) -> None:
    with on_socket(http.workdir / "app.sock") as stub:
        stub.does("/v1", echo)
        headers = http.get("http://docker/v1", unixSocket="app.sock").json()["headers"]
        assert isinstance(headers, dict)
        assert headers["host"] == "docker"
        http.get("http://docker/v1", unixSocket=str(http.workdir / "app.sock"))
    error = http.failed("request", url="http://docker/v1", unixSocket="none.sock").error
    assert "none.sock" in error


def test_a_unix_socket_out_of_a_variable_stays_in_the_workdir(http: Extension, stub: Stub, tmp_path: Path) -> None:
    elsewhere = tmp_path.parent / "else.sock"
    http.get(stub.json("/", {"p": str(elsewhere)}), capture={"p": {"json": "$.p"}}, **{"as": "told"})
    error = http.failed("request", url="http://docker/", unixSocket="${told.p}").error
    assert "not a path inside the working directory" in error


@pytest.mark.parametrize("resolve", [{"a/b": "1.2.3.4"}, {"": "1.2.3.4"}, {"a:b": "1.2.3.4"}, {"a": ""}])
def test_resolve_that_can_not_be_is_refused(resolve: object, http: Extension) -> None:
    assert "resolve: expected" in http.refused("request", url="http://a.test/", resolve=resolve)


@contextmanager
def http2_server(*, tls: bool) -> Iterator[tuple[str, str]]:
    """A server that speaks HTTP/2 only: its URL, and its authority's certificate."""
    ca = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    context.set_alpn_protocols(["h2"])
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with (
                suppress(OSError),
                connection,
                context.wrap_socket(connection, server_side=True) if tls else connection as wrapped,
            ):
                _speak(wrapped)

    threading.Thread(target=serve, daemon=True).start()
    scheme = "https" if tls else "http"
    yield f"{scheme}://127.0.0.1:{server.getsockname()[1]}/", ca.cert_pem.bytes().decode()
    server.shutdown(socket.SHUT_RDWR)
    server.close()


def _speak(connection: socket.socket) -> None:
    state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    state.initiate_connection()
    connection.sendall(state.data_to_send())
    while data := connection.recv(65536):
        for event in state.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                assert event.stream_id
                state.send_headers(event.stream_id, [(":status", "200"), ("x-protocol", "two")])
                state.send_data(event.stream_id, b"over two", end_stream=True)
        connection.sendall(state.data_to_send())


@pytest.mark.parametrize("version", ["2", "auto"])
def test_http_2_over_tls(version: str, http: Extension) -> None:
    with http2_server(tls=True) as (url, ca):
        for _ in range(2):
            result = http.get(url, httpVersion=version, tls={"ca": ca}, expect={"headers": {"x-protocol": "two"}})
            assert result.outputs["body"] == "over two"


def test_http_2_without_tls(http: Extension) -> None:
    with http2_server(tls=False) as (url, _):
        assert http.get(url, httpVersion="2").outputs["body"] == "over two"


def test_auto_falls_back_to_1_1(http: Extension, stub: Stub) -> None:
    assert http.get(stub.says("/", "one"), httpVersion="auto").outputs["body"] == "one"
