"""Monotonic clock and random numbers of calls: recorded, and returned again on replay.

The output of an operation that polls depends on elapsed time and on random pauses. With recorded responses but a live
clock, it would differ. So the readings of `time.monotonic` by a thread that works for a call are recorded and returned
in the same order, and `random` starts each call with the same seed. Each thread of a call has a clock of its own,
because the order in which threads run varies. The number of readings while a program waits for a response depends on
the waiting time, so the clock follows the traffic: readings between two responses are returned between the same two
responses, or dropped.

`time.time` is the same clock, counted from 1970: a certificate that was valid when it was recorded is valid on replay.

Not recorded: readings of a module while it is imported, because any thread may import it first; readings of locks and
queues, which have no defined order; `secrets` and `os.urandom`, because a file must not reveal what is made of them.
"""

from __future__ import annotations

import sys
import time
from _thread import allocate_lock

from .call_context import branch, current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, ModuleType
    from typing import Any

    from .call_context import CallId
    from .channel import Channel, Event

    Place = tuple[CallId, str]  # a call, and which of its threads

IMPORTLIB = "<frozen importlib._bootstrap>"  # file name in the frames of an import
MOST_READINGS = 20_000  # of one call; a limit for programs that read the clock continuously


class ThreadClock:
    """Clock of one thread of a call.

    Attributes:
        steps: progress of the thread's connections: each byte sent or received is a step, and each connection.
        unsent: recording: (steps, nanoseconds) that were not sent to the recorder yet.
        count: number of readings.
        left: replay: remaining readings with their steps, the next one last.
        offset: nanoseconds from the recorded clock to the live one.
        latest: the last reading returned.
        at: the live clock at that reading.
    """

    __slots__ = ("at", "count", "latest", "left", "offset", "steps", "unsent")

    def __init__(self, left: list[list[int]]) -> None:
        self.steps = 0
        self.unsent: list[tuple[int, int]] = []
        self.count = 0
        self.left = left
        self.offset = 0
        self.latest = 0
        self.at = 0

    def record(self, now: int) -> None:
        """Record a reading."""
        if self.count < MOST_READINGS:
            self.count += 1
            self.unsent.append((self.steps, now))

    def replay(self, now: int) -> int:
        """Return the reading for this time, on replay."""
        left = self.left[self.steps] if self.steps < len(self.left) else []
        if not left:
            return self.latest + now - self.at if self.count else now
        reading = left.pop()
        if not self.count:
            self.offset = now - reading
        self.count += 1
        self.at = now
        self.latest = reading + self.offset
        return self.latest


def _reader() -> CallId | None:
    """Return the call for which this thread reads the clock; None for none, and during an import."""
    call = current()
    if call is None:
        return None
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename == IMPORTLIB:
            return None
        frame = frame.f_back
    return call


class RecordedClock:
    """Clocks of all calls.

    Args:
        epoch: nanoseconds from 1970 to the zero of the clock: that of this machine when recording, that of the
            recording on replay; 0 if the recording does not contain it.

    Attributes:
        real: the live clock.
        wall_readings: returns new readings of the wall clock outside calls; None if they are not recorded.
    """

    def __init__(self, seed: str, folder: str, epoch: int, *, replay: bool) -> None:
        self._seed = seed
        self.folder = folder
        self._epoch = epoch
        self._replay = replay
        self.real = time.monotonic
        self._real_time = time.time
        self._real_ns = time.monotonic_ns
        self._lock = allocate_lock()
        self._places: dict[Place, ThreadClock] = {}
        self._names: dict[Place, object] = {}
        self._channel: Channel | None = None
        self.wall_readings: Callable[[], dict[str, list[int]]] | None = None

    def channel(self) -> Channel:
        """Return the channel to the recorder."""
        from .channel import Channel

        with self._lock:
            if self._channel is None:
                self._channel = Channel(self.folder)
            return self._channel

    def install(self) -> None:
        """Replace the clocks of `time`."""
        time.monotonic = self._monotonic
        if self._epoch:
            time.time = self.wall

    def leave_alone(self, module: ModuleType) -> None:
        """Restore the live clock in a module of the standard library that imported `monotonic` under another name."""
        for name in ("_time", "time"):
            if getattr(module, name, None) == self._monotonic:
                setattr(module, name, self.real)

    def _monotonic(self) -> float:
        call = _reader()
        if call is None:
            return self.real()
        now, readings = self._real_ns(), self._readings((call, branch()))
        if self._replay:
            return readings.replay(now) / 1e9
        readings.record(now)
        return now / 1e9

    def wall(self) -> float:
        """Return the seconds since 1970, in place of `time.time`."""
        call = _reader()
        if call is None:
            return self._real_time()
        now, readings = self._real_ns(), self._readings((call, branch()))
        if self._replay:
            reading = readings.replay(now)
            return (reading - readings.offset + self._epoch) / 1e9 if readings.offset else self._real_time()
        readings.record(now)
        return (now + self._epoch) / 1e9

    def step(self) -> None:
        """Count progress of a connection of this thread."""
        call = current()
        if call is not None:
            self._readings((call, branch())).steps += 1

    def _readings(self, place: Place) -> ThreadClock:
        if clock := self._places.get(place):
            return clock
        left: list[list[int]] = []
        if self._replay:
            recorded: dict[str, Any] = self.channel().ask({"k": "times", "call": place[0], "thread": place[1]})
            left = [moments[::-1] for moments in recorded["ns"]]
            self._names[place] = recorded["call"]
        with self._lock:
            return self._places.setdefault(place, ThreadClock(left))

    def unsent(self) -> Event:
        """Return the readings since the last call of this method, for a frame."""
        readings = []  # call, thread, (steps, nanoseconds)
        with self._lock:
            for (call, thread), clock in self._places.items():
                if clock.unsent:
                    readings.append((call, thread, clock.unsent))
                    clock.unsent = []
        wall = self.wall_readings
        return {"ns": readings} if wall is None else {"ns": readings, "wall": wall()}

    # --- Random numbers ----------------------------------------------------------------------------------------------

    def seed(self, module: Any) -> None:
        """Seed the functions of `random` for each call.

        Args:
            module: random.
        """
        shared = module._inst
        own: dict[Place, object] = {}

        def of(name: str) -> Callable[..., object]:
            plain: Callable[..., object] = getattr(shared, name)

            def drawn(*args: object) -> object:
                call = current()
                if call is None:
                    return plain(*args)
                place = (call, branch())
                if place not in own:
                    if self._replay and place not in self._names:
                        self._readings(place)  # stores the recorded name of this call
                    name_of_place = f"{self._names.get(place, call)}{place[1]}"
                    own[place] = module.Random(f"{self._seed}/{name_of_place}")
                method: Callable[..., object] = getattr(own[place], name)
                return method(*args)

            return drawn

        for name in ("random", "getrandbits"):
            function = of(name)
            setattr(shared, name, function)
            setattr(module, name, function)
