"""Server-sent events (text/event-stream, WHATWG HTML 9.2) of a response, and checks of the first ones.

A stream may never end, so a request that expects events stops reading after as many as it expects.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import UNSET, Meta, UnsetType

from ext_sdk.expect import Check, Expectation
from ext_sdk.expect.check import quoted

from .expectations import Body, check_body

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ext_http.client.response import Response

    from .header_check import CheckContext

MEDIA_TYPE = "text/event-stream"
DEFAULT_NAME = "message"
_LINE_ENDING = re.compile(r"\r\n|\n|\r(?!\Z)")


class EventExpectation(Expectation):
    """Expected event of a stream; all members given must hold."""

    event: Annotated[str | UnsetType, Meta(description="Name of the event; `message` if the server sends none")] = UNSET
    id: Annotated[str | UnsetType, Meta(description="Last id up to this event")] = UNSET
    data: Annotated[Body | UnsetType, Meta(description="Data, several lines joined, in the form of a body")] = UNSET

    def __post_init__(self) -> None:
        self.refuse_empty()


# As users write it: the data, or an object.
Events = Annotated[list[str | EventExpectation], Meta(min_length=1, max_length=1000)]


class Event(NamedTuple):
    """Event of a stream; also the message whose body is its data."""

    event: str
    data: str
    id: str
    truncated: bool = False

    @property
    def body(self) -> bytes:
        """Return the data as bytes."""
        return self.data.encode()

    @property
    def decoded(self) -> str:
        """Return the data."""
        return self.data


class EventParser:
    """Parser of a stream that arrives in pieces.

    Args:
        count: number of events to read.

    Attributes:
        events: complete events; a last one without its empty line is not one.
    """

    def __init__(self, count: int = 0) -> None:
        self.events: list[Event] = []
        self._count = count
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._rest = ""
        self._name = self._id = ""
        self._data: list[str] = []

    def feed(self, piece: bytes) -> bool:
        """Read a piece of the stream; return True if there are enough events."""
        *lines, self._rest = _LINE_ENDING.split(self._rest + self._decoder.decode(piece))
        for line in lines:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                self._data.append(value)
            elif name == "event":
                self._name = value
            elif name == "id" and "\0" not in value:
                self._id = value
            elif not line:
                if self._data:
                    self.events.append(Event(self._name or DEFAULT_NAME, "\n".join(self._data), self._id))
                self._name, self._data = "", []
        return len(self.events) >= self._count > 0


def events_of(body: bytes) -> list[Event]:
    """Return the complete events of a body."""
    parser = EventParser()
    parser.feed(body + b"\n" if body.endswith(b"\r") else body)
    return parser.events


def events_json(body: bytes) -> str:
    """Return the events of a body as JSON, for captures."""
    events = [{"event": event.event, "data": event.data, "id": event.id} for event in events_of(body)]
    return json.dumps(events, ensure_ascii=False)


def check_events(
    expectations: Sequence[str | EventExpectation], response: Response, context: CheckContext
) -> list[Check]:
    """Check the first events of a response, in order. Raises what `check_body` does."""
    kind = next(iter(response.values("content-type")), "none")
    if kind.partition(";")[0].strip().lower() != MEDIA_TYPE:
        return [Check.failed(f"to be {MEDIA_TYPE}", f"{kind:.80}", where="Content-Type")]
    events = events_of(response.body)
    checks: list[Check] = []
    for number, given in enumerate(expectations, start=1):
        wanted = EventExpectation(data=given) if isinstance(given, str) else given
        where = f"event {number}"
        if number > len(events):
            end = "maxBody" if response.truncated else "the end of the response, or of the time"
            checks.append(Check.failed("to be sent", f"{len(events)} complete events up to {end}", where=where))
            break
        event = events[number - 1]
        for name, expected, found in (("event", wanted.event, event.event), ("id", wanted.id, event.id)):
            if not isinstance(expected, UnsetType):
                sides = quoted(expected, context.redact), quoted(found, context.redact)
                checks.append(Check(expected == found, "to be", *sides, where=f"{name} of {where}"))
        if not isinstance(wanted.data, UnsetType):
            data = check_body(wanted.data, event, context)
            for check in data:
                check.where = check.where.replace("body", f"data of {where}", 1)
            checks += data
    return checks
