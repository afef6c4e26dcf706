"""Correlation of responses with their requests.

Calls with the same id are answered in the order of their requests: a host may use an id again after its response, and
some hosts do so before it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from ext_recorder.cassette.events import Data
    from ext_recorder.protocols.dialect import ClassifiedMessage, Dialect

    Key = TypeVar("Key")
    Call = TypeVar("Call")
else:
    Key = Call = object  # typing is not imported on the start-up path of replay


class OpenCalls(dict[Key, list[Call]]):
    """Open calls by id, the oldest first."""

    __slots__ = ()

    def begin(self, key: Key, call: Call) -> None:
        """Add a call."""
        self.setdefault(key, []).append(call)

    def first(self, key: Key) -> Call | None:
        """Return the call that the next response with this id belongs to; None if no such call is open."""
        calls = self.get(key)
        return calls[0] if calls else None

    def end(self, key: Key) -> Call | None:
        """Remove that call and return it."""
        calls = self.get(key)
        if not calls:
            return None
        call = calls.pop(0)
        if not calls:
            del self[key]
        return call


class CallTracker(OpenCalls[tuple[str, int, bytes], Call]):
    """Open calls of both sides of a session, by the stream of the request, connection and id."""

    __slots__ = ("dialect",)

    def __init__(self, dialect: Dialect) -> None:
        super().__init__()
        self.dialect = dialect

    def request(self, event: Data, message: ClassifiedMessage, call: Call) -> None:
        """Add the call of a message of this event, if the message is a request with an id."""
        if message.kind == "request" and message.key is not None:
            self.begin((event.kind, event.conn, message.key), call)

    def response(self, event: Data, message: ClassifiedMessage) -> Call | None:
        """Return the call that a message of this event responds to, and close it if the response is the last one.

        Returns None if the message is not a response, or no request with its id is open. A response that has a method
        but no id, as a stream that ends does, belongs to the oldest call.
        """
        if message.kind != "response":
            return None
        requester = "in" if event.kind == "out" else "out"
        key = (requester, event.conn, message.key or b"")
        if message.key is None and message.method:
            key = next((open_key for open_key in self if open_key[:2] == key[:2]), key)
        return self.end(key) if self.dialect.is_last(message) else self.first(key)
