"""Hosts of child processes: real processes on real pipes, and no wait without an end.

`HostProcess` exchanges bytes, `MessageStream` messages in any framing, `ExtensionHost` requests of gevals 0.0.1.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict, Unpack

from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.json_codec import dumps, loads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import IO, Self

PATIENCE_S = 60.0  # a test that needs it hangs, and reports where
PROBE = [sys.executable, str(Path(__file__).parent / "samples" / "probe.py")]

Message = dict[str, object]


# --- Bytes -----------------------------------------------------------------------------------------------------------


class Session(NamedTuple):
    """What a host has read of a session that has ended."""

    code: int
    out: bytes
    err: bytes


class Streams(TypedDict, total=False):
    """Other descriptors than pipes, further ones, and the process group."""

    stdin: int | IO[bytes]
    stdout: int | IO[bytes]
    stderr: int | IO[bytes]
    pass_fds: tuple[int, ...]
    process_group: int
    start_new_session: bool


def receive(descriptor: int, count: int = 65_536, *, patience: float = PATIENCE_S) -> bytes:
    """Wait for bytes, and return up to `count` of them; b"" at the end of file."""
    readable = select.poll()
    readable.register(descriptor, select.POLLIN)
    assert readable.poll(patience * 1000), "nothing was received"
    return os.read(descriptor, count)


def read(descriptor: int, count: int) -> bytes:
    """Return `count` bytes, or those up to the end of file."""
    data = b""
    while len(data) < count and (piece := receive(descriptor, count - len(data))):
        data += piece
    return data


class HostProcess(subprocess.Popen[bytes]):
    """Child process on pipes; as a context manager, it is killed at the end.

    Args:
        command: program and arguments.
        env: variables in addition to those of the tests.
        cwd: its working directory.
        streams: other descriptors than pipes.

    Attributes:
        patience: seconds after which a wait counts as a hang.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        **streams: Unpack[Streams],
    ) -> None:
        pipes: Streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        super().__init__(command, bufsize=0, env=os.environ | (env or {}), cwd=cwd, **(pipes | streams))
        self.patience = PATIENCE_S

    def __exit__(self, *exc: object) -> None:
        if self.poll() is None:
            self.kill()
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream:
                stream.close()
        self.wait()

    def write(self, data: bytes) -> None:
        """Write to its stdin."""
        assert self.stdin is not None
        descriptor = self.stdin.fileno()
        os.set_blocking(descriptor, False)
        room = select.poll()
        room.register(descriptor, select.POLLOUT)
        rest = memoryview(data)
        while rest:
            assert room.poll(self.patience * 1000), f"the child does not read; {len(rest)} bytes are left"
            rest = rest[os.write(descriptor, rest) :]

    def read(self, count: int) -> bytes:
        """Return bytes of its stdout: `count`, or those up to the end of file."""
        assert self.stdout is not None
        return read(self.stdout.fileno(), count)

    def read_line(self) -> bytes:
        """Return a line of its stdout; without its line feed only at the end of file."""
        line = b""
        while not line.endswith(b"\n") and (byte := self.read(1)):
            line += byte
        return line

    def end(self) -> Session:
        """Close its stdin, read the rest of its output, and wait for its exit."""
        out, err = self.communicate(timeout=self.patience)
        return Session(self.returncode, out, err)


# --- Messages --------------------------------------------------------------------------------------------------------


class MessageStream:
    """One side of a session in any framing, on two descriptors.

    Args:
        source: the descriptor to read.
        write: a function that writes bytes.
        framing: its name.

    Attributes:
        received: every message.
        junk: bytes between them.
    """

    def __init__(self, source: int, write: Callable[[bytes], object], framing: str) -> None:
        self._source = source
        self.write = write
        self._framing = FRAMINGS[framing]
        self._decoder = self._framing.decoder()
        self.received: list[Message] = []
        self.junk = b""

    def send(self, *messages: Message) -> None:
        """Send messages in one write."""
        self.write(b"".join(self._framing.encode(dumps(message).encode()) for message in messages))

    def next(self) -> Message:
        """Return the next message. Raise EOFError at the end."""
        message = loads(self.payload().decode())
        assert isinstance(message, dict)
        self.received.append(message)
        return message

    def payload(self) -> bytes:
        """Return the payload of the next frame, whatever it is. Raise EOFError at the end."""
        while not isinstance(item := self._decoder.next_event(), Frame):
            if item is not None:
                self.junk += item.wire
            elif data := receive(self._source):
                self._decoder.receive_data(data)
            else:
                raise EOFError("the other side has closed its output")
        return item.payload

    def until(self, last: Callable[[Message], bool]) -> list[Message]:
        """Return the messages up to the first one for which `last` is true."""
        messages = [self.next()]
        while not last(messages[-1]):
            messages.append(self.next())
        return messages

    def rest(self) -> list[Message]:
        """Return all messages up to the end."""
        messages = []
        try:
            while True:
                messages.append(self.next())
        except EOFError:
            return messages


