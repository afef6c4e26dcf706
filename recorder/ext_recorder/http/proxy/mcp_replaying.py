"""MCP over Streamable HTTP, replayed: requests of HTTP become messages for a player, and its messages HTTP responses.

Each session has a player of its own, as on stdio. Its cassette tells for each message on which stream it came, see
`mcp_recording`; a cassette that was recorded on stdio does not, and then the response decides.
"""

from __future__ import annotations

import signal
import uuid
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from ext_recorder.cassette.events import Data, Mark
from ext_recorder.cassette.reader import Reader
from ext_recorder.errors import RecorderError
from ext_recorder.http.event_loop import READ, EventLoop
from ext_recorder.messages.provenance import check, headline
from ext_recorder.posix.output import OutputSink, host_outlet, write_message
from ext_recorder.posix.signals import Signals
from ext_recorder.protocols.fast_id import scan_id
from ext_recorder.protocols.mcp import DIALECT
from ext_recorder.replay.alternatives import Choice, LoggedActions
from ext_recorder.replay.event_loop import EXIT_CANNOT_PLAY, SILENCE_MS, PlayerDriver
from ext_recorder.replay.player import EXIT_DIFFERS
from ext_recorder.replay.replay import MAX, make_action_buffer, make_player, reporting
from ext_recorder.replay.report import Report
from ext_sdk.core.stdio import claim_standard_files
from ext_sdk.core.wire.json_codec import dumps

