"""Operation `websocket`: open a WebSocket (RFC 6455), send messages, and check those that the server sends.

The handshake is a request like any other, with its authentication, cookies, TLS and guard; `wsproto` reads and writes
the frames afterwards, on the same connection.
"""

from __future__ import annotations

import base64
import json
from collections import deque
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType, field
from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, Pong, TextMessage
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError, generate_accept_token, generate_nonce

import ext_sdk
from ext_http.client.errors import ExchangeFailed
from ext_http.client.response import SIZES, decode_text, excerpt, status_line, values_of
from ext_http.request.args import DEFAULT_MAX_BODY, ServerArgs
from ext_http.request.auth import read_file
from ext_http.request.send import PreparedRequest, RequestSpec, Upgrade, websocket_headers
from ext_http.response.expectations import Body, Status, check_body, check_ranges, check_status
from ext_http.response.header_check import CheckContext
from ext_http.response.outcome import OutcomeExpect, check_outcome
from ext_http.result import failure_result, notes_of, rounded
from ext_sdk.capture import CaptureArgs, Captured, NotFound, capture_all, check_names, find_in_text
from ext_sdk.core.text import counted
from ext_sdk.expect import Check, Expectation, Integer, Searcher, check_integer, summary
from ext_sdk.expect.check import Json, failure_text, quoted
from ext_sdk.long_outputs import write_excerpt

from . import OUTCOME, RESPONSE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ext_http.client.network import Upgraded
    from ext_http.client.response import NotText, Response

    Outputs = dict[str, str | int | bool]

OPENED = 101
MAX_MESSAGES = 10_000  # received
MAX_BYTES = 64 * 1024 * 1024  # of all messages received; they are held in memory
MAX_SHOWN = 5  # messages in an error
NORMAL = (1000, 1001, 1005)  # close codes: done, going away, none
CLOSE_SECONDS = 1.0  # for the server's part of the closing handshake
# Names of the other outputs.
RESERVED = frozenset(
    {"status", "subprotocol", "messages", "messagesFile", "sent", "received", "closeCode", "closeReason"}
    | {"duration", "url", "attempts", "failure"}
)
Name = Annotated[str, Meta(pattern="^[!#$%&'+*.^_`|~0-9A-Za-z-]+$")]


class Message(NamedTuple):
    """Message that the server sent; also the message whose body is its data."""

    data: str | bytes
    truncated: bool = False

    @property
    def body(self) -> bytes:
        """Return the data as bytes."""
        return self.data.encode() if isinstance(self.data, str) else self.data

    @property
    def decoded(self) -> str | NotText:
        """Return the data as text, or the reason why it is not text."""
        return self.data if isinstance(self.data, str) else decode_text(self.data, ())

    @property
    def kind(self) -> str:
        """Return the type of the message."""
        return "text" if isinstance(self.data, str) else "binary"

    @property
    def as_json(self) -> object:
        """Return the message as a member of the output `messages`."""
        return self.data if isinstance(self.data, str) else {"base64": base64.b64encode(self.data).decode()}


class SentMessage(ext_sdk.Args, one_of=("text", "json", "base64", "file")):
    """Message to send."""

    text: Annotated[str | UnsetType, Meta(description="Text message")] = UNSET
    json: Annotated[Json | UnsetType, Meta(description="Text message with this JSON")] = UNSET
    base64: Annotated[str | UnsetType, Meta(description="Binary message, in Base64")] = UNSET
    file: Annotated[str | UnsetType, Meta(description="Binary message with the content of a file of the workdir")] = (
        UNSET
    )

    def encoded(self, field: str, context: ext_sdk.Context) -> str | bytes:
        """Return the message: text, or bytes of a binary one. Raises OperationFailed, InvalidArgs."""
        if isinstance(self.text, str):
            return self.text
        if isinstance(self.file, str):
            return read_file(self.file, context)
        if not isinstance(self.base64, str):
            return json.dumps(self.json, ensure_ascii=False, separators=(",", ":"))
        try:
            return base64.b64decode("".join(self.base64.split()), validate=True)
        except ValueError as error:
            raise ext_sdk.InvalidArgs(f"{field}.base64", f"expected Base64: {error}") from None


