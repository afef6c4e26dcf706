"""A client that sends a request again after an error.

    python -m docs.examples.retrying COMMAND...

It calls the extension that COMMAND starts, at most three times, and prints the result.
"""

from __future__ import annotations

import json
import sys

from docs.examples.host import Host
from ext_sdk.wire import RpcError

GREET = {"operation": "greet", "args": {"name": "Ada"}, "context": {"workdir": ".", "phase": "setup"}}
ATTEMPTS = 3


def main() -> int:
    """Send the request until it has a result."""
    with Host(sys.argv[1:]) as host:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                result = host.call("execute", GREET)
            except RpcError as error:
                print(f"attempt {attempt}: {error.message}")
            else:
                print(f"attempt {attempt}: {json.dumps(result)}")
                break
        return host.end()


if __name__ == "__main__":
    raise SystemExit(main())
