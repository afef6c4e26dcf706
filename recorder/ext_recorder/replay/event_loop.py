"""Event loop of a replay: reads the host's input and performs the actions of the player, at their pace.

A response and the notifications around it are written apart, so that a client reads them separately. Clients register
handlers between two reads: a promise that a response resolves runs its continuation after the chunk that contains the
response, and a notification in the same chunk has no handler yet. A live child needs time between the two; a replay
does not, so it waits until the first one was read.
"""

from __future__ import annotations

import gc
import os
from collections import deque
from select import POLLIN, POLLOUT, poll
from time import monotonic

from ext_recorder.errors import RecorderError
from ext_recorder.posix.output import unread
from ext_recorder.posix.signals import Signals, signal_name

from .actions import ChangeFiles, Close, Exit, Write
from .player import Divergence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ext_recorder.posix.output import OutputSink

    from .actions import Action, ActionBuffer, Output
    from .alternatives import Choice
    from .player import Player

    Step = Callable[[], None]

# Pause after the reader has read the previous output, in seconds: its handlers run then.
PAUSE_S = 0.001

# Interval at which the outlet is polled, in seconds. No event reports an empty pipe.
POLL_S = 0.001

# Maximum wait for a reader that reads nothing, in seconds; this applies once, not for every message.
PATIENCE_S = 0.25


class ResponsePacer:
    """Pacer of two writes to one outlet: the second one waits until the reader has read the first one.

    Attributes:
        stalled: the reader has read nothing for PATIENCE_S; writes do not wait until it has read everything.
    """

    __slots__ = ("_fd", "_read_at", "_since", "stalled")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._since = 0.0  # start of the current wait; 0.0: none
        self._read_at = 0.0  # when everything was read; 0.0: not yet
        self.stalled = False

    def is_read(self) -> bool:
        """Return True if the reader has read everything that was written."""
        if unread(self._fd):
            return False
        self.stalled = False
        return True

    def due(self) -> float:
        """Return when to write the next message: a time in the past if now, else the time to call this again."""
        now = monotonic()
        if not self._since:
            self._since = now
        if self.is_read():
            if not self._read_at:
                self._read_at = now
            at = self._read_at + PAUSE_S
        elif self.stalled or now - self._since > PATIENCE_S:
            self.stalled = True
            at = now
        else:
            at = now + POLL_S
        if at <= now:
            self._since = self._read_at = 0.0
        return at


EXIT_CANNOT_PLAY = 2  # a cassette or options that can't be used
_READ_BYTES = 65_536  # capacity of a Linux pipe

# The input of a host that does not read is read until this much output waits for it, because a child does so as well.
_BACKLOG_BYTES = 8_388_608


class _OutputQueue:
    """Queue of output for one reader.

    Attributes:
        waiting: output that is not written yet; None is the end of the file.
    """

    __slots__ = ("_outlet", "waiting")

    def __init__(self, outlet: OutputSink) -> None:
        self._outlet = outlet
        self.waiting: list[bytes | None] = []

    @property
    def fd(self) -> int:
        """File to poll for room."""
        return self._outlet.fd

    def write(self, data: bytes) -> None:
        """Write this, or queue what cannot be written now."""
        if self.waiting:
            self.waiting.append(data)
        elif (sent := self._sent(data)) < len(data):
            self.waiting.append(data[sent:])

    def close(self) -> None:
        """Close the file after all queued output."""
        self.waiting.append(None)
        self.flush()

    def flush(self) -> None:
        """Write as much of the queue as possible."""
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
        except OSError:  # the reader has closed the file
            return len(data)

    def backlog(self) -> int:
        """Return the number of queued bytes, and one for the end of the file."""
        return sum(1 if data is None else len(data) for data in self.waiting)


