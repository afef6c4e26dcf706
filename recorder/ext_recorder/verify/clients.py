"""One connection to a live server: its socket, and the script of what is said on it."""

from __future__ import annotations

import select
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from ext_recorder.cassette.events import OWN_FILES
from ext_recorder.errors import RecorderError
from ext_recorder.sockets.address import receive, shut
from ext_recorder.sockets.relay import SERVER_START_S

from .host_script import LAST

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence
    from typing import Self

    from ext_recorder.sockets.address import Address
    from ext_recorder.sockets.connection_matching import Connection

    from .child_process import Note, VerifiedChild
    from .host_script import HostScript

    # Told of what happens: in, out or open, and the bytes, or the value of a mark.
    LinkNote = Callable[[str, bytes | str], None]
    # Makes the script of a connection, by its number, and what it asks about the others.
    MakeScript = Callable[[int, Callable[[int], bool]], HostScript]


class LiveConnection:
    """One connection.

    Args:
        recorded: what it was.
        script: what is said on it.
        note: told of all that happens.

    Attributes:
        number: of the recorded one.
        line: where that begins.
        script: as given.
        socket: None before it is made, and when it is over.
        rest: bytes that wait for the server to read them.
        opened: it was made, once.
        came: when it was first its turn.
    """

    def __init__(self, recorded: Connection, script: HostScript, note: LinkNote) -> None:
        self.number = recorded.number
        self.line = recorded.line
        self.script = script
        self.socket: socket.socket | None = None
        self.rest = memoryview(b"")
        self.opened = False
        self.came = 0.0
        self._note = note

    @property
    def position(self) -> int:
        """As that of a script."""
        return self.script.position if self.opened else self.line

    @property
    def idle(self) -> bool:
        """Whether all that was to be said is said."""
        return not self.rest and not self.script.outbox

    def open(self, address: Address) -> None:
        """Connect, and begin. Raises OSError."""
        self.socket = address.connect()
        self.opened = True
        self._note("open", "in")
        self.script.start(monotonic())

    def write(self) -> None:
        """Say what the server takes."""
        script = self.script
        while self.socket and (self.rest or script.outbox):
            if not self.rest:
                self._take(self.socket)
                continue
            try:
                self.rest = self.rest[self.socket.send(self.rest) :]
            except BlockingIOError:
                return
            except OSError:  # it is gone; what that means shows when nothing more can be read
                self.rest = memoryview(b"")
                script.outbox.clear()

    def _take(self, connection: socket.socket) -> None:
        each = self.script.take()
        if isinstance(each, bytes):
            self.rest = memoryview(each)
            self._note("in", each)
        elif each is None:
            self._note("in", b"")
            shut(connection)

    def read(self) -> None:
        """Take what the server says."""
        assert self.socket is not None
        data = receive(self.socket)
        if data is None:
            return
        self._note("out", data)
        if data:
            self.script.receive_data(data, monotonic())
        else:
            self.script.receive_eof(monotonic())
            self.close()

    def close(self) -> None:
        """It is over."""
        if self.socket:
            self.socket.close()
            self.socket = None


TURN_S = 0.2  # the longest wait at once: a server that has ended is looked at again, for its output
RETRY_S = 0.02  # between two attempts to connect to a server that is starting


