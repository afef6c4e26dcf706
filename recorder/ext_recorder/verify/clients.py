"""The clients of a recorded socket server, for a real one: a script for each connection, all beside each other.

One rule gives all order, as on stdio: what a client said goes out when all that is recorded above it has been said, on
whichever connection. So a run that one client was told of is known when another asks for it.

The server's own standard files have a script as well, where it was started by its recorder then and is by us now.
"""

from __future__ import annotations

import select
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from ext_recorder.cassette.events import OWN_FILES
from ext_recorder.errors import RecorderError
from ext_recorder.sockets.relay import SERVER_START_S

from .links import Link
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
        self._links = [
            Link(each, make_script(each.number, self._others(each.number)), partial(self._note_of, each.number))
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

    def _open(self, link: Link) -> None:
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
            link.read()
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

    def _note_of(self, number: int, name: str, what: bytes | str) -> None:
        self._note(monotonic() - self._started, f"{name}:{number}", what)

    def _note_own(self, when: float, name: str, what: bytes | str | int) -> None:
        self._note(when, f"{name}:{OWN_FILES}", what)
