"""Every error that `ext_sdk.wire` raises. Anything else that comes out of it is a bug.

WireError
├── MessageError     a frame that holds no JSON-RPC message: the peer is told, the session goes on
├── RpcError         an error object of JSON-RPC: raised by who answers a request, received by who asked
├── CallError        a call that the connection does not know, or knows already
└── FrameTooLong     a message of our own that is over the limit of the framing
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .jsonrpc import Id

# JSON-RPC 2.0, section 5.1
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603


class WireError(Exception):
    """The base of the errors of this package; never raised itself."""


class MessageError(WireError):
    """A frame's payload is not a JSON-RPC 2.0 message.

    Attributes:
        code: PARSE_ERROR (not JSON) or INVALID_REQUEST (JSON, but no message).
        id: the id that the answer should carry: the message's own where it could be read, else None.
    """

    def __init__(self, code: int, text: str, id: Id = None) -> None:
        super().__init__(text)
        self.code = code
        self.id = id


class RpcError(WireError):
    """The `error` object of a response (JSON-RPC 2.0, section 5.1).

    Attributes:
        code: an integer; -32768 to -32000 are reserved.
        message: one sentence.
        data: any JSON value, or None where the member is missing.
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
    """A call that can't be: an id that is still in use, or an answer to a request that nobody made."""


class FrameTooLong(WireError):
    """A payload to be sent is longer than the framing can carry."""