class Turn(ext_sdk.Args, one_of=("send", "expect", "receive", "ping", "silence")):
    """One step of a conversation."""

    send: Annotated[str | SentMessage | UnsetType, Meta(description="Message to send: a text, or an object")] = UNSET
    expect: Annotated[
        Body | UnsetType, Meta(description="Next message of the server: a text, or an object, as for a body")
    ] = UNSET
    receive: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_MESSAGES)] | UnsetType,
        Meta(description="Number of messages to receive, of any content"),
    ] = UNSET
    ping: Annotated[
        Annotated[str, Meta(max_length=125)] | UnsetType,
        Meta(description="Payload of a ping, which the server must answer; pings of the server are always answered"),
    ] = UNSET
    silence: Annotated[
        ext_sdk.Duration | UnsetType, Meta(description="Time in which the server must not send a message")
    ] = UNSET
    type: Annotated[
        Literal["text", "binary"] | UnsetType, Meta(description="Type of the expected message; any by default")
    ] = UNSET
    skip_others: Annotated[
        bool, Meta(description="Skip messages that do not match `expect`, up to the first that does")
    ] = False
    within: Annotated[
        ext_sdk.Duration | UnsetType, Meta(description="Maximum wait for the server; up to `timeout` by default")
    ] = UNSET

    def __post_init__(self) -> None:
        if self.expect is UNSET and (self.type is not UNSET or self.skip_others):
            raise ValueError("type and skipOthers require `expect`")
        if self.within is not UNSET and (self.send is not UNSET or self.silence is not UNSET):
            raise ValueError("within requires `expect`, `receive` or `ping`")
        for name, value in (("within", self.within), ("silence", self.silence)):
            if isinstance(value, ext_sdk.Duration) and value.seconds <= 0:
                raise ValueError(f"{name}: expected a duration over 0, found {value}")


class CloseExpectation(Expectation):
    """Expected close frame of the server."""

    code: Annotated[
        Integer | UnsetType, Meta(description="Code; 1005: a frame without code, 1006: closed without a frame")
    ] = UNSET
    reason: Annotated[Body | UnsetType, Meta(description="Reason: a text, or an object, as for a body")] = UNSET

    def __post_init__(self) -> None:
        self.refuse_empty()


class WebSocketExpect(OutcomeExpect):
    """Expected response to the handshake, and end of the conversation; or the failure that must occur instead."""

    status: Annotated[
        Status | UnsetType, Meta(description="Status of the handshake; 101 by default. Another one opens no WebSocket")
    ] = UNSET
    subprotocol: Annotated[str | UnsetType, Meta(description='Subprotocol that the server selects; "" for none')] = (
        UNSET
    )
    close: Annotated[
        Annotated[int, Meta(ge=1000, le=4999)] | CloseExpectation | UnsetType,
        Meta(description="The server must close the WebSocket after the last message, with this code"),
    ] = UNSET

    @property
    def opens(self) -> bool:
        """Return True if the handshake may succeed."""
        return not self.failures and (isinstance(self.status, UnsetType) or check_status(self.status, OPENED).ok)


class MessageCapture(CaptureArgs):
    """Part of the conversation to capture as an output."""

    from_: Annotated[
        Literal["message", "messages", "header"],
        Meta(description="Part to search; messages are all received ones, as a JSON array"),
    ] = field(default="message", name="from")
    message: Annotated[
        int,
        Meta(
            ge=-MAX_MESSAGES, le=MAX_MESSAGES, description="Number of the received message: 1 is the first, -1 the last"
        ),
    ] = -1
    header: Annotated[Name | UnsetType, Meta(description="Name of a header of the response to the handshake")] = UNSET

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.header is UNSET) == (self.from_ == "header"):
            raise ValueError("header and `from: header` require each other")
        if self.json is not UNSET and (self.from_ == "header" or self.regex is not UNSET):
            raise ValueError("json applies to messages and excludes regex")
        if not self.message:
            raise ValueError("message: expected 1 for the first message, or -1 for the last, found 0")


