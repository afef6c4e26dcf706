"""Regular expressions that can't block the process: Python's `re`, in a child process with limits on time and memory.

A pattern is from a task file and the text from an agent or a program, so either may make a search explode. Other
engines do not help: google-re2 has no packages for musl or the newest Python, and its "linear" time was 54 s for
100 KB of text and a pattern of 200 alternatives; `regex` limits the time of a search, but `((a{1000}){1000}){1000}`
exhausts all memory while it is compiled. A child process can be killed in any case, and the syntax is the one that
every user has installed.
"""

from __future__ import annotations

import re
import select
import signal
import struct
import subprocess
import sys
import warnings
from pathlib import Path
from typing import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import IO, Self

    from ext_sdk.polling import Deadline

LIMIT = 2.0  # seconds for one search
GRACE = 3.0  # seconds until a child that survives its own alarm is killed
TIME_UP = "the time of the operation was up before this check ended; raise `timeout`, or make the check simpler"
_WORKER = str(Path(__file__).with_name("regex_worker.py"))
_REQUEST = struct.Struct("<III")
_ANSWER = struct.Struct("<BI")
_SPAN = struct.Struct("<ii")
_FOUND, _ERROR = 1, 2


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
        flags = re.IGNORECASE if ignore_case else re.NOFLAG
        data = [part.encode("utf-8", "surrogatepass") for part in (pattern, text)]
        child = self._started()
        requests, answers = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)
        try:
            requests.write(_REQUEST.pack(flags, *map(len, data)) + b"".join(data))
            requests.flush()
            if not select.select([answers], [], [], min(self._limit + GRACE, self.remaining()))[0]:
                child.kill()
            status, count = _ANSWER.unpack(_exactly(answers, _ANSWER.size))
            if status == _ERROR:
                raise SearchFailed(_exactly(answers, count).decode())
            if status != _FOUND:
                return None
            spans: list[tuple[int, int]] = list(_SPAN.iter_unpack(_exactly(answers, _SPAN.size * count)))
        except (BrokenPipeError, EOFError):
            self.close()
            if self.remaining() <= 0:
                raise SearchFailed(f"searching for {pattern!r:.200}: {TIME_UP}") from None
            if child.returncode in {-signal.SIGALRM, -signal.SIGKILL}:
                took = f"took longer than {self._limit:g} s; make the pattern simpler"
                raise SearchFailed(f"searching for {pattern!r:.200} {took}") from None
            ended = f"ended with status {child.returncode}"
            raise SearchFailed(f"the process that searched for {pattern!r:.200} {ended}") from None
        return Found(text, spans, re.compile(pattern).groupindex) if spans else None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None:
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


def _exactly(stream: IO[bytes], count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise EOFError
    return data
