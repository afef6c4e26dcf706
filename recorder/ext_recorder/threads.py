"""The threads of a recording, for order `any`: see `any_order` for what belongs to which."""

from __future__ import annotations

from ext_sdk.protocols.dialect import id_key, pointers_of
from ext_sdk.protocols.glance import glance
from ext_sdk.wire.framing import Junk

from .cassette.events import Data, pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_sdk.protocols.dialect import Classified
    from ext_sdk.wire.framing import Framing

    from .cassette.events import Event
    from .hearing import Ear, Recorded

    # What follows in a thread: something of the child, or an answer of the host.
    Step = Event | Recorded


class Thread:
    """One thing that the host did, and what follows from it.

    Attributes:
        origin: the message; None for the start, the end of the input, a signal.
        number: which of those with a message it is, from 0.
        time: when the host did it, in the recording.
        steps: what follows, in its order.
        position: how many of the steps are done.
        open: how many of its calls have no answer yet, as far as the recording was read.
        taken: a live message has begun it.
    """

    __slots__ = ("number", "open", "origin", "position", "steps", "taken", "time")

    def __init__(self, origin: Recorded | None, time: float, number: int = -1) -> None:
        self.origin = origin
        self.number = number
        self.time = time
        self.steps: list[Step] = []
        self.position = 0
        self.open = 0
        self.taken = False


class Cutter:
    """Cuts a recording into threads, as it is read. Keeps those that something may still come to, and no other.

    Attributes:
        first: what the child did at the start.
        count: how many threads begin with a message.
        marks: those that begin with the end of the input, or with a signal, by its name.
    """

    def __init__(self, ear: Ear, framing: Framing) -> None:
        self._dialect = ear.dialect
        self._framing = framing
        self.first = Thread(None, 0.0)
        self.count = 0
        self.marks: dict[str, list[Thread]] = {}
        self._last = self.first
        self._host_calls: dict[bytes, list[Thread]] = {}  # open calls by their id, the oldest first
        self._child_calls: dict[bytes, list[Thread]] = {}
        self._named: dict[bytes, Thread] = {}  # by a call's id or a lasting name: whose answer or stream speaks of it

    def heard(self, item: Recorded, time: float) -> Thread | None:
        """A message of the host: the thread that it begins, or None where it goes on in one."""
        kind, key, last = self._look(item.payload) if item.is_message else ("other", b"", True)
        if kind == "response" and (waiting := self._child_calls.get(key)):
            self._last = waiting[0]
            if last:
                del waiting[0]
                self._last.open -= 1
            self._last.steps.append(item)
            return None
        self._last = Thread(item, time, self.count)
        self.count += 1
        if kind == "request":
            self._host_calls.setdefault(key, []).append(self._last)
            self._last.open += 1
        return self._last

    def is_settled(self, thread: Thread) -> bool:
        """Is all that belongs to this thread read? Where streams name what they belong to, only the end tells."""
        return self._dialect.by_id and not thread.open and thread is not self._last

    def marked(self, name: str, time: float) -> None:
        """The end of the host's input, or a signal."""
        self._last = Thread(None, time)
        self.marks.setdefault(name, []).append(self._last)

    def said(self, event: Event) -> None:
        """Something of the child."""
        thread = self._last
        if isinstance(event, Data) and event.kind == "out":
            messages = pieces(event.payload, self._framing) if event.raw else [event]
            owners = [self._owner(each.payload) for each in messages if not isinstance(each, Junk)]
            thread = next((owner for owner in owners if owner), thread)
        thread.steps.append(event)

    def _owner(self, payload: bytes) -> Thread | None:
        """The thread of the call that this answers, if it answers one."""
        if not self._dialect.by_id:
            return self._named_owner(self._dialect.classify(payload))
        kind, key, _ = self._look(payload)
        if kind == "response":
            return self._ended(key)
        if kind == "request":
            self._child_calls.setdefault(key, []).append(self._last)
            self._last.open += 1
        return None

    def _ended(self, key: bytes) -> Thread | None:
        waiting = self._host_calls.get(key)
        if not waiting:
            return None
        owner = waiting.pop(0)
        owner.open -= 1
        if not waiting:
            del self._host_calls[key]
        return owner

    def _named_owner(self, message: Classified) -> Thread | None:
        """The same where more than ids may tell whose a message is: a stream names its call, a progress its run."""
        dialect, key = self._dialect, message.key or b""
        owner = None
        if message.kind == "response":
            if not message.key and message.method and self._host_calls:
                key = next(iter(self._host_calls))
            owner = self._ended(key) if dialect.is_last(message) else next(iter(self._host_calls.get(key, ())), None)
        calls = [message.at(pointer) for pointer in pointers_of(dialect.mentions, message.method)]
        for value in calls:
            owner = owner or next(iter(self._host_calls.get(id_key(value, ""), ())), None)
        for pointer in pointers_of(dialect.names, message.method):
            if isinstance(name := message.at(pointer), str):
                owner = owner or self._named.get(id_key(name, ""))
                if owner:
                    self._named.setdefault(id_key(name, ""), owner)
        if message.kind == "request":
            asking = owner or self._last
            self._child_calls.setdefault(key, []).append(asking)
            asking.open += 1
        return owner

    def _look(self, payload: bytes) -> tuple[str, bytes, bool]:
        """The kind of a message, its id, and whether it ends its call; nothing else of it is kept."""
        seen = glance(payload) if self._dialect.plain else None
        if seen is not None:
            return seen[0], payload[seen[1] : seen[2]], True
        message = self._dialect.classify(payload)
        return message.kind, message.key or b"", self._dialect.is_last(message)
