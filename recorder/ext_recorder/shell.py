"""A player on real files: what it says goes out as its readers take it, and nothing here ever waits.

One process may have several, one for each connection of a socket; `loop` and `sockets.server` turn them.
"""

from __future__ import annotations

import os
from collections import deque
from select import POLLIN, POLLOUT
from time import monotonic

from .errors import RecorderError
from .player import Divergence
from .stage import Close, Exit, Write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .outlets import Outlet
    from .pace import Apart
    from .player import Player
    from .stage import Action, Output, Stage

    Step = Callable[[], None]

EXIT_CANNOT_PLAY = 2  # a cassette or options that can't be used
_READ_BYTES = 65_536  # what a Linux pipe holds
# A host that writes without reading is read on, because a child would do so as well, until this much waits for it.
_BACKLOG_BYTES = 8_388_608


class _Way:
    """Bytes on their way to one reader, in their order.

    Args:
        outlet: where they go.

    Attributes:
        waiting: what the reader has not taken yet; None: the end of the file.
    """

    __slots__ = ("_outlet", "waiting")

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet
        self.waiting: list[bytes | None] = []

    @property
    def fd(self) -> int:
        """The file to poll for room."""
        return self._outlet.fd

    def say(self, data: bytes) -> None:
        """Send this as soon as the reader takes it, and that is nearly always now."""
        if self.waiting:
            self.waiting.append(data)
        elif (sent := self._sent(data)) < len(data):
            self.waiting.append(data[sent:])

    def close(self) -> None:
        """End the file, after all that was said."""
        self.waiting.append(None)
        self.go_on()

    def go_on(self) -> None:
        """Send what waits, as far as it is taken."""
        waiting = self.waiting
        while waiting:
            data = waiting[0]
            if data is None:
                self._outlet.close()
            elif (sent := self._sent(data)) < len(data):
                waiting[0] = data[sent:]
                return
            waiting.pop(0)

    def _sent(self, data: bytes) -> int:
        try:
            return self._outlet.send(data)
        except BlockingIOError:
            return 0
        except OSError:  # nobody reads any more
            return len(data)

    def backlog(self) -> int:
        """Bytes that wait, and one for the end of the file."""
        return sum(1 if data is None else len(data) for data in self.waiting)


