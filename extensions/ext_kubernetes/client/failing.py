"""Answers that are failures, read within bounds: the package would read them to their end, wherever that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from .answer import read_body

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from .connection import RawResponse

MOST_BYTES = 1024 * 1024  # of an answer that is a failure; what a server says is hundreds


class Pool(Protocol):
    """What the package sends requests by: urllib3's manager of pools."""

    request: Callable[..., RawResponse]


class Failure(Exception):
    """An answer that is a failure; its body is still to be read."""

    def __init__(self, response: RawResponse) -> None:
        super().__init__(f"HTTP status {response.status}")
        self.response = response

    def body(self, seconds: float, stopped: threading.Event) -> bytes:
        """The first MOST_BYTES of its body, or some more; see read_body."""
        return read_body(self.response, MOST_BYTES, seconds, stopped)


def raise_failures(pool: Pool) -> None:
    """Have a pool raise Failure for what is none of the statuses 200 to 299, before anybody reads it."""
    send = pool.request

    def request(*args: object, **options: object) -> RawResponse:
        response = send(*args, **options)
        if 200 <= response.status <= 299:
            return response
        raise Failure(response)

    pool.request = request
