"""MCP over Streamable HTTP, recorded: the HTTP exchanges of a session become the events of an ordinary cassette.

A message is an event, as on stdio. Its header lines name the exchange that it came in, by method and number:

    - {t: 0.000100, in: '{"method":"initialize",…}', head: ['POST 1']}
    - {t: 0.020000, out: '{"result":{…}}', head: ['POST 1', 'json', 'session']}     a JSON body; a session id was given
    - {t: 0.030000, http: GET 3}                                                    the client opens a stream
    - {t: 0.040000, out: '…', head: ['POST 4', 'id: e7']}                           a server-sent event with an id
    - {t: 0.050000, out: '{"error":{…}}', head: ['POST 5', 'json', '404']}          an HTTP error, as a JSON-RPC error

A mark `http` is an exchange without a message (`GET 3 405`, `DELETE 9 200`), or the end of a stream (`GET 3 end`).
Session ids and credentials are in headers only, which are not recorded. The relay of `record --listen` and the proxy
of `run` both observe their traffic here.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from ext_recorder.cassette.events import MESSAGE_LIMIT_BYTES
from ext_recorder.cassette.reader import Reader
from ext_recorder.cassette.yaml_scalars import holds
from ext_recorder.errors import RecorderError, UsageError
from ext_recorder.http.event_loop import READ, WRITE, EventLoop
from ext_recorder.http.interaction import CONNECT, Body
from ext_recorder.posix.child import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, CommandError, has_exited
from ext_recorder.posix.output import host_outlet, write_message
from ext_recorder.posix.signals import Signals
from ext_recorder.protocols.mcp import DIALECT
from ext_recorder.record import writer_process
from ext_recorder.record.config import RecordingConfig
from ext_recorder.record.note_queue import NO_PROCESS, Report
from ext_sdk.core.stdio import claim_standard_files
from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.json_codec import dumps, elements, loads

from .certificates import Authority
from .client import Entry, accepting
from .recording import RecordedConnection, RecordingContext, Unrecorded
from .upstream import Origin, ParentProxies, Trust

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ext_recorder.http.interaction import Headers, Interaction
    from ext_recorder.protocols.dialect import ClassifiedMessage
    from ext_recorder.record.note_queue import NoteQueue

    from .client import Backend, Request
    from .streams import Stream
    from .upstream import Upstream

JSON, STREAM = "application/json", "text/event-stream"
SESSION_ID, PROTOCOL_VERSION, LAST_EVENT_ID = "mcp-session-id", "mcp-protocol-version", "last-event-id"
CHALLENGE = "www-authenticate"
OPENING = frozenset({"initialize", "server/discover"})  # methods with which a session begins
ACCEPTED = 202
FAILED = 400  # the first status of a failure
NOT_DELIVERED = -32000  # code of a JSON-RPC error for a failure of HTTP
MOST_WAITING_BYTES = 44_040_192  # for the writer process of a session


def header_of(headers: Headers, name: str) -> str:
    """Return the value of a header; "" if it is missing."""
    return next((value for key, value in headers if key.lower() == name), "")


def endpoint_of(uri: str) -> str:
    """Return the address of an endpoint: a URL without its query, which may contain credentials."""
    return uri.partition("?")[0].partition("#")[0]


def messages_in(body: bytes) -> list[ClassifiedMessage]:
    """Return the messages of a body, on one line each: one, or those of a batch; none if it is not JSON-RPC."""
    try:
        text = body.decode()
        value = loads(text)
    except (UnicodeDecodeError, MessageError):
        return []
    if isinstance(value, list):
        start = text.index("[")
        texts = [text[begin:end] for begin, end, _ in elements(text, start)]
    else:
        texts = [text.strip()]
    messages = []
    for item in texts:
        # Line ends are between tokens, because strings of JSON contain none.
        line = "".join(part.strip(" \t") for part in item.replace("\r", "\n").split("\n"))
        if not holds(line):  # in YAML
            line = "".join(char if holds(char) else f"\\u{ord(char):04x}" for char in line)
        messages.append(DIALECT.classify(line.encode()))
    known = all(message.kind != "other" and message.at("/jsonrpc") == "2.0" for message in messages)
    return messages if known else []


class ServerSentEvent(NamedTuple):
    """Event of a stream.

    Attributes:
        name: "message" for most.
        id: "" if it has none.
    """

    name: str
    id: str
    data: bytes


class EventStream:
    """Parser of a stream of server-sent events."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._begin()

    def _begin(self) -> None:
        self._name, self._id, self._data = "", "", list[bytes]()

    def receive(self, data: bytes) -> Iterator[ServerSentEvent]:
        """Yield the events that these bytes complete."""
        if b"\n" not in data and b"\r" not in data:
            self._rest.append(data)
            return
        text = b"".join([*self._rest, data])
        held = b"\r" if text.endswith(b"\r") else b""  # a line feed may follow
        text = text.removesuffix(held).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = text.split(b"\n")
        self._rest = [rest + held]
        for line in lines:
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                self._data.append(value)
            elif name == b"id":
                self._id = value.decode(errors="replace")
            elif name == b"event":
                self._name = value.decode(errors="replace")
            if line:
                continue
            if self._data or self._id:
                yield ServerSentEvent(self._name or "message", self._id, b"\n".join(self._data))
            self._begin()