class PlayerDriver:
    """Driver of a player: performs its actions on files, and passes input, signals and time to it.

    Args:
        actions: receives the actions of the player, and decides which writes are kept apart.
        source: the file that the host writes; -1 for none.
        outlets: stdout and stderr.
        speed: see `Options`.
        on_end: called with the status before the last output is written; a host that has read it may kill this process.
        choice: sessions that may replace the one that is played; None if there are no others.

    Attributes:
        status: the exit code, or the name of the signal to end by, once the player has ended.
    """

    def __init__(
        self,
        player: Player,
        actions: ActionBuffer,
        source: int,
        outlets: Mapping[Output, OutputSink],
        speed: float,
        *,
        on_end: Callable[[int | str], None] | None = None,
        choice: Choice | None = None,
    ) -> None:
        self.player = player
        self._choice = choice
        self.status: int | str | None = None
        self._actions = actions
        self._source = source
        self._speed = 0.0 if speed == float("inf") else speed
        self._on_end = on_end
        self._out = _OutputQueue(outlets["out"])
        self._err = _OutputQueue(outlets["err"])
        self._queues: dict[Output, _OutputQueue] = {"out": self._out, "err": self._err}
        self._later: deque[tuple[float, Action]] = deque()  # actions with the time at which they are due
        self._later_bytes = 0
        self._apart: ResponsePacer | None = None  # set by the first write that waits for the reader
        self._open = source >= 0  # the host may still write

    def start(self) -> None:
        """Play the output of the child before the first message of the host."""
        self._guarded(self.player.start)

    @property
    def rests(self) -> bool:
        """Return True if only the host's next input can cause an action."""
        player = self.player
        busy = self._out.waiting or self._err.waiting or self._later or player.more or player.held
        return not busy and self._open and self.status is None

    def listen(self) -> None:
        """Read the host's input and play what follows from it."""
        try:
            data = os.read(self._source, _READ_BYTES)
        except BlockingIOError:  # a socket that only reported its end
            return
        except OSError:  # a closed file, a terminal that was closed
            data = b""
        try:
            self._receive(data)
            self._take()
        except (Divergence, RecorderError) as error:
            self._stop(error)

    def interests(self, into: dict[int, int]) -> None:
        """Add the files to wait for, with their poll() events."""
        listening = self._open and self.status is None and not self.player.waits
        if listening and self.backlog() < _BACKLOG_BYTES:
            into[self._source] = into.get(self._source, 0) | POLLIN
        for queue in self._queues.values():
            if queue.waiting:
                into[queue.fd] = into.get(queue.fd, 0) | POLLOUT

    def act(self, ready: dict[int, int], asked: dict[int, int]) -> None:
        """After poll(): read the host's input and play what follows from it, or from the time.

        Args:
            ready: files with their events.
            asked: what was polled, as filled in by `interests`.
        """
        source = self._source
        if source in ready and asked[source] & POLLIN and self._open and self.status is None:
            self.listen()
        else:
            self._guarded()

    def receive_signal(self, name: str) -> None:
        """Receive a signal of the host."""
        self._guarded(lambda: self.player.receive_signal(name))

    def receive_data(self, data: bytes) -> None:
        """Receive input of the host that was read elsewhere; b"" is its end."""
        self._guarded(lambda: self._receive(data))

    def receive_silence(self) -> bool:
        """Play open calls early if the host sends nothing. Return True if some were played."""
        before = self.player.early
        self._guarded(self.player.receive_silence)
        return self.player.early > before

    def resume(self) -> None:
        """Continue output that waits for another connection."""
        self._guarded(self.player.resume)

    def patience(self) -> float | None:
        """Return milliseconds until the next action; None if there is none."""
        return max(0.0, (self._later[0][0] - monotonic()) * 1000) if self._later else None

    def backlog(self) -> int:
        """Return the number of bytes, and ends of files, that wait for their time or their reader."""
        return self._out.backlog() + self._err.backlog() + self._later_bytes + len(self._later)

    def _guarded(self, step: Step | None = None) -> None:
        """Run a step and perform the actions that are due; an invalid cassette ends the session."""
        try:
            if step is not None:
                step()
            self._take()
        except (Divergence, RecorderError) as error:
            self._stop(error)

    def _stop(self, error: Divergence | RecorderError) -> None:
        """Write the output so far, then the error.

        After a Divergence, continue with another session, which has the message that this one does not have; without
        one, raise it again.
        """
        if self._on_end and not isinstance(error, Divergence):
            self._on_end(EXIT_CANNOT_PLAY)
        self._later.extend((0.0, action) for action in self._actions.take())
        for _, action in self._later:
            self._do(action)
        self._later.clear()
        self._later_bytes = 0
        if isinstance(error, Divergence):
            if self._choice is None:
                raise error
            self.player, self._actions = self._choice.other(ended=not self._open)
            self._take()
            return
        self._err.write(f"ext-recorder: {error}\n".encode("utf-8", "backslashreplace"))
        self.status = EXIT_CANNOT_PLAY

    def _receive(self, data: bytes) -> None:
        self._open = bool(data)
        if self._choice is not None:
            data = self._choice.received(data)
        if data:
            self.player.receive_data(data)
        if not self._open:
            self.player.receive_eof()

    def _take(self) -> None:
        """Perform the actions of the player that are due."""
        while True:
            if self._out.waiting or self._err.waiting:
                self._out.flush()
                self._err.flush()
            output = None if self._speed or self._later else self._actions.take_out()
            if output is None:
                actions = self._actions.take()
                if self._on_end and actions and isinstance(actions[-1], Exit):
                    self._on_end(actions[-1].status)
                self._perform(actions)
            elif output:
                self._out.write(output)
            if not self.player.more or self._later or self.backlog() > _BACKLOG_BYTES:
                break
            self.player.proceed()

    def _do(self, action: Action) -> None:
        if isinstance(action, Write):
            self._queues[action.stream].write(action.data)
        elif isinstance(action, Close):
            self._queues[action.stream].close()
        elif isinstance(action, ChangeFiles):
            self._change_files(action.number)
        else:
            self.status = action.status

    def _change_files(self, number: int) -> None:
        """Change files of the workspace. If that fails, nothing of what follows is played. Raises RecorderError."""
        try:
            self.player.workspaces().apply(number)
        except RecorderError as error:
            self._later.clear()
            self._later_bytes = 0
            self._actions.take()
            self.player.differences.append(str(error))
            raise

    def _perform(self, actions: list[Action]) -> None:
        """Perform the actions that are due, in order; keep the others for later."""
        later, now = self._later, monotonic()
        first = actions[0] if actions and not self._speed and not later else None
        if isinstance(first, Write) and first.apart and not self._out.waiting and self._pacing().is_read():
            first.apart = False  # the host has read everything, and has sent input since
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

    def _pacing(self) -> ResponsePacer:
        if self._apart is None:
            self._apart = ResponsePacer(self._out.fd)
        return self._apart


