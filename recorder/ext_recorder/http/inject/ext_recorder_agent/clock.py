"""The time and the chances of a call, kept while recording and given again on replay.

An operation that polls tells how long it took, and pauses for a time with some chance in it. With the answers of the
recording but another clock it would say something else. So what `time.monotonic` says to a thread that works for a call
is kept, and said again in the same order; and `random` begins for each call with the same seed in both.

Not what locks and queues read, which is not in any order; not `secrets` and `os.urandom`, for what is made of them
must not be found out from a file.
"""

from __future__ import annotations

import time
from _thread import allocate_lock

from .calls import current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, cast

    from .calls import CallId
    from .channel import Channel

MOST_READINGS = 20_000  # of one call; a program that reads the clock all the time has no use for this


class Readings:
    """What the clock said to one call.

    Attributes:
        fresh: while recording: nanoseconds that the recorder was not told yet.
        count: how many there were.
        left: on replay: what is still to be said, the next one last.
        offset: nanoseconds from the recorded clock to the live one.
        said: the last one.
        at: the live clock at that moment.
    """

    __slots__ = ("at", "count", "fresh", "left", "offset", "said")

    def __init__(self, left: list[int] | None = None) -> None:
        self.fresh: list[int] = []
        self.count = 0
        self.left = left or []
        self.offset = 0
        self.said = 0
        self.at = 0


class Times:
    """The clocks of all calls.

    Args:
        seed: of the session.
        folder: of the session.
        replay: whether to give again what was kept.

    Attributes:
        folder: of the session.
        real: the clock itself.
    """

    def __init__(self, seed: str, folder: str, *, replay: bool) -> None:
        self._seed = seed
        self.folder = folder
        self._replay = replay
        self.real = time.monotonic
        self._real_ns = time.monotonic_ns
        self._lock = allocate_lock()
        self._calls: dict[CallId, Readings] = {}
        self._names: dict[CallId, object] = {}
        self._channel: Channel | None = None

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

    def leave_alone(self, module: ModuleType) -> None:
        """A module of the standard library that has taken `monotonic` by another name keeps the real one."""
        for name in ("_time", "time"):
            if getattr(module, name, None) == self._monotonic:
                setattr(module, name, self.real)

    def _monotonic(self) -> float:
        call = current()
        if call is None:
            return self.real()
        now = self._real_ns()
        readings = self._calls.get(call) or self._begin(call)
        if not self._replay:
            if readings.count < MOST_READINGS:
                readings.count += 1
                readings.fresh.append(now)
            return now / 1e9
        if readings.left:
            said = readings.left.pop()
            if not readings.count:
                readings.offset = now - said
            readings.count += 1
            readings.at = now
            readings.said = said + readings.offset
            return readings.said / 1e9
        return (readings.said + now - readings.at if readings.count else now) / 1e9

    def _begin(self, call: CallId) -> Readings:
        left: list[int] = []
        if self._replay:
            told = self.channel().ask({"k": "times", "call": call})
            if TYPE_CHECKING:
                left = cast("list[int]", told["ns"])
            else:
                left = told["ns"]
            self._names[call] = told["call"]
            left.reverse()
        with self._lock:
            return self._calls.setdefault(call, Readings(left))

    def kept(self) -> dict[str, list[int]]:
        """What was read since the last time; keys are calls as JSON has them."""
        import json

        found = {}
        with self._lock:
            for call, readings in self._calls.items():
                if readings.fresh:
                    found[json.dumps(call)] = readings.fresh
                    readings.fresh = []
        return found

    # --- Chances -----------------------------------------------------------------------------------------------------

    def seed(self, module: Any) -> None:
        """Let the functions of `random` begin anew for each call.

        Args:
            module: random.
        """
        shared = module._inst
        own: dict[CallId, object] = {}

        def of(name: str) -> Callable[..., object]:
            plain: Callable[..., object] = getattr(shared, name)

            def drawn(*args: object) -> object:
                call = current()
                if call is None:
                    return plain(*args)
                if call not in own:
                    own[call] = module.Random(f"{self._seed}/{self._name(call)}")
                method: Callable[..., object] = getattr(own[call], name)
                return method(*args)

            return drawn

        for name in ("random", "getrandbits"):
            function = of(name)
            setattr(shared, name, function)
            setattr(module, name, function)

    def _name(self, call: CallId) -> object:
        """What the recording calls this call."""
        if self._replay and call not in self._names:
            self._monotonic()
        return self._names.get(call, call)
