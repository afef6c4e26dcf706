"""What one can wait for while a process gets ready: a port, a line of its output, a file, an answer, its end."""

from __future__ import annotations

import errno
import os
import socket
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

import ext_sdk
from ext_sdk.expect import Searcher, SearchFailed

from .files.common import workdir_for
from .processes import STREAMS

if TYPE_CHECKING:
    from collections.abc import Collection

    from .processes import Process

ANSWER_TIME = 1.0  # seconds for one connection, or one answer over HTTP
LOOPBACK = ("127.0.0.1", "::1")
LOCAL_NAMES = {"localhost": "127.0.0.1", "127.0.0.1": "127.0.0.1", "::1": "::1"}
LONGEST_STATUS_LINE = 1024  # bytes


def local_url(text: str, port: int | None) -> str:
    """The URL that a readiness condition asks; a path is completed by the process's own port.

    Only this machine is asked: what is to get ready was started here, and nothing else is to be reached by this way.

    Raises:
        InvalidArgs: anything else.
    """
    if text.startswith("/"):
        if port is None:
            raise ext_sdk.InvalidArgs("ready.http", f"the path {text!r} needs the process's `port`, or write a URL")
        text = f"http://{LOOPBACK[0]}:{port}{text}"
    try:
        parts = urlsplit(text)
        known = parts.scheme == "http" and parts.hostname in LOCAL_NAMES and parts.port != 0
    except ValueError:
        known = False
    if not known or not text.isascii() or any(character <= " " for character in text):
        hosts = "localhost, 127.0.0.1 or [::1]"
        raise ext_sdk.InvalidArgs("ready.http", f"expected a path, or http://… on {hosts}, found {text!r}")
    return text


def connect(address: str, port: int) -> socket.socket:
    """A connection to a server of this machine. Raises OSError where there is none."""
    connection = socket.create_connection((address, port), ANSWER_TIME)
    if connection.getsockname() == connection.getpeername():
        # Where nobody listens, TCP may give out this very port, and connect the client to itself.
        connection.close()
        raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
    return connection


class Condition(Protocol):
    """Something that becomes true. Once it was, it is not asked again."""

    what: str  # as it goes on after "waiting for"

    def holds(self) -> bool:
        """Look now."""

    def last(self) -> str:
        """What was seen last, in words."""

    def taken(self) -> str:
        """Return what holds already before the process starts, so that it would look ready at once; "" for nothing."""


class PortOpen:
    """A TCP port of this machine takes connections."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._error = "not tried"
        self.what = f"port {port} to take connections"

    def holds(self) -> bool:
        for address in LOOPBACK:
            try:
                connect(address, self.port).close()
            except OSError as error:
                self._error = error.strerror or str(error)
            else:
                return True
        return False

    def last(self) -> str:
        return self._error

    def taken(self) -> str:
        return f"port {self.port}" if self.holds() else ""


class LineLogged:
    """A line of the output matches; one that has not ended yet counts only when the process has."""

    def __init__(self, pattern: str, process: Process, searcher: Searcher) -> None:
        self._pattern = f"(?m){pattern}"
        self._process = process
        self._searcher = searcher
        self._offsets = dict.fromkeys(STREAMS, 0)
        self._rests = dict.fromkeys(STREAMS, b"")
        self._lines = 0
        self.what = f"a line of its output that matches {pattern!r}"

    def holds(self) -> bool:
        return any(self._found_in(stream) for stream in STREAMS)

    def last(self) -> str:
        return f"{self._lines} lines, none of which does"

    def taken(self) -> str:
        return ""

    def _found_in(self, stream: str) -> bool:
        ended = self._process.exited
        new, self._offsets[stream] = self._process.written_since(stream, self._offsets[stream])
        data = self._rests[stream] + new
        complete = len(data) if ended else data.rfind(b"\n") + 1
        text, self._rests[stream] = data[:complete].decode("utf-8", "replace"), data[complete:]
        self._lines += text.count("\n")
        try:
            return bool(text and self._searcher.search(self._pattern, text))
        except SearchFailed as error:
            raise ext_sdk.OperationFailed("logLine could not be searched for", error=f"logLine: {error}") from error


class FileThere:
    """A file exists."""

    def __init__(self, path: str, context: ext_sdk.Context) -> None:
        self._path = path
        self._context = context
        self.what = f"the file {path!r}"

    def holds(self) -> bool:
        return workdir_for(self._context, self._path).exists(self._path)

    def last(self) -> str:
        return "it is not there"

    def taken(self) -> str:
        return self.what if self.holds() else ""


class HttpAnswers:
    """A GET is answered with the status that was asked for."""

    def __init__(self, url: str, good: Collection[int]) -> None:
        parts = urlsplit(url)
        self._host = LOCAL_NAMES[parts.hostname or ""]
        self.port = parts.port or 80
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._good = good
        self._seen = "not tried"
        self.what = f"an answer from {url}"

    def holds(self) -> bool:
        try:
            status = self._ask()
        except (OSError, ValueError) as error:
            self._seen = str(error)
            return False
        self._seen = f"status {status}"
        return status in self._good

    def last(self) -> str:
        return self._seen

    def taken(self) -> str:
        return PortOpen(self.port).taken()

    def _ask(self) -> int:
        """Send a GET and read the status line of the answer, and nothing else."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        request = f"GET {self._target} HTTP/1.1\r\nHost: {host}:{self.port}\r\nAccept: */*\r\nConnection: close\r\n\r\n"
        with connect(self._host, self.port) as connection:
            connection.sendall(request.encode("ascii"))
            line = connection.makefile("rb").readline(LONGEST_STATUS_LINE)
        version, _, rest = line.decode("latin-1").partition(" ")
        if not version.startswith("HTTP/") or not rest[:3].isdecimal():
            raise ValueError(f"no HTTP: it begins with {line[:60]!r}")
        return int(rest[:3])


class Exited:
    """The command has ended with the exit code that was asked for."""

    def __init__(self, good: Collection[int], process: Process) -> None:
        self._good = good
        self._process = process
        self.what = "it to end"

    def holds(self) -> bool:
        status = self._process.status
        if status is None:
            return False
        if status.code not in self._good:
            wanted = ", ".join(map(str, self._good))
            text = f"{self._process.name}: expected it to end with exit code {wanted}, got {status}"
            raise ext_sdk.OperationFailed(f"{self._process.name}: {status}", error=text)
        return True

    def last(self) -> str:
        return "it still runs"

    def taken(self) -> str:
        return ""
