"""Clients of a live server: connections to a socket server, and a client of MCP over Streamable HTTP.

The latter is a program of its own, a child on stdio that passes messages on to the server. So a session over HTTP is
verified as one on stdio.
"""

from __future__ import annotations

import http.client
import os
import socket
import sys
import threading
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ext_recorder.cassette.events import OWN_FILES
from ext_recorder.errors import RecorderError
from ext_recorder.http.proxy.mcp_recording import (
    ACCEPTED,
    FAILED,
    JSON,
    STREAM,
    Endpoint,
    EventStream,
    error_of,
    failure_of,
    messages_in,
    start_server,
    stop_server,
    wait_for_server,
)
from ext_recorder.posix.channel import ByteChannel, wait
from ext_recorder.protocols.mcp import DIALECT
from ext_recorder.sockets.address import CONNECT_S, shut
from ext_recorder.sockets.relay import SERVER_START_S
from ext_sdk.core import own_program

from .child_process import send_due
from .host_script import LAST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Self

    from ext_recorder.protocols.dialect import ClassifiedMessage
    from ext_recorder.sockets.address import Address
    from ext_recorder.sockets.connections import RecordedConnection

    from .child_process import Note, VerifiedChild
    from .host_script import HostScript

    # Records an event: in, out or open; and the bytes, or the value of a mark.
    LinkNote = Callable[[str, bytes | str], None]
    # Creates the script of a connection, given its number and a query about the other connections.
    MakeScript = Callable[[int, Callable[[int], bool]], HostScript]


class LiveConnection:
    """One connection to the server.

    Attributes:
        line: of the cassette where that begins.
        channel: None before and after the connection.
        came: time of its first turn.
    """

    def __init__(self, recorded: RecordedConnection, script: HostScript, note: LinkNote) -> None:
        self.number = recorded.number
        self.line = recorded.line
        self.script = script
        self.channel: ByteChannel | None = None
        self._socket: socket.socket | None = None
        self.opened = False
        self.came = 0.0
        self._note = note

    @property
    def position(self) -> int:
        """Return the position of the script, or the line of the connection before it is open."""
        return self.script.position if self.opened else self.line

    @property
    def unsent(self) -> bool:
        """Return True if the server has not read all bytes that were sent."""
        return bool(self.channel and self.channel.unsent)

    @property
    def idle(self) -> bool:
        """Return True if no message is pending."""
        return not self.unsent and not self.script.outbox

    def open(self, address: Address) -> None:
        """Connect, and start the script. Raises OSError."""
        connection = self._socket = address.connect()
        self.channel = ByteChannel(connection.fileno(), connection.fileno(), partial(shut, connection))
        self.opened = True
        self._note("open", "in")
        self.script.start(monotonic())

    def write(self) -> None:
        """Write as much as the server reads."""
        while self.channel and send_due(self.script, self.channel, self._note):
            pass  # the recorded signals are those of the server's own process
        if self.channel and self.channel.error:
            self.script.outbox.clear()  # the server has closed the connection, which the end of its output reports

    def read(self) -> None:
        """Read output of the server."""
        data = self.channel.read() if self.channel else None
        if data is None:
            return
        self._note("out", data)
        if data:
            self.script.receive_data(data, monotonic())
        else:
            self.script.receive_eof(monotonic())
            self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._socket:
            self._socket.close()
        self.channel = None


TURN_S = 0.2  # longest single wait: the output of an exited server is read again after it
RETRY_S = 0.02  # between two attempts to connect to a server that is starting


