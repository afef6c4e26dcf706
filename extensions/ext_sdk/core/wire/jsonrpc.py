"""JSON-RPC 2.0 messages: parsed from payloads, and encoded to payloads."""

from __future__ import annotations

from .errors import INVALID_REQUEST, PARSE_ERROR, Id, MessageError, RpcError
from .json_codec import DuplicateKey, dumps, elements, loads, scan, scan_value, skip_whitespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .json_codec import Envelope


class _Record:
    """Equality and repr by the slots, without the cost of importing dataclasses."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, slot) == getattr(other, slot) for slot in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        fields = ", ".join(f"{slot}={getattr(self, slot)!r}" for slot in self.__slots__)
        return f"{type(self).__name__}({fields})"


class Request(_Record):
    """Call that requires a response. `params` is an object, an array, or None if missing (or null, as Go writes)."""

    __slots__ = ("id", "method", "params")

    def __init__(self, id: Id, method: str, params: object = None) -> None:
        self.id = id
        self.method = method
        self.params = params


class Notification(_Record):
    """Message without a response."""

    __slots__ = ("method", "params")

    def __init__(self, method: str, params: object = None) -> None:
        self.method = method
        self.params = params


class Response(_Record):
    """Response with the result of a request."""

    __slots__ = ("id", "result")

    def __init__(self, id: Id, result: object) -> None:
        self.id = id
        self.result = result


class ErrorResponse(_Record):
    """Response to a request that failed. `id` is None if that of the request could not be read."""

    __slots__ = ("error", "id")

    def __init__(self, id: Id, error: RpcError) -> None:
        self.id = id
        self.error = error


Message = Request | Notification | Response | ErrorResponse


def parse(payload: bytes, *, batches: bool = False) -> Message | list[Message | MessageError]:
    """Parse one payload.

    Args:
        payload: payload of a frame: JSON in UTF-8.
        batches: accept an array of messages (JSON-RPC 2.0, section 6); an invalid element becomes a MessageError in
            the list. False: an array is refused.

    Raises:
        MessageError: the payload is not UTF-8, not JSON, not a JSON-RPC 2.0 message, has a name twice, or is a batch
            that is refused.
    """
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MessageError(PARSE_ERROR, f"not UTF-8: {error.reason} at byte {error.start}") from None
    if (usual := _usual(text)) is not None:
        return usual
    start = skip_whitespace(text, 0)
    if text[start : start + 1] != "[":
        return _message(_scan(text))
    loads(text)  # an array that is not JSON is one error, not one for each element
    if not batches:
        raise MessageError(INVALID_REQUEST, "batches are not accepted: send the messages one by one")
    batch: list[Message | MessageError] = []
    for at, end, _ in elements(text, start):  # as text, which keeps a name that is given twice
        try:
            batch.append(_message(_scan(text[at:end])))
        except MessageError as error:
            batch.append(error)
    if not batch:
        raise MessageError(INVALID_REQUEST, "an empty batch")
    return batch


def _usual(text: str) -> Message | None:
    """Return a valid call, notification or result, parsed by one call of the scanner.

    None: the careful way, member by member, finds out what the message is, or what is wrong with it and where.
    """
    if text[:1] != "{":
        return None
    try:
        value, end = scan_value(text, 0, unique=True)
    except (MessageError, DuplicateKey):
        return None
    if end != len(text) or not isinstance(value, dict) or value.get("jsonrpc") != "2.0" or "error" in value:
        return None
    id: object = value.get("id")
    if isinstance(id, bool) or not isinstance(id, (str, int, float, type(None))):
        return None
    method, params = value.get("method"), value.get("params")
    if isinstance(method, str) and "result" not in value and isinstance(params, (dict, list, type(None))):
        return Request(id, method, params) if "id" in value else Notification(method, params)
    return Response(id, value["result"]) if "method" not in value and "result" in value and "id" in value else None


def _scan(text: str) -> Envelope:
    """Scan a message strictly. An error has the id of the message if it has exactly one, so that its sender gets it."""
    try:
        return scan(text, unique=True)
    except MessageError as error:
        if error.code == INVALID_REQUEST:
            try:
                envelope = scan(text, lenient=True)
                error.id = None if "id" in envelope.duplicates else _id(envelope)
            except MessageError:
                pass
        raise


def _message(envelope: Envelope) -> Message:
    members = envelope.members
    id = _id(envelope)
    if envelope.value("jsonrpc") != "2.0":
        version = envelope.member_text("jsonrpc") or "nothing"
        raise MessageError(INVALID_REQUEST, f'expected "jsonrpc": "2.0", found {version[:40]}', id)
    if "method" in members:
        method, params = envelope.value("method"), envelope.value("params")
        if not isinstance(method, str):
            text = envelope.member_text("method") or ""
            raise MessageError(INVALID_REQUEST, f"expected a method that is a string, found {text[:40]}", id)
        if "result" in members or "error" in members:
            raise MessageError(INVALID_REQUEST, "a message with a method has neither result nor error", id)
        if params is not None and not isinstance(params, (dict, list)):
            text = (
                f"expected params that are an object or an array, found {(envelope.member_text('params') or '')[:40]}"
            )
            raise MessageError(INVALID_REQUEST, text, id)
        return Request(id, method, params) if "id" in members else Notification(method, params)
    if "result" in members and "error" not in members and "id" in members:
        return Response(id, members["result"].value)
    if "error" in members and envelope.value("result") is None:
        error = members["error"].value
        if not isinstance(error, dict):
            raise MessageError(INVALID_REQUEST, "expected an error that is an object", id)
        code, reason = error.get("code"), error.get("message")
        if not isinstance(code, int) or isinstance(code, bool) or not isinstance(reason, str):
            text = "expected an error with an integer code and a message that is a string"
            raise MessageError(INVALID_REQUEST, text, id)
        return ErrorResponse(id, RpcError(code, reason, error.get("data")))
    raise MessageError(INVALID_REQUEST, "expected a method, or an id with either a result or an error", id)


def _id(envelope: Envelope) -> Id:
    id = envelope.value("id")
    if id is not None and (isinstance(id, bool) or not isinstance(id, (str, int, float))):
        text = envelope.member_text("id") or ""
        raise MessageError(INVALID_REQUEST, f"expected an id that is a string, a number or null, found {text[:40]}")
    return id


def encode(message: Message) -> bytes:
    """Return a message as JSON on one line, without a line feed.

    A lone surrogate is written as its escape, so that the bytes are always UTF-8.

    Raises:
        TypeError, ValueError: the message holds a value that is not JSON.
    """
    members: dict[str, object] = {"jsonrpc": "2.0"}
    if not isinstance(message, Notification):
        members["id"] = message.id
    if isinstance(message, Response):
        members["result"] = message.result
    elif isinstance(message, ErrorResponse):
        error = message.error
        members["error"] = {"code": error.code, "message": str(error.message)}
        if error.data is not None:
            members["error"]["data"] = error.data  # type: ignore[index]
    else:
        members["method"] = message.method
        if message.params is not None:
            members["params"] = message.params
    return dumps(members).encode("utf-8", "backslashreplace")
