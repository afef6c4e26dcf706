"""What the server tells as it happens: the events of a watch, line by line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from .errors import api_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ext_kubernetes.objects.yaml_loader import Object

    from .connection import RawResponse
    from .errors import Unreachable


PIECE = 65_536  # bytes read at once
LONGEST_EVENT = 16 * 1024 * 1024  # bytes; etcd keeps objects under 2 MB


class Event(NamedTuple):
    """ADDED, MODIFIED, DELETED or BOOKMARK, and the object."""

    type: str
    object: Object


class Watch:
    """The events of one watch, to be iterated over once; it ends when the server, or the deadline, ends it.

    Iterating raises ApiError (Gone where its version is too old) and Unreachable.
    """

    def __init__(self, response: RawResponse, failed: Callable[[Exception], Unreachable]) -> None:
        self._response = response
        self._failed = failed
        self._closed = False

    def __iter__(self) -> Iterator[Event]:
        import urllib3

        pending = b""
        try:
            while piece := self._response.read1(PIECE):
                pending += piece
                *lines, pending = pending.split(b"\n")
                for line in lines:
                    if line.strip():
                        yield _event(line)
                if len(pending) > LONGEST_EVENT:
                    raise self._failed(ValueError(f"an event of more than {LONGEST_EVENT} bytes"))
        except urllib3.exceptions.ReadTimeoutError:
            return
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            if not self._closed:
                raise self._failed(error) from error
        finally:
            self._response.close()

    def close(self) -> None:
        """End it, from any thread: who iterates comes to an end."""
        self._closed = True
        shutdown = getattr(self._response, "shutdown", None)
        try:
            if shutdown is not None:
                shutdown()
            else:
                self._response.close()
        except (OSError, ValueError, RuntimeError):  # it has ended in the meantime
            pass


def _event(line: bytes) -> Event:
    told = json.loads(line)
    kind, item = told.get("type"), told.get("object")
    if not isinstance(kind, str) or not isinstance(item, dict):
        raise ValueError("an event without type and object")  # noqa: TRY004  (of the server's text, not of a caller's)
    if kind == "ERROR":
        code = item.get("code")
        raise api_error(code if isinstance(code, int) else 500, item, where="watch")
    return Event(kind, item)