class Clients:
    """All connections of one session, and the loop that moves their bytes. A context manager, which closes them.

    Args:
        live: the server, if it was started here.
    """

    def __init__(
        self,
        address: Address,
        recorded: Sequence[RecordedConnection],
        make_script: MakeScript,
        live: VerifiedChild | None,
        note: Note,
    ) -> None:
        self._address = address
        self._live = live
        self._note = note
        self._own = make_script(OWN_FILES, partial(self._has_come, asking=OWN_FILES)) if live else None
        self._links = [
            LiveConnection(
                connection,
                make_script(connection.number, partial(self._has_come, asking=connection.number)),
                partial(self._record, connection.number),
            )
            for connection in recorded
        ]
        self._started = 0.0
        self._current = 0  # the position that was waited for last
        self._late = False  # all messages are sent, and the server does not exit

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for link in self._links:
            link.close()

    @property
    def scripts(self) -> list[HostScript]:
        """Return the scripts of the connections."""
        return [link.script for link in self._links]

    @property
    def own(self) -> HostScript | None:
        """Return the script of the server's own files."""
        return self._own

    def play(self) -> bool:
        """Move bytes until all scripts are over. Return True if a server that was started here exited by itself.

        Raises:
            RecorderError: no server listens at the address.
        """
        self._started = monotonic()
        if self._live and self._own:
            self._live.start(self._own, lambda when, name, what: self._note(when, f"{name}:{OWN_FILES}", what))
        while not self._done():
            self._advance()
            self._wait()
        if any(script.gave_up for script in self._all()):
            for script in self._all():
                script.give_up()
        for link in self._links:
            link.close()
        return self._live.finish() if self._live else True

    # --- Order --------------------------------------------------------------------------------------------------------

    def _has_come(self, line: int, asking: int) -> bool:
        """Return True if all messages above this line were sent, apart from those of connection `asking`."""
        if asking != OWN_FILES and self._own and self._own.position < line:
            return False
        others = [link for link in self._links if link.number != asking]
        return all(min(line + 1, LAST) <= link.position and link.idle for link in others)

    def _advance(self) -> None:
        """Send all messages that are due."""
        before = None
        while before != (now_at := [link.position for link in self._links]):
            before = now_at
            for link in self._links:
                if not link.opened and self._has_come(link.line, link.number):
                    link.came = link.came or monotonic()
                    try:
                        link.open(self._address)
                    except OSError as error:
                        is_starting = monotonic() - link.came < SERVER_START_S
                        if not self._live or self._live.has_exited() or not is_starting:
                            raise self._no_server(error) from None
                if link.opened:
                    link.script.advance(monotonic())
                    link.write()
        if self._own:
            self._own.advance(monotonic())

    def _no_server(self, error: OSError) -> RecorderError:
        reason, words = error.strerror or str(error), "; start the server, or give its command after `--`"
        if self._live:
            if self._live.has_exited():
                reason = f"the server has exited ({self._live.status})"
                self._live.turn(0.0)  # reads its output
            words = f"; its output on stderr:\n{self._live.last_words}" if self._live.last_words else ""
        return RecorderError(f"no connection to {self._address}: {reason}{words}")

    # --- The loop -----------------------------------------------------------------------------------------------------

    def _all(self) -> list[HostScript]:
        return [*([self._own] if self._own else []), *self.scripts]

    def _done(self) -> bool:
        if self._late or any(script.gave_up for script in self._all()):
            return True
        if not all(script.over for script in self._all()) or any(link.unsent for link in self._links):
            return False
        return not self._live or self._own is None or self._own.exit is None or self._live.ended

    def _wait(self) -> None:
        """Wait for an event, and handle it; at the deadline, call `timed_out` of the script whose turn it is."""
        if self._done():
            return
        waiting = min(self._all(), key=lambda script: script.position)
        now = monotonic()
        if waiting.position != self._current:
            self._current = waiting.position
            waiting.restart_time_limit(now)
        connecting = any(not link.opened and link.came for link in self._links)
        left = waiting.deadline() - now
        if left <= 0 and not connecting:
            self._late = waiting.over
            waiting.timed_out(now)
            return
        live, open_links = self._live, {link.channel: link for link in self._links if link.channel}
        channels = [*open_links, *(live.channels if live else ())]
        readable = wait(channels, RETRY_S if connecting else min(left, TURN_S), live.files if live else ())
        for channel, link in open_links.items():
            if channel.source in readable:
                link.read()
        if live:
            live.turn(0.0)

    def _record(self, number: int, name: str, what: bytes | str) -> None:
        self._note(monotonic() - self._started, f"{name}:{number}", what)


# --- MCP over Streamable HTTP ----------------------------------------------------------------------------------------

HEADERS = "EXT_RECORDER_HTTP_HEADERS"  # of requests, one on a line
PIECE = 65_536
REVISION = "/params/_meta/io.modelcontextprotocol~1protocolVersion"


NOT_BEGUN = 69  # exit code of a client without a session


def client_of(url: str, *, must_begin: bool = False) -> tuple[str, ...]:
    """Return the command of a child that passes its messages on to an MCP endpoint.

    Args:
        must_begin: it exits with `NOT_BEGUN` if `initialize` fails, and its last words are the reason.
    """
    return (*own_program(__name__), url, *(["begin"] if must_begin else []))


@contextmanager
def running_server(command: Sequence[str], url: str) -> Iterator[None]:
    """Run a server during the `with` block; without a command, it must be running. Raises RecorderError."""
    if not command:
        origin = Endpoint.parse(url, "--connect").origin
        try:
            socket.create_connection((origin.host, origin.port), CONNECT_S).close()
        except OSError as error:
            advice = "start the server, or give its command after `--`"
            raise RecorderError(f"no connection to {url}: {error.strerror or error}; {advice}") from None
        yield
        return
    pid = start_server(command)
    try:
        wait_for_server(pid, Endpoint.parse(url, "--connect"), lambda: False)
        yield
    finally:
        stop_server(pid)


