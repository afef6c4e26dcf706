"""Exchanges of a recorded HTTP/1.1 session: a request, and what the server sent in response to it.

Clients use connections as they like: which request goes over which of them differs from run to run. So a session is cut
into exchanges, and connections do not count.
"""

from __future__ import annotations

import re

from ext_recorder.cassette.events import OWN_FILES, Data, Mark, pieces
from ext_recorder.cassette.reader import Reader
from ext_recorder.replay.request_matcher import RecordedRequest
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cassette.events import Event

_REQUEST_LINE = re.compile(rb"([A-Z_-]+ [^ \r\n]+) HTTP/1\.[^\r\n]*\r\n")
_NEVER = 1 << 60  # the line of what does not come


class Exchange:
    """A request and its response.

    Attributes:
        request: the request.
        time: its time, in seconds since the start.
        sent: what the server sent, with its line: responses, chunks, exact bytes.
        answered: the line of the final response; a large number if there is none.
        done: the line of the last event of the response.
        closes: the server closed the connection behind it.
        partial: the body of the request is not recorded entirely, and does not count.
        played: it was replayed, or skipped.
    """

    __slots__ = ("answered", "closes", "done", "partial", "played", "request", "sent", "time")

    def __init__(self, request: RecordedRequest, time: float, *, partial: bool = False) -> None:
        self.request = request
        self.time = time
        self.sent: list[tuple[int, Data]] = []
        self.answered = self.done = _NEVER
        self.closes = False
        self.partial = partial
        self.played = False


class Exchanges:
    """All exchanges of a cassette, and what the server wrote to its own standard files.

    Attributes:
        listed: the exchanges, in the order of their requests.
        own: output of the server, with its line.
        exit: the exit code of the server if it ended by itself; None if it got a signal.
        ended: how it ended after a signal: the exit code or the name of a signal; None if that is not known.

    Raises:
        CassetteError: the cassette cannot be read.
    """

    def __init__(self, path: str) -> None:
        self.listed: list[Exchange] = []
        self.own: list[tuple[int, Data]] = []
        self.exit: int | None = None
        self.ended: int | str | None = None
        self._open: dict[int, list[Exchange]] = {}  # by connection: those without a final response
        self._last: dict[int, Exchange] = {}  # by connection: that of the response sent last
        self._early: dict[int, Exchange] = {}  # by connection: what was sent before the request was complete
        self._ended: set[int] = set()  # connections that their client has ended
        with Reader(path) as reader:
            for event in reader:
                self._take(event, reader.line)

    def _take(self, event: Event, line: int) -> None:
        if isinstance(event, Mark):
            self._mark(event)
        elif event.conn == OWN_FILES:
            if event.kind != "in":
                self.own.append((line, event))
        elif event.kind == "in":
            self._request(event, line)
        else:
            self._response(event, line)

    def _mark(self, mark: Mark) -> None:
        if mark.kind == "signal":
            self.ended = str(mark.value)
        elif mark.kind == "exit" and self.ended is not None:
            self.ended = mark.value
        elif mark.kind == "exit" and isinstance(mark.value, int):
            self.exit = mark.value
        elif mark.kind == "eof" and mark.value == "in":
            self._ended.add(mark.conn)
        elif mark.kind == "eof" and mark.conn not in self._ended and mark.conn in self._last:
            self._last[mark.conn].closes = True

    def _request(self, event: Data, line: int) -> None:
        payloads = _payloads(event)
        for payload in payloads:
            self._begin(event, Exchange(RecordedRequest(payload, line), event.time))
        if not payloads and (begun := _REQUEST_LINE.match(event.payload)):
            self._begin(event, Exchange(RecordedRequest(begun[1], line), event.time, partial=True))

    def _begin(self, event: Data, exchange: Exchange) -> None:
        self.listed.append(exchange)
        early = self._early.pop(event.conn, None)
        if early is None:
            self._open.setdefault(event.conn, []).append(exchange)
            return
        exchange.sent, exchange.answered, exchange.done = early.sent, early.answered, early.done
        self._last[event.conn] = exchange
        if exchange.answered == _NEVER:
            self._open.setdefault(event.conn, []).append(exchange)

    def _response(self, event: Data, line: int) -> None:
        waiting = self._open.get(event.conn, [])
        status = next((payload[:3] for payload in _payloads(event) if payload[:3].isdigit()), b"")
        begins = status and not (event.head and event.head[0].startswith("chunk"))
        if begins and not waiting:
            waiting = [self._early.setdefault(event.conn, Exchange(RecordedRequest(b"", line), event.time))]
        exchange = waiting[0] if begins and waiting else self._last.get(event.conn)
        if exchange is None:
            return
        exchange.sent.append((line, event))
        exchange.done = line
        if begins and waiting:
            self._last[event.conn] = exchange
            if not status.startswith(b"1") or status == b"101":
                exchange.answered = line
                del waiting[0]


def _payloads(event: Data) -> list[bytes]:
    if not event.raw:
        return [event.payload]
    return [item.payload for item in pieces(event.payload, FRAMINGS["http"]) if isinstance(item, Frame)]
