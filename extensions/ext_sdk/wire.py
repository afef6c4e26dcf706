"""Messages of a connection, without any I/O: framing, JSON-RPC 2.0, and calls.

    bytes --framing--> frames --jsonrpc--> messages --connection--> calls

A host written in Python uses these names, such as `docs/examples/host.py`; they are imported at their first use
(PEP 562). The implementation is `ext_sdk.core.wire`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_sdk.core.wire.connection import Answer, Connection, Direction, Malformed
    from ext_sdk.core.wire.errors import CallError, FrameTooLong, Id, MessageError, RpcError, WireError
    from ext_sdk.core.wire.frames import Frame, Junk
    from ext_sdk.core.wire.framing import FRAMINGS, Decoder, Framing
    from ext_sdk.core.wire.json_codec import DEPTH_LIMIT, Envelope, Member, dumps, is_too_deep, loads, scan
    from ext_sdk.core.wire.jsonrpc import ErrorResponse, Message, Notification, Request, Response, encode, parse

__all__ = [
    "DEPTH_LIMIT",
    "FRAMINGS",
    "Answer",
    "CallError",
    "Connection",
    "Decoder",
    "Direction",
    "Envelope",
    "ErrorResponse",
    "Frame",
    "FrameTooLong",
    "Framing",
    "Id",
    "Junk",
    "Malformed",
    "Member",
    "Message",
    "MessageError",
    "Notification",
    "Request",
    "Response",
    "RpcError",
    "WireError",
    "dumps",
    "encode",
    "is_too_deep",
    "loads",
    "parse",
    "scan",
]

_NAMES = {  # by the module of ext_sdk.core.wire that defines them
    "connection": ("Answer", "Connection", "Direction", "Malformed"),
    "errors": ("CallError", "FrameTooLong", "Id", "MessageError", "RpcError", "WireError"),
    "frames": ("Frame", "Junk"),
    "framing": ("FRAMINGS", "Decoder", "Framing"),
    "json_codec": ("DEPTH_LIMIT", "Envelope", "Member", "dumps", "is_too_deep", "loads", "scan"),
    "jsonrpc": ("ErrorResponse", "Message", "Notification", "Request", "Response", "encode", "parse"),
}
_HOMES = {name: f"ext_sdk.core.wire.{module}" for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ext_sdk.wire' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
