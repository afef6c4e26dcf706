"""The messages of a cassette as units to be aligned: what each is, what it says in one number, and where it stands.

A call is a unit with its answers; a notification is one by itself. The messages are not kept: of a pair that differs
they are read again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

from ext_recorder.cassette.events import OWN_FILES, Data, Mark, pieces
from ext_sdk.core.wire.frames import Frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_recorder.cassette.events import Event
    from ext_recorder.cassette.reader import Reader
    from ext_recorder.messages.matcher import MessageComparison
    from ext_recorder.protocols.dialect import ClassifiedMessage
    from ext_sdk.core.wire.framing import Framing

    Place: TypeAlias = tuple[int, int]  # a line, and which message of it


class Message:
    """One message, with its answers where it is a call.

    Attributes:
        index: its place among the units.
        stream: who said it.
        kind: request, notification, response (to nothing) or other.
        method: see Classified.
        about: what a call is about: an operation, a tool.
        place: where it stands.
        says: a number for its content.
        answers: where its answers stand, with numbers for their contents.
    """

    __slots__ = ("about", "answers", "index", "kind", "method", "place", "says", "stream")

    def __init__(
        self, index: int, stream: str, message: ClassifiedMessage, place: Place, *, says: int, about: str
    ) -> None:
        self.index = index
        self.stream = stream
        self.kind = message.kind
        self.method = message.method
        self.about = about
        self.place = place
        self.says = says
        self.answers: list[tuple[Place, int]] = []

    @property
    def sort(self) -> tuple[str, str, str, str]:
        """What two units have in common that may be each other's."""
        return self.stream, self.kind, self.method, self.about


class MessageList:
    """All units of a cassette.

    Attributes:
        listed: in their order.
        exit: the exit code, or signal; None where none is recorded.
    """

    __slots__ = ("exit", "listed")

    def __init__(self, reader: Reader, framing: Framing, comparison: MessageComparison) -> None:
        self.listed: list[Message] = []
        self.exit: int | str | None = None
        calls: dict[tuple[str, int, bytes], list[Message]] = {}
        for event in reader:
            if isinstance(event, Mark):
                self.exit = event.value if event.kind == "exit" else self.exit
                continue
            for at, message in messages(event, framing, comparison):
                self._take(event, message, (reader.line, at), comparison, calls)

    def _take(
        self,
        event: Data,
        message: ClassifiedMessage,
        place: Place,
        comparison: MessageComparison,
        calls: dict[tuple[str, int, bytes], list[Message]],
    ) -> None:
        asker = "in" if event.kind == "out" else "out"
        waiting = calls.get((asker, event.conn, message.key or b"")) if message.kind == "response" else None
        if waiting:
            says = number(comparison.value(message, waiting[0].method, waiting[0].about))
            waiting[0].answers.append((place, says))
            if comparison.dialect.is_last(message):
                waiting.pop(0)
            return
        says = number(comparison.value(message))
        unit = Message(len(self.listed), event.kind, message, place, says=says, about=_about(message, comparison))
        self.listed.append(unit)
        if message.kind == "request" and message.key is not None:
            calls.setdefault((event.kind, event.conn, message.key), []).append(unit)


def _about(message: ClassifiedMessage, comparison: MessageComparison) -> str:
    """What a call is about, but for names that are made up anew in every session."""
    if comparison.dialect.subject.get(message.method, "") in comparison.names(message) + comparison.handed(message):
        return ""
    return comparison.dialect.about(message)


def messages(event: Event, framing: Framing, comparison: MessageComparison) -> Iterator[tuple[int, ClassifiedMessage]]:
    """The messages in an event: (which one, what it is)."""
    if not isinstance(event, Data) or event.kind == "err" or event.conn == OWN_FILES:
        return
    if not event.raw:
        yield 0, comparison.dialect.classify(event.payload)
        return
    for at, item in enumerate(pieces(event.payload, framing)):
        yield at, comparison.dialect.classify(item.payload if isinstance(item, Frame) else item.wire)


def number(value: object) -> int:
    """A number that is the same for values of one spelling; others are compared in full."""
    return hash(json.dumps(value, sort_keys=True, default=str))