class _Tap(Body):
    """Body of a response that is not kept: its pieces are read once, as they arrive."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        super().__init__()
        self._take = take

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Pass bytes on."""
        self.size += len(data)
        self._take(bytes(data))


class RecordedSession:
    """Recording of one session: a cassette and its writer process.

    Attributes:
        id: as the server has given it; "" if it has not.
        cassette: the file.
        begun: methods with which the client has begun it.
        ended: no further exchange belongs to it.
    """

    def __init__(self, loop: EventLoop, config: RecordingConfig) -> None:
        self.id = ""
        self.cassette = config.cassette
        self.begun: set[str] = set()
        self.events: dict[str, int] = {}  # exchanges by the ids of their server-sent events
        self.ended = False
        self._loop = loop
        self._started = time.monotonic()
        self._count = 0
        self._queue: NoteQueue = writer_process.start(config, NO_PROCESS)
        if config.on_start:
            config.on_start(self._started)
        self._is_due = self._watches = False

    def number(self) -> int:
        """Return the number of the next exchange."""
        self._count += 1
        return self._count

    def note(self, name: str, what: bytes | str | int) -> None:
        """Record an event. Its time is now."""
        if self._queue.on and not self.ended:
            self._queue.keep(time.monotonic() - self._started, name, what)
            if not self._is_due:
                self._is_due = True
                self._loop.defer(self._flush)

    def message(self, stream: str, text: str, *head: str) -> None:
        """Record a message with its header lines."""
        lines = [line.replace("\n", " ")[:1_000] for line in head]
        self.note(stream, text.encode() + b"\x1e" + b"\x1f".join(line.encode() for line in lines) + b"\n")

    def end(self) -> None:
        """End the session as a child does whose host has closed its input."""
        self.note("in", b"")
        self.note("exit", 0)
        self.ended = True

    def finish(self) -> Report:
        """End the session, and wait until its cassette is written."""
        self.end()
        if self._watches:
            self._loop.unwatch(self._queue.pipe)
        return self._queue.finish()

    def _flush(self) -> None:
        self._is_due = False
        queue = self._queue
        while queue.on and queue.fresh and queue.backlog < MOST_WAITING_BYTES:
            queue.flush()
        if queue.backlog and not self._watches:
            self._watches = True
            self._loop.watch(queue.pipe, WRITE, self._on_room)

    def _on_room(self, _events: int) -> None:
        self._queue.write()
        if not self._queue.backlog:
            self._watches = False
            self._loop.unwatch(self._queue.pipe)
            if self._queue.fresh:
                self._flush()