_STDIN = 0

# Silence of the host after which open calls stop waiting for its next recorded message, in milliseconds: longer than
# the pauses of hosts between two messages, shorter than the shortest usual timeout of a call (10 s).
SILENCE_MS = 5_000

# The same after a response was played early: this host waits for each response, so it will most likely do so again.
NEXT_SILENCE_MS = 250


def play(
    player: Player,
    actions: ActionBuffer,
    outlets: Mapping[Output, OutputSink],
    speed: float,
    on_end: Callable[[int | str], None] | None = None,
    *,
    choice: Choice | None = None,
) -> int | str:
    """Play to the end. Return the exit code, or the name of the signal to end by. For arguments see PlayerDriver."""
    gc.freeze()  # what is imported stays; see `run_recorded`
    gc.enable()
    signals = Signals()
    signals.catch()
    driver = PlayerDriver(player, actions, _STDIN, outlets, speed, on_end=on_end, choice=choice)
    at_rest = poll()
    at_rest.register(signals.fd, POLLIN)
    at_rest.register(_STDIN, POLLIN)
    silence: int | None = SILENCE_MS
    patience = silence
    try:
        driver.start()
        while driver.status is None:
            if not driver.rests:
                _turn(driver, signals)
                continue
            # The usual case: without registering files again, a call takes a fifth less.
            ready = at_rest.poll(patience)
            if len(ready) == 1 and ready[0][0] == _STDIN:
                driver.listen()
                patience = silence
            elif ready:
                _take_signals(driver, signals)
            elif driver.receive_silence():
                patience = silence = NEXT_SILENCE_MS
            else:
                patience = None  # nothing changes before the host writes
    finally:
        while driver.backlog():
            _turn(driver, signals)
        signals.close()
    return driver.status


def _turn(driver: PlayerDriver, signals: Signals) -> None:
    ready, asked = wait([driver], [signals.fd])
    if signals.fd in ready:
        _take_signals(driver, signals)
    driver.act(ready, asked)


def _take_signals(driver: PlayerDriver, signals: Signals) -> None:
    for number, _ in signals.take():
        driver.receive_signal(signal_name(number))


def wait(
    drivers: Iterable[PlayerDriver], further: Iterable[int], timeout: float | None = None
) -> tuple[dict[int, int], dict[int, int]]:
    """Wait until a driver can continue.

    Args:
        further: other files to read.
        timeout: maximum wait in milliseconds; None for no limit.

    Returns:
        The files that are ready, and those that were polled, each with its events of poll().
    """
    waiting = poll()
    asked = dict.fromkeys(further, POLLIN)
    for driver in drivers:
        driver.interests(asked)
        due = driver.patience()
        if due is not None and (timeout is None or due < timeout):
            timeout = due
    for fd, events in asked.items():
        waiting.register(fd, events)
    return dict(waiting.poll(timeout)), asked
