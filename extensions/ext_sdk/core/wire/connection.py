"""One side of a connection: bytes to calls and calls to bytes, for a host as well as for its child.

Each side makes calls of its own, and both may count their ids from 1, so a call is identified by its direction
*and* its id. The types of ids matter: 1, 1.0 and "1" are three ids.
"""

from __future__ import annotations

from .errors import INVALID_REQUEST, CallError, Id, MessageError, RpcError
from .frames import Junk
from .jsonrpc import ErrorResponse, Message, Notification, Request, Response, encode, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from .framing import Decoder, Framing

    Direction = Literal["received", "sent"]
else:
    Direction = str


class Malformed:
    """Frame without a message, or response without an open call; the session continues.

    Attributes:
        error: a MessageError, with `code` and `id` for the error response; or a CallError for a response without an
            open call, which gets no response.
    """

    __slots__ = ("error", "payload")

    def __init__(self, payload: bytes, error: MessageError | CallError) -> None:
        self.payload = payload
        self.error = error

    def __repr__(self) -> str:
        return f"Malformed({self.payload!r}, {self.error!r})"


class Answer:
    """Response together with its request. `result` or `error` is set."""

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

    Pass received bytes to `receive_data`, read events from `next_event`, and write the bytes that the other methods
    return. Those raise what encoding raises (TypeError, ValueError, FrameTooLong) for a message that can't be sent, and
    then leave the state unchanged. The class does no I/O, and only `settle` is thread-safe.

    Args:
        limit: longest payload accepted, in bytes; None: unlimited.
        batches: accept arrays of messages; each element becomes an event.
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
        """Note that the other side will send nothing more."""
        self._decoder.receive_eof()

    def next_event(self) -> Event | None:
        """Return the next event, or None if more bytes are needed. Raises nothing, whatever the bytes."""
        if not self._backlog:
            piece = self._decoder.next_event()
            if piece is None or isinstance(piece, Junk):
                return piece
            try:
                parsed = parse(piece.payload, batches=self._batches)
            except MessageError as error:
                parsed = [error]
            messages = parsed if isinstance(parsed, list) else [parsed]
            self._backlog = [self._event(piece.payload, message) for message in messages]
        return self._backlog.pop(0)

    def open_calls(self, direction: Direction) -> list[Request]:
        """Return the requests of one direction that have no response yet, in their order."""
        return [request for key, request in self._open.items() if key[0] == direction]

    def request(self, method: str, params: object = None, *, id: Id = None) -> tuple[Id, bytes]:
        """Open a call, and return its id (counted from 1 if omitted) and its bytes.

        Raises:
            CallError: the id is in use.
        """
        if id is None:
            while _key("sent", self._next_id) in self._open:  # an id that the caller chose
                self._next_id += 1
            id = self._next_id
            self._next_id += 1
        request = Request(id, method, params)
        line = self._frame(request)
        self._begin("sent", request)
        return id, line

    def notification(self, method: str, params: object = None) -> bytes:
        """Return the bytes of a notification."""
        return self._frame(Notification(method, params))

    def response(self, id: Id, result: object) -> bytes:
        """Return the bytes of the response to a received request. Raises CallError if none with this id is open."""
        line = self._frame(Response(id, result))
        self._end("received", id)
        return line

    def error(self, id: Id, error: RpcError) -> bytes:
        """Return the bytes of an error response.

        `id` None is for a message that could not be read (JSON-RPC 2.0, section 5).
        """
        line = self._frame(ErrorResponse(id, error))
        if id is not None or _key("received", None) in self._open:
            self._end("received", id)
        return line

    def settle(self, id: Id) -> None:
        """Close a received request whose response was encoded elsewhere; ignore an unknown id. Thread-safe."""
        self._open.pop(_key("received", id), None)

    def _frame(self, message: Message) -> bytes:
        return self._framing.encode(encode(message))

    def _event(self, payload: bytes, message: Message | MessageError) -> Event:
        if isinstance(message, MessageError):
            return Malformed(payload, message)
        try:
            if isinstance(message, Request):
                self._begin("received", message)
                return message
            if isinstance(message, Response):
                return Answer(self._end("sent", message.id), message.result, None)
            if isinstance(message, ErrorResponse):
                return Answer(self._end("sent", message.id), None, message.error)
        except CallError as error:
            if isinstance(message, Request):  # its response has id null: the open call of this id is to get one
                return Malformed(payload, MessageError(INVALID_REQUEST, str(error)))
            return Malformed(payload, error)
        return message

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
