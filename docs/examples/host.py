"""A small host: start an extension, run the steps of a task, and shut it down.

    python docs/examples/host.py COMMAND... < steps.jsonl

Each line of input is one step, the params of an `execute` request; each result is printed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import IO, TYPE_CHECKING, Self, cast

from ext_sdk.wire import FRAMINGS, Answer, Connection, RpcError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType


class Host:
    """One extension and the calls to it, one after the other.

    Args:
        command: argv of the extension, or of a program that replaces it.
        env: its environment; by default that of this process.
    """

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, bufsize=0)
        self._stdin, self._stdout = cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout)
        self._connection = Connection(FRAMINGS["ndjson"])
        self.received = b""  # every byte that the extension has written

    def call(self, method: str, params: object = None) -> object:
        """Send a request and wait for its result. Raises RpcError for an error, EOFError if there is no response."""
        _, data = self._connection.request(method, params)
        self._stdin.write(data)
        while True:
            event = self._connection.next_event()
            if isinstance(event, Answer):
                if isinstance(event.error, RpcError):
                    raise event.error
                return event.result
            if event is None:  # logs and other messages are ignored
                self._receive()

    def try_call(self, method: str, params: object = None) -> object:
        """Send a request. Return its result, or its error, for sessions in which errors are expected."""
        try:
            return self.call(method, params)
        except RpcError as error:
            return error

    def _receive(self) -> None:
        data = self._stdout.read(65_536)
        if not data:
            raise EOFError("the extension ended without an answer")
        self.received += data
        self._connection.receive_data(data)

    def end(self) -> int:
        """Close its input, read the rest of its output, and wait for its exit. Return the exit code."""
        self._stdin.close()
        while data := self._stdout.read(65_536):
            self.received += data
        self._stdout.close()
        return self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._stdin.close()
        self._stdout.close()
        self._process.wait()


def main() -> int:
    """Run the steps of standard input."""
    if not sys.argv[1:]:
        sys.exit(__doc__)
    try:
        with Host(sys.argv[1:]) as host:
            host.call("initialize", {"protocolVersion": "0.0.1"})
            for line in sys.stdin:
                print(json.dumps(host.call("execute", json.loads(line)), ensure_ascii=False))
            host.call("shutdown")
            return host.end()
    except (OSError, EOFError, RpcError, ValueError) as error:
        sys.exit(f"{' '.join(sys.argv)}: {error}")


if __name__ == "__main__":
    raise SystemExit(main())
