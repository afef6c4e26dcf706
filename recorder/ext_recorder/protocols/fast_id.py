"""Scan of a JSON-RPC message for its id and kind, from its first or last bytes, without parsing it.

Nearly all peers write the envelope in one of three ways. Where a message begins or ends like that, a look
tells its kind and where its id stands, ten times as fast as `wire.envelope.scan`; where it doesn't, the answer
is None and `scan` decides. The message is taken to be JSON: that is for the caller to know, or to find out by
comparing it with one that is.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Kind = Literal["request", "response", "notification", "other"]
else:
    Kind = str

_COMPACT = b'{"jsonrpc":"2.0","id":'  # Go, Rust, most JavaScript
_SPACED = b'{"jsonrpc": "2.0", "id": '  # Python's json.dumps as it comes
_LAST = b',"jsonrpc":"2.0","id":'  # the MCP SDK for TypeScript
_NAME = b'"id"'
_ZERO = ord("0")
# An id that begins so early has before it nothing but the envelope, which is the same in every session.
FIRST_BYTES = 25
_FIRST_MEMBERS: dict[bytes, Kind] = {b'"method"': "request", b'"result"': "response", b'"error":': "response"}


def scan_id(payload: bytes) -> tuple[Kind, int, int] | None:
    """The kind of a message, and its id, `payload[start:end]`; None: it can't be seen like this.

    The id is a decimal number or a string of letters, digits and hyphens, so its spelling is its identity.
    """
    if payload.startswith(_COMPACT):
        start = 22
        end = payload.find(b",", 22)
        kind = _FIRST_MEMBERS.get(payload[end + 1 : end + 9])
    elif payload.startswith(_SPACED):
        start = 25
        end = payload.find(b",", 25)
        kind = _FIRST_MEMBERS.get(payload[end + 2 : end + 10])
    else:
        return _id_last(payload)
    if kind is None or payload.find(_NAME, end) >= 0:
        return None
    id = payload[start:end]
    return (kind, start, end) if (id.isdigit() and id[0] != _ZERO) or is_simple_id(id) else None


def _id_last(payload: bytes) -> tuple[Kind, int, int] | None:
    """An unescaped `"id":N}` at the very end is the outermost object's last member."""
    start = payload.rfind(_LAST) + len(_LAST)
    if start < len(_LAST) or payload[-1:] != b"}" or payload.find(_NAME) != start - 5:
        return None
    kind = _FIRST_MEMBERS.get(payload[1:9])
    return (kind, start, len(payload) - 1) if kind and is_simple_id(payload[start:-1]) else None


def is_simple_id(token: bytes) -> bool:
    """Is this the spelling of an id that can have no other: a whole number, or a string of letters, digits, hyphens?"""
    if token.isdigit():
        return token[:1] != b"0" or token == b"0"
    return token[:1] == token[-1:] == b'"' and token[1:-1].replace(b"-", b"").isalnum()
