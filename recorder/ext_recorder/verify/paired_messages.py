"""Recorded and live messages, and the key by which they are paired."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from ext_recorder.protocols.dialect import ClassifiedMessage


Identity: TypeAlias = tuple[str, str, bytes | None, bool]


class Expected:
    """A recorded message of the child.

    Attributes:
        index: its position in the recorded order.
        line: of the cassette.
        time: seconds from the start of the recording.
        answered: of a response: the method of its request.
        about: of a response: the subject of its request.
        identity: must be equal in its counterpart.
        passed: True if a later message has come, so the host does not wait for this one.
        carried: True after its turn of the host.
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
        index: its position in the live order.
        message: the classified message, in the form that a cassette would have.
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
    """Return the key of the messages that may be counterparts: the call of a response, else the method."""
    if message.kind == "response":
        return "response", "", message.key, last
    return message.kind, message.method, None, True
