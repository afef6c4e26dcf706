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

_HOMES = {
    "Answer": "ext_sdk.core.wire.connection",
    "CallError": "ext_sdk.core.wire.errors",
    "Connection": "ext_sdk.core.wire.connection",
    "DEPTH_LIMIT": "ext_sdk.core.wire.json_codec",
    "Decoder": "ext_sdk.core.wire.framing",
    "Direction": "ext_sdk.core.wire.connection",
    "Envelope": "ext_sdk.core.wire.json_codec",
    "ErrorResponse": "ext_sdk.core.wire.jsonrpc",
    "FRAMINGS": "ext_sdk.core.wire.framing",
    "Frame": "ext_sdk.core.wire.frames",
    "FrameTooLong": "ext_sdk.core.wire.errors",
    "Framing": "ext_sdk.core.wire.framing",
    "Id": "ext_sdk.core.wire.errors",
    "Junk": "ext_sdk.core.wire.frames",
    "Malformed": "ext_sdk.core.wire.connection",
    "Member": "ext_sdk.core.wire.json_codec",
    "Message": "ext_sdk.core.wire.jsonrpc",
    "MessageError": "ext_sdk.core.wire.errors",
    "Notification": "ext_sdk.core.wire.jsonrpc",
    "Request": "ext_sdk.core.wire.jsonrpc",
    "Response": "ext_sdk.core.wire.jsonrpc",
    "RpcError": "ext_sdk.core.wire.errors",
    "WireError": "ext_sdk.core.wire.errors",
    "dumps": "ext_sdk.core.wire.json_codec",
    "encode": "ext_sdk.core.wire.jsonrpc",
    "is_too_deep": "ext_sdk.core.wire.json_codec",
    "loads": "ext_sdk.core.wire.json_codec",
    "parse": "ext_sdk.core.wire.jsonrpc",
    "scan": "ext_sdk.core.wire.json_codec",
}


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
