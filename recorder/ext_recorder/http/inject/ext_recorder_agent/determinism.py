"""Determinism on request (`record --http --deterministic`): wall clock and random values are replayed.

- time: readings of the wall clock are recorded, and returned in order to the same function of the program. A further
  reading continues from the last one. `time.monotonic` and the clocks of files stay live.
- uuid: `uuid1`, `uuid4` and so on are derived from the seed of the recording, for each function of the program.
- random: the seed sets the generator of `random`, instances of `Random` without a seed, and the order of sets.
- secrets: `os.urandom`, and so `secrets` and `SystemRandom`, are derived from it. Anyone with the file can do the same.

A function is identified with its process, thread and task, numbered in the order in which they started. So threads and
tasks may overlap in any way, as long as each of them does the same again.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import allocate_lock

from .call_context import branch, current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from types import FrameType
    from typing import Any

    from .clock import RecordedClock

_gmtime, _localtime, _ctime, _asctime, _strftime = time.gmtime, time.localtime, time.ctime, time.asctime, time.strftime
_clock_gettime, _clock_gettime_ns = time.clock_gettime, time.clock_gettime_ns
TIME, UUID, RANDOM, SECRETS = "time", "uuid", "random", "secrets"
PROCESS = "process."  # followed by a number: a file that each process of a session makes, for its number
MOST_READINGS = 20_000  # of one process
# Modules whose functions return times and random values to their callers, which are identified instead.
BETWEEN = frozenset({"uuid", "secrets", "random", "tempfile", "datetime", "_pydatetime", "email.utils"})


class Place:
    """Origin of a reading or a random value: process, thread, task and function."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.process = 0
        self.begin()
        os.register_at_fork(after_in_child=self.begin)

    def begin(self) -> None:
        """Assign the next number to this process."""
        while True:
            self.process += 1
            try:
                os.close(os.open(f"{self._folder}/{PROCESS}{self.process}", os.O_CREAT | os.O_EXCL, 0o600))
            except FileExistsError:
                continue
            except OSError:  # the session has ended
                pass
            return

    def thread(self) -> str:
        """Return the name of process, thread and task."""
        tasks = sys.modules.get("asyncio.tasks")
        current_task: Callable[[], Any] | None = getattr(tasks, "current_task", None)
        task = None
        if current_task is not None:
            try:
                task = current_task()
            except RuntimeError:  # no loop runs in this thread
                task = None
        return f"{self.process}{branch()}{' ' + task.get_name() if task is not None else ''}"

    def function(self) -> str:
        """Return the name of the calling function outside the agent and the modules of BETWEEN."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            name = str(frame.f_globals.get("__name__"))
            if name not in BETWEEN and not name.startswith("ext_recorder_agent."):
                code: Any = frame.f_code
                return f"{name}:{getattr(code, 'co_qualname', code.co_name)}"
            frame = frame.f_back
        return ""


class Wall:
    """Wall clock.

    Args:
        epoch: replay: when the recording began, in nanoseconds since 1970; else 0.
    """

    def __init__(self, place: Place, times: RecordedClock, epoch: int) -> None:
        self._place = place
        self._times = times
        self._lock = allocate_lock()
        self._real_ns = time.time_ns
        self._unsent: dict[str, list[int]] = {}
        self._count = 0
        self._left: dict[str, list[int]] | None = None
        self._latest: dict[str, int] = {}  # by thread
        self._last, self._at = epoch, 0
        if epoch:
            self._at = os.stat(times.folder).st_ctime_ns  # noqa: PTH116

    def unsent(self) -> dict[str, list[int]]:
        """Return the readings since the last call of this method, by place."""
        with self._lock:
            readings, self._unsent = self._unsent, {}
        return readings

    def now(self) -> int:
        """Return nanoseconds since 1970."""
        if current() is not None:
            return int(self._times.wall() * 1e9)
        thread, function = self._place.thread(), self._place.function()
        key = f"{thread} {function}"
        if not self._at:
            now = self._real_ns()
            with self._lock:
                if self._count < MOST_READINGS:
                    self._count += 1
                    self._unsent.setdefault(key, []).append(now)
            return now
        if self._left is None:
            recorded: Any = self._times.channel().ask({"k": "readings"})
            self._left = {name: moments[::-1] for name, moments in recorded["readings"].items()}
        with self._lock:
            left = self._left.get(key, [])
            live, before = self._real_ns(), self._latest.get(thread, 0)
            while left and left[-1] < before:  # the clock of a thread never goes back
                left.pop()
            reading = left.pop() if left else max(before, self._last + live - self._at)
            self._latest[thread] = reading
            if reading >= self._last:
                self._last, self._at = reading, live
            return reading

    def install(self) -> None:
        """Make the functions of `time` read this clock."""
        module: Any = time
        module.time, module.time_ns = self.seconds, self.now
        for name in ("gmtime", "localtime", "ctime", "asctime", "strftime", "clock_gettime", "clock_gettime_ns"):
            if hasattr(time, name):
                # Methods are not bound again if a class has them as attributes, as logging.Formatter does.
                setattr(module, name, getattr(self, name))

    def seconds(self) -> float:
        """Return seconds since 1970."""
        return self.now() / 1e9

    def gmtime(self, secs: float | None = None, /) -> time.struct_time:
        """Act as the function of `time`."""
        return _gmtime(self.seconds() if secs is None else secs)

    def localtime(self, secs: float | None = None, /) -> time.struct_time:
        """Act as the function of `time`."""
        return _localtime(self.seconds() if secs is None else secs)

    def ctime(self, secs: float | None = None, /) -> str:
        """Act as the function of `time`."""
        return _ctime(self.seconds() if secs is None else secs)

    def asctime(self, *moment: time.struct_time) -> str:
        """Act as the function of `time`."""
        return _asctime(*moment or (self.localtime(),))

    def strftime(self, format: str, *moment: time.struct_time) -> str:
        """Act as the function of `time`."""
        return _strftime(format, *moment or (self.localtime(),))

    def clock_gettime(self, clock: int, /) -> float:
        """Act as the function of `time`."""
        return self.seconds() if clock == time.CLOCK_REALTIME else _clock_gettime(clock)

    def clock_gettime_ns(self, clock: int, /) -> int:
        """Act as the function of `time`."""
        return self.now() if clock == time.CLOCK_REALTIME else _clock_gettime_ns(clock)

    def patch_datetime(self, module: Any) -> None:
        """Make `datetime.now` and `datetime.utcnow` read this clock; `today` uses `time.time`.

        Other modules may have imported the class, a built-in type, so its methods are replaced, not the class.
        Subclasses inherit them.

        Args:
            module: datetime.
        """
        kind, utc = module.datetime, module.timezone.utc

        def now(cls: Any, tz: Any = None) -> object:
            return cls.fromtimestamp(self.now() / 1e9, tz)

        def utcnow(cls: Any) -> object:
            if sys.version_info >= (3, 12):
                from warnings import warn

                text = "datetime.datetime.utcnow() is deprecated and scheduled for removal in a future version. "
                warn(f"{text}Use timezone-aware objects", DeprecationWarning, stacklevel=2)
            return cls.fromtimestamp(self.now() / 1e9, utc).replace(tzinfo=None)

        _replace(kind, {"now": classmethod(now), "utcnow": classmethod(utcnow)})


_replaced: list[object] = []  # the original methods: the interpreter may still have them in a cache


def _replace(kind: Any, methods: dict[str, Any]) -> None:
    """Replace methods of a type, also of one that is immutable to Python."""
    try:
        for name, method in methods.items():
            setattr(kind, name, method)
    except TypeError:
        import ctypes
        import gc

        attributes = gc.get_referents(kind.__dict__)[0]
        for name, method in methods.items():
            _replaced.append(attributes[name])
            attributes[name] = method
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


class Drawn:
    """Random bytes derived from the seed of the session."""

    def __init__(self, place: Place, seed: str) -> None:
        self._place = place
        self._seed = seed
        self._counts: dict[str, int] = {}
        self._lock = allocate_lock()

    def draw(self, size: int, /) -> bytes:
        """Return random bytes of a size."""
        key = f"{self._place.thread()} {self._place.function()}"
        with self._lock:
            count = self._counts[key] = self._counts.get(key, 0) + 1
        return self.of(f"{key} {count}", size)

    def of(self, name: str, size: int) -> bytes:
        """Return the random bytes of a name."""
        from hashlib import shake_256

        return shake_256(f"{self._seed} {name}".encode("utf-8", "surrogateescape")).digest(size)

    def patch_uuid(self, module: Any) -> None:
        """Derive UUIDs from the seed, in Python, with a node that no machine has.

        Args:
            module: uuid.
        """
        module.os = _Os(self.draw)
        module._node = int.from_bytes(self.of("node", 6), "big") | 1 << 40  # a multicast address, see RFC 9562
        module._generate_time_safe = module._UuidCreate = None
        uuid1 = module.uuid1

        def uuid1_(node: int | None = None, clock_seq: int | None = None) -> object:
            drawn = int.from_bytes(self.draw(2), "big") & 0x3FFF if clock_seq is None else clock_seq
            return uuid1(node, drawn)

        module.uuid1 = uuid1_

    def patch_random(self, module: Any) -> None:
        """Seed the generators that would be seeded by the system.

        Args:
            module: random.
        """
        seed = module.Random.seed

        def seed_(generator: Any, a: Any = None, version: int = 2) -> None:
            seed(generator, self.draw(32) if a is None else a, version)

        def begin() -> None:
            seed(module._inst, self.of(f"random {self._place.process}", 32))

        module.Random.seed = seed_
        begin()
        os.register_at_fork(after_in_child=begin)

    def patch_system(self, module: Any) -> None:
        """Make `SystemRandom` derive its values from the seed. Arguments as of `patch_random`."""
        module._urandom = self.draw

    def install(self) -> None:
        """Make `os.urandom` derive its values from the seed."""
        system: Any = os
        system.urandom = self.draw
        if hasattr(os, "getrandom"):
            system.getrandom = self.getrandom

    def getrandom(self, size: int, flags: int = 0) -> bytes:
        """Act as the function of `os`."""
        return self.draw(size)


class _Os:
    """Module `os` with another `urandom`."""

    def __init__(self, urandom: Callable[[int], bytes]) -> None:
        self.urandom = urandom

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)


def install(
    kinds: Collection[str], seed: str, times: RecordedClock, epoch: int
) -> dict[str, list[Callable[[Any], None]]]:
    """Begin to record or replay these kinds of values.

    Args:
        kinds: of TIME, UUID, RANDOM and SECRETS.

    Returns:
        Patches for modules that are imported later, by name.
    """
    place = Place(times.folder)
    drawn = Drawn(place, seed)
    actions: dict[str, list[Callable[[Any], None]]] = {}
    if TIME in kinds:
        wall = Wall(place, times, epoch)
        times.wall_readings = wall.unsent
        wall.install()
        if not epoch:
            import atexit

            atexit.register(lambda: times.channel().send({"k": "times", **times.unsent()}))
        actions["datetime"] = [wall.patch_datetime]
    if UUID in kinds:
        actions["uuid"] = [drawn.patch_uuid]
    if RANDOM in kinds:
        actions["random"] = [drawn.patch_random]
    if SECRETS in kinds:
        drawn.install()
        actions.setdefault("random", []).append(drawn.patch_system)
    return actions
