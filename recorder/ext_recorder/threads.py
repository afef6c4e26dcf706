"""The threads of a recording, for order `any`: see `any_order` for what belongs to which."""

from __future__ import annotations

from ext_sdk.protocols.glance import glance
from ext_sdk.wire.framing import Junk

from .cassette.events import Data, pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_sdk.wire.framing import Framing

    from .cassette.events import Event
    from .hearing import Ear, Recorded

    # What follows in a thread: something of the child, or an answer of the host.
    Step = Event | Recorded


class Thread:
    """One thing that the host did, and what follows from it.

    Attributes:
        origin: the message; None for the start, the end of the input, a signal.
        time: when the host did it, in the recording.
        steps: what follows, in its order.
        position: how many of the steps are done.
        taken: a live message has begun it.
    """

    __slots__ = ("origin", "position", "steps", "taken", "time")

    def __init__(self, origin: Recorded | None, time: float) -> None:
        self.origin = origin
        self.time = time
        self.steps: list[Step] = []
        self.position = 0
        self.taken = False


class Cutter:
    """Cuts a recording into threads.

    Attributes:
        first: what the child did at the start.
        threads: those that begin with a message, in their order.
        marks: those that begin with the end of the input, or with a signal, by its name.
    """

    def __init__(self, ear: Ear, framing: Framing) -> None:
        self._dialect = ear.dialect
        self._framing = framing
        self.first = Thread(None, 0.0)
        self.threads: list[Thread] = []
        self.marks: dict[str, list[Thread]] = {}
        self._last = self.first
        self._host_calls: dict[bytes, list[Thread]] = {}  # open calls by their id, the oldest first
        self._child_calls: dict[bytes, list[Thread]] = {}

    def heard(self, item: Recorded, time: float) -> Thread | None:
        """A message of the host: the thread that it begins, or None where it goes on in one."""
        kind, key = self._look(item.payload) if item.is_message else ("other", b"")
        if kind == "response" and (waiting := self._child_calls.get(key)):
            self._last = waiting.pop(0)
            self._last.steps.append(item)
            return None
        self._last = Thread(item, time)
        self.threads.append(self._last)
        if kind == "request":
            self._host_calls.setdefault(key, []).append(self._last)
        return self._last

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
        kind, key = self._look(payload)
        if kind == "response" and (waiting := self._host_calls.get(key)):
            owner = waiting.pop(0)
            if not waiting:
                del self._host_calls[key]
            return owner
        if kind == "request":
            self._child_calls.setdefault(key, []).append(self._last)
        return None

    def _look(self, payload: bytes) -> tuple[str, bytes]:
        """The kind of a message and its id; nothing else of it is kept."""
        seen = glance(payload)
        if seen is not None:
            return seen[0], payload[seen[1] : seen[2]]
        message = self._dialect.classify(payload)
        return message.kind, message.key or b""
