"""List of the messages of a cassette for alignment: kind, hash of the content, and location of each.

A request and its responses are one entry. The texts are not kept; those of a pair that differs are read again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

from ext_recorder.cassette.events import OWN_FILES, Data, Mark
from ext_recorder.messages.open_calls import CallTracker
from ext_sdk.core.wire.frames import Frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_recorder.cassette.events import Event
    from ext_recorder.cassette.reader import Reader
    from ext_recorder.messages.matcher import MessageComparison
    from ext_recorder.protocols.dialect import ClassifiedMessage
    from ext_sdk.core.wire.framing import Framing

    Place: TypeAlias = tuple[int, int]  # line, and index of the message in it


class Message:
    """A message; of a request also the responses.

    Attributes:
        index: position in the list.
        stream: its sender.
        kind: request, notification, response (without a request) or other.
        method: see `ClassifiedMessage`.
        about: the subject of a request: an operation, a tool.
        place: its location.
        content: hash of its content.
        responses: locations of the responses, with the hashes of their contents.
    """

    __slots__ = ("about", "content", "index", "kind", "method", "place", "responses", "stream")

    def __init__(
        self, index: int, stream: str, message: ClassifiedMessage, place: Place, *, content: int, about: str
    ) -> None:
        self.index = index
        self.stream = stream
        self.kind = message.kind
        self.method = message.method
        self.about = about
        self.place = place
        self.content = content
        self.responses: list[tuple[Place, int]] = []

    @property
    def alignment_key(self) -> tuple[str, str, str, str]:
        """Key that two messages have in common if they may be paired."""
        return self.stream, self.kind, self.method, self.about


class MessageList:
    """All messages of a cassette.

    Attributes:
        listed: the messages, in their order.
        exit: the exit code or signal; None if none is recorded.
    """

    __slots__ = ("exit", "listed")

    def __init__(self, reader: Reader, framing: Framing, comparison: MessageComparison) -> None:
        self.listed: list[Message] = []
        self.exit: int | str | None = None
        calls: CallTracker[Message] = CallTracker(comparison.dialect)
        for event in reader:
            if isinstance(event, Mark):
                self.exit = event.value if event.kind == "exit" else self.exit
                continue
            for index, message in messages(event, framing, comparison):
                place = (reader.line, index)
                if request := calls.response(event, message):
                    content = content_hash(comparison.value(message, request.method, request.about))
                    request.responses.append((place, content))
                    continue
                # A subject that is a generated name differs in every session.
                generated = comparison.names(message) + comparison.handed(message)
                has_subject = comparison.dialect.subject.get(message.method, "") not in generated
                about = comparison.dialect.about(message) if has_subject else ""
                content = content_hash(comparison.value(message))
                listed = Message(len(self.listed), event.kind, message, place, content=content, about=about)
                self.listed.append(listed)
                calls.request(event, message, listed)


def messages(event: Event, framing: Framing, comparison: MessageComparison) -> Iterator[tuple[int, ClassifiedMessage]]:
    """Yield the messages of an event with their indexes in it."""
    if not isinstance(event, Data) or event.kind == "err" or event.conn == OWN_FILES:
        return
    for index, item in enumerate(event.items(framing)):
        yield index, comparison.dialect.classify(item.payload if isinstance(item, Frame) else item.wire)


def content_hash(value: object) -> int:
    """Return a hash of a JSON value; the order of members does not matter."""
    return hash(json.dumps(value, sort_keys=True, default=str))
