"""Child process that searches for regular expressions; see regex.py. Needs nothing but the standard library.

Reads requests from stdin and writes responses to stdout until stdin ends:

    request:   which u8, flags u32, length of pattern u32, length of text u32, pattern, text;
               which: 0 the first match, 1 all, 2 a match of the complete text
    response:  status u8 (0 not found, 1 found, 2 error), count u32, then
               found: (start, end) i32 of each match and its groups, -1 for a group that did not participate;
               error: text

Numbers are little-endian, texts UTF-8 (lone surrogates allowed). A search that takes too long ends the process by
SIGALRM, whose default action needs no cooperation of the regular expression engine; one that needs too much memory
reaches RLIMIT_AS.
"""

from __future__ import annotations

import re
import resource
import signal
import struct
import sys
from array import array
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MEMORY = 1 << 30  # bytes of address space; 64 million characters of text at 4 bytes, four times over
REQUEST = struct.Struct("<BIII")
ANSWER = struct.Struct("<BI")
NOT_FOUND, FOUND, ERROR = range(3)
FIRST, ALL, WHOLE = range(3)


def main() -> None:
    """Serve requests; the argument is the time limit of one in seconds."""
    limit = float(sys.argv[1])
    with suppress(ValueError):  # macOS has no limit of the address space: only those of time remain
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # exits after its parent, not before
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # the parent may ignore it
    read, write = sys.stdin.buffer.read, sys.stdout.buffer.write
    while header := read(REQUEST.size):
        which, flags, pattern_length, text_length = REQUEST.unpack(header)
        pattern, text = read(pattern_length), read(text_length)
        _alarm(limit)
        answer = _search(pattern, text, flags, which)
        _alarm(0.0)
        write(answer)
        sys.stdout.buffer.flush()


def _search(pattern: bytes, text: bytes, flags: int, which: int) -> bytes:
    spans = array("i")
    try:
        for match in _matches(re.compile(_text(pattern), flags), _text(text), which):
            for span in match.regs:
                spans.extend(span)
    except MemoryError:
        return _error("it needs too much memory")
    except (re.error, RecursionError, OverflowError) as error:
        return _error(str(error))
    if not spans:
        return ANSWER.pack(NOT_FOUND, 0)
    if sys.byteorder == "big":
        spans.byteswap()
    return ANSWER.pack(FOUND, len(spans) // 2) + spans.tobytes()


def _matches(pattern: re.Pattern[str], text: str, which: int) -> Iterable[re.Match[str]]:
    if which == ALL:
        return pattern.finditer(text)
    match = pattern.search(text) if which == FIRST else pattern.fullmatch(text)
    return () if match is None else (match,)


def _error(text: str) -> bytes:
    message = text.encode()
    return ANSWER.pack(ERROR, len(message)) + message


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _alarm(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, seconds)


if __name__ == "__main__":
    main()
