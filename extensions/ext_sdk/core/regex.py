"""Regular expressions that can't block the process: Python's `re`, with limits on time and memory.

A pattern is from a task file or a recording and the text from an agent or a program, so either may make a search
explode. `Searcher` searches in a child process. `TimedSearch`, for many short texts, searches in this process as long
as that can be interrupted. Other engines do not help: google-re2 has no packages for musl or the newest Python, and its
"linear" time was 54 s for 100 KB of text and a pattern of 200 alternatives; `regex` limits the time of a search, but
`((a{1000}){1000}){1000}` exhausts all memory while it is compiled. A child process can be killed in any case, and the
syntax is the one that every user has installed.
"""

from __future__ import annotations

import os
import re
import select
import signal
import struct
import sys
import warnings
from pathlib import Path
from typing import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable, Mapping
    from types import FrameType, TracebackType
    from typing import IO, Protocol, Self

    Spans = tuple[tuple[int, int], ...]  # of a match and of its groups

    class Deadline(Protocol):
        """Deadline of an operation."""

        def remaining(self) -> float:
            """Return the seconds left."""


LIMIT = 2.0  # seconds for one search
GRACE = 3.0  # seconds until a child that survives its own alarm is killed
TIME_UP = "the time of the operation was up before this check ended; raise `timeout`, or make the check simpler"
_WORKER = str(Path(__file__).with_name("regex_worker.py"))
# Characters of a text, times those of the pattern, for a search in this process. `re` checks for signals after 4096
# steps, each of which may read the complete text, and of a set of characters the complete pattern.
_MOST = 1 << 23
_LEAST_PATTERN = 64  # characters that a pattern counts as
_REQUEST = struct.Struct("<BIII")
_ANSWER = struct.Struct("<BI")
_SPAN = struct.Struct("<ii")
_FOUND, _ERROR = 1, 2
_FIRST, _ALL, _WHOLE = range(3)


class SearchFailed(Exception):
    """Search that took too long, needed too much memory, or had no child process; str() is the reason."""


class Found:
    """Match of a search.

    Attributes:
        start: index of the first character.
        end: index after the last one.
        groups: text of each group, group 0 (the complete match) first; None for a group that did not participate.
        named: text of each named group.
    """

    __slots__ = ("end", "groups", "named", "start")

    def __init__(self, text: str, spans: list[tuple[int, int]], names: Mapping[str, int]) -> None:
        self.start, self.end = spans[0]
        self.groups = tuple(None if start < 0 else text[start:end] for start, end in spans)
        self.named = {name: self.groups[group] for name, group in names.items()}


def problem(pattern: str) -> str:
    """Return the error in a pattern, or "".

    Compiling is harmless: `re` keeps repetitions as numbers and does not unroll them.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"not a regular expression of Python's `re`: {error}"
    return ""


class Searcher:
    """Searches in a child process, one at a time. The first search starts it (15 ms), `close()` kills it.

    Use it as a context manager, from one thread. The child process also ends with this process.

    It also holds the deadline of all checks of an operation, which evaluations of JSONPath and JSON Schema read.

    Args:
        limit: seconds for one search.
        deadline: for all searches and checks together; None for none.
    """

    def __init__(self, limit: float = LIMIT, deadline: Deadline | None = None) -> None:
        self._limit = limit
        self._deadline = deadline
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill the child process."""
        child, self._child = self._child, None
        if child:
            child.kill()
            child.communicate()

    def remaining(self) -> float:
        """Return the seconds left until the deadline; infinite without one."""
        return self._deadline.remaining() if self._deadline else float("inf")

    def check_time(self) -> None:
        """Raise SearchFailed if the deadline is over."""
        if self.remaining() <= 0:
            raise SearchFailed(TIME_UP)

    def search(self, pattern: str, text: str, *, ignore_case: bool = False) -> Found | None:
        """Return the first match anywhere in the text, as `re.search` does.

        Args:
            pattern: in the syntax of Python's `re`.
            ignore_case: `a` also matches `A`.

        Raises:
            SearchFailed: it took longer than the limit, needed too much memory, or the pattern is invalid.
        """
        spans = self._spans(pattern, text, re.IGNORECASE if ignore_case else re.NOFLAG)
        return Found(text, list(spans), re.compile(pattern).groupindex) if spans else None

    def find_all(self, pattern: re.Pattern[str], text: str) -> Iterable[Spans]:
        """Return the spans of all matches, and of their groups, as `finditer` yields them. Raises SearchFailed."""
        spans = iter(self._spans(pattern.pattern, text, pattern.flags & ~re.UNICODE, _ALL))
        return zip(*[spans] * (pattern.groups + 1), strict=True)

    def matches(self, pattern: re.Pattern[str], text: str) -> bool:
        """Return True if a pattern matches the complete text. Raises SearchFailed."""
        return bool(self._spans(pattern.pattern, text, pattern.flags & ~re.UNICODE, _WHOLE))

    def _spans(self, pattern: str, text: str, flags: int, which: int = _FIRST) -> Iterable[tuple[int, int]]:
        data = [part.encode("utf-8", "surrogatepass") for part in (pattern, text)]
        child = self._started()
        requests, answers = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)
        try:
            requests.write(_REQUEST.pack(which, flags, *map(len, data)) + b"".join(data))
            requests.flush()
            if not select.select([answers], [], [], min(self._limit + GRACE, self.remaining()))[0]:
                child.kill()
            status, count = _ANSWER.unpack(_exactly(answers, _ANSWER.size))
            if status == _ERROR:
                raise SearchFailed(_exactly(answers, count).decode())
            if status != _FOUND:
                return ()
            return cast("Iterable[tuple[int, int]]", _SPAN.iter_unpack(_exactly(answers, _SPAN.size * count)))
        except (BrokenPipeError, EOFError):
            self.close()
            if self.remaining() <= 0:
                raise SearchFailed(f"searching for {pattern!r:.200}: {TIME_UP}") from None
            if child.returncode in {-signal.SIGALRM, -signal.SIGKILL}:
                took = f"took longer than {self._limit:g} s; make the pattern simpler"
                raise SearchFailed(f"searching for {pattern!r:.200} {took}") from None
            ended = f"ended with status {child.returncode}"
            raise SearchFailed(f"the process that searched for {pattern!r:.200} {ended}") from None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            import subprocess

            try:
                # An empty environment: it has secrets, and PYTHON… variables would change the child.
                self._child = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-W", "ignore", _WORKER, str(self._limit)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    env={},
                )
            except OSError as error:
                raise SearchFailed(f"no process for the search: {error}") from error
        return self._child