from .client import Client, Entry, accepting
from .mcp_recording import (
    ACCEPTED,
    CHALLENGE,
    FAILED,
    JSON,
    LAST_EVENT_ID,
    OPENING,
    SESSION_ID,
    STREAM,
    endpoint_of,
    further_sessions,
    header_of,
    listen_at,
    messages_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ext_recorder.http.interaction import Headers, Interaction
    from ext_recorder.protocols.dialect import ClassifiedMessage
    from ext_recorder.replay.actions import ActionBuffer, Output
    from ext_recorder.replay.player import Player
    from ext_recorder.replay.replay import Options

    from .client import Backend, Request
    from .upstream import Origin, Trust

REASONS = {
    200: "OK", 202: "Accepted", 204: "No Content", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden",
    404: "Not Found", 405: "Method Not Allowed", 429: "Too Many Requests", 500: "Internal Server Error",
    502: "Bad Gateway", 503: "Service Unavailable",
}  # fmt: skip
INVALID, UNKNOWN_SESSION = -32600, -32001  # codes of JSON-RPC errors
RESUMABLE = 1_000  # events of a session that can be sent again
RESUMABLE_BYTES = 4 * 1024 * 1024
STREAM_PATIENCE_S = 2.0  # until a request for a stream that no client has opened goes to another one
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Facts:
    """Facts about HTTP in a cassette. A session that was recorded on stdio could have used any of it.

    Attributes:
        has_session: the server has given the session an id.
        get: status of GET.
        delete: status of DELETE.
        accepted: status of a POST without requests.
        has_ids: server-sent events have ids.
        is_primed: a stream begins with an id.
        requests: ids of the requests, by the name of their exchange.
        resumed: names of the exchanges that continue a stream.

    Raises:
        CassetteError: the cassette can't be read.
    """

    def __init__(self, cassette: str) -> None:
        self.has_session = self.has_ids = self.is_primed = False
        self.requests: dict[str, list[bytes]] = {}
        self.resumed: set[str] = set()
        statuses: dict[str, int] = {}
        is_http = False
        with Reader(cassette) as reader:
            for event in reader:
                if isinstance(event, Mark):
                    if event.kind == "http":
                        is_http = True
                        method, number, *more = str(event.value).split()
                        self.is_primed = self.is_primed or "primed" in more
                        if more[:1] == ["resumes"]:
                            self.resumed.add(f"{method} {number}")
                        if more and more[0].isdigit():
                            statuses[f"{method} {number}"] = int(more[0])
                        elif method == "GET":
                            statuses.setdefault(f"GET {number}", 200)
                elif event.head:
                    is_http = True
                    self._message(event)
        self.has_session = self.has_session or not is_http
        self.has_ids = self.has_ids or self.is_primed
        lowest = sorted(statuses.items(), key=lambda item: -item[1])
        by_method = {name.partition(" ")[0]: status for name, status in lowest}
        post = by_method.get("POST", ACCEPTED)
        self.accepted = post if post < FAILED else ACCEPTED
        self.get, self.delete = by_method.get("GET", 405 if is_http else 200), by_method.get("DELETE", 200)

    def _message(self, event: Data) -> None:
        if event.kind == "in":
            seen = scan_id(event.payload)
            if seen and seen[0] == "request":
                self.requests.setdefault(event.head[0], []).append(event.payload[seen[1] : seen[2]])
        else:
            self.has_session = self.has_session or "session" in event.head
            self.has_ids = self.has_ids or any(fact.startswith("id: ") for fact in event.head)


class _Stream:
    """Response to one request of HTTP: messages for a client, as JSON or as server-sent events.

    Attributes:
        client: the connection; None after it was closed.
        waiting: ids of the requests without a response.
        begun: it is a stream of events.
        over: nothing more is sent.
    """

    def __init__(self, client: Client, number: int, headers: Headers, waiting: set[bytes], *, is_batch: bool) -> None:
        self.client: Client | None = client
        self.waiting = waiting
        self.begun = self.over = False
        self.number = number
        self.count = 0  # events
        self._headers = headers
        self._is_batch = is_batch
        self._collected: list[bytes] = []

    def begin(self) -> None:
        """Send the head of a stream of events, and what was collected for a body."""
        if self.begun:
            return
        self.begun = True
        headers = [("Content-Type", STREAM), ("Cache-Control", "no-cache"), ("Transfer-Encoding", "chunked")]
        self._send(head_of(200, [*headers, *self._headers]))
        for payload in self._collected:
            self.event(payload)

    def event(self, payload: bytes, id: str = "") -> None:
        """Send an event."""
        self.begin()
        line = f"id: {id}\n".encode() if id else b""
        text = b"event: message\n" + line + b"data: " + payload + b"\n\n" if payload else line + b"data: \n\n"
        self._send(b"%x\r\n%b\r\n" % (len(text), text))

    def json(self, payload: bytes) -> None:
        """Add a message to the body, which is sent when all requests have their responses."""
        self._collected.append(payload)
        if not self.waiting:
            body = b"[" + b",".join(self._collected) + b"]" if self._is_batch else self._collected[0]
            self.respond(200, body)

    def respond(self, status: int, body: bytes = b"", *headers: tuple[str, str]) -> None:
        """Send a body; the exchange is over."""
        content = [("Content-Type", JSON)] if body else []
        length = [] if status == 204 else [("Content-Length", str(len(body)))]
        self._send(head_of(status, [*content, *length, *self._headers, *headers]) + body)
        self._end()

    def finish(self) -> None:
        """End the stream of events."""
        if not self.over:
            self.begin()
            self._send(b"0\r\n\r\n")
            self._end()

    def reset(self) -> None:
        """End the connection as a server that crashes."""
        if self.client is not None and not self.over:
            self.client.stream.reset()
        self.over = True

    def break_off(self, rest: bytes) -> None:
        """End the connection as a server that crashes, after a part of a message."""
        if self.client is not None and not self.over:
            if rest:
                self.event(rest)
            self.client.stream.reset_at_end()
        self.over = True

    def continue_at(self, client: Client) -> None:
        """Send further events to another connection."""
        self.client, self.begun, self.over = client, False, False
        self._headers = []
        self.begin()

    def _end(self) -> None:
        self.over = True
        if self.client is not None:
            self.client.next_request()

    def _send(self, data: bytes) -> None:
        # Two events are not read as one: clients register handlers between them.
        if self.client is not None:
            self.client.stream.stream(iter([data]), end=False, apart=True)


def head_of(status: int, headers: Headers) -> bytes:
    """Return the head of a response."""
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Unknown')}", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


class _Claims:
    """Cassettes of one endpoint, and the sessions that play them.

    Args:
        folder: has a file for each session that is played; "" for none.
        reuses: a cassette may be played again after its session.
    """

    def __init__(self, cassettes: Sequence[str], folder: str, *, reuses: bool) -> None:
        self.cassettes = list(cassettes)
        self.owners: dict[str, _Session] = {}
        self._folder = folder
        self._reuses = reuses

    def claim(self, session: _Session) -> str:
        """Return the cassette with which a session begins; "" if there is none left."""
        free = [cassette for cassette in self.cassettes if cassette not in self.owners]
        if not free and self._reuses:
            free = [*(path for path, owner in self.owners.items() if owner.over), *self.cassettes]
        if not free:
            return ""
        self._give(free[0], session)
        return free[0]

    def exchange(self, held: str, cassette: str, session: _Session) -> None:
        """Give a session another cassette than the one that it holds, which goes to the owner of the other one."""
        other = self.owners.get(cassette)
        if other is not None and other is not session:
            self._give(held, other)
        elif held != cassette and self.owners.get(held) is session:
            del self.owners[held]
            if self._folder:
                Path(self._file(held)).unlink(missing_ok=True)
        self._give(cassette, session)

    def _give(self, cassette: str, session: _Session) -> None:
        self.owners[cassette] = session
        if self._folder:
            Path(self._file(cassette)).touch()

    def _file(self, cassette: str) -> str:
        return f"{self._folder}/{cassette.rpartition('/')[2]}"


class _Alternatives:
    """The cassettes that a session may turn out to be, see `replay.alternatives`."""

    def __init__(self, session: _Session, claims: _Claims, held: str) -> None:
        self._session = session
        self._claims = claims
        self._held = held

    def others(self) -> Sequence[str]:
        """Return the cassettes of the sessions that are not played now, free ones first."""
        owners = self._claims.owners
        return sorted((path for path in self._claims.cassettes if path != self._held), key=lambda path: path in owners)

    def choose(self, cassette: str) -> None:
        """Play this session from now on."""
        self._claims.exchange(self._held, cassette, self._session)
        self._held = cassette

    def remaining(self) -> str:
        """Return the session that is claimed."""
        return self._held


class _Session:
    """Live session with its player.

    Attributes:
        id: for the client; "" if the recorded server gave none.
        over: the client has ended it.
        begun: methods with which the client has begun it.
    """

    def __init__(self, loop: EventLoop, options: Options, err: OutputSink) -> None:
        self.id = ""
        self.over = False
        self.begun: set[str] = set()
        self.cassette = ""
        self._loop = loop
        self._options = options
        self._err = err
        self._count = 0
        self._heads: dict[bytes, deque[tuple[str, ...]]] = {}
        self._rest = b""
        self._posts: dict[bytes, _Stream] = {}  # by the live id of a request without a response
        self._gets: list[_Stream] = []
        self._queue: deque[tuple[bytes, tuple[str, ...]]] = deque()  # for a stream that is not open yet
        self._sent: deque[tuple[str, _Stream, bytes]] = deque(maxlen=RESUMABLE)
        self._sent_bytes = 0
        self._report: Report | None = None
        self._is_armed = False

    def start(self, cassette: str, claims: _Claims) -> None:
        """Begin to play. Raises RecorderError."""
        options = self._options
        self._settle(cassette)
        outlets: dict[Output, OutputSink] = {"out": OutputSink(self._err.fd, self._take, self._end), "err": self._err}
        if len(claims.cassettes) > 1 and options.order == "any" and not options.faults:
            choice = Choice(
                cassette,
                _Alternatives(self, claims, cassette),
                opened=self._opened,
                framing=DIALECT.framing,
                settled=self._settled,
            )
            player, actions = choice.player, choice.actions
            self._driver = PlayerDriver(
                player,
                actions,
                -1,
                outlets,
                options.speed,
                on_end=self._on_end,
                choice=choice,
            )
        else:
            player, actions = self._opened(cassette)
            player.chooses = False
            if isinstance(actions, LoggedActions):
                actions.keeps = False
            self._settled(cassette, player)
            self._driver = PlayerDriver(player, actions, -1, outlets, options.speed, on_end=self._on_end)
        self.id = uuid.uuid4().hex if self.facts.has_session else ""
        self._driver.start()
        self._arm()

    def _settle(self, cassette: str) -> None:
        self.cassette = cassette
        self.facts = Facts(cassette)

    def _opened(self, cassette: str) -> tuple[Player, LoggedActions]:
        reader = Reader(cassette)
        actions: ActionBuffer
        if self._options.faults:
            actions = make_action_buffer(reader.header, self._options)
        else:
            actions = LoggedActions(paced=0 < self._options.speed < MAX)
        player = make_player(reader, actions, self._options)
        player.chooses = True
        player.on_host_data = actions.on_host_data
        player.on_output = self._note_head
        return player, actions  # type: ignore[return-value]  # the other kind is not used with a choice

    def _settled(self, cassette: str, player: Player) -> None:
        if cassette != self.cassette:
            self._settle(cassette)
        earlier = player.differences
        self._report = reporting(self._options.report, cassette, player)
        if self._report is not None:
            for text in earlier:
                player.differences.append(text)

    def _on_end(self, status: int | str) -> None:
        if self._report is not None:
            self._report.end(status)

    # --- Requests of HTTP --------------------------------------------------------------------------------------------

    def post(self, client: Client, messages: list[ClassifiedMessage], *, is_batch: bool) -> None:
        """Play the messages of a request, and respond."""
        waiting = {message.key for message in messages if message.kind == "request" and message.key is not None}
        self._count += 1
        named = (
            [("Mcp-Session-Id", self.id)] if self.id and any(item.method == "initialize" for item in messages) else []
        )
        stream = _Stream(client, self._count, named, set(waiting), is_batch=is_batch)
        for key in waiting:
            self._posts[key] = stream
        if not waiting:
            stream.respond(self.facts.accepted)
        elif self.facts.is_primed:
            self._prime(stream)
        if self._driver.status is None:
            self._driver.receive_data(
                b"".join(message.text.encode("utf-8", "surrogateescape") + b"\n" for message in messages)
            )
        self._arm()
        if self._driver.status is not None:
            self._end()

    def get(self, client: Client, last: str) -> None:
        """Open a stream for messages of the server, or continue one."""
        self._count += 1
        stream = _Stream(client, self._count, [], set(), is_batch=False)
        if self.facts.get >= FAILED:
            stream.respond(self.facts.get, b"", ("Allow", "POST, DELETE"))
            return
        known = next((at for at, (id, _, _) in enumerate(self._sent) if last and id == last), -1)
        if known >= 0:
            source = self._sent[known][1]
            if source.number not in {each.number for each in self._gets}:
                source.continue_at(client)
                stream = source
            else:
                stream.begin()
            for id, origin, payload in list(self._sent)[known + 1 :]:
                if origin is source and payload:
                    stream.event(payload, id)
            if stream is source and not source.waiting:
                source.finish()
                return
        else:
            stream.begin()
        if stream not in self._gets:
            self._gets.append(stream)
        queued, self._queue = self._queue, deque()
        for payload, head in queued:
            self._message(payload, head)

    def delete(self, client: Client) -> None:
        """End the session, if the recorded server allowed that."""
        status = self.facts.delete
        _Stream(client, 0, [], set(), is_batch=False).respond(status)
        if status < FAILED:
            self.finish()

    def gone(self, client: Client) -> None:
        """Forget a connection that was closed."""
        for stream in {*self._posts.values(), *self._gets}:
            if stream.client is client:
                stream.client = None
        self._gets = [stream for stream in self._gets if stream.client is not None]

    def finish(self) -> bool:
        """End the session. Return True if it did not differ from the recorded one."""
        if not self.over:
            self.over = True
            if self._driver.status is None:
                self._driver.receive_data(b"")
            for stream in [*self._posts.values(), *self._gets]:
                stream.finish() if stream.begun else stream.reset()
        return self._driver.status not in {EXIT_DIFFERS, EXIT_CANNOT_PLAY}

    # --- The player --------------------------------------------------------------------------------------------------

    def _arm(self) -> None:
        """Continue when the next action of the player is due, or the client is silent."""
        patience = self._driver.patience()
        if patience is None and self._options.order == "strict" and self._posts:
            patience = SILENCE_MS
        if patience is None or self._is_armed:
            return
        self._is_armed = True
        count = self._count

        def due() -> None:
            self._is_armed = False
            if self._driver.status is None:
                if self._driver.patience() is None and count == self._count:
                    self._driver.receive_silence()
                self._driver.act({}, {})
            if self._driver.status is not None:
                self._end()
            elif self._driver.patience() is not None or count != self._count:
                self._arm()

        self._loop.after(patience / 1000, due)

    def _note_head(self, event: Data, wire: bytes) -> None:
        if event.head:
            self._heads.setdefault(wire.rstrip(b"\n"), deque()).append(event.head)

    def _take(self, data: bytes | memoryview) -> int:
        """Send the messages of the player."""
        *lines, self._rest = (self._rest + bytes(data)).split(b"\n")
        for line in lines:
            heads = self._heads.get(line)
            head = heads.popleft() if heads else ()
            if heads is not None and not heads:
                del self._heads[line]
            self._message(line, head)
        if self._rest:  # a fault has cut the message
            for stream in list(self._posts.values())[-1:]:
                stream.break_off(self._rest)
            self._rest = b""
        return len(data)

    def _end(self) -> None:
        """End all connections, as a server that exits; a part of a message is sent before."""
        if self.over:
            return
        self.over = True
        for stream in [*self._posts.values(), *self._gets]:
            stream.break_off(self._rest)

    # --- Messages of the server --------------------------------------------------------------------------------------

    def _message(self, payload: bytes, head: tuple[str, ...]) -> None:
        message = DIALECT.classify(payload)
        if message.kind == "response" and message.key is not None and (post := self._posts.get(message.key)):
            self._response(post, message.key, payload, head)
            return
        stream = self._stream_for(head, is_request=message.kind == "request")
        if stream is None:
            if len(self._queue) < RESUMABLE:
                self._queue.append((payload, head))
            if message.kind == "request":
                self._loop.after(STREAM_PATIENCE_S, self._send_queued)
            return
        self._event(stream, payload, head)

    def _response(self, post: _Stream, key: bytes, payload: bytes, head: tuple[str, ...]) -> None:
        del self._posts[key]
        post.waiting.discard(key)
        name, *facts = head or ("",)
        status = next((int(fact) for fact in facts if fact.isdigit()), 200)
        if "reset" in facts:
            post.reset()
        elif status >= FAILED and not post.begun:
            challenge = [fact.partition(": ")[2] for fact in facts if fact.startswith(CHALLENGE)]
            post.respond(status, payload, *(("WWW-Authenticate", value) for value in challenge))
        elif "end" in facts:
            post.finish()
        elif name in self.facts.resumed and not post.over and post not in self._gets:
            self._prime(post)  # the client comes again for the response
            post.finish()
            self._remember(post, payload, self._id_of(post, head))
        elif post.begun or (head and "json" not in facts and "closed" not in facts):
            self._event(post, payload, head)
            if not post.waiting:
                post.finish()
                self._gets = [stream for stream in self._gets if stream is not post]
        else:
            post.json(payload)

    def _stream_for(self, head: tuple[str, ...], *, is_request: bool) -> _Stream | None:
        """Return the stream of a message that is not a response; None if it is not open yet."""
        name = head[0] if head else ""
        open_posts = [post for post in self._posts.values() if not post.over]
        for recorded in self.facts.requests.get(name, ()):
            live = self._driver.player.live_id(recorded)
            if live is not None and (post := self._posts.get(live)) is not None and not post.over:
                return post
        if self._gets and (name.startswith("GET") or not open_posts):
            return self._gets[-1]
        if not name.startswith("GET") and open_posts:
            return open_posts[-1]
        return open_posts[-1] if open_posts and is_request and self.facts.get >= FAILED else None

    def _send_queued(self) -> None:
        """Send requests whose stream the client has not opened on another one."""
        open_posts = [post for post in self._posts.values() if not post.over]
        if open_posts and not self.over:
            queued, self._queue = self._queue, deque()
            for payload, head in queued:
                self._event(open_posts[-1], payload, head)

    def _event(self, stream: _Stream, payload: bytes, head: tuple[str, ...]) -> None:
        id = self._id_of(stream, head)
        self._remember(stream, payload, id)
        stream.event(payload, id)

    def _id_of(self, stream: _Stream, head: tuple[str, ...]) -> str:
        recorded = next((fact[4:] for fact in head if fact.startswith("id: ")), "")
        stream.count += 1
        return recorded or (f"{stream.number}-{stream.count}" if self.facts.has_ids else "")

    def _prime(self, stream: _Stream) -> None:
        if not stream.begun:
            id = f"{stream.number}-0"
            self._remember(stream, b"", id)
            stream.event(b"", id)

    def _remember(self, stream: _Stream, payload: bytes, id: str) -> None:
        if not id:
            return
        self._sent.append((id, stream, payload))
        self._sent_bytes += len(payload)
        while self._sent_bytes > RESUMABLE_BYTES and len(self._sent) > 1:
            self._sent_bytes -= len(self._sent.popleft()[2])


class McpReplay:
    """All recorded MCP sessions of some endpoints.

    Args:
        endpoints: cassettes by the address of their endpoint.
        options: of the players.
        problem: receives a text about a request that no session can answer.
        claims: folder for the names of the sessions that were played; "" for none.
        reuses: a session is played again if a client begins more than were recorded, which is a problem.
    """

    def __init__(
        self,
        loop: EventLoop,
        endpoints: Mapping[str, Sequence[str]],
        options: Options,
        *,
        err: OutputSink,
        problem: Callable[[str], None],
        claims: str = "",
        reuses: bool = False,
    ) -> None:
        self._loop = loop
        self._options = options
        self._err = err
        self._problem = problem
        self._claims = {url: _Claims(paths, claims, reuses=reuses) for url, paths in endpoints.items()}
        self._sessions: list[_Session] = []
        self._by_id: dict[str, _Session] = {}
        self._latest: dict[str, _Session] = {}
        self._by_client: dict[int, _Session] = {}

    @property
    def count(self) -> int:
        """Number of sessions that were begun."""
        return len(self._sessions)

    def serves(self, place: str) -> bool:
        """Return True if an endpoint is on this server."""
        names = {place, place.removesuffix(":443"), place.removesuffix(":80")}
        return any(endpoint.partition("://")[2].partition("/")[0] in names for endpoint in self._claims)

    def respond(self, client: Client, request: Interaction) -> bool:
        """Respond to a request. Return False if it is not for an endpoint of these."""
        endpoint = endpoint_of(request.uri)
        if endpoint not in self._claims:
            return False
        refusal = _Stream(client, 0, [], set(), is_batch=False)
        body = request.request_body.whole() if request.request_body is not None else b""
        messages = messages_in(body) if request.method == "POST" else []
        given = header_of(request.request_headers, SESSION_ID)
        if request.method == "POST" and not messages:
            refusal.respond(400, _error(INVALID, "not a message of JSON-RPC"))
        elif request.method not in {"POST", "GET", "DELETE"}:
            refusal.respond(405, b"", ("Allow", "GET, POST, DELETE"))
        elif given and given not in self._by_id:
            refusal.respond(404, _error(UNKNOWN_SESSION, "Session not found"))
        else:
            session = self._by_id.get(given) or self._session_for(client, endpoint, messages)
            if isinstance(session, str):
                self._problem(f"{request.method} {endpoint}: {session}")
                ids = [message.id for message in messages if message.kind == "request"]
                refusal.respond(404 if messages else 405, _error(UNKNOWN_SESSION, f"ext-recorder: {session}", *ids[:1]))
            elif session.over:
                refusal.respond(404, _error(UNKNOWN_SESSION, "Session not found"))
            elif request.method == "POST":
                session.post(client, messages, is_batch=body.lstrip()[:1] == b"[")
            elif request.method == "GET":
                session.get(client, header_of(request.request_headers, LAST_EVENT_ID))
            else:
                session.delete(client)
        return True

    def gone(self, client: Client) -> None:
        """Process the end of a connection."""
        self._by_client.pop(id(client), None)
        for session in self._sessions:
            session.gone(client)

    def unplayed(self) -> list[str]:
        """Return the cassettes that no client has played."""
        return [path for claims in self._claims.values() for path in claims.cassettes if path not in claims.owners]

    def finish(self) -> bool:
        """End all sessions. Return True if none differed, and there was one."""
        same = [session.finish() for session in self._sessions]
        return all(same) and bool(same)

    def _session_for(self, client: Client, endpoint: str, messages: list[ClassifiedMessage]) -> _Session | str:
        """Return the session of a request without an id, a new one if it begins it; or why there is none."""
        methods = {message.method for message in messages if message.kind == "request"}
        opening = methods & OPENING
        found = self._by_client.get(id(client)) or (None if opening else self._latest.get(endpoint))
        if found is not None and not found.id and not found.over and not (opening & found.begun):
            found.begun |= opening
            self._by_client[id(client)] = found
            return found
        if not opening and (found is not None or not messages):
            return "the request has no header Mcp-Session-Id, and does not begin a session"
        session = _Session(self._loop, self._options, self._err)
        claims = self._claims[endpoint]
        count = len(claims.cassettes)
        is_extra = len(claims.owners) == count and not self._options.faults  # after a fault, clients connect again
        cassette = claims.claim(session)
        if not cassette:
            return f"more sessions than recorded ({count}); record the command again with --mode all"
        if is_extra:
            self._problem(f"one session more than the {count} recorded: it replays {cassette} again")
        session.start(cassette, claims)
        session.begun |= opening
        self._sessions.append(session)
        self._latest[endpoint] = self._by_client[id(client)] = session
        if session.id:
            self._by_id[session.id] = session
        return session


def _error(code: int, text: str, id: str = "null") -> bytes:
    return f'{{"jsonrpc":"2.0","id":{id},"error":{dumps({"code": code, "message": text})}}}'.encode()


class _Server:
    """`replay --listen http://…`: the endpoint of a recorded server."""

    def __init__(self, cassette: str, listen: str, options: Options) -> None:
        with Reader(cassette) as reader:
            self._headline = headline(cassette, reader.header)
            if options.live:
                check(cassette, reader.header, options.live)
            header = reader.header
            if header.protocol not in {DIALECT.name, "jsonrpc"} or header.framing != DIALECT.framing:
                raise RecorderError(f"{cassette}: expected a session of MCP, found one of {header.protocol}")
        cassettes = [cassette, *further_sessions(cassette)]
        self._listener, self._address = listen_at(listen)
        self._loop = EventLoop()
        self._err = host_outlet(2)
        self._misses = 0
        self._options = options
        self._cassette = cassette
        self._replay = McpReplay(
            self._loop, {self._address.url: cassettes}, options, err=self._err, problem=self.problem, reuses=True
        )

    def run(self) -> int:
        """Serve until a signal arrives. Return the exit code."""
        signals = Signals()
        signals.catch()
        entry = Entry(self._address.origin)
        self._loop.watch(self._listener.fileno(), READ, accepting(self._loop, self._listener, entry, self))
        write_message(
            self._err, f"listening on {self._address.url}" + ("" if self._options.quiet else f", {self._headline}")
        )
        over: list[bool] = []

        def on_signal(_events: int) -> None:
            over.extend(number in _ENDING for number, _ in signals.take())

        self._loop.watch(signals.fd, READ, on_signal)
        while not any(over):
            self._loop.turn(signals.patience and signals.patience / 1000)
            if signals.patience:
                on_signal(0)
        self._listener.close()
        same = self._replay.finish()
        if not self._replay.count:
            write_message(self._err, "no client has begun a session")
        elif unplayed := self._replay.unplayed():
            for path in unplayed:
                self._report(path, f"{path}: no client has played this session")
            same = same and self._options.order != "strict"
        signals.close()
        return 0 if same and not self._misses else EXIT_DIFFERS

    # --- For the connections -----------------------------------------------------------------------------------------

    def backend(self, origin: Origin, trust: Trust | None) -> Backend:
        """Return the recorded server."""
        return _Connection(self._replay, self._address.url)

    def route(self, origin: Origin) -> Entry | None:
        """Return None: all requests are for the same server."""

    def passes(self, origin: Origin) -> bool:
        """Return False: no traffic is passed through."""
        return False

    def problem(self, text: str) -> None:
        """Report a session that was not recorded, or a request that no session can answer."""
        self._misses += 1
        self._report(self._cassette, text)

    def _report(self, cassette: str, text: str) -> None:
        write_message(self._err, text)
        if self._options.report:
            strict = self._options.order == "strict"
            Report(self._options.report, cassette).end(EXIT_DIFFERS if strict or self._misses else 0, [text])


class _Connection:
    """Backend of one connection to the recorded server."""

    def __init__(self, replay: McpReplay, url: str) -> None:
        self._replay = replay
        self._url = url
        self._request: Interaction | None = None

    def open_tunnel(self, client: Client, origin: Origin) -> None:
        """Refuse: this is not a proxy."""
        client.refuse(405, "Method Not Allowed", "this is an MCP server")

    def secure(self, client: Client, origin: Origin) -> None:
        """Refuse TLS."""
        client.stream.reset()

    def begin(self, client: Client, request: Request) -> None:
        """Begin to collect a request."""
        self._request = request.interaction
        client.proceed()

    def body(self, client: Client, data: bytes) -> None:
        """Collect a piece of the body."""
        if self._request is not None and self._request.request_body is not None:
            self._request.request_body.write(data)

    def end(self, client: Client) -> None:
        """Respond to the request."""
        request, self._request = self._request, None
        if request is not None and not self._replay.respond(client, request):
            _Stream(client, 0, [], set(), is_batch=False).respond(404)

    def client_drained(self, client: Client) -> None:
        """Do nothing: the stream sends as the client reads."""

    def gone(self, client: Client, error: OSError | None) -> None:
        """Process the end of the connection."""
        self._replay.gone(client)


def replay_sessions(cassette: str, listen: str, options: Options) -> int:
    """Replay recorded MCP sessions at an address, until a signal arrives. Return the exit code."""
    claim_standard_files()
    try:
        return _Server(cassette, listen, options).run()
    except RecorderError as error:
        write_message(host_outlet(2), str(error))
        return EXIT_CANNOT_PLAY