class McpRecording:
    """All MCP sessions of a recording: finds them in the traffic, and records a cassette for each.

    Args:
        config: returns the configuration of the next session, given the address of its endpoint.
        problem: receives a text about a session that can't be recorded.
        endpoints: addresses of which all traffic is MCP.
    """

    def __init__(
        self,
        loop: EventLoop,
        config: Callable[[str], RecordingConfig],
        problem: Callable[[str], None],
        endpoints: tuple[str, ...] = (),
    ) -> None:
        self.problem = problem
        self.sessions: list[RecordedSession] = []
        self._loop = loop
        self._config = config
        self._endpoints = set(endpoints)
        self._by_id: dict[tuple[str, str], RecordedSession] = {}
        self._latest: dict[str, RecordedSession] = {}  # by endpoint, of those without an id
        self._by_connection: dict[int, RecordedSession] = {}  # the same, by the connection of the client

    def watch(self, request: Request, connection: object) -> Request:
        """Return a request with an observer, if it may be one of MCP. Such a response is not compressed."""
        interaction = request.interaction
        headers, is_known = interaction.request_headers, self.knows(endpoint_of(interaction.uri))
        accepts = STREAM in header_of(headers, "accept")
        named = bool(header_of(headers, SESSION_ID) or header_of(headers, PROTOCOL_VERSION))
        may_be_mcp = {
            "POST": (accepts or named or is_known) and header_of(headers, "content-type").startswith(JSON),
            "GET": accepts and (named or is_known),
            "DELETE": bool(header_of(headers, SESSION_ID)),
        }
        if not may_be_mcp.get(interaction.method):
            return request
        interaction.observer = _Exchange(self, interaction, id(connection))
        head = b"\r\n".join(
            line for line in request.head.split(b"\r\n") if not line.lower().startswith(b"accept-encoding:")
        )
        return request._replace(head=head)

    def knows(self, endpoint: str) -> bool:
        """Return True if an address is that of an MCP endpoint."""
        return endpoint in self._endpoints

    def session_of(
        self, interaction: Interaction, methods: set[str], connection: int, *, may_begin: bool
    ) -> RecordedSession | None:
        """Return the session of a request, a new one if the request begins it; None if the request is not of MCP."""
        endpoint, given = endpoint_of(interaction.uri), header_of(interaction.request_headers, SESSION_ID)
        if given and (session := self._by_id.get((endpoint, given))):
            return session
        opening = methods & OPENING
        if opening or not given:
            found = self._by_connection.get(connection) or (None if opening else self._latest.get(endpoint))
            if found is not None and not (opening & found.begun) and not found.ended and not found.id:
                found.begun |= opening
                self._by_connection[connection] = found
                return found
        named = given or header_of(interaction.request_headers, PROTOCOL_VERSION)
        if not may_begin or not (opening or named or self.knows(endpoint)):
            return None
        session = RecordedSession(self._loop, self._config(endpoint))
        session.begun |= opening
        self._endpoints.add(endpoint)
        self.sessions.append(session)
        self._latest[endpoint] = self._by_connection[connection] = session
        if given:  # it began before the recording
            self.name(session, endpoint, given)
        return session

    def name(self, session: RecordedSession, endpoint: str, given: str) -> None:
        """Note the id that a server has given to a session."""
        session.id = given
        self._by_id[endpoint, given] = session

    def finish(self) -> list[Report]:
        """End all sessions, and return the results of their recordings."""
        return [session.finish() for session in self.sessions]