class Clients:
    """All connections of one session, and the loop that moves their bytes. A context manager, which closes them.

    Args:
        address: where the server listens.
        recorded: the connections.
        make_script: see its type.
        live: the server, where we have started it.
        note: told of all that happens.
    """

    def __init__(
        self,
        address: Address,
        recorded: Sequence[Connection],
        make_script: MakeScript,
        live: VerifiedChild | None,
        note: Note,
    ) -> None:
        self._address = address
        self._live = live
        self._note = note
        self._own = make_script(OWN_FILES, self._others(OWN_FILES)) if live else None
        self._links = [
            LiveConnection(
                each, make_script(each.number, self._others(each.number)), partial(self._note_of, each.number)
            )
            for each in recorded
        ]
        self._started = 0.0
        self._current = 0  # the position that was waited for last
        self._late = False  # all is said, and the server does not end

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for link in self._links:
            link.close()

    @property
    def scripts(self) -> list[HostScript]:
        """Those of the connections."""
        return [link.script for link in self._links]

    @property
    def own(self) -> HostScript | None:
        """That of the server's own files."""
        return self._own

    def play(self) -> bool:
        """Move bytes until all scripts are over. Returns whether a server that we have started ended by itself.

        Raises:
            RecorderError: there is no server at the address.
        """
        self._started = monotonic()
        if self._live and self._own:
            self._live.start(self._own)
        while not self._done():
            self._advance()
            self._wait()
        if any(script.gave_up for script in self._all()):
            for script in self._all():
                script.give_up()
        for link in self._links:
            link.close()
        return self._live.finish(self._own, self._note_own) if self._live and self._own else True

    # --- Order --------------------------------------------------------------------------------------------------------

    def _others(self, number: int) -> Callable[[int], bool]:
        return lambda line: self._has_come(line, number)

    def _has_come(self, line: int, asking: int) -> bool:
        """Has all that is recorded above this line been said, but for what belongs to the one who asks?"""
        if asking != OWN_FILES and self._own and self._own.position < line:
            return False
        others = [link for link in self._links if link.number != asking]
        return all(min(line + 1, LAST) <= link.position and link.idle for link in others)

    def _advance(self) -> None:
        """Say what can be said."""
        before = None
        while before != (now_at := [link.position for link in self._links]):
            before = now_at
            for link in self._links:
                if not link.opened and self._has_come(link.line, link.number):
                    self._open(link)
                if link.opened:
                    link.script.advance(monotonic())
                    link.write()
        if self._own:
            self._own.advance(monotonic())

    def _open(self, link: LiveConnection) -> None:
        now = monotonic()
        link.came = link.came or now
        try:
            link.open(self._address)
        except OSError as error:
            if not self._live or self._live.has_ended() or now - link.came >= SERVER_START_S:
                raise self._no_server(error) from None

    def _no_server(self, error: OSError) -> RecorderError:
        why = error.strerror or str(error)
        if not self._live or not self._own:
            return RecorderError(
                f"no connection to {self._address}: {why}; start the server, or give its command after `--`"
            )
        if self._live.has_ended():
            why = f"the server has ended ({self._live.status})"
            self._live.turn(self._own, self._note_own, 0.0)  # what it has said is there
        words = f"; it said:\n{self._live.last_words}" if self._live.last_words else ""
        return RecorderError(f"no connection to {self._address}: {why}{words}")

    # --- The loop -----------------------------------------------------------------------------------------------------

    def _all(self) -> list[HostScript]:
        return [*([self._own] if self._own else []), *self.scripts]

    def _done(self) -> bool:
        if self._late or any(script.gave_up for script in self._all()):
            return True
        if not all(script.over for script in self._all()) or any(link.rest for link in self._links):
            return False
        return not self._live or self._own is None or self._own.exit is None or self._live.ended

    def _wait(self) -> None:
        """Wait for something, and take it in; tell the script whose turn it is that nothing has come in time."""
        if self._done():
            return
        waiting = min(self._all(), key=lambda script: script.position)
        now = monotonic()
        if waiting.position != self._current:
            self._current = waiting.position
            waiting.hold(now)
        connecting = any(not link.opened and link.came for link in self._links)
        left = waiting.deadline() - now
        if left <= 0 and not connecting:
            self._late = waiting.over
            waiting.timed_out(now)
            return
        for link in self._polled(RETRY_S if connecting else min(left, TURN_S)):
            link.read()
        if self._live and self._own:
            self._live.turn(self._own, self._note_own, 0.0)

    def _polled(self, seconds: float) -> list[LiveConnection]:
        """The connections on which something has come."""
        poll = select.poll()
        for link in self._links:
            if link.socket:
                poll.register(link.socket, select.POLLIN | (select.POLLOUT if link.rest else 0))
        if self._live:
            poll.register(self._live, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(seconds * 1_000 + 1)}
        return [link for link in self._links if link.socket and link.socket.fileno() in ready]

    def _note_of(self, number: int, name: str, what: bytes | str) -> None:
        self._note(monotonic() - self._started, f"{name}:{number}", what)

    def _note_own(self, when: float, name: str, what: bytes | str | int) -> None:
        self._note(when, f"{name}:{OWN_FILES}", what)
