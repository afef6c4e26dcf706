"""Processes that work on many cassettes in parallel, with a progress bar on a terminal.

concurrent.futures is not used, because one killed worker loses all its work.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Generic, TypeVar

from ext_recorder.errors import CassetteError, RecorderError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess
    from types import FrameType
    from typing import Self, TextIO

    from click.termui import ProgressBar  # type: ignore[attr-defined]

    from .selection import Cassette


_CLEAR = "\r\x1b[K\x1b[?25h"  # clears the line and shows the cursor, which click hides


class Progress:
    """Progress bar; nothing for a single cassette, or if the output is not a terminal.

    Args:
        file: output; None for standard error.
    """

    def __init__(self, total: int, file: TextIO | None = None) -> None:
        self._file = file or sys.stderr
        self._bar: ProgressBar[int] | None = None
        if total > 1 and self._file.isatty():
            import click

            self._bar = click.progressbar(length=total, file=self._file, show_pos=True, width=24)

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self.aside()

    def advance(self) -> None:
        """Count one more cassette."""
        if self._bar:
            self._bar.update(1)

    def aside(self) -> None:
        """Clear the bar, so that other output can be written. `advance` draws it again."""
        if self._bar:
            self._file.write(_CLEAR)
            self._file.flush()


def shard(items: Sequence[T], text: str) -> list[T]:
    """Return the items of one shard.

    Args:
        items: all items, sorted.
        text: number and count of shards, such as "2/3"; "" for all items.

    Raises:
        UsageError: `text` has another form.
    """
    if not text:
        return list(items)
    first, slash, second = text.partition("/")
    if slash and _is_number(first) and _is_number(second) and 1 <= int(first) <= int(second):
        return list(items[int(first) - 1 :: int(second)])
    raise UsageError(f"--shard {text}: expected NUMBER/COUNT, from 1/COUNT to COUNT/COUNT, as in --shard 2/3")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


T = TypeVar("T")
STOP_S = 5.0  # seconds for a worker to end after SIGTERM, before SIGKILL


@dataclass
class Outcome(Generic[T]):
    """Outcome for one cassette.

    Attributes:
        result: the result; None if the work failed.
        error: cause of the failure in one line; "" if it succeeded.
    """

    name: str
    result: T | None
    error: str = ""
    seconds: float = 0.0


def cores() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_cassettes(
    cassettes: Sequence[Cassette], work: Callable[[Path, str], T], *, jobs: int = 0, progress: Progress | None = None
) -> Iterator[Outcome[T]]:
    """Call a function for each cassette.

    Args:
        cassettes: the cassettes, see `selection.named`.
        work: called with the file to read and its name in messages; a function at the top level of a module, or a
            partial of one. Its result is pickled. RecorderError and OSError become the `error` of the outcome.
        jobs: number of processes; 0 for one per core.

    Yields:
        The outcomes in the order of the cassettes, each as soon as it and all previous ones are available.
    """
    count = min(jobs or cores(), len(cassettes))
    with progress or Progress(len(cassettes)) as shown:
        if count <= 1:
            for cassette in cassettes:
                outcome = _done(work, cassette)
                shown.advance()
                shown.aside()
                yield outcome
            return
        ready: dict[int, Outcome[T]] = {}  # by the position of the cassette
        following = 0
        for position, outcome in _in_processes(cassettes, work, count):
            shown.advance()
            ready[position] = outcome
            while following in ready:
                shown.aside()
                yield ready.pop(following)
                following += 1


def _done(work: Callable[[Path, str], T], cassette: Cassette) -> Outcome[T]:
    started = monotonic()
    try:
        with cassette.local() as path:
            result = work(path, cassette.name)
    except CassetteError as error:
        # The error may name the local copy of a remote cassette, or a file in the folder of a recording.
        within = not cassette.remote and error.path.startswith(f"{Path(cassette.name)}/")
        renamed = error if within else CassetteError(cassette.name, error.line, error.problem, error.advice)
        return Outcome(cassette.name, None, str(renamed), monotonic() - started)
    except RecorderError as error:
        about = "" if str(error).startswith(cassette.name) else f"{cassette.name}: "
        return Outcome(cassette.name, None, f"{about}{error}", monotonic() - started)
    except OSError as error:
        where = error.filename or cassette.name
        return Outcome(cassette.name, None, f"{where}: {error.strerror or error}", monotonic() - started)
    return Outcome(cassette.name, result, seconds=monotonic() - started)


def _in_processes(
    cassettes: Sequence[Cassette], work: Callable[[Path, str], T], count: int
) -> Iterator[tuple[int, Outcome[T]]]:
    """Yield outcomes as they are ready, with the positions of their cassettes."""
    from multiprocessing.connection import wait

    todo = iter(enumerate(cassettes))
    workers: dict[Connection, BaseProcess] = {}
    busy: dict[Connection, int] = {}  # positions of the cassettes
    try:
        idle = [_start(work, workers) for _ in range(count)]
        while True:
            while idle and (following := next(todo, None)) is not None:
                position, cassette = following
                pipe = idle.pop()
                busy[pipe] = position
                pipe.send(cassette)
            if not busy:
                return
            for ready in wait(list(busy)):
                pipe = next(connection for connection in busy if connection is ready)
                position = busy.pop(pipe)
                try:
                    outcome: Outcome[T] = pipe.recv()
                    idle.append(pipe)
                except EOFError:
                    name, ending = cassettes[position].name, _end(workers.pop(pipe))
                    outcome = Outcome(name, None, f"{name}: its process {ending}; try --jobs 1 to see the cause")
                    idle.append(_start(work, workers))
                yield position, outcome
    finally:
        for pipe, process in workers.items():
            pipe.close()
            process.terminate()
        for process in workers.values():
            _end(process)


def _start(work: Callable[[Path, str], T], workers: dict[Connection, BaseProcess]) -> Connection:
    from multiprocessing import get_context

    context = get_context("spawn")  # not fork: libraries that fsspec uses have threads
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, work), daemon=True)
    process.start()
    theirs.close()
    workers[ours] = process
    return ours


def _end(process: BaseProcess) -> str:
    """Wait for the end of a worker. Return its exit status as text."""
    process.join(STOP_S)
    if process.exitcode is None:
        process.kill()
        process.join()
    code = process.exitcode or 0
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def install_sigterm_handler() -> None:
    """Make SIGTERM raise SystemExit, so that child processes are ended and unfinished files are removed."""

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)


def _serve(pipe: Connection, work: Callable[[Path, str], T]) -> None:
    """Run a worker: receive cassettes and send outcomes until the other end of the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent ends the workers
    install_sigterm_handler()
    try:
        while True:
            pipe.send(_done(work, pipe.recv()))
    except (EOFError, BrokenPipeError):
        return
    finally:  # a SIGTERM while the interpreter shuts down would print a traceback
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
