"""Readiness of a background process: port, log line, file, HTTP response, exit, and the wait for them."""

from __future__ import annotations

import errno
import os
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import UNSET

import ext_sdk
from ext_sdk.expect import Searcher, SearchFailed
from ext_sdk.polling import attempts_until, exponential

from .args import codes_of
from .background import STREAMS
from .command import LineLog
from .files import workdir_for

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from .args import Ready
    from .background import Process


CONNECTION_TIME = 1.0  # seconds for one connection, or one HTTP response
LOOPBACK = ("127.0.0.1", "::1")
LOCAL_NAMES = {"localhost": "127.0.0.1", "127.0.0.1": "127.0.0.1", "::1": "::1"}
LONGEST_STATUS_LINE = 1024  # bytes
GOOD_STATUS = tuple(range(200, 400))


class Condition:
    """Condition of readiness. Once it held, it is not checked again.

    Attributes:
        what: the condition as text after "waited for".
        last: result of the last check as text.
    """

    what: str
    last: str

    def holds(self) -> bool:
        """Check the condition now."""
        raise NotImplementedError

    def taken(self) -> str:
        """Return what exists before the process starts, so that it would look ready at once; "" for nothing."""
        return ""


class PortOpen(Condition):
    """A local TCP port accepts connections."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.last = "not tried"
        self.what = f"port {port} to accept connections"

    def holds(self) -> bool:
        for address in LOOPBACK:
            try:
                connect(address, self.port).close()
            except OSError as error:
                self.last = error.strerror or str(error)
            else:
                return True
        return False

    def taken(self) -> str:
        return f"port {self.port}" if self.holds() else ""


class LineLogged(Condition):
    """A line of the output matches; an incomplete line counts only after the process has exited."""

    def __init__(self, pattern: str, process: Process, searcher: Searcher) -> None:
        self._pattern = f"(?m){pattern}"
        self._process = process
        self._searcher = searcher
        self._offsets = dict.fromkeys(STREAMS, 0)
        self._rests = dict.fromkeys(STREAMS, b"")
        self._lines = 0
        self.last = "0 lines, none of which matches"
        self.what = f"a line of its output that matches {pattern!r}"

    def holds(self) -> bool:
        exited = self._process.exited
        for stream in STREAMS:
            new, self._offsets[stream] = self._process.written_since(stream, self._offsets[stream])
            data = self._rests[stream] + new
            complete = len(data) if exited else data.rfind(b"\n") + 1
            text, self._rests[stream] = data[:complete].decode("utf-8", "replace"), data[complete:]
            self._lines += text.count("\n")
            self.last = f"{self._lines} lines, none of which matches"
            try:
                if text and self._searcher.search(self._pattern, text):
                    return True
            except SearchFailed as error:
                raise ext_sdk.OperationFailed("the search for logLine failed", error=f"logLine: {error}") from error
        return False


class FileExists(Condition):
    """A file exists."""

    last = "it does not exist"

    def __init__(self, path: str, context: ext_sdk.Context) -> None:
        self._path = path
        self._context = context
        self.what = f"the file {path!r}"

    def holds(self) -> bool:
        return workdir_for(self._context, self._path).exists(self._path)

    def taken(self) -> str:
        return self.what if self.holds() else ""


class HttpResponds(Condition):
    """A GET gets a response with one of the given statuses."""

    def __init__(self, url: str, good: Collection[int]) -> None:
        parts = urlsplit(url)
        self._host = LOCAL_NAMES[parts.hostname or ""]
        self.port = parts.port or 80
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._good = good
        self.last = "not tried"
        self.what = f"a response from {url}"

    def holds(self) -> bool:
        host = f"[{self._host}]" if ":" in self._host else self._host
        request = f"GET {self._target} HTTP/1.1\r\nHost: {host}:{self.port}\r\nAccept: */*\r\nConnection: close\r\n\r\n"
        try:
            with connect(self._host, self.port) as connection:
                connection.sendall(request.encode("ascii"))
                line = connection.makefile("rb").readline(LONGEST_STATUS_LINE)
        except OSError as error:
            self.last = str(error)
            return False
        version, _, rest = line.decode("latin-1").partition(" ")
        if not version.startswith("HTTP/") or not rest[:3].isdecimal():
            self.last = f"not an HTTP response: it begins with {line[:60]!r}"
            return False
        self.last = f"status {rest[:3]}"
        return int(rest[:3]) in self._good

    def taken(self) -> str:
        return PortOpen(self.port).taken()


class Exited(Condition):
    """The command has exited with one of the given exit codes; another one is a failure."""

    last = "it is still running"

    def __init__(self, good: Collection[int], process: Process) -> None:
        self._good = good
        self._process = process
        self.what = "its exit"

    def holds(self) -> bool:
        status = self._process.status
        if status is None:
            return False
        if status.code not in self._good:
            expected = ", ".join(map(str, self._good))
            text = f"{self._process.name}: expected it to exit with exit code {expected}, got {status}"
            raise ext_sdk.OperationFailed(f"{self._process.name}: {status}", error=text)
        return True


def connect(address: str, port: int) -> socket.socket:
    """Connect to a server of this machine. Raises OSError if none accepts the connection."""
    connection = socket.create_connection((address, port), CONNECTION_TIME)
    if connection.getsockname() == connection.getpeername():
        # If no server listens, the system may choose this very port for the client, and connect it to itself.
        connection.close()
        raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
    return connection


def local_url(text: str, port: int | None) -> str:
    """Return the URL of a readiness condition; a path gets the port of the process.

    Only this machine is accepted: the process was started here, and no other server must be reachable this way.

    Raises:
        InvalidArgs: the URL is not one of this machine.
    """
    if text.startswith("/"):
        if port is None:
            raise ext_sdk.InvalidArgs("ready.http", f"the path {text!r} requires `port`; or write a URL")
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


def conditions_of(ready: Ready, process: Process, context: ext_sdk.Context, searcher: Searcher) -> list[Condition]:
    """Return the conditions of `ready`. Raises InvalidArgs for a port or URL that is not valid."""
    conditions: list[Condition] = []
    if ready.port is not UNSET and ready.port is not False:
        port = process.port if ready.port is True else ready.port
        if port is None:
            text = "true means the `port` of the process, which is not given; write a number"
            raise ext_sdk.InvalidArgs("ready.port", text)
        conditions.append(PortOpen(port))
    if ready.log_line is not UNSET:
        conditions.append(LineLogged(ready.log_line, process, searcher))
    if ready.file is not UNSET:
        conditions.append(FileExists(ready.file, context))
    if ready.http is not UNSET:
        good = GOOD_STATUS if ready.http_status is UNSET else codes_of(ready.http_status)
        conditions.append(HttpResponds(local_url(ready.http, process.port), good))
    if ready.exit is not UNSET:
        conditions.append(Exited(codes_of(ready.exit), process))
    return conditions


class NotReadyYet(ext_sdk.OperationFailed):
    """The time was up before the process was ready; it is still running.

    Attributes:
        missing: the conditions that were not met, on one line.
    """

    def __init__(self, message: str, error: str, missing: str) -> None:
        super().__init__(message, error=error)
        self.missing = missing


def await_ready(
    process: Process, conditions: Sequence[Condition], context: ext_sdk.Context, *, log: bool = False
) -> None:
    """Wait until each condition has held once.

    Args:
        log: whether to send lines of its output as log notifications during the wait.

    Raises:
        OperationFailed: the process ended before, or the deadline passed; the error names the missing conditions.
    """
    waiting = list(conditions)
    logs = {stream: LineLog(context.log, context.secrets, stream) for stream in STREAMS if log}
    offsets = dict.fromkeys(STREAMS, 0)
    for _ in attempts_until(context.deadline, exponential(first=0.02, longest=0.25), jitter=0.0):
        over = process.ended if process.kept else process.exited
        waiting = [condition for condition in waiting if not condition.holds()]
        for stream, line_log in logs.items():
            data, offsets[stream] = process.written_since(stream, offsets[stream])
            line_log.feed(data)
        if not waiting:
            return
        if over:
            status = process.so_far().status
            reason = f"it ended before it was ready: {status or 'its supervisor was killed'}"
            if process.kept:
                reason += ", and all processes that it started have ended"
            elif status is not None and status.code == 0:
                reason += "; for a program that puts itself into the background, add `exit: 0`"
            break
    else:
        reason = f"it was not ready before the deadline ({process.so_far().duration})"
    missing = [f"waited for {condition.what} (last: {condition.last})" for condition in waiting]
    error = "\n".join([f"{process.name}: {reason}", *missing])
    if waiting and not over:  # type: ignore[possibly-undefined]  # there is one attempt
        raise NotReadyYet(f"{process.name}: {reason}", error, "; ".join(missing))
    raise ext_sdk.OperationFailed(f"{process.name}: {reason}", error=error)
