"""Answers within bounds of bytes and time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from ext_kubernetes.client.answer import Answer, read_body
from ext_kubernetes.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Dripping:
    """An answer that never ends."""

    status = 200

    def __init__(self) -> None:
        self.headers: Mapping[str, str] = {}
        self.closed = self.released = False

    def stream(self, amt: int) -> Iterator[bytes]:
        while not self.closed:
            yield b"x"

    def read1(self, amt: int) -> bytes:
        return b"x"

    def close(self) -> None:
        self.closed = True

    def release_conn(self) -> None:
        self.released = True


def test_an_answer_that_does_not_end_is_ended() -> None:
    response = Dripping()
    with pytest.raises(TimeoutError, match="the answer did not end in time, after"):
        read_body(response, 2**40, 0.0, threading.Event())
    assert response.closed


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
        _ = Answer(200, b'{"items": [', "GET https://server/api/v1/pods", cut=True).value
    assert "expected JSON in answer to GET https://server/api/v1/pods, found more than 11 bytes" in failed.value.error