class WebSocket(ServerArgs):
    """Arguments of `websocket`."""

    url: Annotated[
        str, Meta(min_length=1, description="ws://, wss://, http:// or https:// URL; or relative to baseUrl, with /")
    ]
    subprotocols: Annotated[list[Name], Meta(description="Subprotocols to offer, the preferred one first")] = field(
        default_factory=list
    )
    messages: Annotated[
        list[Turn],
        Meta(max_length=1000, description="Conversation: messages to send and to expect, in this order"),
    ] = field(default_factory=list)
    max_message: Annotated[
        int,
        Meta(ge=1, le=MAX_BYTES, description="Maximum bytes of a received message; the connection fails after more"),
    ] = DEFAULT_MAX_BODY
    expect: Annotated[WebSocketExpect, Meta(description="Expected handshake, and end of the conversation")] = (
        WebSocketExpect(status=OPENED)
    )
    capture: Annotated[
        dict[str, MessageCapture], Meta(description="Parts of the conversation to capture as outputs, by output name")
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        scheme, separator, _ = self.url.partition("://")
        if separator and scheme.lower() not in {"ws", "wss", "http", "https"}:
            raise ValueError(f"url: expected a URL with ws:// or wss://, found {scheme:.40}://")
        if self.http_version != "1.1":
            raise ValueError(f"httpVersion: expected 1.1, which opens a WebSocket, found {self.http_version}")
        if own := [name for name in (*self.headers, *self.secret_headers) if name.lower().startswith("sec-websocket-")]:
            raise ValueError(f"headers.{own[0]}: this header is computed; set `subprotocols` instead")
        if isinstance(self.expect.status, (int, str, list)):
            check_ranges(self.expect.status)
        given = {"messages": self.messages, "capture": self.capture}
        needs = [name for name, value in given.items() if value]
        needs += [f"expect.{name}" for name in ("subprotocol", "close") if name in self.expect.given()]
        if needs and not self.expect.opens:
            raise ValueError(f"{needs[0]}: `expect` expects that no WebSocket is opened, so nothing would be checked")


class Closed(NamedTuple):
    """End of a connection.

    Attributes:
        code: of the close frame, 1005 if it has none; 1006 without such a frame.
        reason: of the close frame; or what happened instead of it.
    """

    code: int
    reason: str = ""

    def __str__(self) -> str:
        if self.code == CloseReason.ABNORMAL_CLOSURE:
            return self.reason
        name = CloseReason(self.code).name.replace("_", " ").lower() if self.code in set(CloseReason) else ""
        code = f"code {self.code}" + (f" ({name})" if name else "")
        return f"the server closed the connection with {code}" + (f": {quoted(self.reason)}" if self.reason else "")


class Frames:
    """Messages on a connection after the handshake, in both directions.

    Attributes:
        received: messages of the server.
        sent: number of messages sent.
        closed: end of the connection, if the server caused it.
    """

    def __init__(self, max_message: int, deadline: ext_sdk.Deadline) -> None:
        self.received: list[Message] = []
        self.sent = 0
        self.closed: Closed | None = None
        self.pongs: deque[bytes] = deque(maxlen=100)
        self.connection: Upgraded | None = None
        self._deadline = deadline
        self._wire = Connection(ConnectionType.CLIENT)
        self._unread: deque[Message] = deque()
        self._pieces: list[bytes] = []
        self._max_message = self._room = max_message
        self._room_of_all = MAX_BYTES

    def ended(self) -> bool:
        """Return True if the connection has ended."""
        return self.closed is not None or self.connection is None

    def next(self, limit: ext_sdk.Deadline) -> Message | None:
        """Return the next message that was not returned before; None if none comes before the limit."""
        while not self._unread:
            if not self.read(limit):
                return None
        return self._unread.popleft()

    def read(self, limit: ext_sdk.Deadline) -> bool:
        """Read once from the connection. Returns False if the time is over, or the connection has ended."""
        if self.ended():
            return False
        assert self.connection is not None
        try:
            data = self.connection.read(limit)
        except OSError as error:
            self.closed = Closed(CloseReason.ABNORMAL_CLOSURE, f"the connection broke: {error}")
            return False
        if data is None:
            return False
        if not data:
            reason = "the server closed the connection without a close frame"
            self.closed = Closed(CloseReason.ABNORMAL_CLOSURE, reason)
            return False
        self._wire.receive_data(data)
        for event in self._wire.events():
            self.handle(event)
            if self.ended():
                break
        return True

    def handle(self, event: Event) -> None:
        """Act on a frame of the server."""
        state = self._wire.state
        if isinstance(event, Ping):
            if state is ConnectionState.OPEN:
                self.write(event.response())
        elif isinstance(event, Pong):
            self.pongs.append(bytes(event.payload))
        elif isinstance(event, (TextMessage, BytesMessage)):
            self.add(event)
        elif isinstance(event, CloseConnection):
            if state in {ConnectionState.OPEN, ConnectionState.LOCAL_CLOSING}:  # the library found an invalid frame
                self.abandon(event.code, f"the server sent a frame that is not valid: {event.reason}")
                return
            if state is ConnectionState.REMOTE_CLOSING:
                self.write(event.response())
            self.closed = Closed(int(event.code), event.reason or "")

    def add(self, event: TextMessage | BytesMessage) -> None:
        """Add a part of a message."""
        text = isinstance(event, TextMessage)
        piece = event.data.encode() if isinstance(event, TextMessage) else bytes(event.data)
        self._pieces.append(piece)
        self._room -= len(piece)
        self._room_of_all -= len(piece)
        if self._room < 0:
            reason = f"message {len(self.received) + 1} is larger than maxMessage, {self._max_message:,} bytes"
            self.abandon(CloseReason.MESSAGE_TOO_BIG, reason)
        elif self._room_of_all < 0 or len(self.received) >= MAX_MESSAGES:
            reason = f"the server sent more than {MAX_MESSAGES:,} messages, or {MAX_BYTES:,} bytes"
            self.abandon(CloseReason.MESSAGE_TOO_BIG, reason)
        elif event.message_finished:
            data = b"".join(self._pieces)
            message = Message(data.decode() if text else data)
            self.received.append(message)
            self._unread.append(message)
            self._pieces.clear()
            self._room = self._max_message

    def abandon(self, code: int, reason: str) -> None:
        """End the connection because of what the server sent."""
        self.write(CloseConnection(code=code))
        self.closed = Closed(CloseReason.ABNORMAL_CLOSURE, reason)

    def write(self, event: Event) -> bool:
        """Send a frame. Returns False if the connection has ended; its close frame is read if there is one."""
        if self.ended():
            return False
        assert self.connection is not None
        try:
            self.connection.write(self._wire.send(event), self._deadline)
        except LocalProtocolError:  # after our close frame
            return False
        except TimeoutError as error:
            self.closed = Closed(CloseReason.ABNORMAL_CLOSURE, str(error))
        except OSError as error:
            while self.read(self._deadline):
                pass
            if not self.ended():
                self.closed = Closed(CloseReason.ABNORMAL_CLOSURE, f"the connection broke: {error}")
        return not self.ended()

    def close(self, *, wait: bool) -> None:
        """Close the connection; optionally wait briefly for the close frame of the server."""
        if not self._deadline.expired and self.write(CloseConnection(code=CloseReason.NORMAL_CLOSURE)):
            grace = self._deadline.limit(CLOSE_SECONDS if wait else 0.0)
            while self.read(grace):
                pass


class Conversation:
    """Handshake and turns of one call.

    Attributes:
        frames: messages in both directions.
        checks: checks made.
        subprotocol: that the server selected; "" for none.
    """

    def __init__(self, args: WebSocket, context: ext_sdk.Context, searcher: Searcher) -> None:
        self.frames = Frames(args.max_message, context.deadline)
        self.checks: list[Check] = []
        self.subprotocol = ""
        self._args = args
        self._deadline = context.deadline
        self._checking = CheckContext(context.workdir, searcher, context.secrets.redact)
        self._key = generate_nonce()
        self._outgoing: dict[int, str | bytes] = {}
        for number, turn in enumerate(args.messages):  # all before anything is sent
            given = turn.send
            if isinstance(given, str):
                self._outgoing[number] = given
            elif isinstance(given, SentMessage):
                self._outgoing[number] = given.encoded(f"messages[{number}].send", context)

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Return the headers that request the upgrade (RFC 6455, 4.1)."""
        return websocket_headers(self._key.decode(), self._args.subprotocols)

    def run(self, connection: Upgraded, headers: Sequence[tuple[str, str]]) -> None:
        """Take all turns on a connection, up to the first that fails, after the response with these headers."""
        self.frames.connection = connection
        self.checks += self.check_handshake(headers)
        turns = {"expect": self.expect, "receive": self.receive, "ping": self.ping, "silence": self.silence}
        for number, turn in enumerate(self._args.messages):
            if not all(check.ok for check in self.checks):
                break
            where = f"messages[{number}]"
            if number in self._outgoing:
                self.checks += self.send(self._outgoing[number], where)
                continue
            take = next(take for name, take in turns.items() if getattr(turn, name) is not UNSET)
            within = None if isinstance(turn.within, UnsetType) else turn.within
            self.checks += take(turn, where, self._deadline.limit(within))
        wanted = self._args.expect.close
        if not isinstance(wanted, UnsetType) and all(check.ok for check in self.checks):
            while self.frames.read(self._deadline):
                pass
            self.checks += self.check_close(CloseExpectation(code=wanted) if isinstance(wanted, int) else wanted)
        self.frames.close(wait=all(check.ok for check in self.checks))

    def check_handshake(self, headers: Sequence[tuple[str, str]]) -> list[Check]:
        """Check the headers of the server (RFC 6455, 4.1)."""
        accept, protocol = (
            next(iter(values_of(f"Sec-WebSocket-{name}", headers)), "").strip() for name in ("Accept", "Protocol")
        )
        self.subprotocol = protocol
        checks = []
        for name, token in (("Upgrade", "websocket"), ("Connection", "upgrade")):
            found = ", ".join(values_of(name, headers))
            if token not in map(str.strip, found.lower().split(",")):
                checks.append(Check.failed(f"to be {token}", quoted(found), where=name))
        if accept != generate_accept_token(self._key).decode():
            checks.append(Check.failed("to be the hash of the key sent", quoted(accept), where="Sec-WebSocket-Accept"))
        if protocol and protocol not in self._args.subprotocols:
            offered = f"to be one of those offered, {', '.join(self._args.subprotocols) or 'none'}"
            checks.append(Check.failed(offered, quoted(protocol), where="Sec-WebSocket-Protocol"))
        if extensions := values_of("Sec-WebSocket-Extensions", headers):
            name = "Sec-WebSocket-Extensions"
            checks.append(Check.failed("to be missing, as none is offered", quoted(extensions[0]), where=name))
        wanted = self._args.expect.subprotocol
        if isinstance(wanted, str):
            checks.append(Check(wanted == protocol, "to be", quoted(wanted), quoted(protocol), where="subprotocol"))
        return checks

    def send(self, message: str | bytes, where: str) -> list[Check]:
        """Send a message."""
        if not self.frames.write(TextMessage(message) if isinstance(message, str) else BytesMessage(message)):
            return [Check.failed("to be sent", str(self.frames.closed), where=where)]
        self.frames.sent += 1
        return []

    def expect(self, turn: Turn, where: str, limit: ext_sdk.Deadline) -> list[Check]:
        """Return the checks of the next message, or of the first that matches."""
        assert not isinstance(turn.expect, UnsetType)
        skipped = 0
        nearest: list[Check] = []
        while (message := self.frames.next(limit)) is not None:
            checks = check_body(turn.expect, message, self._checking)
            for check in checks:
                check.where = check.where.replace("body", where, 1)
            if not isinstance(turn.type, UnsetType):
                ok = turn.type == message.kind
                checks.insert(0, Check(ok, "to be a", f"{turn.type} message", f"a {message.kind} one", where=where))
            failed = [check for check in checks if not check.ok]
            if not failed or not turn.skip_others:
                return checks
            skipped += 1
            nearest = min(nearest or failed, failed, key=len)
            if self._deadline.expired:  # messages that have come need no wait
                break
        before = f"{skipped} that {'does' if skipped == 1 else 'do'} not match, then " if skipped else ""
        return [self.missing("a message", before, where, limit), *nearest]

    def receive(self, turn: Turn, where: str, limit: ext_sdk.Deadline) -> list[Check]:
        """Receive messages of any content."""
        number = turn.receive if isinstance(turn.receive, int) else 0
        for count in range(number):
            if self.frames.next(limit) is None:
                return [self.missing(counted(number, "message"), f"{count}, then ", where, limit)]
        return [Check(ok=True, what=counted(number, "message"), where=where)]

    def ping(self, turn: Turn, where: str, limit: ext_sdk.Deadline) -> list[Check]:
        """Send a ping, and wait for its pong."""
        payload = str(turn.ping).encode()
        self.frames.pongs.clear()
        self.frames.write(Ping(payload))
        while payload not in self.frames.pongs:
            if not self.frames.read(limit):
                return [self.missing("a pong", "", where, limit)]
        return [Check(ok=True, what="a pong", where=where)]

    def silence(self, turn: Turn, where: str, _limit: ext_sdk.Deadline) -> list[Check]:
        """Check that no message comes for a time."""
        assert isinstance(turn.silence, ext_sdk.Duration)
        found = ""
        if (message := self.frames.next(self._deadline.limit(turn.silence))) is not None:
            found = f"a {message.kind} message, {self.shown(message)}"
        elif self.frames.ended():
            found = str(self.frames.closed)
        elif self._deadline.expired:
            found = "the end of `timeout` before that"
        return [Check(not found, "no message", f"for {turn.silence}", found, where=where)]

    def missing(self, what: str, before: str, where: str, limit: ext_sdk.Deadline) -> Check:
        """Return a failed check of a message that did not come."""
        if self.frames.ended():
            reason = f": {self.frames.closed}"
        else:
            reason = " before the end of `timeout`" if self._deadline.expired else f" within {limit.seconds:g} s"
        return Check.failed(f"to get {what}", f"{before}none{reason}", where=where)

    def check_close(self, wanted: CloseExpectation) -> list[Check]:
        """Check the close frame of the server."""
        closed = self.frames.closed
        if closed is None:
            found = "an open one at the end of `timeout`"
            return [Check.failed("to be closed by the server", found, where="connection")]
        checks = []
        if not isinstance(wanted.code, UnsetType):
            checks += check_integer(wanted.code, closed.code, where="close code")
        if not isinstance(wanted.reason, UnsetType):
            for check in check_body(wanted.reason, Message(closed.reason), self._checking):
                check.where = check.where.replace("body", "close reason", 1)
                checks.append(check)
        return checks

    def shown(self, message: Message) -> str:
        """Return a message for an error."""
        text = message.decoded
        return (
            quoted(text, self._checking.redact) if isinstance(text, str) else f"[binary: {len(message.body):,} bytes]"
        )

    def describe(self) -> list[str]:
        """Return the last messages, and the end of the connection, for an error."""
        received = self.frames.received
        first = max(0, len(received) - MAX_SHOWN)
        line = f"sent {counted(self.frames.sent, 'message')}, received {len(received):,}"
        lines = [line + (f", the last {MAX_SHOWN}:" if first else ":" if received else "")]
        lines += [f"  #{number} {self.shown(it)}" for number, it in enumerate(received[first:], start=first + 1)]
        return [*lines, *([str(self.frames.closed)] if self.frames.closed else [])]

    def find(self, capture: MessageCapture, response: Response) -> str:
        """Return a captured value. Raises NotFound."""
        received, text = self.frames.received, ""
        if isinstance(capture.header, str):
            values = response.values(capture.header)
            if not values:
                raise NotFound(f"no header {capture.header}")
            text = values[0]
        elif capture.from_ == "messages":
            text = self.messages
        else:
            position = capture.message - 1 if capture.message > 0 else capture.message
            if not -len(received) <= position < len(received):
                raise NotFound(f"{counted(len(received), 'message')}, where number {capture.message} is needed")
            decoded = received[position].decoded
            if not isinstance(decoded, str):
                raise NotFound(f"a binary message that is {decoded}")
            text = decoded
        return find_in_text(capture, text, self._checking.searcher)

    @property
    def messages(self) -> str:
        """Return the received messages as JSON."""
        return json.dumps([message.as_json for message in self.frames.received], ensure_ascii=False)

    def outputs(self, captured: Captured, context: ext_sdk.Context) -> tuple[Outputs, str | ext_sdk.NotKept]:
        """Return the outputs of the conversation, and all messages for later steps. Long ones are written to a file."""
        frames, messages = self.frames, self.messages
        outputs: Outputs = {"sent": frames.sent, "received": len(frames.received), "subprotocol": self.subprotocol}
        if frames.closed is not None:
            outputs |= {"closeCode": frames.closed.code, "closeReason": frames.closed.reason}
        if captured.withheld:
            note = "[withheld: a captured secret can't be redacted in the messages]"
            reason = ext_sdk.NotKept("a secret that can't be redacted may be in the messages")
            return outputs | {"messages": note}, reason
        if len(data := messages.encode("utf-8", "replace")) <= SIZES.complete:
            return outputs | {"messages": messages}, messages
        text, path = write_excerpt(data, "messages", context, SIZES, file_name="messages.json")
        outputs["messages"] = text
        return outputs | ({"messagesFile": path} if path else {}), messages


def websocket(args: WebSocket, context: ext_sdk.Context) -> ext_sdk.Result:
    """Open a WebSocket, send messages, and check those that the server sends; then close it.

    The conversation ends at the first message that is not as expected. Pings of the server are answered. Messages
    after the last turn are not checked: `silence` expects none, `expect.close` that the server closes the connection.
    A handshake with another status than 101 is a failure unless `expect.status` accepts it. To wait for a server first,
    use `wait` with the same `url`.
    """
    check_names(args.capture, RESERVED)
    expect = args.expect
    with Searcher(deadline=context.deadline) as searcher:
        conversation = Conversation(args, context, searcher)
        upgrade = Upgrade(conversation.headers, conversation.run)
        spec = RequestSpec(max_body=DEFAULT_MAX_BODY, fresh=bool(expect.failures), upgrade=upgrade)
        prepared = PreparedRequest(args, spec, context)
        try:
            response = prepared.send(context.deadline)
        except ExchangeFailed as failure:
            return failure_result(args, failure, prepared, attempts=1, seconds=context.deadline.elapsed())
        if expect.status is UNSET and not expect.failures:
            expect = msgspec.structs.replace(expect, status=OPENED)
        checks = [*check_outcome(expect, response, context, searcher), *conversation.checks]
        texts = dict.fromkeys(("message", "messages"), conversation.messages)
        captured = capture_all(
            args.capture, lambda capture: conversation.find(capture, response), texts, context.secrets, searcher
        )
    opened, frames = response.status == OPENED, conversation.frames
    if args.messages and not opened:
        checks.append(Check.failed("to be opened", f"status {response.status}", where="WebSocket"))
    checks += captured.failures
    url = response.url
    outputs, messages = conversation.outputs(captured, context)
    outputs |= {"status": response.status, "duration": rounded(response.elapsed), "url": url, "attempts": 1}
    talk = f"{frames.sent} sent, {len(frames.received)} received" if opened else f"status {response.status}"
    notes = notes_of(args, response)
    message = f"WebSocket {url}: {talk} in {outputs['duration']}, {summary(checks)}{notes}"
    ok = all(check.ok for check in checks)
    if ok and frames.closed and expect.close is UNSET and frames.closed.code not in NORMAL:
        message += f"; {frames.closed}"
    lines = [failure_text(checks)]
    if opened and not captured.withheld:
        lines += conversation.describe()
    elif not opened:
        body = excerpt(response, context.secrets)
        lines += [f"response: {status_line(response)}", *([f"body: {body}"] if body else [])]
    return ext_sdk.Result(
        success=ok,
        message=message,
        error="" if ok else "\n".join([*lines, f"WebSocket: {url}{notes}"]),
        outputs=outputs | captured.values,
        secret_outputs=captured.secrets,
        whole={"messages": messages},
    )


OPERATIONS = (
    ext_sdk.Operation(
        "websocket",
        websocket,
        {
            "url": "ws://127.0.0.1:8080/chat",
            "messages": [
                {"expect": "welcome"},
                {"send": {"json": {"op": "add", "item": "lamp"}}},
                {"expect": {"jsonContains": {"op": "added"}}, "skipOthers": True, "within": "5s"},
            ],
        },
        outputs={
            "status": "status of the handshake, such as `101`, if there is a response",
            "messages": 'received messages as a JSON array; a binary one is `{"base64": ...}`',
            "messagesFile?": "path of a file with all messages, if `messages` is shortened",
            "sent": "number of messages sent",
            "received": "number of messages received",
            "subprotocol": "subprotocol that the server selected; empty for none",
            "closeCode?": "code of the server's close frame, if the server closed the connection: 1005 for none in the "
            "frame, 1006 without a frame",
            "closeReason?": "reason of the server's close frame; or what happened instead of it",
            "duration": "duration, such as `12ms`",
            "url": "URL of the WebSocket; after a redirect it differs from the given one",
            "attempts": "number of handshakes",
            "failure?": OUTCOME["failure?"],
            "NAME?": RESPONSE["NAME?"],
        },
        title="WebSocket conversation",
    ),
)