class _Exchange:
    """Observer of one HTTP request that may be one of MCP, and of its response."""

    def __init__(self, recording: McpRecording, interaction: Interaction, connection: int) -> None:
        self._recording = recording
        self._interaction = interaction
        self._connection = connection
        self._session: RecordedSession | None = None
        self._name = ""  # in the cassette
        self._waiting: dict[bytes, str] = {}  # ids of the requests without a response, with their text
        self._stream: EventStream | None = None
        self._json = bytearray()
        self._tap: _Tap | None = None
        self._challenge = ""
        self._has_ids = False
        self._is_over = self._may_be_old = False
        self._gave_id = False  # the next message is in the response that gave the session its id

    def sent(self) -> None:
        """Record the messages of the request; let the interaction be recorded as HTTP if they are not of MCP."""
        interaction = self._interaction
        body = interaction.request_body or Body()
        messages = messages_in(body.whole()) if body.size <= MESSAGE_LIMIT_BYTES else []
        is_post = interaction.method == "POST"
        if messages or not is_post:
            methods = {message.method for message in messages if message.kind == "request"}
            self._session = self._recording.session_of(interaction, methods, self._connection, may_begin=is_post)
        session = self._session
        if session is None:
            self._may_be_old = interaction.method == "GET"
            interaction.observer = self if self._may_be_old else None
            return
        self._name = f"{interaction.method} {session.number()}"
        for message in messages:
            if message.kind == "request" and message.key is not None:
                self._waiting[message.key] = message.id
            session.message("in", message.text, self._name)
        if interaction.method == "GET":
            after = session.events.get(header_of(interaction.request_headers, LAST_EVENT_ID))
            session.note("http", f"{self._name} resumes {after}" if after else self._name)
        body.close()

    def received(self, *, complete: bool) -> None:
        """Read what has arrived of the response."""
        begun = self._interaction.body
        if self._may_be_old and begun is not None and b"event: endpoint" in next(begun.pieces(), b""):
            self._may_be_old = False
            self._report_old_transport()
        self._read_head()
        if complete:
            self.finished()

    def _read_head(self) -> None:
        """Read the head of the response; its body is read as it arrives."""
        interaction, session = self._interaction, self._session
        if session is None or not interaction.status or self._tap is not None:
            return
        headers, endpoint = interaction.headers, endpoint_of(interaction.uri)
        self._challenge = header_of(headers, CHALLENGE)
        if (given := header_of(headers, SESSION_ID)) and not session.id:
            self._recording.name(session, endpoint, given)
            self._gave_id = True
        if header_of(headers, "content-type").startswith(STREAM) and interaction.status < FAILED:
            self._stream = EventStream()
        self._tap = _Tap(self._take)
        begun, interaction.body = interaction.body, self._tap
        if begun is not None:
            for piece in begun.pieces():
                self._take(piece)
            begun.close()

    def finished(self) -> bool:
        """Record the end of the exchange. Return False if it is not one of MCP."""
        session, interaction = self._session, self._interaction
        if session is None or self._is_over:
            return session is not None
        self._read_head()
        self._is_over = True
        status = interaction.status
        if self._json:
            self._take_json()
        if interaction.method == "DELETE":
            session.note("http", f"{self._name} {status or 'reset'}")
            if 0 < status < FAILED:
                session.end()
        elif interaction.method == "GET":
            self._end_stream(session, status)
        elif self._waiting:
            self._fail(session, status)
        elif status != ACCEPTED and self._stream is None and not self._json:
            session.note("http", f"{self._name} {status or 'reset'}")
        return True

    # --- Bodies ------------------------------------------------------------------------------------------------------

    def _take(self, data: bytes) -> None:
        if self._stream is None:
            if len(self._json) <= MESSAGE_LIMIT_BYTES:
                self._json += data
            return
        for event in self._stream.receive(data):
            self._take_event(event)

    def _take_event(self, event: ServerSentEvent) -> None:
        session = self._session
        assert session is not None
        if event.id:
            session.events[event.id] = int(self._name.partition(" ")[2])
            self._has_ids = True
        if event.name == "endpoint":
            self._report_old_transport()
            return
        messages = messages_in(event.data)
        if not messages and event.id and not event.data:
            session.note("http", f"{self._name} primed")
        for message in messages:
            self._out(message, *([f"id: {event.id}"] if event.id else []))

    def _report_old_transport(self) -> None:
        self._recording.problem(
            f"{endpoint_of(self._interaction.uri)} uses the transport HTTP+SSE of 2024-11-05, which is not recorded as "
            "a session; use the Streamable HTTP endpoint of the server, in most cases /mcp"
        )

    def _take_json(self) -> None:
        session, status = self._session, self._interaction.status
        assert session is not None
        messages = messages_in(bytes(self._json)) if len(self._json) <= MESSAGE_LIMIT_BYTES else []
        if status >= FAILED:
            return
        for message in messages:
            self._out(message, "json")
        if len(self._json) > MESSAGE_LIMIT_BYTES:
            session.note("omitted", f"{self._tap.size if self._tap else 0} bytes of out")
            self._waiting.clear()

    def _out(self, message: ClassifiedMessage, *head: str) -> None:
        session = self._session
        assert session is not None
        named = ["session"] if self._gave_id else []
        self._gave_id = False
        session.message("out", message.text, self._name, *head, *named)
        if message.kind == "response" and message.key is not None:
            self._waiting.pop(message.key, None)

    # --- Ends --------------------------------------------------------------------------------------------------------

    def _end_stream(self, session: RecordedSession, status: int) -> None:
        if self._stream is None:
            session.note("http", f"{self._name} {status or 'reset'}")
        elif self._interaction.error is not None:
            session.note("http", f"{self._name} reset")
        elif not self._interaction.cut:  # else the client has closed it
            session.note("http", f"{self._name} end")

    def _fail(self, session: RecordedSession, status: int) -> None:
        """Record why requests have no response, as error responses; unless a client may resume the stream."""
        error = self._interaction.error
        if self._interaction.cut or (error is not None and error.get("type") == "GaveUp"):
            how, text = ["closed"], "the client closed the connection before the response"
        elif status >= FAILED:
            how, text = ["json", str(status)], ""
        elif self._stream is not None and self._has_ids:
            session.note("http", f"{self._name} end")
            return
        elif error is not None and not status and error.get("type") == "ConnectionRefusedError":
            how, text = ["json", "502"], f"HTTP 502: {error.get('message')}"
        elif error is not None:
            how, text = ["reset"], f"the server did not respond: {error.get('message')}"
        else:
            how, text = ["end"], "the server ended the response without a message"
        challenge = [f"{CHALLENGE}: {self._challenge}"] if self._challenge else []
        for id in self._waiting.values():
            failure = error_of(text) if text else failure_of(status, self._interaction.reason, bytes(self._json))
            session.message("out", f'{{"jsonrpc":"2.0","id":{id},"error":{failure}}}', self._name, *how, *challenge)


