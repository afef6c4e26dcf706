"""A host for sessions of any framing: it says messages and reads what comes, one after the other."""

from __future__ import annotations

import os
import select
import socket
import subprocess
from typing import IO, TYPE_CHECKING, cast

from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.json_codec import dumps, loads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

Message = dict[str, object]
PATIENCE_S = 60.0  # far beyond what anything here takes


class Speaker:
    """One side of a session, over two files.

    Args:
        source: the file to read.
        write: takes bytes.
        framing: its name.

    Attributes:
        heard: every message so far, and `junk`, what was none.
    """

    def __init__(self, source: int, write: Callable[[bytes], object], framing: str) -> None:
        self._source = source
        self._write = write
        self._framing = FRAMINGS[framing]
        self._decoder = self._framing.decoder()
        self._readable = select.poll()
        self._readable.register(source, select.POLLIN)
        self.heard: list[Message] = []
        self.junk = b""

    def say(self, *messages: Message) -> None:
        """Say messages, in one write."""
        self.write(b"".join(self._framing.encode(dumps(message).encode()) for message in messages))

    def write(self, data: bytes) -> None:
        """Say bytes."""
        self._write(data)

    def next(self) -> Message:
        """The next message. Raises EOFError where none comes."""
        message = loads(self.line().decode())
        assert isinstance(message, dict)
        self.heard.append(message)
        return message

    def line(self) -> bytes:
        """The next frame's payload, whatever it is. Raises EOFError where none comes."""
        while not isinstance(item := self._decoder.next_event(), Frame):
            if item is None:
                self._read()
            else:
                self.junk += item.wire
        return item.payload

    def until(self, last: Callable[[Message], bool]) -> list[Message]:
        """The messages up to the first one of which that is true."""
        found = [self.next()]
        while not last(found[-1]):
            found.append(self.next())
        return found

    def rest(self) -> list[Message]:
        """All that still comes, up to the end."""
        found = []
        try:
            while True:
                found.append(self.next())
        except EOFError:
            return found

    def _read(self) -> None:
        assert self._readable.poll(PATIENCE_S * 1000), f"nothing comes any more, after {self.heard[-3:]}"
        data = os.read(self._source, 65_536)
        if not data:
            raise EOFError("the other side has ended")
        self._decoder.receive_data(data)


class Started(Speaker):
    """A speaker that has started its child; a context manager, which ends it."""

    def __init__(
        self, command: Sequence[str], framing: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, cwd=cwd, bufsize=0
        )
        self._files = cast("list[IO[bytes]]", [self.process.stdin, self.process.stdout, self.process.stderr])
        super().__init__(self._files[1].fileno(), self._files[0].write, framing)
        self.err = b""

    def end(self) -> int:
        """Close its input, hear the rest, and wait. Returns the exit code."""
        self._files[0].close()
        self.rest()
        self.err = self._files[2].read()
        return self.process.wait(PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()
        for file in self._files:
            file.close()
        self.process.wait()


def connected(address: str, framing: str) -> tuple[socket.socket, Speaker]:
    """A speaker on a connection of its own; the socket is its user's to close."""
    kind, _, place = address.partition(":")
    host, _, port = place.rpartition(":")
    link = socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET)
    link.connect(place if kind == "unix" else (host, int(port)))
    return link, Speaker(link.fileno(), link.sendall, framing)
