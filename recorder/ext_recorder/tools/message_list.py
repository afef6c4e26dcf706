"""List of the messages of a cassette for alignment: kind, hash of the content, and location of each.

A request and its responses are one entry. The texts are not kept; those of a pair that differs are read again.
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
        calls: dict[tuple[str, int, bytes], list[Message]] = {}
        for event in reader:
            if isinstance(event, Mark):
                self.exit = event.value if event.kind == "exit" else self.exit
                continue
            for index, message in messages(event, framing, comparison):
                self._add(event, message, (reader.line, index), comparison, calls)

    def _add(
        self,
        event: Data,
        message: ClassifiedMessage,
        place: Place,
        comparison: MessageComparison,
        calls: dict[tuple[str, int, bytes], list[Message]],
    ) -> None:
        requester = "in" if event.kind == "out" else "out"
        requests = calls.get((requester, event.conn, message.key or b"")) if message.kind == "response" else None
        if requests:
            content = content_hash(comparison.value(message, requests[0].method, requests[0].about))
            requests[0].responses.append((place, content))
            if comparison.dialect.is_last(message):
                requests.pop(0)
            return
        # A subject that is a generated name differs in every session.
        generated = comparison.names(message) + comparison.handed(message)
        about = (
            "" if comparison.dialect.subject.get(message.method, "") in generated else comparison.dialect.about(message)
        )
        content = content_hash(comparison.value(message))
        listed = Message(len(self.listed), event.kind, message, place, content=content, about=about)
        self.listed.append(listed)
        if message.kind == "request" and message.key is not None:
            calls.setdefault((event.kind, event.conn, message.key), []).append(listed)


def messages(event: Event, framing: Framing, comparison: MessageComparison) -> Iterator[tuple[int, ClassifiedMessage]]:
    """Yield the messages of an event with their indexes in it."""
    if not isinstance(event, Data) or event.kind == "err" or event.conn == OWN_FILES:
        return
    if not event.raw:
        yield 0, comparison.dialect.classify(event.payload)
        return
    for index, item in enumerate(pieces(event.payload, framing)):
        yield index, comparison.dialect.classify(item.payload if isinstance(item, Frame) else item.wire)


def content_hash(value: object) -> int:
    """Return a hash of a JSON value; the order of members does not matter."""
    return hash(json.dumps(value, sort_keys=True, default=str))