class Shell:
    """Does what a player says, and tells it what happens.

    Args:
        player: the child's part.
        stage: where the player says what to do.
        source: the file that the host writes; -1 where there is none.
        outlets: stdout and stderr.
        speed: see `Options`; which writes are kept apart, the stage says.
        on_end: called with the status before the last output is written; a host that has read it may kill this process.

    Attributes:
        player: as given.
        status: the exit code, or the name of the signal to end by, once the player has ended.
    """

    def __init__(
        self,
        player: Player,
        stage: Stage,
        source: int,
        outlets: Mapping[Output, Outlet],
        speed: float,
        *,
        on_end: Callable[[int | str], None] | None = None,
    ) -> None:
        self.player = player
        self.status: int | str | None = None
        self._stage = stage
        self._source = source
        self._speed = 0.0 if speed == float("inf") else speed
        self._on_end = on_end
        self._out = _Way(outlets["out"])
        self._err = _Way(outlets["err"])
        self._ways: dict[Output, _Way] = {"out": self._out, "err": self._err}
        self._later: deque[tuple[float, Action]] = deque()  # what is to be done at a time of its own
        self._later_bytes = 0
        self._apart: Apart | None = None  # since the first write that waits for the reader
        self._open = source >= 0  # the host may still write

    def start(self) -> None:
        """Say what comes before the host says anything."""
        self._guarded(self.player.start)

    @property
    def rests(self) -> bool:
        """Is there nothing to wait for but what the host says next?"""
        player = self.player
        busy = self._out.waiting or self._err.waiting or self._later or player.more or player.held
        return not busy and self._open and self.status is None

    def listen(self) -> None:
        """Take what the host has written, and say what can be said."""
        try:
            data = os.read(self._source, _READ_BYTES)
        except BlockingIOError:  # a socket of which only its end was told
            return
        except OSError:  # a closed file, a terminal that is gone
            data = b""
        try:
            self._hear(data)
            self._take()
        except (Divergence, RecorderError) as error:
            self._stop(error)

    def interests(self, into: dict[int, int]) -> None:
        """Add what is waited for: file to poll() events."""
        listening = self._open and self.status is None and not self.player.waits
        if listening and self.backlog() < _BACKLOG_BYTES:
            into[self._source] = into.get(self._source, 0) | POLLIN
        for way in self._ways.values():
            if way.waiting:
                into[way.fd] = into.get(way.fd, 0) | POLLOUT

    def act(self, ready: dict[int, int], asked: dict[int, int]) -> None:
        """After poll(): take what the host has written, and say what can be said.

        Args:
            ready: file to events.
            asked: what was polled, as `interests` has it.
        """
        source = self._source
        if source in ready and asked[source] & POLLIN and self._open and self.status is None:
            self.listen()
        else:
            self._guarded(_nothing)

    def receive_signal(self, name: str) -> None:
        """The host has sent a signal."""
        self._guarded(lambda: self.player.receive_signal(name))

    def receive_data(self, data: bytes) -> None:
        """The host has said this, which was read elsewhere; b"" is the end of its input."""
        self._guarded(lambda: self._hear(data))

    def receive_silence(self) -> bool:
        """Play open calls early if the host sends nothing. Return True if some were played."""
        before = self.player.early
        self._guarded(self.player.receive_silence)
        return self.player.early > before

    def resume(self) -> None:
        """What the player waited for elsewhere may have come."""
        self._guarded(self.player.resume)

    def patience(self) -> float | None:
        """Milliseconds until something is due; None where nothing is."""
        return max(0.0, (self._later[0][0] - monotonic()) * 1000) if self._later else None

    def backlog(self) -> int:
        """Bytes, and ends of files, that still wait for their time or their reader."""
        return self._out.backlog() + self._err.backlog() + self._later_bytes + len(self._later)

    def _guarded(self, step: Step) -> None:
        """Do a step and all that follows from it; a cassette that is broken from here on ends the session."""
        try:
            step()
            self._take()
        except (Divergence, RecorderError) as error:
            self._stop(error)

    def _stop(self, error: Divergence | RecorderError) -> None:
        """Write what was played so far, then the reason; raise a Divergence again."""
        if self._on_end and not isinstance(error, Divergence):
            self._on_end(EXIT_CANNOT_PLAY)
        self._later.extend((0.0, action) for action in self._stage.take())
        for _, action in self._later:
            self._do(action)
        self._later.clear()
        self._later_bytes = 0
        if isinstance(error, Divergence):
            raise error
        self._err.say(f"ext-recorder: {error}\n".encode("utf-8", "backslashreplace"))
        self.status = EXIT_CANNOT_PLAY

    def _hear(self, data: bytes) -> None:
        if data:
            self.player.receive_data(data)
        else:
            self._open = False
            self.player.receive_eof()

    def _take(self) -> None:
        """Do what the player has said, and what is due by now."""
        while True:
            if self._out.waiting or self._err.waiting:
                self._out.go_on()
                self._err.go_on()
            said = None if self._speed or self._later else self._stage.take_out()
            if said is None:
                actions = self._stage.take()
                if self._on_end and actions and isinstance(actions[-1], Exit):
                    self._on_end(actions[-1].status)
                if self._timed(actions):
                    self._do_due(actions)
                else:
                    for action in actions:
                        self._do(action)
            elif said:
                self._out.say(said)
            if not self.player.more or self._later or self.backlog() > _BACKLOG_BYTES:
                break
            self.player.proceed()

    def _do(self, action: Action) -> None:
        if isinstance(action, Write):
            self._ways[action.stream].say(action.data)
        elif isinstance(action, Close):
            self._ways[action.stream].close()
        else:
            self.status = action.status

    def _timed(self, actions: list[Action]) -> bool:
        """Does anything have a time of its own?"""
        if self._speed or self._later:
            return True
        first = actions[0] if actions else None
        if isinstance(first, Write) and first.apart and self._is_read():
            first.apart = False  # the host has sent something since, and has read everything
        return any(isinstance(action, Write) and (action.delay or action.apart) for action in actions)

    def _do_due(self, actions: list[Action]) -> None:
        """Do what is due, in order; keep the rest for later."""
        later, now = self._later, monotonic()
        for action in actions:
            at = now + (action.after / self._speed if self._speed else 0.0)
            if isinstance(action, Write):
                at += action.delay
                self._later_bytes += len(action.data)
            later.append((max(at, later[-1][0] if later else now), action))
        while later and later[0][0] <= monotonic():
            action = later[0][1]
            if isinstance(action, Write):
                if action.apart and (again := self._pacing().due()) > monotonic():
                    later[0] = (again, action)
                    break
                self._later_bytes -= len(action.data)
            later.popleft()
            self._do(action)

    def _is_read(self) -> bool:
        """Return True if the reader has taken all output so far."""
        return not self._out.waiting and self._pacing().is_read()

    def _pacing(self) -> Apart:
        if self._apart is None:
            from .pace import Apart

            self._apart = Apart(self._out.fd)
        return self._apart


def _nothing() -> None:
    """Only time has gone by, or a reader has made room."""
