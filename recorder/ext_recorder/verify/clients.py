"""The clients of a recorded socket server, for a real one: a script for each connection, all beside each other.

One rule gives all order, as on stdio: what a client said goes out when all that is recorded above it has been said, on
whichever connection. So a run that one client was told of is known when another asks for it.

The server's own standard files have a script as well, where it was started by its recorder then and is by us now.
"""

from __future__ import annotations

import contextlib
import select
import socket
from time import monotonic
from typing import TYPE_CHECKING

from ext_recorder.cassette.events import OWN_FILES
from ext_recorder.errors import RecorderError
from ext_recorder.sockets.relay import SERVER_START_S

from .running import together
from .script import LAST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from ext_recorder.sockets.address import Address
    from ext_recorder.sockets.recorded import Connection

    from .running import Live, Note
    from .script import Script

    # Makes the script of a connection, by its number, and what it asks about the others.
    MakeScript = Callable[[int, Callable[[int], bool]], Script]

TURN_S = 0.2  # the longest wait at once: a server that has ended is looked at again, for its output
RETRY_S = 0.02  # between two attempts to connect to a server that is starting
READ_BYTES = 65_536


class Link:
    """One connection.

    Attributes:
        number: of the recorded one.
        line: where that begins.
        script: what is said on it.
        socket: None before it is made, and when it is over.
        rest: bytes that wait for the server to read them.
        opened: it was made, once.
        came: when it was first its turn.
    """

    def __init__(self, recorded: Connection, script: Script) -> None:
        self.number = recorded.number
        self.line = recorded.line
        self.script = script
        self.socket: socket.socket | None = None
        self.rest = memoryview(b"")
        self.opened = False
        self.came = 0.0

    @property
    def position(self) -> int:
        """As that of a script."""
        return self.script.position if self.opened else self.line


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
        live: Live | None,
        note: Note,
    ) -> None:
        self._address = address
        self._live = live
        self._note = note
        self._own = make_script(OWN_FILES, self._others(OWN_FILES)) if live else None
        self._links = [Link(each, make_script(each.number, self._others(each.number))) for each in recorded]
        self._started = 0.0
        self._current = 0  # the position that was waited for last
        self._late = False  # all is said, and the server does not end

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for link in self._links:
            if link.socket:
                link.socket.close()

    @property
    def scripts(self) -> list[Script]:
        """Those of the connections."""
        return [link.script for link in self._links]

    @property
    def own(self) -> Script | None:
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
            self._close(link)
        return self._live.finish(self._own, self._note_own) if self._live and self._own else True

    # --- Order --------------------------------------------------------------------------------------------------------

    def _others(self, number: int) -> Callable[[int], bool]:
        return lambda line: self._has_come(line, number)

    def _has_come(self, line: int, asking: int) -> bool:
        """Has all that is recorded above this line been said, but for what belongs to the one who asks?"""
        if asking != OWN_FILES and self._own and self._own.position < line:
            return False
        others = [link for link in self._links if link.number != asking]
        return all(min(line + 1, LAST) <= link.position and not link.rest and not link.script.outbox for link in others)

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
                    self._write(link)
        if self._own:
            self._own.advance(monotonic())

    # --- Connections --------------------------------------------------------------------------------------------------

    def _open(self, link: Link) -> None:
        now = monotonic()
        link.came = link.came or now
        try:
            link.socket = self._address.connect()
        except OSError as error:
            if not self._live or self._live.has_ended() or now - link.came >= SERVER_START_S:
                raise self._no_server(error) from None
            return
        link.opened = True
        self._note(now - self._started, f"open:{link.number}", "in")
        link.script.start(now)

    def _no_server(self, error: OSError) -> RecorderError:
        why = error.strerror or str(error)
        if not self._live or not self._own:
            return RecorderError(f"no connection to {self._address}: {why}")
        if self._live.has_ended():
            why = f"the server has ended ({self._live.status})"
            self._live.turn(self._own, self._note_own, 0.0)  # what it has said is there
        words = f"; it said:\n{self._live.last_words}" if self._live.last_words else ""
        return RecorderError(f"no connection to {self._address}: {why}{words}")

    def _write(self, link: Link) -> None:
        script = link.script
        while link.socket and (link.rest or script.outbox):
            if not link.rest:
                self._take(link)
                continue
            try:
                link.rest = link.rest[link.socket.send(link.rest) :]
            except BlockingIOError:
                return
            except OSError:  # it is gone; what that means shows when nothing more can be read
                link.rest = memoryview(b"")
                script.outbox.clear()

    def _take(self, link: Link) -> None:
        each = link.script.outbox.popleft()
        when = monotonic() - self._started
        if isinstance(each, bytes):
            link.rest = memoryview(together(each, link.script.outbox))
            self._note(when, f"in:{link.number}", bytes(link.rest))
        elif each is None and link.socket:
            self._note(when, f"in:{link.number}", b"")
            with contextlib.suppress(OSError):  # it has gone already
                link.socket.shutdown(socket.SHUT_WR)

    def _read(self, link: Link) -> None:
        assert link.socket is not None
        try:
            data = link.socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        now = monotonic()
        self._note(now - self._started, f"out:{link.number}", data)
        if data:
            link.script.receive_data(data, now)
        else:
            link.script.receive_eof(now)
            self._close(link)

    def _close(self, link: Link) -> None:
        if link.socket:
            link.socket.close()
            link.socket = None

    # --- The loop -----------------------------------------------------------------------------------------------------

    def _all(self) -> list[Script]:
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
            self._read(link)
        if self._live and self._own:
            self._live.turn(self._own, self._note_own, 0.0)

    def _polled(self, seconds: float) -> list[Link]:
        """The connections on which something has come."""
        poll = select.poll()
        for link in self._links:
            if link.socket:
                poll.register(link.socket, select.POLLIN | (select.POLLOUT if link.rest else 0))
        if self._live:
            poll.register(self._live, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(seconds * 1_000 + 1)}
        return [link for link in self._links if link.socket and link.socket.fileno() in ready]

    def _note_own(self, when: float, name: str, what: bytes | str | int) -> None:
        self._note(when, f"{name}:{OWN_FILES}", what)
