"""`replay --listen` of a session that was recorded with `--framing http`: requests are matched, connections are not.

A client may send a request on any of its connections, so a session is divided into exchanges: a request with the
messages of the server in response. In order `strict`, a request must arrive after all requests whose responses were
recorded before it; requests that overlapped may arrive in any order. In order `any`, a request may arrive at any
time. A part of a stream (server-sent events) waits up to `CAUSE_S` for the requests that are recorded before it,
because one of them may have caused it.
"""

from __future__ import annotations

import re
from collections import deque
from select import POLLIN, POLLOUT, poll
from time import monotonic

from ext_recorder.cassette.events import OWN_FILES, Data, Mark
from ext_recorder.cassette.reader import Reader
from ext_recorder.errors import UsageError
from ext_recorder.messages.provenance import headline
from ext_recorder.posix.output import host_outlet, write_message
from ext_recorder.posix.signals import Signals, signal_name
from ext_recorder.replay.event_loop import ResponsePacer
from ext_recorder.replay.mismatch import cut_off, describe, explain_mismatch
from ext_recorder.replay.player import EXIT_DIFFERS, LISTED
from ext_recorder.replay.replay import MAX, ORDERS, PROMPT, make_matcher_and_writer
from ext_recorder.replay.request_matcher import RecordedRequest
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.http_framing import HttpDecoder

from .address import receive, shut

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from ext_recorder.cassette.header import Header
    from ext_recorder.posix.output import OutputSink
    from ext_recorder.replay.replay import Options
    from ext_recorder.replay.report import Report

    from .address import Listener

# Maximum wait of a part of a stream for requests that are recorded before it, in seconds.
CAUSE_S = 2.0


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


class _Turn:
    """A response that is being sent to a client.

    Attributes:
        exchange: the replayed exchange; None for a refusal.
        rest: the parts that are not sent yet, with their lines.
        since: time at which the request arrived.
        waits: time since which the next part waits for another request; 0.0 if it does not wait.
    """

    __slots__ = ("exchange", "refusal", "rest", "since", "waits")

    def __init__(self, exchange: HttpExchange | None, refusal: bytes = b"") -> None:
        self.exchange = exchange
        self.refusal = refusal
        self.rest: deque[tuple[int, Data]] = deque(exchange.sent if exchange else ())
        self.since = monotonic()
        self.waits = 0.0


class _HttpClient:
    """A live connection.

    Attributes:
        turns: pending responses, in their order.
        unsent: bytes that the client has not read yet.
        continued: the client was asked to send the body of its request.
        ended: the client sends nothing more.
        over: the connection is closed after everything was sent.
    """

    __slots__ = ("apart", "continued", "decoder", "ended", "over", "socket", "turns", "unsent")

    def __init__(self, client: socket.socket) -> None:
        self.socket = client
        self.decoder = HttpDecoder()
        self.turns: deque[_Turn] = deque()
        self.unsent = b""
        self.apart = ResponsePacer(client.fileno())
        self.ended = self.over = self.continued = False


