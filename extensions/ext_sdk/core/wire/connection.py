"""One side of a connection: bytes to calls and calls to bytes, for a host as well as for its child.

Each side makes calls of its own, and both may count their ids from 1, so a call is known by its direction
*and* its id. The types of ids matter: 1, 1.0 and "1" are three.
"""

from __future__ import annotations

from .errors import INVALID_REQUEST, CallError, MessageError, RpcError
from .framing import Decoder, Framing, Junk
from .jsonrpc import ErrorResponse, Id, Message, Notification, Request, Response, encode, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Direction = Literal["received", "sent"]
else:
    Direction = str


class Malformed:
    """A frame that holds no message, or an answer that fits no call; the session goes on.

    Attributes:
        payload: the frame's payload.
        error: a MessageError, whose `code` and `id` an error answer should carry, or, for an answer that
            nobody waits for, a CallError, which is answered by nothing.
    """

    __slots__ = ("error", "payload")

    def __init__(self, payload: bytes, error: MessageError | CallError) -> None:
        self.payload = payload
        self.error = error

    def __repr__(self) -> str:
        return f"Malformed({self.payload!r}, {self.error!r})"


class Answer:
    """A response together with the request that it answers. `result` or `error` is set."""

    __slots__ = ("error", "request", "result")

    def __init__(self, request: Request, result: object, error: RpcError | None) -> None:
        self.request = request
        self.result = result
        self.error = error

    def __repr__(self) -> str:
        return f"Answer({self.request!r}, {self.result!r}, {self.error!r})"


if TYPE_CHECKING:
    Event = Request | Notification | Answer | Malformed | Junk


class Connection:
    """Calls in both directions over one framing.

    Feed it with `receive_data`, take what came with `next_event`, and write the bytes that the other methods
    return. Each of these raises what encoding raises (TypeError, ValueError, FrameTooLong) for a message that can't be
    sent, and then nothing has changed. It does no I/O, and, but for `settle`, is not to be used from several threads
    at once.

    Args:
        framing: how messages are told apart.
        limit: the longest payload accepted, in bytes; None: any.
        batches: accept arrays of messages; their elements come as single events.
    """

    def __init__(self, framing: Framing, *, limit: int | None = None, batches: bool = False) -> None:
        self._framing = framing
        self._decoder: Decoder = framing.decoder(limit)
        self._batches = batches
        self._backlog: list[Event] = []
        self._next_id = 1
        self._open: dict[tuple[Direction, type, Id], Request] = {}

    def receive_data(self, data: bytes) -> None:
        """Store received bytes."""
        self._decoder.receive_data(data)

    def receive_eof(self) -> None:
        """The other side will send no more."""
        self._decoder.receive_eof()

    def next_event(self) -> Event | None:
        """The next thing received, or None when more bytes are needed. Raises nothing, whatever the bytes."""
        if not self._backlog:
            piece = self._decoder.next_event()
            if piece is None or isinstance(piece, Junk):
                return piece
            self._backlog = self._events(piece.payload)
        return self._backlog.pop(0)

    def open_calls(self, direction: Direction) -> list[Request]:
        """The requests of one direction that have no answer yet, in their order."""
        return [request for key, request in self._open.items() if key[0] == direction]

    def request(self, method: str, params: object = None, *, id: Id = None) -> tuple[Id, bytes]:
        """A call of our own: its id (counted from 1 where none is given) and its bytes.

        Raises:
            CallError: the id is in use.
        """
        if id is None:
            id = self._new_id()
        request = Request(id, method, params)
        line = self._frame(request)
        self._begin("sent", request)
        return id, line

    def notification(self, method: str, params: object = None) -> bytes:
        """The bytes of a notification."""
        return self._frame(Notification(method, params))

    def response(self, id: Id, result: object) -> bytes:
        """The bytes of the answer to a received request. Raises CallError where none with this id is open."""
        line = self._frame(Response(id, result))
        self._end("received", id)
        return line

    def error(self, id: Id, error: RpcError) -> bytes:
        """The bytes of an error answer. `id` None answers what could not be read (JSON-RPC 2.0, section 5)."""
        line = self._frame(ErrorResponse(id, error))
        if id is not None or _key("received", None) in self._open:
            self._end("received", id)
        return line

    def settle(self, id: Id) -> None:
        """Take a received request as answered by bytes made elsewhere; unknown ids are ignored. From any thread."""
        self._open.pop(_key("received", id), None)

    def _new_id(self) -> int:
        while _key("sent", self._next_id) in self._open:  # its user chose this one
            self._next_id += 1
        self._next_id += 1
        return self._next_id - 1

    def _frame(self, message: Message) -> bytes:
        return self._framing.encode(encode(message))

    def _events(self, payload: bytes) -> list[Event]:
        try:
            parsed = parse(payload, batches=self._batches)
        except MessageError as error:
            return [Malformed(payload, error)]
        messages = parsed if isinstance(parsed, list) else [parsed]
        return [self._event(payload, message) for message in messages]

    def _event(self, payload: bytes, message: Message | MessageError) -> Event:
        if isinstance(message, MessageError):
            return Malformed(payload, message)
        try:
            if isinstance(message, Request):
                return self._received(payload, message)
            if isinstance(message, Response):
                return Answer(self._end("sent", message.id), message.result, None)
            if isinstance(message, ErrorResponse):
                return Answer(self._end("sent", message.id), None, message.error)
        except CallError as error:
            return Malformed(payload, error)
        return message

    def _received(self, payload: bytes, request: Request) -> Event:
        try:
            self._begin("received", request)
        except CallError as error:  # told with id null: an answer with this id is still to come
            return Malformed(payload, MessageError(INVALID_REQUEST, str(error)))
        return request

    def _begin(self, direction: Direction, request: Request) -> None:
        key = _key(direction, request.id)
        if key in self._open:
            raise CallError(f"id {request.id!r} is still in use by a call of {self._open[key].method!r}")
        self._open[key] = request

    def _end(self, direction: Direction, id: Id) -> Request:
        request = self._open.pop(_key(direction, id), None)
        if request is None:
            raise CallError(f"an answer with id {id!r}, for which no call is open")
        return request


def _key(direction: Direction, id: Id) -> tuple[Direction, type, Id]:
    return direction, type(id), id
