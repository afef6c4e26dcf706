"""Events of a watch, line by line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from .errors import api_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ext_kubernetes.objects.yaml_loader import Object

    from .errors import Unreachable
    from .package_patches import RawResponse


PIECE = 65_536  # bytes read at once
LONGEST_EVENT = 16 * 1024 * 1024  # bytes; etcd keeps objects under 2 MB


class Event(NamedTuple):
    """Event: ADDED, MODIFIED, DELETED or BOOKMARK, and the object."""

    type: str
    object: Object


class Watch:
    """Iterator over the events of one watch, until the server or the deadline ends it.

    Iterating raises ApiError (Gone if the version to continue from is too old) and Unreachable.
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
                for event in map(json.loads, filter(bytes.strip, lines)):
                    kind, item = event.get("type"), event.get("object")
                    if not isinstance(kind, str) or not isinstance(item, dict):
                        raise ValueError("an event without type and object")  # noqa: TRY004  (the server's text)
                    if kind == "ERROR":
                        code = item.get("code")
                        raise api_error(code if isinstance(code, int) else 500, item, where="watch")
                    yield Event(kind, item)
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
        """End the watch, from any thread; iterating stops."""
        self._closed = True
        shutdown = getattr(self._response, "shutdown", None)
        try:
            if shutdown is not None:
                shutdown()
            else:
                self._response.close()
        except (OSError, ValueError, RuntimeError):  # it has ended already
            pass
