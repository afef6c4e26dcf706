"""Bytes to messages and back, without any I/O: framing, JSON-RPC 2.0, and the calls of a connection.

    bytes --framing--> frames --jsonrpc--> messages --connection--> calls

Nothing here reads, writes, waits or looks at the clock, so one implementation serves a server, a host, a
recorder and a test. The modules import neither `re` nor `json` where the interpreter has its C scanner: an
extension answers its first request before those would be loaded. For the same reason the names here are loaded
at their first use (PEP 562).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .connection import Answer, Connection, Direction, Malformed
    from .envelope import Envelope, Member, scan
    from .errors import CallError, FrameTooLong, MessageError, RpcError, WireError
    from .framing import FRAMINGS, Decoder, Frame, Framing, Junk
    from .json_text import DEPTH_LIMIT, dumps, is_too_deep, loads
    from .jsonrpc import ErrorResponse, Id, Message, Notification, Request, Response, encode, parse

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
    "Answer": "ext_sdk.wire.connection",
    "CallError": "ext_sdk.wire.errors",
    "Connection": "ext_sdk.wire.connection",
    "DEPTH_LIMIT": "ext_sdk.wire.json_text",
    "Decoder": "ext_sdk.wire.framing",
    "Direction": "ext_sdk.wire.connection",
    "Envelope": "ext_sdk.wire.envelope",
    "ErrorResponse": "ext_sdk.wire.jsonrpc",
    "FRAMINGS": "ext_sdk.wire.framing",
    "Frame": "ext_sdk.wire.framing",
    "FrameTooLong": "ext_sdk.wire.errors",
    "Framing": "ext_sdk.wire.framing",
    "Id": "ext_sdk.wire.jsonrpc",
    "Junk": "ext_sdk.wire.framing",
    "Malformed": "ext_sdk.wire.connection",
    "Member": "ext_sdk.wire.envelope",
    "Message": "ext_sdk.wire.jsonrpc",
    "MessageError": "ext_sdk.wire.errors",
    "Notification": "ext_sdk.wire.jsonrpc",
    "Request": "ext_sdk.wire.jsonrpc",
    "Response": "ext_sdk.wire.jsonrpc",
    "RpcError": "ext_sdk.wire.errors",
    "WireError": "ext_sdk.wire.errors",
    "dumps": "ext_sdk.wire.json_text",
    "encode": "ext_sdk.wire.jsonrpc",
    "is_too_deep": "ext_sdk.wire.json_text",
    "loads": "ext_sdk.wire.json_text",
    "parse": "ext_sdk.wire.jsonrpc",
    "scan": "ext_sdk.wire.envelope",
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
