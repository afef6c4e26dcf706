"""What the HTTP library itself takes: bare_http.py URL COUNT. Writes seconds from the first answer to the last."""

from __future__ import annotations

import sys
from time import perf_counter

import httpx2


def main() -> None:
    url, count = sys.argv[1], int(sys.argv[2])
    with httpx2.Client() as client:
        client.get(url).raise_for_status()
        begin = perf_counter()
        for _ in range(count - 1):
            client.get(url).raise_for_status()
        sys.stdout.write(f"{perf_counter() - begin}\n")


if __name__ == "__main__":
    main()
