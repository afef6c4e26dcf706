"""The threads of a recording, for order `any`: what is in them, and what they wait for. `cutter` makes them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from .cassette.events import Event
    from .hearing import Recorded

    # What follows in a thread: something that the child did, or something to wait for.
    Step: TypeAlias = "Event | Turn"


class Turn:
    """Something that a thread waits for, most often of the host.

    Attributes:
        origin: the message; None for the start, the end of the input, a signal.
        time: when it was done, in the recording.
        taken: it has been done here.
    """

    __slots__ = ("origin", "taken", "time")

    def __init__(self, origin: Recorded | None, time: float) -> None:
        self.origin = origin
        self.time = time
        self.taken = False

    def holds(self, thread: Thread) -> Turn | None:
        """What has to be done before this thread goes on beyond this; None: nothing any more."""
        return None if self.taken else self

    def missing(self) -> Thread | None:
        """What of the host's own account has not been done, and this waits for; None: it waits for an answer."""
        return None


class Thread(Turn):
    """One thing that the host did on its own account, and what follows from it.

    Attributes:
        number: which of those with a message it is, from 0.
        steps: what follows, in its order, each with its place in the recording.
        position: how many of the steps are done.
        open: how many of its calls have no answer yet, as far as the recording was read.
    """

    __slots__ = ("number", "open", "position", "steps")

    def __init__(self, origin: Recorded | None, time: float, number: int = -1) -> None:
        super().__init__(origin, time)
        self.number = number
        self.steps: list[tuple[int, Step]] = []
        self.position = 0
        self.open = 0

    def missing(self) -> Thread | None:
        """See Turn."""
        return None if self.taken else self


class Question(Turn):
    """A request of the child. It is done when the child has asked it.

    Attributes:
        event: what the child says.
        keys: the ids of the requests in it.
        threads: in which it may have been asked, in the order of their beginning; the last one asks.
        answers: the host's answer, in its pieces, as far as the recording was read.
    """

    __slots__ = ("answers", "event", "keys", "threads")

    def __init__(self, event: Event, keys: list[bytes], threads: list[Thread]) -> None:
        super().__init__(None, event.time)
        self.event = event
        self.keys = keys
        self.threads = threads
        self.answers: list[Turn] = []

    def holds(self, thread: Thread) -> Turn | None:
        """Nothing is asked before all that may have asked it have begun, and these wait for the question."""
        if self.taken or thread not in self.threads:
            return None
        if thread is not self.threads[-1]:
            return self
        return next((other for other in self.threads if other is not thread and not other.taken), None)

    def missing(self) -> Thread | None:
        """See Turn."""
        return next((thread for thread in self.threads if not thread.taken), None)

    def asks(self, thread: Thread) -> bool:
        """Is it for this thread to ask it, and not asked yet?"""
        return not self.taken and bool(self.threads) and thread is self.threads[-1]
