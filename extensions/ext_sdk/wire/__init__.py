"""Bytes to messages and back, without any I/O: framing, JSON-RPC 2.0, and the calls of a connection.

    bytes --framing--> frames --jsonrpc--> messages --connection--> calls

Nothing here reads, writes, waits or looks at the clock, so one implementation serves a server, a host, a
recorder and a test. The modules import neither `re` nor `json` where the interpreter has its C scanner: an
extension answers its first request before those would be loaded.
"""

from __future__ import annotations

from .connection import Answer, Connection, Direction, Malformed
from .errors import CallError, FrameTooLong, MessageError, RpcError, WireError
from .framing import FRAMINGS, Decoder, Frame, Framing, Junk
from .jsonrpc import (
    Envelope,
    ErrorResponse,
    Id,
    Member,
    Message,
    Notification,
    Request,
    Response,
    dumps,
    encode,
    loads,
    parse,
    scan,
)

__all__ = [
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
    "loads",
    "parse",
    "scan",
]