class HttpClient:
    """Client of an MCP endpoint for a host on stdio.

    Args:
        headers: of all requests.
        write: writes a message to the host.
        refused: receives the reason for which the server has not begun a session; None: it is an error response.
    """

    def __init__(
        self,
        url: str,
        headers: dict[str, str],
        write: Callable[[str], None],
        refused: Callable[[str], None] | None = None,
    ) -> None:
        self._url = urlsplit(url)
        self._refused = refused
        self._is_begun = False
        self._headers = {"Content-Type": JSON, "Accept": f"{JSON}, {STREAM}", **headers}
        self._write = write

    def send(self, line: bytes) -> None:
        """Send a message, or a batch. Responses to requests are read by a thread. Raises OSError."""
        messages = messages_in(line)
        waiting = {message.key: message.id for message in messages if message.kind == "request" and message.key}
        headers: dict[str, str] = {}
        if messages and isinstance(revision := messages[0].at(REVISION), str):  # since 2026-07-28
            headers = {"MCP-Protocol-Version": revision, "Mcp-Method": messages[0].method}
            if (name := DIALECT.about(messages[0])) and name.isascii():
                headers["Mcp-Name"] = name
        connection = self._request("POST", line.strip(), **headers)
        read = partial(self._read, connection, waiting, version=any(item.method == "initialize" for item in messages))
        if waiting:
            threading.Thread(target=self._guarded, args=(read, waiting), daemon=True).start()
            return
        read()
        if any(message.method == "notifications/initialized" for message in messages):
            listen = partial(self._read, self._request("GET"), {})
            threading.Thread(target=self._guarded, args=(listen, {}), daemon=True).start()

    def end(self) -> None:
        """End the session."""
        if "Mcp-Session-Id" in self._headers:
            with suppress(OSError, http.client.HTTPException):
                self._request("DELETE").getresponse().read()

    def _request(self, method: str, body: bytes | None = None, **headers: str) -> http.client.HTTPConnection:
        secure = self._url.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(self._url.hostname or "", self._url.port)
        path = (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else "")
        connection.request(method, path, body, {**self._headers, **headers})
        return connection

    def _guarded(self, read: Callable[[], None], waiting: dict[bytes, str]) -> None:
        """Read a response; a failure is a response, too."""
        try:
            read()
        except (OSError, http.client.HTTPException) as error:
            self._fail(waiting, error_of(f"the server did not respond: {error}"))

    def _read(
        self, connection: http.client.HTTPConnection, waiting: dict[bytes, str], *, version: bool = False
    ) -> None:
        response = connection.getresponse()
        if given := response.getheader("Mcp-Session-Id"):
            self._headers["Mcp-Session-Id"] = given
        if response.status >= FAILED:
            self._fail(waiting, failure_of(response.status, response.reason, response.read()))
        elif (response.getheader("Content-Type") or "").startswith(STREAM):
            self._read_stream(response, waiting, version=version)
        else:
            for message in messages_in(response.read()):
                self._receive(message, waiting, version=version)
            if response.status != ACCEPTED:
                self._fail(waiting, error_of(f"HTTP {response.status} without a message"))

    def _read_stream(self, response: http.client.HTTPResponse, waiting: dict[bytes, str], *, version: bool) -> None:
        parser, last = EventStream(), ""
        with suppress(http.client.IncompleteRead):
            while data := response.read1(PIECE):
                for event in parser.receive(data):
                    last = event.id or last
                    for message in messages_in(event.data):
                        self._receive(message, waiting, version=version)
        if waiting and last:
            self._read(self._request("GET", None, **{"Last-Event-ID": last}), waiting)
        else:
            self._fail(waiting, error_of("the server ended the response without a message"))

    def _receive(self, message: ClassifiedMessage, waiting: dict[bytes, str], *, version: bool) -> None:
        if message.kind == "response" and message.key is not None:
            waiting.pop(message.key, None)
            self._is_begun = self._is_begun or not isinstance(message.at("/error"), dict)
            if version and isinstance(agreed := message.at("/result/protocolVersion"), str):
                self._headers["MCP-Protocol-Version"] = agreed
        self._write(message.text)

    def _fail(self, waiting: dict[bytes, str], error: str) -> None:
        if waiting and self._refused is not None and not self._is_begun:
            self._refused(str(DIALECT.classify(f'{{"error":{error}}}'.encode()).at("/error/message")))
        for id in waiting.values():
            self._write(f'{{"jsonrpc":"2.0","id":{id},"error":{error}}}')
        waiting.clear()


def main(url: str, *, must_begin: bool = False) -> None:
    """Pass messages on between standard input and output and an MCP endpoint, until the input ends."""
    lock = threading.Lock()

    def write(text: str) -> None:
        with lock, suppress(BrokenPipeError):
            sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape") + b"\n")
            sys.stdout.buffer.flush()

    def refused(reason: str) -> None:
        sys.stderr.write(f"{url}: no MCP session begins: {reason}\n")
        sys.stderr.flush()
        os._exit(NOT_BEGUN)

    headers = (line.partition(":") for line in os.environ.get(HEADERS, "").splitlines())
    named = {name.strip(): value.strip() for name, _, value in headers}
    client = HttpClient(url, named, write, refused if must_begin else None)
    try:
        for line in sys.stdin.buffer:
            client.send(line)
    except OSError as error:
        sys.stderr.write(f"no connection to {url}: {error.strerror or error}\n")
        sys.stderr.flush()
        os._exit(1)
    client.end()
    os._exit(0)  # threads may still read streams


if __name__ == "__main__":
    main(sys.argv[1], must_begin="begin" in sys.argv[2:])
