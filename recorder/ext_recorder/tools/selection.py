"""Filter of the messages of a session whose result is a valid session.

A call is removed with its response, with the messages of the child until the next message of the host, and with the
responses to those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.cassette.events import OWN_FILES, Data
from ext_recorder.messages.open_calls import CallTracker
from ext_sdk.core.wire.frames import Frame

if TYPE_CHECKING:
    from typing import Protocol

    from ext_recorder.cassette.events import Event
    from ext_recorder.protocols.dialect import ClassifiedMessage, Dialect
    from ext_sdk.core.wire.framing import Framing

    class Policy(Protocol):
        """Decision about each message; responses follow the decision about their requests."""

        def keeps(self, message: ClassifiedMessage, time: float, number: int) -> bool:
            """Return True if a request or notification of the host is kept.

            Args:
                time: seconds since the start of the session.
                number: of the latest request of the host, which may be this message; counted from 1.
            """

        def keeps_output(self, message: ClassifiedMessage, time: float, *, in_call: bool) -> bool:
            """Return True if a request or notification of the child is kept; its host's last message is kept.

            Args:
                time: seconds since the start of the session.
                in_call: a call that is kept is open.
            """


class MessageFilter:
    """Filter of events, in their order.

    Attributes:
        kept: number of messages kept so far.
        all: number of messages so far.
        methods: methods of all messages so far, in their order.
        requests: number of requests of the host so far.
    """

    def __init__(self, dialect: Dialect, framing: Framing, policy: Policy) -> None:
        self._dialect = dialect
        self._framing = framing
        self._policy = policy
        self._keeps_last = True  # the host's last message is kept
        self._calls: CallTracker[bool] = CallTracker(dialect)  # True for calls that are kept
        self.kept = self.all = self.requests = 0
        self.methods: dict[str, None] = {}

    def filter(self, event: Event) -> Event | None:
        """Return the event with the messages that are kept; None if no message is."""
        if not isinstance(event, Data) or event.conn == OWN_FILES:
            return event
        if event.kind == "err":
            return event if self._keeps_last else None
        if not event.raw:
            return event if self._keeps(event, event.payload) else None
        kept = [
            item.wire
            for item in event.items(self._framing)
            if (self._keeps(event, item.payload) if isinstance(item, Frame) else self._keeps_last)
        ]
        return Data(event.kind, event.time, b"".join(kept), raw=True, conn=event.conn) if kept else None

    def _keeps(self, event: Data, payload: bytes) -> bool:
        message = self._dialect.classify(payload)
        self.methods.setdefault(message.method)
        if message.kind == "response":
            call = self._calls.response(event, message)
            keeps = self._keeps_last if call is None else call  # without a request, as the messages around it
        elif event.kind == "in":
            self.requests += message.kind == "request"
            keeps = self._keeps_last = self._policy.keeps(message, event.time, self.requests)
        else:
            in_call = any(any(calls) for calls in self._calls.values())
            keeps = self._keeps_last and self._policy.keeps_output(message, event.time, in_call=in_call)
        self._calls.request(event, message, keeps)
        self.all += 1
        self.kept += keeps
        return keeps
