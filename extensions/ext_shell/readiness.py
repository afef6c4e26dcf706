"""Readiness of a background process: port, log line, file, HTTP response, exit, and the wait for them."""

from __future__ import annotations

import errno
import os
import socket
from typing import TYPE_CHECKING, Annotated, Protocol
from urllib.parse import urlsplit

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_sdk.expect import Searcher, SearchFailed
from ext_sdk.expect.regex import problem
from ext_sdk.polling import attempts_until, exponential
from ext_shell.files.common import workdir_for

from .args import Codes, Part, codes_of
from .background import STREAMS
from .output_excerpt import LineLog

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from .background import Process


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


class FileExists:
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


class HttpResponds:
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


FIELDS = ("port", "log_line", "file", "http", "exit")
GOOD_STATUS = tuple(range(200, 400))
Port = Annotated[int, Meta(ge=1, le=65535)]


class Ready(ext_sdk.Args):
    """When a process is ready: when all that is given holds. It is a failure when the process ends before."""

    port: Annotated[
        bool | Port | UnsetType,
        Meta(description="This TCP port of this machine takes connections; true: the process's own `port`"),
    ] = UNSET
    log_line: Annotated[
        Part | UnsetType,
        Meta(description="This regular expression (Python's re) is found in a line of its output"),
    ] = UNSET
    file: Annotated[Part | UnsetType, Meta(description="This file or directory exists in the workdir")] = UNSET
    http: Annotated[
        Part | UnsetType,
        Meta(description="GET of this URL on this machine, or of a path at the process's own `port`, is answered"),
    ] = UNSET
    http_status: Annotated[
        Codes | UnsetType, Meta(description="With this status, or one of these; 200 to 399 if left out")
    ] = UNSET
    exit: Annotated[
        Codes | UnsetType,
        Meta(
            description="The command ends with this exit code, or one of these. What it leaves running, such as a "
            "daemon, runs until `stop`; `port`, `logLine`, `file` and `http` are of that then"
        ),
    ] = UNSET

    def __post_init__(self) -> None:
        given = [name for name in FIELDS if getattr(self, name) is not UNSET]
        if not given or (given == ["port"] and self.port is False):
            raise ValueError("this waits for nothing; give at least one of port, logLine, file, http and exit")
        if self.log_line is not UNSET and (wrong := problem(self.log_line)):
            raise ValueError(f"logLine: {self.log_line!r} is {wrong}")
        if self.http_status is not UNSET and self.http is UNSET:
            raise ValueError("httpStatus is for http")


def conditions_of(ready: Ready, process: Process, context: ext_sdk.Context, searcher: Searcher) -> list[Condition]:
    """The conditions that `ready` stands for. Raises InvalidArgs for one that can't be."""
    conditions: list[Condition] = []
    if ready.port is not UNSET and ready.port is not False:
        conditions.append(PortOpen(_port(ready.port, process.port)))
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


def _port(wanted: int, own: int | None) -> int:  # a bool is an int
    if wanted is not True:
        return wanted
    if own is None:
        raise ext_sdk.InvalidArgs(
            "ready.port", "true stands for the process's `port`, which is not given; name a number"
        )
    return own


def await_ready(
    process: Process, conditions: Sequence[Condition], context: ext_sdk.Context, *, log: bool = False
) -> None:
    """Wait until all conditions have held. The first look is at once, the last one at the deadline.

    Args:
        process: whose conditions they are.
        conditions: see conditions_of.
        context: of the call.
        log: whether to log the lines that it writes meanwhile.

    Raises:
        OperationFailed: it ended before, or the time is up; the text says what was missing.
    """
    waiting = list(conditions)
    logs = _Logs(process, context) if log else None
    for _ in attempts_until(context.deadline, exponential(first=0.02, longest=0.25), jitter=0.0):
        over = process.ended if process.kept else process.exited
        waiting = [condition for condition in waiting if not condition.holds()]
        if logs:
            logs.send()
        if not waiting:
            return
        if over:
            raise _not_ready(process, waiting, _why_over(process))
    raise _not_ready(process, waiting, f"it was not ready in time ({process.attempt().duration})")


class _Logs:
    """The lines that a process writes, as far as they have not been logged yet."""

    def __init__(self, process: Process, context: ext_sdk.Context) -> None:
        self._process = process
        self._logs = {stream: LineLog(context.log, context.secrets, stream) for stream in STREAMS}
        self._offsets = dict.fromkeys(STREAMS, 0)

    def send(self) -> None:
        """Log what is new."""
        for stream, log in self._logs.items():
            data, self._offsets[stream] = self._process.written_since(stream, self._offsets[stream])
            log.feed(data)


def _why_over(process: Process) -> str:
    """Return why a process of which nothing runs any more can't get ready."""
    status = process.attempt().status
    why = f"it ended before it was ready: {status or 'its supervisor was killed'}"
    if process.kept:
        return f"{why}, and nothing that it started runs any more"
    if status is not None and status.code == 0:
        return f"{why}; for a program that goes into the background by itself, add `exit: 0`"
    return why


def _not_ready(process: Process, waiting: Sequence[Condition], why: str) -> ext_sdk.OperationFailed:
    missing = "; ".join(f"waited for {condition.what} (last: {condition.last()})" for condition in waiting)
    return ext_sdk.OperationFailed(f"{process.name}: {why}", error=f"{process.name}: {why}; {missing}")
