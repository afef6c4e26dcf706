"""HttpExchanges of a recorded HTTP/1.1 session: requests, and the messages of the server in response to each.

A client may send any request on any of its connections, and that differs from run to run. So a session is divided into
exchanges, independent of connections.
"""

from __future__ import annotations

import re

from ext_recorder.cassette.events import OWN_FILES, Data, Mark
from ext_recorder.cassette.reader import Reader
from ext_recorder.replay.request_matcher import RecordedRequest
from ext_sdk.core.wire.framing import FRAMINGS

_REQUEST_LINE = re.compile(rb"([A-Z_-]+ [^ \r\n]+) HTTP/1\.[^\r\n]*\r\n")
_HTTP = FRAMINGS["http"]
_NEVER = 1 << 60  # the line of a response that was not recorded


class HttpExchange:
    """A request and its response.

    Attributes:
        time: its time, in seconds since the start.
        sent: output of the server, with its line: responses, chunks, exact bytes.
        answered: the line of the final response; a large number if there is none.
        done: the line of the last event of the response.
        closes: the server closed the connection after it.
        partial: the body of the request is not recorded completely, and not compared.
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

    def is_open(self) -> bool:
        """Return True if the end of the response was not recorded."""
        if not self.sent:
            return True
        last = self.sent[-1][1]
        streams = any("chunked" in line.lower() for line in self.sent[0][1].head)
        complete = any(line.startswith("chunks") for line in last.head) or (
            last.head[:1] == ("chunk",) and not last.payload
        )
        return streams and not complete and not self.closes


class HttpExchanges:
    """All exchanges of a cassette, and the output of the server on its own standard files.

    Attributes:
        listed: the exchanges, in the order of their requests.
        own: output of the server, with its line.
        exit: the exit code of the server if it exited by itself; None if it received a signal.
        ended: its exit code, or the name of a signal, after a signal; None if that is not known.

    Raises:
        CassetteError: the cassette cannot be read.
    """

    def __init__(self, path: str) -> None:
        self.listed: list[HttpExchange] = []
        self.own: list[tuple[int, Data]] = []
        self.exit: int | None = None
        self.ended: int | str | None = None
        self._open: dict[int, list[HttpExchange]] = {}  # by connection: exchanges without a final response
        self._last: dict[int, HttpExchange] = {}  # by connection: the exchange of the latest response
        self._early: dict[int, HttpExchange] = {}  # by connection: responses before the request was complete
        self._ended: set[int] = set()  # connections that their client has ended
        with Reader(path) as reader:
            for event in reader:
                if isinstance(event, Mark):
                    self._mark(event)
                elif event.conn == OWN_FILES:
                    if event.kind != "in":
                        self.own.append((reader.line, event))
                elif event.kind == "in":
                    self._request(event, reader.line)
                else:
                    self._response(event, reader.line)

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
        payloads = event.payloads(_HTTP)
        partial = not payloads
        if partial and (begun := _REQUEST_LINE.match(event.payload)):
            payloads = [begun[1]]
        for payload in payloads:
            exchange = HttpExchange(RecordedRequest(payload, line), event.time, partial=partial)
            self.listed.append(exchange)
            if early := self._early.pop(event.conn, None):
                exchange.sent, exchange.answered, exchange.done = early.sent, early.answered, early.done
                self._last[event.conn] = exchange
            if exchange.answered == _NEVER:
                self._open.setdefault(event.conn, []).append(exchange)

    def _response(self, event: Data, line: int) -> None:
        waiting = self._open.get(event.conn, [])
        status = next((payload[:3] for payload in event.payloads(_HTTP) if payload[:3].isdigit()), b"")
        begins = status and not (event.head and event.head[0].startswith("chunk"))
        if begins and not waiting:
            waiting = [self._early.setdefault(event.conn, HttpExchange(RecordedRequest(b"", line), event.time))]
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
