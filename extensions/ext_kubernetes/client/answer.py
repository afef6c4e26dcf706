"""What a server answers, and its body within bounds of bytes and time."""

from __future__ import annotations

import http
import json
import time
from typing import TYPE_CHECKING, NamedTuple

from ext_kubernetes.statuses import api_error

if TYPE_CHECKING:
    import threading

    from ext_kubernetes.errors import ApiError

    from .connection import RawResponse

MOST_BYTES = 256 * 1024 * 1024  # of an answer
PIECE = 65_536  # bytes read at once


class Answer(NamedTuple):
    """What a server answered: the status of HTTP, the body, what was asked, and whether the body went on."""

    status: int
    data: bytes
    where: str
    cut: bool

    @property
    def value(self) -> object:
        """Return the object of a JSON body; None for status 204. Integers are exact. Raises ApiError if it has none."""
        if self.status == http.HTTPStatus.NO_CONTENT:
            return None
        try:
            value: object = json.loads(self.data)
        except (ValueError, RecursionError) as error:  # RecursionError: a thousand arrays within each other
            raise self._unexpected() from error
        if not isinstance(value, dict):
            raise self._unexpected()
        return value

    def _unexpected(self) -> ApiError:
        found = f"more than {len(self.data):,} bytes" if self.cut else repr(self.data[:60]) if self.data else "nothing"
        text = f"expected a JSON object in answer to {self.where}, found {found}"
        return api_error(self.status, text, where=self.where)


def read_body(response: RawResponse, limit: int, seconds: float, stopped: threading.Event) -> bytes:
    """The body of an answer; one byte more than `limit` at least where it goes on.

    Args:
        response: whose body is still to be read.
        limit: bytes.
        seconds: for all of it: a server that sends a byte now and then is none that answers.
        stopped: the extension ends.

    Raises:
        TimeoutError: it did not end in time.
        urllib3.exceptions.HTTPError: it broke off.
    """
    until = time.monotonic() + seconds
    data = bytearray()
    while piece := response.read1(PIECE):  # what is there: to wait for more would be without end
        data += piece
        if time.monotonic() > until:
            response.close()
            raise TimeoutError(f"the answer did not end in time, after {len(data):,} bytes")
        if len(data) > limit or stopped.is_set():
            response.close()
            break
    response.release_conn()
    return bytes(data)
