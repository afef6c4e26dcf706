"""How far the work is: a bar on standard error, where that is a terminal.

Where it is none, the lines that a command prints about each cassette say it as well.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Generic, TypeVar

from ext_recorder.errors import CassetteError, RecorderError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess
    from pathlib import Path
    from types import FrameType
    from typing import Self, TextIO

    from click.termui import ProgressBar  # type: ignore[attr-defined]

    from .selection import Cassette


_CLEAR = "\r\x1b[K\x1b[?25h"  # the line, and click's hiding of the cursor


class Progress:
    """A bar for so many cassettes; nothing for a single one, or without a terminal.

    Args:
        total: how many.
        file: where to; None: standard error.
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
        if self._bar:
            self._clear()

    def advance(self) -> None:
        """One more is done."""
        if self._bar:
            self._bar.update(1)

    def aside(self) -> None:
        """Take the bar away, because something else is written; the next step brings it back."""
        if self._bar:
            self._clear()

    def _clear(self) -> None:
        self._file.write(_CLEAR)
        self._file.flush()


def shard(items: Sequence[T], text: str) -> list[T]:
    """This machine's part.

    Args:
        items: all of them, sorted.
        text: "2/3"; "" for all.

    Raises:
        UsageError: it is something else.
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
STOP_S = 5.0  # how long a worker that was told to end may take


class Outcome(Generic[T]):
    """What became of one cassette.

    Attributes:
        name: its name.
        result: what the work gave; None where it failed.
        error: why it failed, in a line; "" where it did not.
        seconds: how long it took.
    """

    __slots__ = ("error", "name", "result", "seconds")

    def __init__(self, name: str, result: T | None, error: str = "", seconds: float = 0.0) -> None:
        self.name = name
        self.result = result
        self.error = error
        self.seconds = seconds


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_cassettes(
    cassettes: Sequence[Cassette], work: Callable[[Path, str], T], *, jobs: int = 0, progress: Progress | None = None
) -> Iterator[Outcome[T]]:
    """Do the work for each cassette.

    Args:
        cassettes: their names, as `named` gives them.
        work: called with the file to read and the name to call it by; at the top level of a module, or a partial of
            such a function. Its result is pickled. RecorderError and OSError become the `error` of the outcome.
        jobs: processes; 0: one for each core.
        progress: is told of each that is done; None: a bar on standard error, where that is a terminal.

    Yields:
        The outcomes in the order of the cassettes, each as soon as it and all before it are there.
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
        early: dict[int, Outcome[T]] = {}
        due = 0
        for at, outcome in _in_processes(cassettes, work, count):
            shown.advance()
            early[at] = outcome
            while due in early:
                shown.aside()
                yield early.pop(due)
                due += 1


def _done(work: Callable[[Path, str], T], cassette: Cassette) -> Outcome[T]:
    started = monotonic()
    try:
        with cassette.local() as path:
            result = work(path, cassette.name)
    except CassetteError as error:
        # A copy of a remote cassette is of no interest to anybody: the error is about the cassette.
        same = CassetteError(cassette.name, error.line, error.problem, error.advice)
        return Outcome(cassette.name, None, str(same), monotonic() - started)
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
    """The outcomes as they come, with the positions of their cassettes."""
    from multiprocessing.connection import wait

    todo = iter(enumerate(cassettes))
    with _workers(work, count) as workers:
        busy: dict[Connection, int] = {}
        idle = list(workers)
        while True:
            while idle and (following := next(todo, None)) is not None:
                at, cassette = following
                pipe = idle.pop()
                busy[pipe] = at
                pipe.send(cassette)
            if not busy:
                return
            for ready in wait(list(busy)):
                pipe = next(map_cassettes for map_cassettes in busy if map_cassettes is ready)
                at = busy.pop(pipe)
                try:
                    outcome: Outcome[T] = pipe.recv()
                    idle.append(pipe)
                except EOFError:
                    outcome = _lost(cassettes[at].name, _end(workers.pop(pipe)))
                    idle.append(_start(work, workers))
                yield at, outcome


def _lost(name: str, how: str) -> Outcome[T]:
    return Outcome(name, None, f"{name}: its process {how}; --jobs 1 may tell more")


def _start(work: Callable[[Path, str], T], workers: dict[Connection, BaseProcess]) -> Connection:
    from multiprocessing import get_context

    context = get_context("spawn")  # not fork: libraries behind fsspec have threads
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, work), daemon=True)
    process.start()
    theirs.close()
    workers[ours] = process
    return ours


@contextmanager
def _workers(work: Callable[[Path, str], T], count: int) -> Iterator[dict[Connection, BaseProcess]]:
    workers: dict[Connection, BaseProcess] = {}
    try:
        for _ in range(count):
            _start(work, workers)
        yield workers
    finally:
        for pipe, process in workers.items():
            pipe.close()
            process.terminate()
        for process in workers.values():
            _end(process)


def _end(process: BaseProcess) -> str:
    """Wait for a worker's end; in words, how it was."""
    process.join(STOP_S)
    if process.exitcode is None:
        process.kill()
        process.join()
    code = process.exitcode or 0
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def install_sigterm_handler() -> None:
    """Let SIGTERM unwind this process: what it has started is ended, and what it has begun to write taken away."""
    signal.signal(signal.SIGTERM, _leave)


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _serve(pipe: Connection, work: Callable[[Path, str], T]) -> None:
    """A worker's life: a cassette in, an outcome out, until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches it too; whoever started it tells it when to end
    install_sigterm_handler()
    try:
        while True:
            pipe.send(_done(work, pipe.recv()))
    except (EOFError, BrokenPipeError):
        return
    finally:  # it ends in any case: told so once more at the interpreter's end, it would show a traceback
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
