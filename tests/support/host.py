"""The host's end of an extension under test: a real process on real pipes. Nothing waits without an end."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping, Sequence
    from typing import IO, Self

PATIENCE_SECONDS = 40.0
PROBE = [sys.executable, str(Path(__file__).parent / "samples" / "probe.py")]

Message = dict[str, object]


class Streams(TypedDict, total=False):
    """What may be given to a Peer's process: other descriptors than pipes, and further ones."""

    stdin: int | IO[bytes]
    stdout: int | IO[bytes]
    stderr: int | IO[bytes]
    pass_fds: tuple[int, ...]


class Peer:
    """A host of one extension.

    Args:
        command: of the extension.
        env: variables beside those of the tests.
        streams: other descriptors than pipes for stdin and stdout, and than a file for stderr.

    Attributes:
        patience: seconds until something that has to happen counts as a hang.
    """

    def __init__(
        self, command: Sequence[str] = PROBE, env: Mapping[str, str] | None = None, **streams: Unpack[Streams]
    ) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  (closed at exit)
        pipes: Streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._stderr}
        self.process = subprocess.Popen(command, bufsize=0, env=os.environ | (env or {}), **(pipes | streams))
        self._pending = b""
        self._next_id = 0
        self.patience = PATIENCE_SECONDS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self._stderr):
            if stream:
                stream.close()

    @property
    def stderr(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="backslashreplace")

    def send(self, *messages: object) -> None:
        """Write messages, each as a line, in one write; bytes are written as they are."""
        self.write(b"".join(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in messages))

    def write(self, data: bytes) -> None:
        assert self.process.stdin
        view = memoryview(data)
        until = time.monotonic() + self.patience
        while view:
            ready = select.select([], [self.process.stdin], [], max(0.0, until - time.monotonic()))[1]
            assert ready, f"the extension does not read; {self.stderr}"
            view = view[os.write(self.process.stdin.fileno(), view[:4096]) :]

    def eof(self) -> None:
        """Close the extension's stdin."""
        assert self.process.stdin
        self.process.stdin.close()

    def line(self) -> bytes | None:
        """The next line, without its end; None at the end of stdout."""
        assert self.process.stdout
        until = time.monotonic() + self.patience
        while b"\n" not in self._pending:
            ready = select.select([self.process.stdout], [], [], max(0.0, until - time.monotonic()))[0]
            assert ready, f"no line came; {self.stderr}"
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                assert not self._pending, f"a line without its end: {self._pending!r:.200}"
                return None
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        assert len(line) <= 65_535, f"a line of {len(line)} bytes"
        return line

    def message(self) -> Message:
        """The next message."""
        line = self.line()
        assert line is not None, f"stdout ended; {self.stderr}"
        message = json.loads(line)
        assert isinstance(message, dict)
        assert message["jsonrpc"] == "2.0"
        return message

    def rest(self) -> list[Message]:
        """All messages up to the end of stdout."""
        found = []
        while (line := self.line()) is not None:
            found.append(json.loads(line))
        return found

    def exit_code(self) -> int:
        return self.process.wait(self.patience)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    # What hosts say

    def call(self, method: str, params: object = None) -> Message:
        """Send a request and give its answer; logs before it are passed over."""
        self._next_id += 1
        self.send(request(self._next_id, method, params))
        while (answer := self.message()).get("id") != self._next_id:
            assert answer.get("method") == "log", answer
        return answer

    def initialize(self, config: object = None) -> Message:
        params = {"protocolVersion": "0.0.1"} | ({} if config is None else {"config": config})
        return self.call("initialize", params)

    def execute(self, operation: str, args: object = None, **context: object) -> Message:
        """The answer to a call."""
        return self.call("execute", parameters(operation, args, **context))

    def result(self, operation: str, args: object = None, **context: object) -> Message:
        """The result of a call."""
        answer = self.execute(operation, args, **context)
        assert isinstance(answer.get("result"), dict), answer
        return answer["result"]  # type: ignore[return-value]

    def outputs(self, operation: str, args: object = None, **context: object) -> dict[str, str]:
        """The outputs of a call that succeeds."""
        result = self.result(operation, args, **context)
        assert result["success"] is True, result
        return result["outputs"]  # type: ignore[return-value]

    def error(self, operation: str, args: object = None, **context: object) -> Message:
        """The error that a call is answered with."""
        answer = self.execute(operation, args, **context)
        assert isinstance(answer.get("error"), dict), answer
        return answer["error"]  # type: ignore[return-value]


def parameters(operation: str, args: object = None, **context: object) -> Message:
    """The `params` of an execute request."""
    return {"operation": operation, "args": args or {}, "context": {"workdir": "/tmp", "phase": "setup"} | context}


def request(id: object, method: str, params: object = None) -> Message:
    return {"jsonrpc": "2.0", "id": id, "method": method} | ({} if params is None else {"params": params})


def execute(id: object, operation: str, args: object = None, **context: object) -> Message:
    return request(id, "execute", parameters(operation, args, **context))
