"""`replay --listen` of a session that was recorded with `--framing http`: requests are matched, connections are not.

In order `strict` a request comes after those that had their responses before it was sent; requests that overlapped come
in any order. In order `any` each comes whenever the client sends it. A part of a stream (server-sent events) waits for
the requests that are recorded before it, because one of them may have caused it, but not for long.
"""

from __future__ import annotations

from collections import deque
from select import POLLIN, POLLOUT, poll
from time import monotonic

from ext_recorder.errors import UsageError
from ext_recorder.messages.provenance import headline
from ext_recorder.posix.output import host_outlet, write_message
from ext_recorder.posix.signals import Signals, signal_name
from ext_recorder.replay.event_loop import ResponsePacer
from ext_recorder.replay.mismatch import cut_off, describe, explain_mismatch
from ext_recorder.replay.player import EXIT_DIFFERS, LISTED
from ext_recorder.replay.replay import MAX, ORDERS, PROMPT, make_matcher_and_writer
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.http_framing import HttpDecoder

from .address import receive, shut
from .http_exchanges import Exchanges

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from ext_recorder.cassette.events import Data
    from ext_recorder.cassette.header import Header
    from ext_recorder.posix.output import OutputSink
    from ext_recorder.replay.replay import Options
    from ext_recorder.replay.report import Report
    from ext_recorder.replay.request_matcher import RecordedRequest

    from .address import Listener
    from .http_exchanges import Exchange

# Maximum wait of a part of a stream for requests that are recorded before it, in seconds.
CAUSE_S = 2.0


class _Turn:
    """A response on its way to a client.

    Attributes:
        exchange: what is replayed; None for a refusal.
        rest: what is still to be sent, with its line.
        since: when the request came.
        waits: since when the next part waits for another request; 0.0: it does not.
    """

    __slots__ = ("exchange", "refusal", "rest", "since", "waits")

    def __init__(self, exchange: Exchange | None, refusal: bytes = b"") -> None:
        self.exchange = exchange
        self.refusal = refusal
        self.rest: deque[tuple[int, Data]] = deque(exchange.sent if exchange else ())
        self.since = monotonic()
        self.waits = 0.0


