"""Whatever is asked, and whatever a server answers: ext-http says what is wrong, and never that it is broken itself."""

from __future__ import annotations

import gzip
import socket
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.host import ExtensionHost

if TYPE_CHECKING:
    from collections.abc import Iterator

INTERNAL_ERROR = -32603
ODD = "ab.:/@?#[]%\\ \t\n\0{}|^`<>\"'~!$&()*+,;=-_019\N{LATIN SMALL LETTER E WITH ACUTE}\N{SNOWMAN}\N{ZERO WIDTH SPACE}"
TEXT = st.text(ODD, max_size=12)
URLS = st.builds(
    "{}{}".format,
    st.sampled_from(["http://", "https://", "HTTP://", "//", "/", ""]),
    st.one_of(
        TEXT,
        st.builds("127.0.0.1:1/{}".format, TEXT),
        st.builds("[{}]".format, TEXT),
        st.builds("127.0.0.1:{}".format, TEXT),
        st.builds("{}@127.0.0.1:1/".format, TEXT),
        st.just("x" * 64 + ".test"),
    ),
)
NEAR = "http://127.0.0.1:1/"
ARGUMENTS = st.one_of(
    st.fixed_dictionaries({"url": URLS}),
    st.fixed_dictionaries({"url": st.just(NEAR), "headers": st.dictionaries(TEXT, TEXT, max_size=2)}),
    st.fixed_dictionaries({"url": st.just(NEAR), "resolve": st.dictionaries(TEXT, TEXT, max_size=2)}),
    st.fixed_dictionaries({"url": st.just(NEAR), "proxy": st.one_of(TEXT, st.builds("http://{}".format, TEXT))}),
    st.fixed_dictionaries({"url": st.just(NEAR), "unixSocket": TEXT, "allowHosts": st.lists(TEXT, max_size=2)}),
    st.fixed_dictionaries(
        {"url": st.just(NEAR), "query": st.dictionaries(TEXT, TEXT), "body": st.builds(dict, raw=TEXT)}
    ),
)
ANSWERS = [
    (
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/plain; charset=utf-8\r\n"
        b"Set-Cookie: a=b; Path=/; Expires=Wed, 21 Oct 2065 07:28:00 GMT\r\n\r\nhello"
    ),
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n19\r\n"
    + gzip.compress(b"hello", mtime=0)
    + b"\r\n0\r\n\r\n",
    b"HTTP/1.0 302 Found\r\nLocation: /x\r\nRetry-After: 3\r\n\r\n",
    (
        b'HTTP/1.1 401 No\r\nWWW-Authenticate: Digest realm="x", nonce="y", qop="auth", algorithm=MD5\r\n'
        b"Content-Length: 0\r\n\r\n"
    ),
    b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate, gzip, identity\r\nContent-Length: 3\r\n\r\nabc",
]


class OddServer:
    """Answers every request with the same bytes, and closes."""

    def __init__(self) -> None:
        self.answer = b""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                connection.settimeout(5)
                connection.recv(65_536)
                connection.sendall(self.answer)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@pytest.fixture(scope="module")
def peer() -> Iterator[ExtensionHost]:
    with ExtensionHost([sys.executable, "-m", "ext_http"]) as one:
        yield one


@pytest.fixture(scope="module")
def server() -> Iterator[OddServer]:
    one = OddServer()
    yield one
    one.close()


def is_no_fault(answer: dict[str, object]) -> bool:
    error = answer.get("error")
    return error is None or (isinstance(error, dict) and error["code"] != INTERNAL_ERROR)


@given(args=ARGUMENTS)
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_no_arguments_are_an_internal_error(args: dict[str, object], peer: ExtensionHost) -> None:
    answer = peer.execute("request", {**args, "timeout": "200ms"})
    assert is_no_fault(answer), answer


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(st.sampled_from(ANSWERS)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 4))] = draw(st.binary(max_size=4))
    return bytes(data)


@given(data=mutated(), digest=st.booleans(), redirects=st.integers(0, 2))
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_no_answer_is_an_internal_error(
    data: bytes, digest: bool, redirects: int, peer: ExtensionHost, server: OddServer
) -> None:
    server.answer = data
    args: dict[str, object] = {
        "url": server.url,
        "timeout": "5s",
        "session": "odd",
        "redirects": redirects,
        "capture": {"x": {"json": "$.a", "default": ""}},
        "expect": {"body": {"json": [{"path": "$.a", "exists": True}]}, "headers": {"set-cookie": "x"}},
    }
    if digest:
        args["auth"] = {"digest": {"username": "ada", "password": "pass-word"}}
    answer = peer.execute("request", args)
    assert is_no_fault(answer), answer
