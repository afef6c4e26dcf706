"""Which messages of a session stay, such that what stays is a session.

What goes, goes as a whole: a call with its answer, with what the child told and asked until the host went on, and with
the answers to that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.cassette.events import OWN_FILES, Data, pieces
from ext_sdk.core.wire.frames import Frame

if TYPE_CHECKING:
    from typing import Protocol

    from ext_recorder.cassette.events import Event
    from ext_recorder.protocols.dialect import ClassifiedMessage, Dialect
    from ext_sdk.core.wire.frames import Junk
    from ext_sdk.core.wire.framing import Framing

    class Policy(Protocol):
        """What stays."""

        def keeps(self, message: ClassifiedMessage, time: float, number: int) -> bool:
            """Does a message of the host stay?

            Args:
                message: no answer; these go with what they answer.
                time: when it was said.
                number: of the host's last request, which this may be; counted from 1.
            """

        def keeps_told(self, message: ClassifiedMessage, time: float, *, in_call: bool) -> bool:
            """Does a request or notification of the child, after something of the host that stays, stay as well?

            Args:
                message: no answer.
                time: when it was said.
                in_call: a call that stays has still to be answered.
            """


class MessageFilter:
    """Decides message by message.

    Args:
        dialect: of the session.
        framing: of its messages.
        policy: what stays.

    Attributes:
        kept: messages that stay, so far.
        all: messages, so far.
        methods: of all messages so far, in their order.
        requests: of the host, so far.
    """

    def __init__(self, dialect: Dialect, framing: Framing, policy: Policy) -> None:
        self._dialect = dialect
        self._framing = framing
        self._policy = policy
        self._stays = True  # what the host did last
        self._calls: dict[tuple[str, int, bytes], list[bool]] = {}  # open calls: does each of them stay?
        self.kept = self.all = self.requests = 0
        self.methods: dict[str, None] = {}

    def of(self, event: Event) -> Event | None:
        """What is left of an event."""
        if not isinstance(event, Data) or event.conn == OWN_FILES:
            return event
        if event.kind == "err":
            return event if self._stays else None
        if not event.raw:
            return event if self._keeps(event, event.payload) else None
        items = pieces(event.payload, self._framing)
        kept = [item.wire for item in items if self._keeps_piece(event, item)]
        return Data(event.kind, event.time, b"".join(kept), raw=True, conn=event.conn) if kept else None

    def unanswered(self) -> bool:
        """Is a call that stays without its answer?"""
        return any(any(calls) for calls in self._calls.values())

    def _keeps_piece(self, event: Data, item: Frame | Junk) -> bool:
        return self._keeps(event, item.payload) if isinstance(item, Frame) else self._stays

    def _keeps(self, event: Data, payload: bytes) -> bool:
        message = self._dialect.classify(payload)
        self.methods.setdefault(message.method)
        if message.kind == "response":
            stays = self._answer(event, message)
        elif event.kind == "in":
            self.requests += message.kind == "request"
            stays = self._stays = self._policy.keeps(message, event.time, self.requests)
        else:
            stays = self._stays and self._policy.keeps_told(message, event.time, in_call=self.unanswered())
        if message.kind == "request" and message.key is not None:
            self._calls.setdefault((event.kind, event.conn, message.key), []).append(stays)
        self.all += 1
        self.kept += stays
        return stays

    def _answer(self, event: Data, message: ClassifiedMessage) -> bool:
        """An answer stays or goes with its call; one to nothing, with what is around it."""
        place = ("in" if event.kind == "out" else "out", event.conn, message.key or b"")
        calls = self._calls.get(place)
        if not calls:
            return self._stays
        stays = calls[0]
        if self._dialect.is_last(message):
            calls.pop(0)
            if not calls:
                del self._calls[place]
        return stays