class _Client:
    """A live connection.

    Attributes:
        socket: the connection.
        decoder: of its requests.
        turns: the responses that it waits for, in their order.
        unsent: bytes that it does not take yet.
        continued: it was told to send the body of its request.
        ended: it sends nothing more.
        over: it is to be closed once everything was sent.
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
    """One replayed HTTP server.

    Args:
        path: the cassette.
        header: its header.
        options: how to replay.
        listener: where clients connect.
        err: standard error.
        report: of `--report`; None: it was not given.

    Attributes:
        told: differences between this session and the recorded one.
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
        self._exchanges = Exchanges(path)
        self._own = deque(self._exchanges.own)
        self._clients: dict[int, _Client] = {}
        self._first = 0  # index of the first exchange that was not played
        self._lost = self._differs = False
        self._header = header
        self.told: list[str] = report.told if report else []

    def run(self) -> int | str:
        """Serve until a signal comes, or all is played of a server that ended by itself. Return how to end."""
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
                    self._clients[arrival.fileno()] = _Client(arrival)
                for fd in [fd for fd in ready if fd in self._clients]:
                    if ready[fd] & ~POLLOUT:
                        self._receive(self._clients[fd])
                for each in list(self._clients.values()):
                    self._send(each)
                if (
                    self._exchanges.exit is not None
                    and self._first >= len(self._exchanges.listed)
                    and not self._clients
                ):
                    status = self._exchanges.exit
            self._look_back()
        finally:
            signals.close()
            self._listener.close()
            for each in self._clients.values():
                each.socket.close()
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

    def _receive(self, client: _Client) -> None:
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
                self._hear(client, item.payload)
            elif not item.wire.isspace():
                self._say(f"{len(item.wire)} bytes of a client are not a request: {item.reason}")
                self._differs = client.over = True
        if client.decoder.expects and not client.continued:
            client.continued = True
            self._write(client, b"HTTP/1.1 100 Continue\r\n\r\n")

    def _hear(self, client: _Client, payload: bytes) -> None:
        exchange, following = self._find(payload)
        if exchange is None or not exchange.sent:
            self._differs = self._lost = True
            live = self._requests.dialect.classify(payload)
            if exchange is None:
                miss = explain_mismatch(
                    self._requests, self._requests.neutral(payload), self._history, where=self._path, turn=following
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

    def _find(self, payload: bytes) -> tuple[Exchange | None, str]:
        """Return the first exchange that a request matches and that may come now; else None, and what is next."""
        strict = self._options.order == "strict"
        ahead: list[Exchange] = []
        for exchange in self._exchanges.listed[self._first :]:
            if exchange.played:
                continue
            if self._matches(exchange, payload):
                missing = [each for each in ahead if each.done < exchange.request.line] if strict else []
                if missing and not self._lost:
                    return None, f"line {missing[0].request.line}"
                for each in missing:
                    each.played = self._differs = True
                    self._say(f"{self._path}:{each.request.line}: {self._described(each.request)} was never sent")
                return exchange, ""
            ahead.append(exchange)
        return None, f"line {ahead[0].request.line}" if ahead else "nothing: the session is over"

    def _matches(self, exchange: Exchange, payload: bytes) -> bool:
        if exchange.partial:
            return b" ".join(payload.split(b" ", 2)[:2]) == exchange.request.payload
        return self._requests.matches(exchange.request, payload)

    def _history(self) -> Iterator[tuple[RecordedRequest, bool, bool]]:
        for exchange in self._exchanges.listed:
            yield exchange.request, exchange.played, True

    # --- Responses ----------------------------------------------------------------------------------------------------

    def _due(self, client: _Client) -> float | None:
        """Return when the next part of the first response may be sent; None: once another request has come."""
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

    def _send(self, client: _Client) -> None:
        """Send what is due, as far as the client takes it."""
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
                if self._is_open(turn.exchange):
                    break  # a stream that never ended stays as it is
                client.over = client.over or turn.exchange.closes
                client.turns.popleft()
        if client.unsent:
            self._write(client, b"")
        if not client.unsent and (client.over or (client.ended and not self._has_more(client))):
            shut(client.socket)
            del self._clients[client.socket.fileno()]
            client.socket.close()

    def _has_more(self, client: _Client) -> bool:
        return any(turn.rest or turn.exchange is None for turn in client.turns)

    def _is_open(self, exchange: Exchange) -> bool:
        """Return True for a response whose end was not recorded."""
        if not exchange.sent:
            return True
        last = exchange.sent[-1][1]
        streams = any("chunked" in line.lower() for line in exchange.sent[0][1].head)
        complete = any(line.startswith("chunks") for line in last.head) or (
            last.head[:1] == ("chunk",) and not last.payload
        )
        return streams and not complete and not exchange.closes

    def _write(self, client: _Client, data: bytes) -> None:
        rest = client.unsent + data
        try:
            sent = client.socket.send(rest) if rest else 0
        except BlockingIOError:
            sent = 0
        except OSError:  # the client is gone
            sent, client.over = len(rest), True
            client.turns.clear()
        client.unsent = rest[sent:]

    # --- The server itself --------------------------------------------------------------------------------------------

    def _write_own(self) -> None:
        """Write what the server wrote before the next request on its own standard files."""
        while self._own and not self._unplayed_before(self._own[0][0]):
            event = self._own.popleft()[1]
            outlet = self._outlets["err" if event.kind == "err" else "out"]
            try:
                outlet.send(self._responses.err(event))
            except OSError:
                continue

    def _look_back(self) -> None:
        left = [each for each in self._exchanges.listed if not each.played]
        for each in left[:LISTED]:
            self._say(f"{self._path}:{each.request.line}: {self._described(each.request)} was never sent")
        if len(left) > LISTED:
            self._say(f"and {len(left) - LISTED} more")
        self._differs = self._differs or (bool(left) and self._options.order == "strict")

    def _described(self, request: RecordedRequest) -> str:
        return describe(request.message(self._requests.dialect))

    def _say(self, text: str) -> None:
        self.told.append(text)
        write_message(self._outlets["err"], text)
