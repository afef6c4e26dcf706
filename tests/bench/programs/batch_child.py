"""A child that answers the first line at once, and the others when it has them all: batch_child.py COUNT.

Its answers are what it got. A stand-in with one thread copies what such a child says; of one that answers a message
before it has read the whole of it, both could wait for each other for ever.
"""

from __future__ import annotations

import os
import sys


def main() -> int:
    count, seen, kept = int(sys.argv[1]), 0, list[bytes]()
    while data := os.read(0, 65_536):
        seen += data.count(10)
        kept.append(data)
        if data.endswith(b"\n") and (seen == 1 or seen >= count):
            for piece in kept:
                rest = piece
                while rest:
                    rest = rest[os.write(1, rest) :]
            kept.clear()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
