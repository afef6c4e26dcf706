"""Clients of a live socket server: one connection and one script of the host for each."""

from __future__ import annotations

from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from ext_recorder.cassette.events import OWN_FILES
from ext_recorder.errors import RecorderError
from ext_recorder.posix.channel import ByteChannel, wait
from ext_recorder.sockets.address import shut
from ext_recorder.sockets.relay import SERVER_START_S

from .child_process import send_due
from .host_script import LAST

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence
    from typing import Self

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