def failure_of(status: int, reason: str, body: bytes) -> str:
    """Return the JSON-RPC error in the body of a failure, or one made for it, as JSON."""
    for message in messages_in(body):
        if isinstance(error := message.at("/error"), dict):
            return dumps(error)
    text = " ".join(body[:500].decode(errors="replace").split())
    return error_of(f"HTTP {status}: {text or reason}")


def error_of(text: str) -> str:
    """Return the JSON-RPC error for a request that had no response, as JSON."""
    return dumps({"code": NOT_DELIVERED, "message": text})


# --- The relay of `record --listen` ----------------------------------------------------------------------------------

SERVER_START_S = 30.0  # until a server that was started here listens
RETRY_S = 0.02
STOP_S = 5.0  # until a server that was started here has exited
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Endpoint(NamedTuple):
    """Address of an MCP endpoint.

    Attributes:
        query: with its question mark; it may contain credentials.
    """

    origin: Origin
    path: str
    query: str = ""

    @classmethod
    def parse(cls, url: str, option: str) -> Endpoint:
        """Parse a URL such as http://127.0.0.1:0/mcp. Raises UsageError."""
        parts = urlsplit(url)
        try:
            port = parts.port if parts.port is not None else (443 if parts.scheme == "https" else 80)
            origin = Origin(parts.scheme, parts.hostname or "", port)
        except ValueError:
            origin = Origin("", "", 0)
        if origin.scheme not in {"http", "https"} or not origin.host or parts.username or parts.fragment:
            raise UsageError(f"{option} {url}: expected the URL of an MCP endpoint, such as http://127.0.0.1:8000/mcp")
        return cls(origin, parts.path or "/", f"?{parts.query}" if parts.query else "")

    @property
    def url(self) -> str:
        """Return the address as text, without the query."""
        return f"{self.origin.scheme}://{self.origin.authority}{self.path}"


def listen_at(url: str) -> tuple[socket.socket, Endpoint]:
    """Return a listening socket, and its address with the port that the system has chosen. Raises UsageError."""
    endpoint = Endpoint.parse(url, "--listen")
    if endpoint.origin.scheme != "http":
        raise UsageError(f"--listen {url}: expected http:; clients on this machine need no TLS")
    family = socket.AF_INET6 if ":" in endpoint.origin.host else socket.AF_INET
    try:
        listener = socket.create_server((endpoint.origin.host, endpoint.origin.port), family=family)
    except OSError as error:
        if error.errno in {errno.EADDRINUSE, errno.EACCES}:
            advice = f"http://{endpoint.origin.host}:0{endpoint.path} is any free port"
        else:
            advice = "expected an address of this machine, such as http://127.0.0.1:0/mcp"
        raise UsageError(f"cannot listen at {url}: {error.strerror or error}; {advice}") from None
    listener.settimeout(0)
    return listener, endpoint._replace(origin=endpoint.origin._replace(port=listener.getsockname()[1]))


