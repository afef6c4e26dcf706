"""Measuring side by side: candidates take turns, on cores of their own, in an environment that slows none of them.

The bench is a context manager: what was started for several figures ends with it.
"""

from __future__ import annotations

import compileall
import os
import statistics
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Self, TypeAlias

import ext_http
import ext_kubernetes
import ext_recorder
import ext_sdk
import ext_shell
from tests.bench.clusters import control_plane
from tests.bench.errors import BenchError, NotHere

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.bench.building import Programs
    from tests.bench.clusters import Cluster
    from tests.bench.scale import Scale

# A series is what one candidate shows in one respect: a number for each round, in the order of rounds.
Series: TypeAlias = "Mapping[str, Sequence[float]]"
Candidate: TypeAlias = "Callable[[], Mapping[str, float]]"

__all__ = ["Bench", "BenchError", "NotHere", "Series", "compile_everything", "pinned"]

# Read by every Python that is started; any of them would change what is measured.
SETTINGS = "PYTHON"


class Bench:
    """What a measurement is given.

    Args:
        scale: how much to measure.
        programs: what to start.
        directory: for files; everything in it may be removed afterwards.
        tell: takes a line about what is going on.
        cluster: starts one for those figures that need it.

    Attributes:
        environment: for every process that is started.
        one_core: where a whole chain of processes takes turns, as the scheduler has it for a host that waits.
        two_cores: where processes work at the same time.
        own_core: where the bench itself waits meanwhile: for nobody, and nobody for it.
    """

    def __init__(
        self,
        scale: Scale,
        programs: Programs,
        directory: Path,
        tell: Callable[[str], None],
        cluster: Callable[[Callable[[str], None]], AbstractContextManager[Cluster]] = control_plane,
    ) -> None:
        self._start_cluster = cluster
        self._cluster: Cluster | None = None
        self._stack = ExitStack()
        self.scale = scale
        self.programs = programs
        self.directory = directory
        self.tell = tell
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)}
        cores = _cores()
        self.one_core = cores[-1:]  # the first has the interrupts
        self.two_cores = cores[-2:]
        self.own_core = cores[-2:][:1]

    @property
    def cluster(self) -> Cluster:
        """The cluster, started for the first that asks. Raises NotHere."""
        if self._cluster is None:
            self._cluster = self._stack.enter_context(self._start_cluster(self.tell))
        return self._cluster

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        """End what was started for several figures."""
        self._stack.close()

    def take_turns(self, candidates: Mapping[str, Candidate], *, times: int = 1, warm_up: bool = True) -> Series:
        """Measure each candidate once a round, each round beginning with another one.

        Args:
            candidates: by name.
            times: turns of each in a round; the round's value is their median.
            warm_up: one turn first that does not count: file caches, byte code.

        Returns:
            What they gave, as "candidate series" to one value for each round.
        """
        names = list(candidates)
        if warm_up:
            for name in names:
                self.tell(f"{name}, warming up")
                candidates[name]()
        found: dict[str, list[float]] = {}
        for number in range(self.scale.rounds):
            turns: dict[str, list[float]] = {}
            for turn in range(times):
                first = (number + turn) % len(names)
                for name in names[first:] + names[:first]:
                    self.tell(f"{name}, round {number + 1} of {self.scale.rounds}")
                    with pinned(self.own_core):
                        measured = candidates[name]()
                    for key, value in measured.items():
                        turns.setdefault(f"{name} {key}", []).append(value)
            for key, values in turns.items():
                found.setdefault(key, []).append(statistics.median(values))
        return found


def _cores() -> tuple[int, ...]:
    """The cores that this process may use; () where a system does not tell."""
    return tuple(sorted(os.sched_getaffinity(0))) if sys.platform == "linux" else ()


@contextmanager
def pinned(cores: Sequence[int]) -> Iterator[None]:
    """Keep this process, and what it starts meanwhile, on these cores. Does nothing where a system can't."""
    if sys.platform != "linux" or not cores:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def compile_everything() -> None:
    """Write the byte code that an installer, or the first start, would have written."""
    for package in (ext_sdk, ext_http, ext_shell, ext_kubernetes, ext_recorder):
        for folder in package.__path__:
            compileall.compile_dir(folder, quiet=2)
