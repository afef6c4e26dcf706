"""Errors that `ext_sdk.wire` raises. Any other exception that leaves it is a bug.

WireError
├── MessageError     a frame without a JSON-RPC message: the peer gets an error response, the session continues
├── RpcError         error object of JSON-RPC: raised by the server of a request, received by its client
├── CallError        a call that is unknown to the connection, or known already
└── FrameTooLong     a message to be sent that is over the limit of the framing
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    # JSON-RPC 2.0, section 4: a string, a number (fractions are advised against) or null.
    Id = str | int | float | None
else:
    Id = object

# JSON-RPC 2.0, section 5.1
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603


class WireError(Exception):
    """Base class of the errors of this package; never raised itself."""


class MessageError(WireError):
    """A frame's payload is not a JSON-RPC 2.0 message.

    Attributes:
        code: PARSE_ERROR (not JSON) or INVALID_REQUEST (JSON, but not a message).
        id: id for the error response: that of the message if it could be read, else None.
    """

    def __init__(self, code: int, text: str, id: Id = None) -> None:
        super().__init__(text)
        self.code = code
        self.id = id


class RpcError(WireError):
    """The `error` object of a response (JSON-RPC 2.0, section 5.1).

    Attributes:
        code: -32768 to -32000 are reserved.
        message: one sentence.
        data: any JSON value; None if the member is missing.
    """

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RpcError):
            return NotImplemented
        return (self.code, self.message, self.data) == (other.code, other.message, other.data)

    __hash__ = Exception.__hash__

    def __repr__(self) -> str:
        return f"RpcError({self.code}, {self.message!r}, {self.data!r})"


class CallError(WireError):
    """Call that is not possible: its id is still in use, or a response has no request."""


class FrameTooLong(WireError):
    """Payload that is longer than the framing can carry."""
