"""Answers within bounds of bytes and time."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import pytest
import urllib3

from ext_kubernetes.api.connection import Response, read_body
from ext_kubernetes.api.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ext_kubernetes.api.package_patches import RawResponse


class Dripping:
    """An answer that never ends."""

    status = 200

    def __init__(self) -> None:
        self.headers: Mapping[str, str] = {}
        self.closed = self.released = False

    def read1(self, amt: int) -> bytes:
        return b"x"

    def close(self) -> None:
        self.closed = True

    def release_conn(self) -> None:
        self.released = True


def test_an_answer_that_does_not_end_is_ended() -> None:
    response = Dripping()
    with pytest.raises(TimeoutError, match="the response did not end in time, after"):
        read_body(response, 2**40, 0.0, threading.Event())
    assert response.closed


@contextmanager
def stalling(answer: bytes) -> Iterator[RawResponse]:
    """The answer of a server that says so much, and then nothing more."""

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(answer)
            connection.recv(1)  # until the client has gone

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        with urllib3.HTTPConnectionPool("127.0.0.1", server.getsockname()[1], timeout=60.0) as pool:
            response = pool.urlopen("GET", "/", preload_content=False)
            yield cast("RawResponse", response)
            response.close()
        thread.join()


@pytest.mark.parametrize("answer", [b"Content-Length: 1000\r\n\r\nx", b"Transfer-Encoding: chunked\r\n\r\n3E8\r\nx"])
def test_each_byte_of_an_answer_is_taken_as_it_comes_so_that_a_slow_one_ends_in_time(answer: bytes) -> None:
    with (
        stalling(b"HTTP/1.1 200 OK\r\n" + answer) as response,
        pytest.raises(TimeoutError, match="after 1 bytes"),
    ):
        read_body(response, 2**20, 0.0, threading.Event())


def test_an_answer_that_is_too_long_is_not_read_to_its_end() -> None:
    response = Dripping()
    assert read_body(response, 10, 60.0, threading.Event()) == b"x" * 11
    assert response.closed
    assert response.released


def test_an_answer_is_not_read_on_when_the_extension_ends() -> None:
    stopped = threading.Event()
    stopped.set()
    assert read_body(Dripping(), 10, 60.0, stopped) == b"x"


def test_a_value_that_was_cut_is_said_to_be() -> None:
    with pytest.raises(ApiError) as failed:
        _ = Response(200, b'{"items": [', "GET https://server/api/v1/pods", cut=True).value
    assert (
        "expected a JSON object in the response to GET https://server/api/v1/pods, found more than 11 bytes"
        in failed.value.error
    )


@pytest.mark.parametrize("data", [b"[1, 2]", b"null", b"<html>", b"[" * 100_000, b"\xff"])
def test_what_is_no_object_is_no_answer(data: bytes) -> None:
    with pytest.raises(ApiError, match="expected a JSON object in the response to GET /api, found b"):
        _ = Response(200, data, "GET /api", cut=False).value


def test_an_answer_is_empty_only_if_its_status_says_so() -> None:
    assert Response(204, b"", "DELETE /api", cut=False).value is None
    with pytest.raises(ApiError, match="expected a JSON object in the response to GET /api, found nothing"):
        _ = Response(200, b"", "GET /api", cut=False).value
