"""What the child says beside what it is expected to say: which message is which, and in which order they come.

An answer belongs to its call, whatever it says. A request or a notification belongs to the recorded one of the same
method that is equal to it, and where none is, to the first of that method that nothing else came for.

Expected is what the recording has up to the host's next turn. A message that came too late for its turn is still
known when it comes, and so is one that comes too early; only their order is then told as a difference. There is no
order between what belongs to two calls that overlap, and between messages that name two runs, two sessions or the like.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from ext_recorder.protocols.dialect import ClassifiedMessage


Identity: TypeAlias = tuple[str, str, bytes | None, bool]


class Expected:
    """A recorded message of the child.

    Attributes:
        index: its place in the recorded order.
        line: where it stands.
        time: when it was said, in seconds.
        message: what it is.
        answered: of a response: the method of its request.
        about: of a response: what its request is about.
        identity: what has to be the same in its counterpart.
        passed: something that follows it has come, so that nobody waits for it.
        carried: its turn is over.
    """

    __slots__ = ("about", "answered", "carried", "identity", "index", "line", "message", "passed", "time")

    def __init__(
        self, index: int, line: int, time: float, message: ClassifiedMessage, call: tuple[str, str], *, last: bool
    ) -> None:
        self.index = index
        self.line = line
        self.time = time
        self.message = message
        self.answered, self.about = call
        self.identity = identity(message, last=last)
        self.passed = False
        self.carried = False


class Received:
    """A live message of the child.

    Attributes:
        index: its place in the live order.
        message: what it is, as it would stand in the cassette.
        identity: see Expected.
        payload: the message as the child sent it.
    """

    __slots__ = ("identity", "index", "message", "payload")

    def __init__(self, index: int, message: ClassifiedMessage, payload: bytes, *, last: bool) -> None:
        self.index = index
        self.payload = payload
        self.message = message
        self.identity = identity(message, last=last)


def identity(message: ClassifiedMessage, *, last: bool) -> Identity:
    """What tells whether two messages can be each other's counterparts: the call of an answer, else the method."""
    if message.kind == "response":
        return "response", "", message.key, last
    return message.kind, message.method, None, True
