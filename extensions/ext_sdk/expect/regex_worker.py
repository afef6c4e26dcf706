"""Child process that searches for regular expressions; see regex.py. Needs nothing but the standard library.

Reads requests from stdin and writes responses to stdout until stdin ends:

    request:   flags u32, length of pattern u32, length of text u32, pattern, text
    response:  status u8 (0 not found, 1 found, 2 error), count u32, then
               found: (start, end) i32 of the match and of each group, -1 for a group that did not participate;
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
from contextlib import suppress

MEMORY = 1 << 30  # bytes of address space; 64 million characters of text at 4 bytes, four times over
REQUEST = struct.Struct("<III")
ANSWER = struct.Struct("<BI")
SPAN = struct.Struct("<ii")
NOT_FOUND, FOUND, ERROR = range(3)


def main() -> None:
    """Serve requests; the argument is the time limit of one in seconds."""
    limit = float(sys.argv[1])
    with suppress(ValueError):  # macOS has no limit of the address space: only those of time remain
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # exits after its parent, not before
    read, write = sys.stdin.buffer.read, sys.stdout.buffer.write
    while header := read(REQUEST.size):
        flags, pattern_length, text_length = REQUEST.unpack(header)
        pattern, text = read(pattern_length), read(text_length)
        _alarm(limit)
        answer = _search(pattern, text, flags)
        _alarm(0.0)
        write(answer)
        sys.stdout.buffer.flush()


def _search(pattern: bytes, text: bytes, flags: int) -> bytes:
    try:
        match = re.search(_text(pattern), _text(text), flags)
    except MemoryError:
        return _error("it needs too much memory")
    except (re.error, RecursionError, OverflowError) as error:
        return _error(str(error))
    if match is None:
        return ANSWER.pack(NOT_FOUND, 0)
    spans = [match.span(group) for group in range(match.re.groups + 1)]
    return ANSWER.pack(FOUND, len(spans)) + b"".join(SPAN.pack(*span) for span in spans)


def _error(text: str) -> bytes:
    message = text.encode()
    return ANSWER.pack(ERROR, len(message)) + message


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _alarm(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, seconds)


if __name__ == "__main__":
    main()
