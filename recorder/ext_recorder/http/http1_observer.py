"""Observer of HTTP/1.1 on a connection: requests and responses from the bytes of both directions.

`h11` parses both: as the server what the child sends, as the client what it receives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import h11

from .interaction import HEAD_LIMIT, Body, Interaction

if TYPE_CHECKING:
    from collections.abc import Callable

    from .interaction import Call

MOST_READS = 200  # recorded of one response
PREFACE = b"PRI * HTTP/2.0"
SETTINGS = bytes([4, 0, 0, 0, 0, 0])  # type, flags and stream of the first frame of a server with HTTP/2
HANDSHAKE = b"\x16\x03"  # TLS that bypasses the patches
METHODS = b"GET POST PUT PATCH DELETE HEAD OPTIONS CONNECT TRACE".split()


class Unreadable(Exception):
    """The traffic of this connection cannot be recorded; str() is the reason."""


class Http1Observer:
    """Observer of one connection.

    Args:
        done: receives each complete interaction.
        host: of the server, as the child named it.
        address: (host, port), or the path of a Unix socket.
    """

    def __init__(self, done: Callable[[Interaction], None], host: str, address: list[object] | str) -> None:
        self._done = done
        self.host = host
        self.address = address
        self.tls: dict[str, str] = {}
        self._began = False
        self._tunnel = ""  # the host behind a proxy, if a tunnel to it is open
        self._closed_by_server = False
        self._failure: dict[str, object] | None = None
        self._now: Interaction | None = None
        self._asked = False  # the request is complete
        self._last = 0.0
        self._begin()

    def _begin(self) -> None:
        self._client = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_LIMIT)
        self._response: ResponseReader | None = None
        self._now = None
        self._asked = False

    # --- What the child sends ----------------------------------------------------------------------------------------

    def sent(self, data: bytes, time: float, call: Call) -> None:
        """Process bytes from the child. Raises Unreadable."""
        if not self._began:
            if data.startswith(PREFACE):
                raise Unreadable("HTTP/2: have the child use HTTP/1.1 while it is recorded")
            if data.startswith(HANDSHAKE):
                raise Unreadable("TLS that does not go through Python's ssl module: a library of its own encrypts it")
            word = data.partition(b" ")[0]
            if len(data) >= 8 and word not in METHODS and not (word.isalpha() and word.isupper()):
                raise Unreadable("not HTTP")
            self._began = True
        try:
            self._client.receive_data(data)
            while self._take_sent(time, call):
                pass
        except h11.RemoteProtocolError as error:
            raise Unreadable(f"the child sends invalid HTTP/1.1 ({error})") from error

    def _take_sent(self, time: float, call: Call) -> bool:
        event = self._client.next_event()
        if isinstance(event, h11.Request):
            self._now = request_of(event, self.host, tunnel=self._tunnel, tls=bool(self.tls))
            self._now.call, self._now.time, self._now.tls = call, time, self.tls
            if isinstance(self.address, str):
                self._now.socket = self.address
            else:
                self._now.peer = ":".join(map(str, self.address))
            self._response = ResponseReader(self._now)
        elif isinstance(event, h11.Data):
            if self._now is not None and self._now.request_body is not None:
                self._now.request_body.write(event.data)
        elif isinstance(event, h11.EndOfMessage):
            self._asked = True
            return False
        else:
            return False
        return True

    # --- What the child receives -------------------------------------------------------------------------------------

    def received(self, data: bytes, time: float) -> None:
        """Process bytes from the server; none at its end. Raises Unreadable."""
        self._last = time
        self._closed_by_server = self._closed_by_server or not data
        if self._now is None:
            return
        assert self._response is not None
        if not self._response.receive(data):
            return
        now = self._now
        if now.status == SWITCHING:
            name = next((value for name, value in now.headers if name.lower() == "upgrade"), "another protocol")
            raise Unreadable(f"the connection becomes one of {name} ({now.method} {now.uri})")
        self._end(time)
        if now.method == "CONNECT":
            self._tunnel = now.uri.partition("://")[2].removesuffix(":443")

    def _end(self, time: float) -> None:
        """Complete the interaction."""
        now = self._now
        if now is None:
            return
        now.elapsed = time - now.time
        forget_reads(now)
        rest, _ = self._client.trailing_data
        self._done(now)
        self._begin()
        if rest:
            raise Unreadable("several requests at once on one connection (pipelining)")

    # --- End of the connection ---------------------------------------------------------------------------------------

    def failed(self, error: dict[str, object], time: float) -> None:
        """Record that a read or a write of the child has failed."""
        self._failure = error
        self._last = time

    def closed(self, time: float) -> None:
        """Record that the child has closed the connection, or has ended."""
        now = self._now
        if now is None:
            return
        if self._response is not None:
            self._response.cut()
        if self._failure is not None:
            now.error = self._failure
        elif self._closed_by_server:
            now.error = {"type": "ServerClosed", "errno": None, "message": "the server ended the connection"}
        elif now.status:
            now.cut = True
        else:
            now.error = {"type": "GaveUp", "errno": None, "message": "the child did not wait for an answer"}
        self._end(max(time, now.time))


SWITCHING = 101  # the status of a response after which the connection has another protocol


class ResponseReader:
    """Reader of the response to one request, into its interaction.

    Args:
        interaction: with the head of the request.
    """

    def __init__(self, interaction: Interaction) -> None:
        self._interaction = interaction
        self._parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_LIMIT)
        self._chunk = 0  # bytes of the chunk that has begun
        # The parser must have sent a request.
        upgrade = [
            (name.encode("latin-1"), value.encode("latin-1"))
            for name, value in interaction.request_headers
            if name.lower() in {"upgrade", "connection"}
        ]
        method = interaction.method.encode()
        self._parser.send(h11.Request(method=method, target=b"/", headers=[(b"host", b"x"), *upgrade]))
        self._parser.send(h11.EndOfMessage())

    @property
    def rest(self) -> bytes:
        """Return the bytes after the response: those of the next protocol."""
        return self._parser.trailing_data[0]

    def receive(self, data: bytes) -> bool:
        """Process bytes; none at the end of the connection. Return True if the response is complete.

        Raises:
            Unreadable: the bytes are not HTTP/1.1.
        """
        if data:
            self._interaction.reads.append(len(data))
        try:
            self._parser.receive_data(data)
            while True:
                event = self._parser.next_event()
                if self._take(event):
                    return True
                if event in (h11.NEED_DATA, h11.PAUSED) or isinstance(event, h11.ConnectionClosed):
                    return False
        except h11.RemoteProtocolError as error:
            if not data:
                return False  # an incomplete response is recorded when the connection is closed
            if "switch" in str(error):
                raise Unreadable("the server changes the protocol (101)") from error
            if not self._interaction.status and data[3:9] == SETTINGS:
                raise Unreadable("the server uses HTTP/2 without HTTP/1.1") from error
            raise Unreadable(f"the server returns invalid HTTP/1.1 ({error})") from error

    def cut(self) -> None:
        """Record the incomplete chunk of a response that has ended too soon."""
        if self._chunk:
            self._interaction.chunks.append(self._chunk)

    def _take(self, event: object) -> bool:
        """Record an event. Return True if the response is complete."""
        now = self._interaction
        if isinstance(event, h11.Response) or (
            isinstance(event, h11.InformationalResponse) and event.status_code == SWITCHING
        ):
            now.status = event.status_code
            now.reason = event.reason.decode("latin-1")
            now.headers = _headers(event.headers)
            now.http_version = event.http_version.decode("ascii", "replace")
            now.body = Body()
            return now.status == SWITCHING or (now.method == "CONNECT" and 200 <= now.status < 300)
        if isinstance(event, h11.Data):
            if now.body is not None:
                now.body.write(event.data)
            self._chunk += len(event.data)
            if event.chunk_end:
                now.chunks.append(self._chunk)
                self._chunk = 0
        return isinstance(event, h11.EndOfMessage)


def forget_reads(interaction: Interaction) -> None:
    """Forget the pieces of a response that was read at once, or in too many."""
    if not 1 < len(interaction.reads) <= MOST_READS:
        interaction.reads = []


def request_of(event: h11.Request, host: str, *, tunnel: str, tls: bool) -> Interaction:
    """Return an interaction with a request whose body has not been received.

    Args:
        host: of the server, for a request without the header `Host`.
        tunnel: address behind a proxy; "" for none.
    """
    target = event.target.decode("ascii", "replace")
    if event.method == b"CONNECT":
        uri = f"{'https' if tls else 'http'}://{target}"
    elif "://" in target.partition("?")[0]:  # to a proxy
        uri = target
    else:
        host = tunnel or next((value.decode() for name, value in event.headers if name == b"host"), host)
        uri = f"{'https' if tls else 'http'}://{host}{target if target.startswith('/') else '/' + target}"
    return Interaction(event.method.decode("ascii", "replace"), uri, _headers(event.headers), Body())


def _headers(headers: h11._headers.Headers) -> list[tuple[str, str]]:
    """Return names and values, the names in their original case."""
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers.raw_items()]
