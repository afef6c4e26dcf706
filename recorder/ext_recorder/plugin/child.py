"""Child process on pipes, for tests: requests, responses and notifications, each with a time limit."""

from __future__ import annotations

import itertools
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from ext_recorder.posix.channel import ByteChannel, wait
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.json_codec import dumps
from ext_sdk.core.wire.jsonrpc import ErrorResponse, Notification, Request, Response, encode, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Self

    Handler: TypeAlias = "Callable[[object], object]"

TIMEOUT_S = 30.0
END_S = 5.0  # maximum wait for the exit of a child that has closed its output
_RECORDER = "ext-recorder: "  # begins lines of the recorder on standard error


class ChildError(AssertionError):
    """Failure of the child to do what the test waits for. The text has its output on stderr."""


class RecordedChild:
    """The running child. A context manager; at its end the input is closed, and the child is expected to exit.

    Args:
        framing: "ndjson", "content-length", "uint32".
        stderr: file for its standard error.

    Attributes:
        process: the process, with pipes of bytes.
        notifications: received notifications: (method, params).
        handlers: {method: function}: called with the params of a request of the child; returns the result.
    """

    def __init__(self, command: Sequence[str], framing: str, *, stderr: Path) -> None:
        self._stderr = stderr
        with stderr.open("wb") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        stdin, stdout = self.process.stdin, self.process.stdout
        self._channel = ByteChannel(stdout.fileno(), stdin.fileno(), stdin.close)
        self._framing = FRAMINGS[framing]
        self._decoder = self._framing.decoder()
        self._ids = itertools.count(1)
        self.notifications: list[tuple[str, object]] = []
        self.handlers: dict[str, Handler] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def request(self, method: str, params: object = None, *, timeout: float = TIMEOUT_S) -> object:
        """Send a request of JSON-RPC 2.0, and return the result. `handlers` respond to requests of the child before it.

        Args:
            params: its params; None for none.
            timeout: seconds.

        Raises:
            RpcError: the response is an error.
            ChildError: no response arrived.
        """
        id = next(self._ids)
        self.send(encode(Request(id, method, params)), timeout=timeout)
        until = time.monotonic() + timeout
        while True:
            message = parse(self.receive(timeout=until - time.monotonic(), what=f"the answer to {method}"))
            if isinstance(message, (Response, ErrorResponse)) and message.id == id:
                if isinstance(message, ErrorResponse):
                    raise message.error
                return message.result
            if isinstance(message, Notification):
                self.notifications.append((message.method, message.params))
            elif isinstance(message, Request):
                handler = self.handlers.get(message.method)
                if handler is None:
                    raise self._failure(f"the child asks for {message.method}, and `handlers` has no answer to it")
                self.send(encode(Response(message.id, handler(message.params))), timeout=timeout)

    def notify(self, method: str, params: object = None) -> None:
        """Send a notification."""
        self.send(encode(Notification(method, params)))

    def send(self, payload: bytes | dict[str, object], *, timeout: float = TIMEOUT_S) -> None:
        """Write one message of any protocol: its bytes without framing, or an object that becomes JSON.

        Raises:
            ChildError: the child does not read, or has ended.
        """
        data = payload if isinstance(payload, bytes) else dumps(payload).encode()
        channel = self._channel
        channel.send(self._framing.encode(data))
        until = time.monotonic() + timeout
        while channel.unsent and (left := until - time.monotonic()) > 0:
            self._read(left)
        if channel.error:
            raise self._failure(f"the child reads no more ({channel.error.strerror})")
        if channel.unsent:
            raise self._failure(f"the child has not read {len(channel.unsent)} bytes within {timeout:g} s")

    def receive(self, *, timeout: float = TIMEOUT_S, what: str = "a message") -> bytes:
        """Return the next message of the child, without its framing. Output that is not a message is skipped.

        Raises:
            ChildError: no message arrived before the timeout, or the child has ended.
        """
        until = time.monotonic() + timeout
        while True:
            item = self._decoder.next_event()
            if isinstance(item, Frame):
                return item.payload
            if item is not None:
                continue
            if not self._channel.is_open:
                # Its standard error may follow the end of its output, and is complete after its exit.
                with suppress(subprocess.TimeoutExpired):
                    self.process.wait(min(END_S, max(0.0, until - time.monotonic())))
                raise self._failure(f"expected {what}, found the end of the child's output")
            if not self._read(until - time.monotonic()):
                name = self._framing.name
                other = "lsp" if name == "ndjson" else "jsonrpc"
                remedy = f'messages were sent in {name} framing; for another one, use protocol="{other}" in the marker'
                raise self._failure(f"expected {what} within {timeout:g} s, found nothing; {remedy}")

    def close(self, *, timeout: float = TIMEOUT_S) -> int:
        """Close the input of the child and wait for its exit. Return its exit code, or minus the signal that ended it.

        Raises:
            ChildError: the child did not exit; it was killed.
        """
        assert self.process.stdout is not None
        self._channel.end()
        until = time.monotonic() + timeout
        while self._channel.is_open and self._read(until - time.monotonic()):
            pass
        try:
            return self.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise self._failure(f"the child has not ended within {timeout:g} s after its input") from None
        finally:
            self.process.stdout.close()

    def _read(self, seconds: float) -> bool:
        """Read output, and write unsent bytes. Return False after the given seconds without output."""
        if self._channel.source not in wait([self._channel], seconds):
            return False
        data = self._channel.read()
        if data:
            self._decoder.receive_data(data)
        elif data is not None:
            self._decoder.receive_eof()
        return True

    def _failure(self, text: str) -> ChildError:
        stderr = self._stderr.read_text("utf-8", "backslashreplace").strip()
        if stderr.startswith(_RECORDER):
            from .command import with_pytest_options

            stderr = with_pytest_options(stderr)
        return ChildError(f"{text}; its standard error:\n{stderr}" if stderr else text)
