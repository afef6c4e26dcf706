"""A child process on pipes, for tests: requests and their answers, notifications, and no waiting for ever."""

from __future__ import annotations

import itertools
import os
import select
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

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
END_S = 5.0  # for a child that has closed its output to exit
_RECORDER = "ext-recorder: "  # begins lines of the recorder on standard error
_CHUNK_BYTES = 65_536


class ChildError(AssertionError):
    """The child did not do what the test waits for; the text says what it said on stderr."""


class RecordedChild:
    """The running child. A context manager; at its end the input is closed and the end awaited.

    Args:
        command: its command line.
        framing: "ndjson", "content-length", "uint32".
        stderr: the file that takes its standard error.

    Attributes:
        process: the process, with pipes of bytes.
        notifications: those that came so far: (method, params).
        handlers: by method: what answers requests of the child; takes the params, returns the result.
    """

    def __init__(self, command: Sequence[str], framing: str, *, stderr: Path) -> None:
        self._stderr = stderr
        with stderr.open("wb") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self._in, False)
        self._framing = FRAMINGS[framing]
        self._decoder = self._framing.decoder()
        self._ids = itertools.count(1)
        self._ended = False
        self.notifications: list[tuple[str, object]] = []
        self.handlers: dict[str, Handler] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def request(self, method: str, params: object = None, *, timeout: float = TIMEOUT_S) -> object:
        """Ask, and wait for the answer. Requests that the child has meanwhile are answered by `handlers`.

        Args:
            method: as in JSON-RPC 2.0.
            params: the same; None sends none.
            timeout: seconds.

        Returns:
            The result.

        Raises:
            RpcError: the answer is an error.
            ChildError: there was none.
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
                self._answer(message, timeout)

    def notify(self, method: str, params: object = None) -> None:
        """Say something that has no answer."""
        self.send(encode(Notification(method, params)))

    def send(self, payload: bytes | dict[str, object], *, timeout: float = TIMEOUT_S) -> None:
        """Write one message of any protocol: its bytes without framing, or an object that becomes JSON.

        Raises:
            ChildError: the child does not read, or has ended.
        """
        data = payload if isinstance(payload, bytes) else dumps(payload).encode()
        rest = memoryview(self._framing.encode(data))
        until = time.monotonic() + timeout
        while rest:
            readable, writable, _ = select.select(
                [] if self._ended else [self._out], [self._in], [], max(0.0, until - time.monotonic())
            )
            if readable:
                self._read()
            if writable:
                try:
                    rest = rest[os.write(self._in, rest) :]
                except BlockingIOError:
                    continue
                except OSError as error:
                    raise self._failure(f"the child reads no more ({error.strerror})") from None
            elif not readable:
                raise self._failure(f"the child has not read {len(rest)} bytes within {timeout:g} s")

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
            if self._ended:
                # Its standard error may come after the end of its output, and is complete when it has exited.
                with suppress(subprocess.TimeoutExpired):
                    self.process.wait(min(END_S, max(0.0, until - time.monotonic())))
                raise self._failure(f"expected {what}, found the end of the child's output")
            if not select.select([self._out], [], [], max(0.0, until - time.monotonic()))[0]:
                name = self._framing.name
                other = "lsp" if name == "ndjson" else "jsonrpc"
                remedy = f'messages were sent in {name} framing; for another one, use protocol="{other}" in the marker'
                raise self._failure(f"expected {what} within {timeout:g} s, found nothing; {remedy}")
            self._read()

    def close(self, *, timeout: float = TIMEOUT_S) -> int:
        """Close the input of the child and wait for its exit. Return its exit code, or minus the signal that ended it.

        Raises:
            ChildError: the child did not exit; it was killed.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        until = time.monotonic() + timeout
        while not self._ended and select.select([self._out], [], [], max(0.0, until - time.monotonic()))[0]:
            self._read()
        try:
            return self.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise self._failure(f"the child has not ended within {timeout:g} s after its input") from None
        finally:
            self.process.stdout.close()

    def _read(self) -> None:
        data = os.read(self._out, _CHUNK_BYTES)
        if data:
            self._decoder.receive_data(data)
        else:
            self._ended = True
            self._decoder.receive_eof()

    def _answer(self, request: Request, timeout: float) -> None:
        handler = self.handlers.get(request.method)
        if handler is None:
            raise self._failure(f"the child asks for {request.method}, and `handlers` has no answer to it")
        self.send(encode(Response(request.id, handler(request.params))), timeout=timeout)

    def _failure(self, text: str) -> ChildError:
        said = self._stderr.read_text("utf-8", "backslashreplace").strip()
        if said.startswith(_RECORDER):
            from .command import with_pytest_options

            said = with_pytest_options(said)
        return ChildError(f"{text}; its standard error:\n{said}" if said else text)
