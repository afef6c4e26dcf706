"""A player on real files: one thread and one poll(), which never waits in a read or a write."""

from __future__ import annotations

import os
from select import POLLIN, POLLOUT, poll
from time import monotonic

from .errors import RecorderError
from .signals import Signals, signal_name
from .stage import Close, Write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .outlets import Outlet
    from .player import Player
    from .stage import Action, Output, Stage

EXIT_CANNOT_PLAY = 2  # a cassette or options that can't be used
_READ_BYTES = 65_536  # what a Linux pipe holds
# A host that writes without reading is read on, because a child would do so as well, until this much waits for it.
_BACKLOG_BYTES = 8_388_608
_STDIN = 0


class Loop:
    """Does what a player says, and tells it what happens, on real files.

    Args:
        player: the child's part.
        stage: where the player says what to do.
        outlets: stdout and stderr.
        speed: 1.0: at the recorded pace; 0.0: as fast as possible.
    """

    def __init__(self, player: Player, stage: Stage, outlets: Mapping[Output, Outlet], speed: float) -> None:
        self._player = player
        self._stage = stage
        self._speed = speed
        self._outlets = dict(outlets)
        self._queues: dict[Output, list[bytes | None]] = {"out": [], "err": []}  # None: close
        self._later: list[tuple[float, Action]] = []  # what is to be done at a time of its own
        self._status: int | str | None = None
        self._open = True  # the host may still write

    def run(self) -> int | str:
        """Play to the end: the exit code, or the name of the signal to end by."""
        signals = Signals()
        signals.catch()
        waiting = poll()
        waiting.register(signals.fd, POLLIN)
        try:
            try:
                self._player.start()
                self._take()
                while self._status is None:
                    self._wait(waiting, signals)
            except RecorderError as error:
                self._status = self._give_up(error)
            while self._backlog():
                self._wait(waiting, signals)
        finally:
            signals.close()
        return self._status

    def _give_up(self, error: RecorderError) -> int:
        """The cassette is broken from here on: what was played so far goes out, then the reason."""
        self._later += [(0.0, action) for action in self._stage.take()]
        for _, action in self._later:
            self._do(action)
        self._later = []
        self._queues["err"].append(f"ext-recorder: {error}\n".encode("utf-8", "backslashreplace"))
        return EXIT_CANNOT_PLAY

    def _wait(self, waiting: poll, signals: Signals) -> None:
        listening = self._open and self._status is None and not self._player.more and self._backlog() < _BACKLOG_BYTES
        if listening:
            waiting.register(_STDIN, POLLIN)
        for stream, queue in self._queues.items():
            if queue:
                waiting.register(self._outlets[stream].fd, POLLOUT)
        ready = {fd for fd, _ in waiting.poll(self._patience())}
        if signals.fd in ready:
            for number, _ in signals.take():
                self._player.receive_signal(signal_name(number))
        if listening:
            waiting.unregister(_STDIN)
            if _STDIN in ready:
                self._listen()
        for stream, queue in self._queues.items():
            if queue:
                waiting.unregister(self._outlets[stream].fd)
        self._take()

    def _listen(self) -> None:
        try:
            data = os.read(_STDIN, _READ_BYTES)
        except OSError:  # a closed file, a terminal that is gone
            data = b""
        if data:
            self._player.receive_data(data)
        else:
            self._open = False
            self._player.receive_eof()

    def _take(self) -> None:
        """Do what the player has said, and what is due by now."""
        while True:
            actions = self._stage.take()
            for action in self._due(actions) if self._speed else actions:
                self._do(action)
            for stream in self._queues:
                self._send(stream)
            if not self._player.more or self._later or self._backlog() > _BACKLOG_BYTES:
                break
            self._player.proceed()

    def _do(self, action: Action) -> None:
        if isinstance(action, Write):
            self._queues[action.stream].append(action.data)
        elif isinstance(action, Close):
            self._queues[action.stream].append(None)
        else:
            self._status = action.status

    def _due(self, actions: list[Action]) -> list[Action]:
        """At a pace: keep each action until its time has come."""
        now = monotonic()
        for action in actions:
            earliest = self._later[-1][0] if self._later else now
            self._later.append((max(earliest, now + action.after / self._speed), action))
        due = [action for at, action in self._later if at <= now]
        del self._later[: len(due)]
        return due

    def _patience(self) -> float | None:
        """Milliseconds until something is due."""
        return max(0.0, (self._later[0][0] - monotonic()) * 1000 + 1) if self._later else None

    def _backlog(self) -> int:
        return sum(len(data) + 1 if data is not None else 1 for queue in self._queues.values() for data in queue)

    def _send(self, stream: Output) -> None:
        queue, outlet = self._queues[stream], self._outlets[stream]
        while queue:
            data = queue[0]
            if data is None:
                outlet.close()
                queue.pop(0)
                continue
            try:
                sent = outlet.send(data)
            except BlockingIOError:
                return
            except OSError:  # nobody reads any more
                queue.clear()
                return
            if sent < len(data):
                queue[0] = data[sent:]
                return
            queue.pop(0)
