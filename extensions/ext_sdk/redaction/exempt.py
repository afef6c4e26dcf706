"""Parts of a message in which guesses are not made: bytes that are not text, and tokens that a protocol defines.

In random bytes every short format occurs sooner or later, and a replaced byte makes a file another one. A progress
token or a cursor correlates messages and gives no access. Values that are known to be secret are replaced in both, in
bytes that are not text only if they are long enough not to be there by chance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ext_sdk.protocols.places import spans

if TYPE_CHECKING:
    from collections.abc import Iterator

SHORTEST_IN_BINARY: Final = 8  # bytes of a known value
_NO_TEXT: Final = bytes(byte for byte in range(32) if byte not in b"\t\n\r\b\a\f\v\x1b") + b"\x7f"
_MARKS: Final = (b"\n", b"\r", b"\0")  # a line ends there, or an item of a list as `env -0` writes it
_CONTEXT: Final = 4096  # bytes before and after a finding that are judged with it
_TOLERATED: Final = 8  # one byte in 8 may not be text: another encoding than UTF-8, a stray control character

# What a message has in it, its method (b"" for any), and the place of a value that correlates messages.
_CORRELATING: Final = (
    (b"$/progress", "$/progress", "/params/token"),
    (b"window/workDoneProgress/", "window/workDoneProgress/", "/params/token"),
    (b"progressToken", "", "/params/progressToken"),
    (b"progressToken", "", "/params/_meta/progressToken"),
    (b"workDoneToken", "", "/params/workDoneToken"),
    (b"partialResultToken", "", "/params/partialResultToken"),
    (b"nextCursor", "", "/result/nextCursor"),
    (b'"cursor"', "", "/params/cursor"),
)


def is_text(data: bytes) -> bool:
    """Return whether bytes are UTF-8 without control characters other than those of texts and terminals."""
    if len(data.translate(None, _NO_TEXT)) != len(data):
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_in_text(message: bytes, start: int, end: int) -> bool:
    """Return whether the line with this stretch is text, but for few bytes."""
    first, last = max(0, start - _CONTEXT), min(len(message), end + _CONTEXT)
    first = max(first, *(message.rfind(mark, first, start) + 1 for mark in _MARKS))
    for mark in _MARKS:
        found = message.find(mark, end, last)
        last = found if found >= 0 else last
    line = message[first:last]
    no_text = len(line) - len(line.translate(None, _NO_TEXT.replace(b"\0", b"")))
    no_text += sum("\udc80" <= each <= "\udcff" for each in line.decode("utf-8", "surrogateescape"))
    return no_text * _TOLERATED <= len(line)


def correlating(message: bytes) -> Iterator[tuple[int, int]]:
    """Yield where a message has values that the protocol uses to correlate messages, or to turn pages."""
    rows = [row for row in _CORRELATING if row[0] in message]
    if not rows:
        return
    text = message.decode("latin-1")  # one character for each byte
    method = next((value for _, _, value in spans(text, ["/method"])), "")
    for _, expected, pointer in rows:
        if not expected or (isinstance(method, str) and method.startswith(expected)):
            for start, end, _ in spans(text, [pointer]):
                yield start, end