class HttpServer:
    """A replayed HTTP server.

    Attributes:
        differences: messages about differences between this session and the recorded one.
    """

    def __init__(
        self, path: str, header: Header, options: Options, listener: Listener, err: OutputSink, *, report: Report | None
    ) -> None:
        if options.faults:
            listener.close()
            raise UsageError("--fault is for messages of a child; sessions of --framing http are replayed without")
        if options.order not in ORDERS:
            raise UsageError(f"--order {options.order}: expected one of {', '.join(ORDERS)}")
        self._path = path
        self._options = options
        self._listener = listener
        self._outlets = {"err": err, "out": host_outlet(1)}
        self._requests, self._responses = make_matcher_and_writer(path, header, options)
        self._exchanges = HttpExchanges(path)
        self._own = deque(self._exchanges.own)
        self._clients: dict[int, _HttpClient] = {}
        self._first = 0  # index of the first exchange that was not replayed
        self._lost = self._differs = False
        self._header = header
        self.differences: list[str] = report.differences if report else []

    def run(self) -> int | str:
        """Serve until a signal arrives, or all exchanges of a server that exited by itself are replayed.

        Returns:
            The exit code or the name of the signal.
        """
        signals = Signals()
        signals.catch()
        write_message(
            self._outlets["err"], f"listening on {self._listener.address}, {headline(self._path, self._header)}"
        )
        status: int | str | None = None
        try:
            while status is None:
                self._write_own()
                ready = self._wait(signals)
                if signals.fd in ready:
                    status = next((self._exchanges.ended or signal_name(number) for number, _ in signals.take()), None)
                if self._listener.fd in ready and (arrival := self._listener.accept()):
                    self._clients[arrival.fileno()] = _HttpClient(arrival)
                for fd in [fd for fd in ready if fd in self._clients]:
                    if ready[fd] & ~POLLOUT:
                        self._receive(self._clients[fd])
                for client in list(self._clients.values()):
                    self._send(client)
                if (
                    self._exchanges.exit is not None
                    and self._first >= len(self._exchanges.listed)
                    and not self._clients
                ):
                    status = self._exchanges.exit
            self._report_missing()
        finally:
            signals.close()
            self._listener.close()
            for client in self._clients.values():
                client.socket.close()
        return EXIT_DIFFERS if self._differs else status

    def _wait(self, signals: Signals) -> dict[int, int]:
        waiting = poll()
        waiting.register(signals.fd, POLLIN)
        waiting.register(self._listener.fd, POLLIN)
        patience: float | None = None
        for fd, client in self._clients.items():
            waiting.register(fd, (0 if client.ended else POLLIN) | (POLLOUT if client.unsent else 0))
            if client.turns and not client.unsent:
                due = self._due(client)
                if due is not None:
                    patience = due if patience is None else min(patience, due)
        return dict(waiting.poll(None if patience is None else max(0.0, (patience - monotonic()) * 1000)))

    # --- Requests -----------------------------------------------------------------------------------------------------

    def _receive(self, client: _HttpClient) -> None:
        data = receive(client.socket)
        if data is None:
            return
        if data:
            client.decoder.receive_data(data)
        else:
            client.decoder.receive_eof()
            client.ended = True
        while (item := client.decoder.next_event()) is not None:
            if isinstance(item, Frame):
                self._answer(client, item.payload)
            elif not item.wire.isspace():
                self._say(f"{len(item.wire)} bytes of a client are not a request: {item.reason}")
                self._differs = client.over = True
        if client.decoder.expects and not client.continued:
            client.continued = True
            self._write(client, b"HTTP/1.1 100 Continue\r\n\r\n")

    def _answer(self, client: _HttpClient, payload: bytes) -> None:
        """Begin the recorded response to a request, or refuse it."""
        exchange, following = self._find(payload)
        if exchange is None or not exchange.sent:
            self._differs = self._lost = True
            live = self._requests.dialect.classify(payload)
            if exchange is None:
                miss = explain_mismatch(
                    self._requests, self._requests.as_recorded(payload), self._history, where=self._path, turn=following
                )
            else:
                exchange.played = True
                miss = cut_off(live, exchange.request, self._path)
            self._say(miss.text)
            data = {**miss.data, "cassette": self._path}
            refusal = self._requests.dialect.refusal(live, f"ext-recorder: {miss.text}", data) or b"499"
            client.turns.append(_Turn(None, FRAMINGS["http"].encode(refusal)))
            return
        self._lost = False
        exchange.played = True
        listed = self._exchanges.listed
        while self._first < len(listed) and listed[self._first].played:
            self._first += 1
        turn = _Turn(exchange)
        if client.continued:
            client.continued = False
            turn.rest = deque(each for each in turn.rest if each[1].payload != b"100")
        client.turns.append(turn)

    def _find(self, payload: bytes) -> tuple[HttpExchange | None, str]:
        """Return the first exchange that a request matches and that may begin now; else None, and the next as text."""
        strict = self._options.order == "strict"
        ahead: list[HttpExchange] = []
        for exchange in self._exchanges.listed[self._first :]:
            if exchange.played:
                continue
            if exchange.partial:
                matches = b" ".join(payload.split(b" ", 2)[:2]) == exchange.request.payload
            else:
                matches = self._requests.matches(exchange.request, payload)
            if matches:
                missing = [each for each in ahead if each.done < exchange.request.line] if strict else []
                if missing and not self._lost:
                    return None, f"line {missing[0].request.line}"
                for skipped in missing:
                    skipped.played = self._differs = True
                    self._report_unsent(skipped.request)
                return exchange, ""
            ahead.append(exchange)
        return None, f"line {ahead[0].request.line}" if ahead else "nothing: the session is over"

    def _history(self) -> Iterator[tuple[RecordedRequest, bool, bool]]:
        for exchange in self._exchanges.listed:
            yield exchange.request, exchange.played, True

    # --- Responses ----------------------------------------------------------------------------------------------------

    def _due(self, client: _HttpClient) -> float | None:
        """Return when to send the next part of the first response; None if it waits for another request."""
        turn, now = client.turns[0], monotonic()
        if turn.exchange is None:
            return now
        if not turn.rest:
            return None
        line, event = turn.rest[0]
        speed = self._options.speed
        at = turn.since + (event.time - turn.exchange.time) / speed if PROMPT < speed < MAX else now
        is_first = line <= turn.exchange.answered
        if not is_first and self._unplayed_before(line):
            turn.waits = turn.waits or now
            return max(at, turn.waits + CAUSE_S)
        if not is_first and speed != MAX:
            at = max(at, client.apart.due())
        return at

    def _unplayed_before(self, line: int) -> bool:
        listed = self._exchanges.listed
        return any(not each.played for each in listed[self._first :] if each.request.line < line)

    def _send(self, client: _HttpClient) -> None:
        """Send all due parts, as far as the client reads them."""
        while not client.unsent and client.turns:
            turn = client.turns[0]
            due = self._due(client)
            if due is None or due > monotonic():
                break
            turn.waits = 0.0
            if turn.exchange is None:
                self._write(client, turn.refusal)
                client.turns.popleft()
            elif turn.rest:
                self._write(client, self._responses.out(turn.rest.popleft()[1]))
            if turn.exchange is not None and not turn.rest:
                if turn.exchange.is_open():
                    break  # the connection stays open
                client.over = client.over or turn.exchange.closes
                client.turns.popleft()
        if client.unsent:
            self._write(client, b"")
        has_more = any(turn.rest or turn.exchange is None for turn in client.turns)
        if not client.unsent and (client.over or (client.ended and not has_more)):
            shut(client.socket)
            del self._clients[client.socket.fileno()]
            client.socket.close()

    def _write(self, client: _HttpClient, data: bytes) -> None:
        rest = client.unsent + data
        try:
            sent = client.socket.send(rest) if rest else 0
        except BlockingIOError:
            sent = 0
        except OSError:  # the client has disconnected
            sent, client.over = len(rest), True
            client.turns.clear()
        client.unsent = rest[sent:]

    # --- The server itself --------------------------------------------------------------------------------------------

    def _write_own(self) -> None:
        """Replay the output of the server on its own standard files up to the next request."""
        while self._own and not self._unplayed_before(self._own[0][0]):
            event = self._own.popleft()[1]
            outlet = self._outlets["err" if event.kind == "err" else "out"]
            try:
                outlet.send(self._responses.err(event))
            except OSError:
                continue

    def _report_missing(self) -> None:
        left = [exchange for exchange in self._exchanges.listed if not exchange.played]
        for exchange in left[:LISTED]:
            self._report_unsent(exchange.request)
        if len(left) > LISTED:
            self._say(f"and {len(left) - LISTED} more")
        self._differs = self._differs or (bool(left) and self._options.order == "strict")

    def _report_unsent(self, request: RecordedRequest) -> None:
        name = describe(request.message(self._requests.dialect))
        self._say(f"{self._path}:{request.line}: {name} was never sent")

    def _say(self, text: str) -> None:
        self.differences.append(text)
        write_message(self._outlets["err"], text)