class TimedSearch:
    """Searches for patterns in the texts of one message, in a `with` block and in the limits of all of them.

    In the main thread, short texts are searched in this process, with a limit of processor time. Long texts, and texts
    in other threads, are searched in a child process.

    Args:
        seconds: processor time of all searches in this process.
        subject: what is searched, for errors; by default the last text.

    Attributes:
        pattern, size: of the last search: the pattern, and the characters of the text.
        characters: of the texts of all searches.
        took: processor time of the searches of the last block.
    """

    __slots__ = (
        "_before", "_here", "_mask", "_searcher", "_seconds", "_subject", "characters", "pattern", "size", "took",
    )  # fmt: skip

    def __init__(self, seconds: float, subject: str = "") -> None:
        self._seconds = seconds
        self._subject = subject
        self._here = False
        self._searcher: Searcher | None = None
        self._before: object = None
        self._mask: set[signal.Signals] | set[int] = set()
        self.pattern = ""
        self.size = self.characters = 0
        self.took = 0.0

    def __enter__(self) -> Self:
        self.characters = 0
        self.took = 0.0
        try:
            self._before = signal.signal(signal.SIGVTALRM, self._stop)
        except ValueError:  # not the main thread
            return self
        self._here = True
        self._mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGVTALRM])
        signal.setitimer(signal.ITIMER_VIRTUAL, self._seconds)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._here:
            self._here = False
            self.took += self._seconds - signal.setitimer(signal.ITIMER_VIRTUAL, 0)[0]
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            signal.signal(signal.SIGVTALRM, self._before)  # type: ignore[arg-type]
        if self._searcher:
            before = os.times().children_user
            self._searcher.close()
            self._searcher = None
            self.took += os.times().children_user - before

    def find_all(self, pattern: re.Pattern[str], text: str) -> Iterable[Spans]:
        """Return the spans of all matches, and of their groups.

        Raises:
            SearchFailed: it took longer than the limit, or needed too much memory.
        """
        if self._is_short(pattern, text):
            return [match.regs for match in pattern.finditer(text)]
        return self._child().find_all(pattern, text)

    def replaced(self, pattern: re.Pattern[str], by: str, text: str) -> str:
        """Return a text with another one in place of each match. Raises SearchFailed, see `find_all`."""
        if self._is_short(pattern, text):
            return pattern.sub(lambda _: by, text)
        at, pieces = 0, []
        for (start, end), *_ in self._child().find_all(pattern, text):
            pieces.append(text[at:start])
            at = end
        return by.join((*pieces, text[at:]))

    def matches(self, pattern: re.Pattern[str], text: str) -> bool:
        """Return True if a pattern matches the complete text. Raises SearchFailed, see `find_all`."""
        if self._is_short(pattern, text):
            return pattern.fullmatch(text) is not None
        return self._child().matches(pattern, text)

    def _is_short(self, pattern: re.Pattern[str], text: str) -> bool:
        self.pattern, self.size = pattern.pattern, len(text)
        self.characters += self.size
        return self._here and self.size * max(len(self.pattern), _LEAST_PATTERN) <= _MOST

    def _child(self) -> Searcher:
        self._searcher = self._searcher or Searcher()
        return self._searcher

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        subject = self._subject or f"a text of {self.size} characters"
        took = f"took more than {self._seconds:g} s of processor time on {subject}"
        raise SearchFailed(f"{took}; write a pattern in which no repetition is repeated, as in (a+)+")


def _exactly(stream: IO[bytes], count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise EOFError
    return data
