"""Statistics of calls by method: counts, errors, percentiles of durations, bytes.

The duration of a call is the time from its request to the last part of its response, as the recorder saw both.
Percentiles are nearest-rank: p90 of 10 calls is the ninth shortest duration, so it is one that was measured.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from ext_recorder.cassette.reader import Reader
from ext_recorder.messages.open_calls import CallTracker
from ext_recorder.protocols.dialect import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ext_recorder.cassette.events import Stream

PERCENTILES = (50, 90, 99)
TEXT_COLUMNS = 2  # the first columns of the table; the others contain numbers
_MS = 1_000


class MethodStats:
    """Statistics of one method.

    Attributes:
        by: the sender: "in", the host, or "out", the child.
        method: its name, with the subject if subjects are counted apart.
        count: number of requests and notifications.
        errors: number of responses that report a failure.
        open: number of requests without a response.
        times: seconds of each answered request.
        asked: bytes of requests and notifications.
        answered: bytes of responses.
    """

    __slots__ = ("answered", "asked", "by", "count", "errors", "method", "open", "times")

    def __init__(self, by: Stream, method: str) -> None:
        self.by: Stream = by
        self.method = method
        self.count = self.errors = self.open = self.asked = self.answered = 0
        self.times = array("d")

    def add(self, other: MethodStats) -> None:
        """Add the statistics of another cassette."""
        self.count += other.count
        self.errors += other.errors
        self.open += other.open
        self.asked += other.asked
        self.answered += other.answered
        self.times.extend(other.times)

    def as_json(self) -> dict[str, object]:
        """Return a JSON object; times in milliseconds, null if no request was answered."""
        times = sorted(self.times)
        ranks = {f"p{rank}_ms": percentile(times, rank) for rank in PERCENTILES} | {"max_ms": percentile(times, 100)}
        return {
            "by": {"in": "host", "out": "child"}[self.by],
            "method": self.method,
            "count": self.count,
            "answered": len(times),
            "errors": self.errors,
            "open": self.open,
            **{name: None if value is None else round(value * _MS, 3) for name, value in ranks.items()},
            "bytes_asked": self.asked,
            "bytes_answered": self.answered,
        }


def percentile(times: list[float], rank: int) -> float | None:
    """Return the nearest-rank percentile of sorted times; None if the list is empty."""
    return times[max(0, -(-len(times) * rank // 100) - 1)] if times else None


def collect(path: Path, _name: str, *, subjects: bool = False) -> list[MethodStats]:
    """Return the statistics of one cassette.

    Args:
        subjects: count the subjects of a method apart: operations, tools.

    Raises:
        CassetteError: the file cannot be read.
    """
    sums: dict[tuple[str, str], MethodStats] = {}
    with Reader(path) as reader:
        dialect = DIALECTS.get(reader.header.protocol) or DIALECTS["jsonrpc"]
        calls: CallTracker[tuple[float, MethodStats]] = CallTracker(dialect)
        for event, payload in reader.messages():
            message = dialect.classify(payload)
            if message.kind == "response":
                call = calls.response(event, message)
                if call is None:
                    continue  # without a request, it belongs to no method
                start, stats = call
                stats.answered += len(payload)
                if dialect.is_last(message):
                    stats.times.append(max(0.0, event.time - start))
                    stats.errors += dialect.is_failure(message)
            elif message.kind != "other":
                about = dialect.about(message) if subjects else ""
                method = f"{message.method} {about}" if about else message.method
                stats = sums.setdefault((event.kind, method), MethodStats(event.kind, method))
                stats.count += 1
                stats.asked += len(payload)
                calls.request(event, message, (event.time, stats))
    for unanswered in calls.values():
        for _, stats in unanswered:
            stats.open += 1
    return list(sums.values())


def merge_stats(counted: Iterable[list[MethodStats]]) -> list[MethodStats]:
    """Return the sums of several cassettes' statistics, the most frequent methods first."""
    sums: dict[tuple[str, str], MethodStats] = {}
    for cassette in counted:
        for stats in cassette:
            sums.setdefault((stats.by, stats.method), MethodStats(stats.by, stats.method)).add(stats)
    return sorted(sums.values(), key=lambda stats: (stats.by, -stats.count, stats.method))


def table(methods: list[MethodStats]) -> list[str]:
    """Return the lines of a table: texts aligned to the left, numbers to the right."""
    heads = ["", "method", "count", "errors", "open", *(f"p{rank}" for rank in PERCENTILES), "max", "asked", "answered"]
    rows = [heads]
    for stats in methods:
        times = sorted(stats.times)
        durations = [_duration(percentile(times, rank)) for rank in (*PERCENTILES, 100)]
        sizes = [_size(stats.asked), _size(stats.answered) if times else "-"]
        counts = [str(stats.count), str(stats.errors), str(stats.open)]
        rows.append(["→" if stats.by == "in" else "←", stats.method, *counts, *durations, *sizes])
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    return [
        "  ".join(
            cell.ljust(width) if column < TEXT_COLUMNS else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * _MS:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _size(count: int) -> str:
    for unit, size in (("MB", 1_000_000), ("kB", 1_000)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