class _VerifiedConnection(RecordedConnection):
    """Connection to a server whose certificate is verified here, because the clients use no TLS."""

    def verified(self, upstream: Upstream) -> None:
        """Continue, unless the certificate has a defect."""
        if upstream.defect:
            text = f"its certificate is not valid ({upstream.defect}); SSL_CERT_FILE names a file of authorities"
            upstream.close()
            self.refused(upstream, OSError(errno.EPROTO, text))
        else:
            super().verified(upstream)


class HttpRelay:
    """Relay between the clients of one MCP endpoint and its server.

    Args:
        config: of the first session; it names the cassette and the addresses.
    """

    def __init__(self, config: RecordingConfig) -> None:
        self._target = Endpoint.parse(config.connect, "--connect")
        self._listener, self._address = listen_at(config.listen)
        self._config = config
        self._stderr = host_outlet(2)
        self._problems: dict[str, None] = {}
        self._server = 0  # process id of a server that was started here
        self._loop = EventLoop()
        self._started = time.monotonic()
        parents = ParentProxies(os.environ)
        parents.check()
        self._context = RecordingContext(
            self._loop, Trust(), Authority(), self, self._started, set(), parents, watch=self
        )
        self._recording = McpRecording(self._loop, self._session, self.problem, endpoints=(self._target.url,))

    @property
    def sessions(self) -> int:
        """Number of sessions that were recorded."""
        return len(self._recording.sessions)

    def run(self) -> int:
        """Relay until a signal arrives, or the server that was started here exits. Return the exit code."""
        signals = Signals()
        signals.catch()
        try:
            if self._config.command:
                self._server = start_server(self._config.command)
                wait_for_server(
                    self._server, self._target, lambda: any(number in _ENDING for number, _ in signals.take())
                )
            entry = Entry(self._target.origin, is_only=True)
            self._loop.watch(self._listener.fileno(), READ, accepting(self._loop, self._listener, entry, self))
            write_message(self._stderr, f"listening on {self._address.url}, for {self._target.url}")
            self._serve(signals)
        finally:
            self._listener.close()
            status = max(0, stop_server(self._server)) if self._server else 0
            signals.close()
        for connection in list(self._context.connections):
            connection.cut()
        self._loop.drain()
        reports = self._recording.finish()
        for report in reports:
            write_message(self._stderr, report.warning)
            write_message(self._stderr, report.text)
        if not reports:
            write_message(
                self._stderr, f"no session was recorded: no client has sent `initialize` to {self._address.url}"
            )
        elif self._problems:
            write_message(
                self._stderr, f"not everything was recorded, so the exit code is 1: {'; '.join(self._problems)}"
            )
        return status or (0 if reports and all(report.ok for report in reports) and not self._problems else 1)

    def _session(self, _endpoint: str) -> RecordingConfig:
        """Return the configuration of the next session, which has a cassette of its own."""
        config, count = self._config, len(self._recording.sessions) + 1
        return RecordingConfig(
            cassette_of(config.name, count),
            (self._target.url,),
            protocol=DIALECT.name,
            bind=config.bind,
            redact=config.redact,
            listen=config.listen,
            match_env=config.match_env,
            headed=True,
        )

    def _serve(self, signals: Signals) -> None:
        over: list[bool] = []

        def on_signal(_events: int) -> None:
            for number, _ in signals.take():
                if number in _ENDING or (number == signal.SIGCHLD and self._server and has_exited(self._server)):
                    over.append(True)

        self._loop.watch(signals.fd, READ, on_signal)
        while not over:
            self._loop.turn(signals.patience and signals.patience / 1000)
            if signals.patience:
                on_signal(0)
        self._loop.unwatch(signals.fd)

    # --- For the connections -----------------------------------------------------------------------------------------

    def watch(self, request: Request, connection: object) -> Request:
        """Replace the path of the relay by that of the server, and observe the request."""
        interaction, ours = request.interaction, f"{self._target.origin.scheme}://{self._target.origin.authority}"
        path = interaction.uri.removeprefix(ours)
        target = self._target.path + (path.removeprefix(self._address.path) or self._target.query)
        if path.partition("?")[0] == self._address.path and target != path:
            interaction.uri = ours + target
            request = request._replace(head=request.head.replace(f" {path} ".encode(), f" {target} ".encode(), 1))
        return self._recording.watch(request, connection)

    def backend(self, origin: Origin, trust: Trust | None) -> Backend:
        """Return a connection to the server."""
        return _VerifiedConnection(self._context)

    def route(self, origin: Origin) -> Entry | None:
        """Return None: all requests are for the same server."""

    def passes(self, origin: Origin) -> bool:
        """Return False: no traffic is passed through."""
        return False

    def problem(self, text: str) -> None:
        """Report traffic that can't be recorded, once."""
        if text not in self._problems:
            self._problems[text] = None
            write_message(self._stderr, text)

    def add(self, interaction: Interaction) -> None:
        """Release an interaction that is not one of MCP; report a server that can't be reached."""
        if interaction.method == CONNECT and interaction.error is not None:
            self.problem(f"no connection to {self._target.url}: {interaction.error.get('message')}")
        Unrecorded().add(interaction)

    def server(self, place: str, properties: dict[str, str]) -> None:
        """Do nothing."""

    def slow_down(self, stream: Stream) -> None:
        """Do nothing: the notes of a session wait in its queue."""


