"""Failures that a request expects instead of a response."""

from __future__ import annotations

import socket
import ssl
import threading
from typing import TYPE_CHECKING

import pytest
import trustme

from tests.support.http_stub import Asked, Handler, Stub
from tests.support.raw_server import RawServer

if TYPE_CHECKING:
    from tests.support.ext_http import Extension
    from tests.support.ports import NewPort

UNKNOWN = f"http://{'x' * 64}.test/"  # a label has 63 characters at most, so no resolver is asked


def close(connection: socket.socket, _head: bytes) -> None:
    """Close the connection without a response."""
    connection.shutdown(socket.SHUT_RDWR)


def test_a_closed_port(http: Extension, new_port: NewPort) -> None:
    url = f"http://127.0.0.1:{new_port()}/"
    result = http.get(url, expect={"failure": "refused"})
    assert result.outputs.keys() == {"failure", "duration", "url", "attempts"}
    assert result.outputs["failure"] == "refused"
    assert f"GET {url}: refused as expected after" in result.message
    http.get(url, expect={"failure": ["timeout", "refused"]})
    error = http.failed("request", url=url, expect={"failure": ["reset", "tls"]}).error
    assert "failure: expected to be reset or tls, got refused: 127.0.0.1" in error


def test_an_unknown_host(http: Extension) -> None:
    assert http.get(UNKNOWN, expect={"failure": "dns"}).outputs["failure"] == "dns"
    error = http.failed("request", url=UNKNOWN, expect={"failure": "refused"}).error
    assert "expected to be refused, got dns: " in error


def test_a_reset_and_a_closed_connection(http: Extension, stub: Stub) -> None:
    url = stub.does("/", lambda handler, _: handler.reset())
    http.get(url, method="POST", expect={"failure": "reset"})
    with RawServer(close) as server:
        http.get(server.url, expect={"failure": "reset"})


def test_no_response_in_time(http: Extension, stub: Stub) -> None:
    over = threading.Event()
    url = stub.does("/", lambda handler, _: handler.close_after(over))
    try:
        http.get(url, timeout="200ms", expect={"failure": "timeout"})
        result = http.ok("wait", url=url, attemptTimeout="100ms", timeout="20s", expect={"failure": "timeout"})
        assert result.outputs["attempts"] == "1"
    finally:
        over.set()


def test_tls_that_is_not_established(http: Extension, stub: Stub) -> None:
    stub.says("/", "ok")
    refused = {"failure": "tls"}
    http.get(stub.origin.replace("http:", "https:"), expect=refused)  # the server expects plain HTTP
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    with RawServer(close, context) as server:
        http.get(server.url, expect=refused)  # an unknown authority
    context.verify_mode = ssl.CERT_REQUIRED
    trust = {"ca": authority.cert_pem.bytes().decode()}
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):  # 1.3 refuses after the handshake
        context.maximum_version = version
        with Stub(context) as secure:
            secure.says("/", "safe")
            http.get(secure.url(), tls=trust, expect=refused)


def test_a_response_is_not_a_failure(http: Extension, stub: Stub) -> None:
    result = http.failed("request", url=stub.says("/", "hello"), expect={"failure": "refused"})
    assert "failure: expected to be refused, got a response: 200 OK" in result.error
    assert result.outputs["status"] == "200"


def test_an_idle_connection_does_not_hide_a_closed_port(http: Extension, new_port: NewPort) -> None:
    with Stub(port=new_port()) as server:
        url = server.says("/", "ok")
        http.get(url)
        server.close_listener()
        http.get(url)  # on the connection that is still open
        http.get(url, expect={"failure": "refused"})


def test_a_wait_until_a_server_is_down(http: Extension, new_port: NewPort) -> None:
    with Stub(port=new_port()) as server:

        def last(handler: Handler, asked: Asked) -> None:
            if asked.number == 3:
                server.close_listener()
            handler.answer(401)

        url = server.does("/", last)
        expect = {"failure": ["refused", "reset"]}
        result = http.ok("wait", url=url, interval="1ms", timeout="20s", successes=2, expect=expect)
        assert "refused as expected" in result.message
        assert result.outputs["attempts"] == "5"


def test_a_wait_for_a_failure_that_does_not_occur(http: Extension, stub: Stub) -> None:
    url = stub.says("/", "hello")
    error = http.failed("wait", url=url, timeout="300ms", expect={"failure": "refused"}).error
    assert "failure: expected to be refused, got a response: 200 OK" in error
    error = http.failed("wait", url=UNKNOWN, timeout="300ms", expect={"failure": "refused"}).error
    assert "failure: expected to be refused, got dns: " in error


def test_a_failing_proxy_is_not_a_failure_of_the_server(http: Extension, new_port: NewPort) -> None:
    proxy = f"http://127.0.0.1:{new_port()}"
    error = http.failed("request", url="http://shop.test/", proxy=proxy, expect={"failure": "refused"}).error
    assert "failure: expected to be refused, got connection: " in error


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"expect": {"failure": "refused", "status": 200}}, "`failure` expects no response, so it excludes status"),
        ({"expect": {"failure": "refused"}, "capture": {"a": {}}}, "so nothing can be captured"),
        ({"expect": {"failure": "down"}}, "failure"),
        ({"expect": {"failure": []}}, "failure"),
    ],
)
def test_what_can_not_be_expected(args: dict[str, object], problem: str, http: Extension) -> None:
    assert problem in http.refused("request", url="http://127.0.0.1:1/", **args)