class MessageHost(MessageStream):
    """Host of a child that it has started; a context manager.

    Attributes:
        err: its stderr, after `end`.
    """

    def __init__(
        self, command: Sequence[str], framing: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> None:
        self.process = HostProcess(command, env, cwd)
        assert self.process.stdout is not None
        super().__init__(self.process.stdout.fileno(), self.process.write, framing)
        self.err = b""

    def end(self) -> int:
        """Close its stdin, read the rest, and return its exit code."""
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        self.process.stdin.close()
        self.rest()
        self.err = self.process.stderr.read()
        return self.process.wait(PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.__exit__(*exc)


def connected(address: str, framing: str) -> tuple[socket.socket, MessageStream]:
    """Connect to a server. The caller closes the socket."""
    kind, _, place = address.partition(":")
    host, _, port = place.rpartition(":")
    link = socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET)
    link.connect(place if kind == "unix" else (host, int(port)))
    return link, MessageStream(link.fileno(), link.sendall, framing)


# --- Extensions ------------------------------------------------------------------------------------------------------


class ExtensionHost:
    """Host of one extension; a context manager.

    It parses lines without the SDK, because a library cannot reveal an error that it makes on both sides.

    Args:
        command: of the extension.
        env: variables in addition to those of the tests.
        streams: other descriptors than pipes for stdin and stdout, and than a file for stderr.
    """

    def __init__(
        self, command: Sequence[str] = PROBE, env: Mapping[str, str] | None = None, **streams: Unpack[Streams]
    ) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  (closed at exit)
        self.process = HostProcess(command, env, **({"stderr": self._stderr} | streams))
        self._pending = b""
        self._next_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.__exit__(*exc)
        self._stderr.close()

    @property
    def stderr(self) -> str:
        """Return its stderr so far."""
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="backslashreplace")

    def send(self, *messages: object) -> None:
        """Write messages in one write, each as a line; bytes are written as they are."""
        self.write(b"".join(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in messages))

    def write(self, data: bytes) -> None:
        """Write bytes."""
        self.process.write(data)

    def eof(self) -> None:
        """Close its stdin."""
        assert self.process.stdin
        self.process.stdin.close()

    def line(self) -> bytes | None:
        """Return the next line without its line feed; None at the end of stdout."""
        assert self.process.stdout
        while b"\n" not in self._pending:
            data = receive(self.process.stdout.fileno(), patience=self.process.patience)
            if not data:
                assert not self._pending, f"a line without its end: {self._pending!r:.200}"
                return None
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        assert len(line) <= 65_535, f"a line of {len(line)} bytes"
        return line

    def message(self) -> Message:
        """Return the next message."""
        line = self.line()
        assert line is not None, f"stdout ended; {self.stderr}"
        message = json.loads(line)
        assert isinstance(message, dict)
        assert message["jsonrpc"] == "2.0"
        return message

    def rest(self) -> list[Message]:
        """Return all messages up to the end of stdout."""
        return [json.loads(line) for line in iter(self.line, None)]

    def exit_code(self) -> int:
        """Wait for its exit."""
        return self.process.wait(self.process.patience)

    def call(self, method: str, params: object = None) -> Message:
        """Send a request and return its response; skip logs before it."""
        self._next_id += 1
        self.send(request(self._next_id, method, params))
        while (response := self.message()).get("id") != self._next_id:
            assert response.get("method") == "log", response
        return response

    def initialize(self, config: object = None) -> Message:
        """Send `initialize` and return its response."""
        params = {"protocolVersion": "0.0.1"} | ({} if config is None else {"config": config})
        return self.call("initialize", params)

    def execute(self, operation: str, args: object = None, **context: object) -> Message:
        """Call an operation and return the response."""
        return self.call("execute", parameters(operation, args, **context))

    def result(self, operation: str, args: object = None, **context: object) -> Message:
        """Call an operation and return its result."""
        response = self.execute(operation, args, **context)
        assert isinstance(response.get("result"), dict), response
        return response["result"]  # type: ignore[return-value]

    def outputs(self, operation: str, args: object = None, **context: object) -> dict[str, str]:
        """Call an operation that must succeed and return its outputs."""
        result = self.result(operation, args, **context)
        assert result["success"] is True, result
        return result["outputs"]  # type: ignore[return-value]

    def error(self, operation: str, args: object = None, **context: object) -> Message:
        """Call an operation that must be refused and return the error."""
        response = self.execute(operation, args, **context)
        assert isinstance(response.get("error"), dict), response
        return response["error"]  # type: ignore[return-value]


def parameters(operation: str, args: object = None, **context: object) -> Message:
    """Return the `params` of an execute request."""
    return {"operation": operation, "args": args or {}, "context": {"workdir": "/tmp", "phase": "setup"} | context}


def request(id: object, method: str, params: object = None) -> Message:
    """Return a request."""
    return {"jsonrpc": "2.0", "id": id, "method": method} | ({} if params is None else {"params": params})


def execute(id: object, operation: str, args: object = None, **context: object) -> Message:
    """Return an execute request."""
    return request(id, "execute", parameters(operation, args, **context))