def cassette_of(name: str, count: int) -> str:
    """Return the cassette of a session: mcp.yaml, mcp-2.yaml, and so on."""
    return name if count == 1 else f"{name.removesuffix('.yaml')}-{count}.yaml"


def further_sessions(name: str, first: int = 2) -> list[str]:
    """Return the cassettes of the sessions after the first one: those with numbers that are of the same server.

    Raises:
        CassetteError: a cassette can't be read.
    """
    with Reader(name) as reader:
        server = reader.header.command
    cassettes: list[str] = []
    while Path(path := cassette_of(name, first + len(cassettes))).exists():
        with Reader(path) as reader:
            if reader.header.protocol != DIALECT.name or reader.header.command != server:
                break
        cassettes.append(path)
    return cassettes


def start_server(command: Sequence[str]) -> int:
    """Start a server in a process group of its own, and return its process id. Raises CommandError."""
    try:
        return os.posix_spawnp(
            command[0], tuple(command), os.environ, setpgroup=0, setsigdef=[signal.SIGPIPE, signal.SIGXFSZ]
        )
    except OSError as error:
        code = EXIT_NOT_FOUND if isinstance(error, FileNotFoundError) else EXIT_NOT_EXECUTABLE
        raise CommandError(f"the command {command[0]!r} cannot be executed: {error.strerror}", code) from None


def wait_for_server(pid: int, target: Endpoint, is_over: Callable[[], bool]) -> None:
    """Wait until a server that was started listens. Raises RecorderError.

    Args:
        is_over: returns True if no client waits for it any more.
    """
    until = time.monotonic() + SERVER_START_S
    while True:
        try:
            socket.create_connection((target.origin.host, target.origin.port), timeout=1).close()
        except OSError as error:
            if has_exited(pid):
                raise RecorderError(f"the server has exited before it listened at {target.url}") from None
            if time.monotonic() > until or is_over():
                raise RecorderError(f"the server does not listen at {target.url}: {error.strerror or error}") from None
            time.sleep(RETRY_S)
        else:
            return


def stop_server(pid: int) -> int:
    """Stop a server with its process group. Return its exit code if it had exited by itself; else 0."""
    by_itself = has_exited(pid)
    for number, patience in ((signal.SIGTERM, STOP_S), (signal.SIGKILL, STOP_S)):
        with suppress(ProcessLookupError):
            os.killpg(pid, number)
        until = time.monotonic() + patience
        while not has_exited(pid) and time.monotonic() < until:
            time.sleep(RETRY_S)
        if has_exited(pid):
            _, status = os.waitpid(pid, 0)
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # what it has left behind
            return os.waitstatus_to_exitcode(status) if by_itself else 0
    return 0


def record_sessions(config: RecordingConfig) -> int:
    """Record the MCP sessions of a server between `listen` and `connect`, until a signal arrives. Return the exit code.

    Raises:
        RecorderError: an address or the command can't be used.
    """
    claim_standard_files()
    relay = HttpRelay(config)
    status = relay.run()
    if relay.sessions and status == 0:  # the recording before this one may have had more
        for older in further_sessions(config.name, first=max(2, relay.sessions + 1)):
            Path(older).unlink()
    return status
