"""The time and the chances of a call, kept while recording and given again on replay.

An operation that polls tells how long it took, and pauses for a time with some chance in it. With the answers of the
recording but another clock it would say something else. So what `time.monotonic` says to a thread that works for a call
is kept, and said again in the same order; and `random` begins for each call with the same seed in both. Threads that a
call starts have clocks of their own, for nobody knows in which order they run. How often a program looks at the clock
while it waits for an answer depends on how long that takes, so both go on together with each answer: what was read
between two of them is read between the same two again, or left out.

`time.time` is the same clock, counted from 1970: so a certificate that was valid for a month is so again, a year later.

Not what a module reads while it is imported, since any thread may be the first to import it; not what locks and queues
read, which is not in any order; not `secrets` and `os.urandom`, for what is made of them
must not be found out from a file.
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
    from .channel import Channel, Told

    Place = tuple[CallId, str]  # a call, and which of its threads

IMPORTLIB = "<frozen importlib._bootstrap>"  # what the frames of an import say as their file
MOST_READINGS = 20_000  # of one call; a program that reads the clock all the time has no use for this


class ThreadClock:
    """What the clock said to one thread of a call.

    Attributes:
        steps: what connections have done for it so far: each byte sent or received is a step, and each connection.
        fresh: while recording: (steps, nanoseconds) that the recorder was not told yet.
        count: how many readings there were.
        left: on replay: what is still to be said after so many steps, the next one last.
        offset: nanoseconds from the recorded clock to the live one.
        said: the last one.
        at: the live clock at that moment.
    """

    __slots__ = ("at", "count", "fresh", "left", "offset", "said", "steps")

    def __init__(self, left: list[list[int]]) -> None:
        self.steps = 0
        self.fresh: list[tuple[int, int]] = []
        self.count = 0
        self.left = left
        self.offset = 0
        self.said = 0
        self.at = 0

    def keep(self, now: int) -> None:
        """While recording: it said this."""
        if self.count < MOST_READINGS:
            self.count += 1
            self.fresh.append((self.steps, now))

    def say(self, now: int) -> int:
        """On replay: what it says this time."""
        due = self.left[self.steps] if self.steps < len(self.left) else []
        if not due:
            return self.said + now - self.at if self.count else now
        said = due.pop()
        if not self.count:
            self.offset = now - said
        self.count += 1
        self.at = now
        self.said = said + self.offset
        return self.said


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
    """The clocks of all calls.

    Args:
        seed: of the session.
        folder: of the session.
        epoch: nanoseconds from 1970 to what the clock counts from: here while recording, in the recording on replay; 0
            where a recording does not tell.
        replay: whether to give again what was kept.

    Attributes:
        folder: of the session.
        real: the clock itself.
        kept_wall: returns readings of the wall clock outside calls; None if they are not recorded.
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
        self.kept_wall: Callable[[], dict[str, list[int]]] | None = None

    def channel(self) -> Channel:
        """The connection to the recorder, of which there is one."""
        from .channel import Channel

        with self._lock:
            if self._channel is None:
                self._channel = Channel(self.folder)
            return self._channel

    def install(self) -> None:
        """From now on."""
        time.monotonic = self._monotonic
        if self._epoch:
            time.time = self._time

    def leave_alone(self, module: ModuleType) -> None:
        """A module of the standard library that has taken `monotonic` by another name keeps the real one."""
        for name in ("_time", "time"):
            if getattr(module, name, None) == self._monotonic:
                setattr(module, name, self.real)

    def _monotonic(self) -> float:
        call = _reader()
        if call is None:
            return self.real()
        now, readings = self._real_ns(), self._readings((call, branch()))
        if self._replay:
            return readings.say(now) / 1e9
        readings.keep(now)
        return now / 1e9

    def wall(self) -> float:
        """Return the seconds since 1970, as `time.time` does within a call."""
        return self._time()

    def _time(self) -> float:
        call = _reader()
        if call is None:
            return self._real_time()
        now, readings = self._real_ns(), self._readings((call, branch()))
        if self._replay:
            said = readings.say(now)
            return (said - readings.offset + self._epoch) / 1e9 if readings.offset else self._real_time()
        readings.keep(now)
        return (now + self._epoch) / 1e9

    def step(self) -> None:
        """A connection has done something for this thread."""
        call = current()
        if call is not None:
            self._readings((call, branch())).steps += 1

    def _readings(self, place: Place) -> ThreadClock:
        return self._places.get(place) or self._begin(place)

    def _begin(self, place: Place) -> ThreadClock:
        left: list[list[int]] = []
        if self._replay:
            told: dict[str, Any] = self.channel().ask({"k": "times", "call": place[0], "thread": place[1]})
            left = [moments[::-1] for moments in told["ns"]]
            self._names[place] = told["call"]
        with self._lock:
            return self._places.setdefault(place, ThreadClock(left))

    def told(self) -> Told:
        """Return what was read since the last time, for a frame."""
        wall = self.kept_wall
        return {"ns": self.kept()} if wall is None else {"ns": self.kept(), "wall": wall()}

    def kept(self) -> list[tuple[CallId, str, list[tuple[int, int]]]]:
        """What was read since the last time: call, thread, (steps, nanoseconds)."""
        found = []
        with self._lock:
            for (call, thread), readings in self._places.items():
                if readings.fresh:
                    found.append((call, thread, readings.fresh))
                    readings.fresh = []
        return found

    # --- Chances -----------------------------------------------------------------------------------------------------

    def seed(self, module: Any) -> None:
        """Let the functions of `random` begin anew for each call.

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
                    own[place] = module.Random(f"{self._seed}/{self._name(place)}")
                method: Callable[..., object] = getattr(own[place], name)
                return method(*args)

            return drawn

        for name in ("random", "getrandbits"):
            function = of(name)
            setattr(shared, name, function)
            setattr(module, name, function)

    def _name(self, place: Place) -> str:
        """What the recording calls this thread of this call."""
        if self._replay and place not in self._names:
            self._readings(place)
        return f"{self._names.get(place, place[0])}{place[1]}"
