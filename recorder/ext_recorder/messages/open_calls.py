"""Open calls of a session: responses and their requests, and recorded and live ids.

Ids are compared by `id_key`. Calls with the same id are answered in the order of their requests: a host may use an id
again after its response, and some hosts do so before it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias, TypeVar

    from ext_recorder.cassette.events import Data
    from ext_recorder.protocols.dialect import ClassifiedMessage, Dialect

    # By pointer into the response: the recorded name, as a key, and the live name as JSON text.
    Echoes: TypeAlias = dict[str, tuple[bytes, bytes]]
    Key = TypeVar("Key")
    Call = TypeVar("Call")
else:
    Key = Call = object  # typing is not imported on the start-up path of replay

# A message that cancels a call may follow its response, so the latest closed calls are kept.
_REMEMBERED = 256


class IdMap:
    """Map from recorded to live ids of the open calls of one side.

    Attributes:
        spared: recorded ids, as keys, of calls that the live host sent without an id: it expects no response.
    """

    __slots__ = ("_echoes", "_later", "_open", "_past", "spared")

    def __init__(self) -> None:
        self.spared: set[bytes] = set()
        self._open: dict[bytes, bytes] = {}
        self._later: dict[bytes, list[bytes]] = {}  # further calls by an id that is open
        self._past: dict[bytes, bytes] = {}
        self._echoes: dict[bytes, Echoes] = {}

    def begin(self, recorded: bytes, live: bytes) -> None:
        """Add an open call.

        Args:
            recorded: its id in the cassette, as a key.
            live: its live id, as JSON text.
        """
        if self._echoes:
            self._echoes.pop(recorded, None)
        if recorded in self._open:
            self._later.setdefault(recorded, []).append(live)
        else:
            self._open[recorded] = live

    def expect(self, recorded: bytes, echoes: Echoes) -> None:
        """Store the values that the response to the latest call repeats."""
        if echoes:
            self._echoes[recorded] = echoes

    def echoes(self, recorded: bytes | None) -> Echoes:
        """Return the values that the response to a call repeats. Call this before `end`."""
        return self._echoes.pop(recorded, {}) if self._echoes and recorded is not None else {}

    def end_oldest(self) -> None:
        """Close the oldest call, for a response without an id of a child that serves one call after another."""
        if self._open:
            self.end(next(iter(self._open)))

    def end(self, recorded: bytes) -> bytes | None:
        """Close a call. Return its live id as JSON text; None if no call of this id is open."""
        live = self._open.pop(recorded, None)
        if live != recorded and live is not None:
            self._past[recorded] = live
            if len(self._past) > _REMEMBERED:
                del self._past[next(iter(self._past))]
        if self._later and (later := self._later.get(recorded)):
            self._open[recorded] = later.pop(0)
            if not later:
                del self._later[recorded]
        return live

    def ended(self, calls: list[tuple[bytes, bytes]]) -> None:
        """Remember calls that were answered, by their recorded and live ids."""
        past = self._past
        past.update(calls[-_REMEMBERED:])
        for recorded in list(past)[: max(0, len(past) - _REMEMBERED)]:
            del past[recorded]

    def __bool__(self) -> bool:
        """Return True if a call is open."""
        return bool(self._open)

    def __len__(self) -> int:
        return len(self._open) + sum(map(len, self._later.values()))

    def is_open(self, recorded: bytes) -> bool:
        """Return True if a call of this recorded id is open."""
        return recorded in self._open

    def live(self, recorded: bytes) -> bytes:
        """Return the live id, as JSON text, of a call that is open or was recently answered."""
        return self._open.get(recorded) or self._past.get(recorded) or recorded


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
