"""Statistics of calls by method: counts, errors, percentiles of durations, bytes.

The duration of a call is the time from its request to the last part of its response, as the recorder saw both.
Percentiles are nearest-rank: p90 of 10 calls is the ninth shortest duration, so it is one that was measured.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from ext_recorder.cassette.reader import Reader
from ext_recorder.cassette.recording import opened
from ext_recorder.messages.open_calls import CallTracker
from ext_recorder.messages.redaction import Redaction
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
        where: of a recorded run: the child, or the server; "" for a cassette.
        by: the sender: "in", the host, or "out", the child.
        method: its name, with the subject if subjects are counted apart.
        count: number of requests and notifications.
        errors: number of responses that report a failure.
        open: number of requests without a response.
        times: seconds of each answered request.
        asked: bytes of requests and notifications.
        answered: bytes of responses.
        input_tokens, output_tokens: of calls of a model.
    """

    __slots__ = (
        "answered", "asked", "by", "count", "errors", "input_tokens", "method", "open", "output_tokens", "times",
        "where",
    )  # fmt: skip

    def __init__(self, by: Stream, method: str, where: str = "") -> None:
        self.by: Stream = by
        self.method = method
        self.where = where
        self.input_tokens = self.output_tokens = 0
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
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens

    def as_json(self) -> dict[str, object]:
        """Return a JSON object; times in milliseconds, null if no request was answered."""
        times = sorted(self.times)
        ranks = {f"p{rank}_ms": percentile(times, rank) for rank in PERCENTILES} | {"max_ms": percentile(times, 100)}
        return {
            **({"where": self.where} if self.where else {}),
            "by": {"in": "host", "out": "child"}[self.by],
            "method": self.method,
            "count": self.count,
            "answered": len(times),
            "errors": self.errors,
            "open": self.open,
            **{name: None if value is None else round(value * _MS, 3) for name, value in ranks.items()},
            "bytes_asked": self.asked,
            "bytes_answered": self.answered,
            **({"input_tokens": self.input_tokens, "output_tokens": self.output_tokens} if self.has_tokens else {}),
        }

    @property
    def has_tokens(self) -> bool:
        """Return True for calls of a model whose responses have the number of their tokens."""
        return self.input_tokens + self.output_tokens > 0


def percentile(times: list[float], rank: int) -> float | None:
    """Return the nearest-rank percentile of sorted times; None if the list is empty."""
    return times[max(0, -(-len(times) * rank // 100) - 1)] if times else None


def collect(path: Path, _name: str, *, subjects: bool = False) -> list[MethodStats]:
    """Return the statistics of a cassette, or of a recorded run by child and server.

    Args:
        subjects: count the subjects of a method apart: operations, tools, models, objects of a cluster.

    Raises:
        CassetteError: a file cannot be read.
    """
    recorded = opened(path)
    counted = [each for part in recorded.parts for each in _of_cassette(part.path, part.name, subjects=subjects)]
    if recorded.header is not None and recorded.traffic is not None:
        counted += _of_traffic(recorded.traffic, subjects=subjects)
    return counted


def _of_traffic(path: Path, *, subjects: bool) -> list[MethodStats]:
    from ext_recorder.http.reader import interactions
    from ext_recorder.http.traffic_counts import traffic_of

    from .endpoints import Endpoints, outcome_of

    sums: dict[tuple[str, str], MethodStats] = {}
    redactor = Redaction().redactor()
    endpoints = Endpoints(interactions(path))
    for item in interactions(path):
        endpoint, traffic = endpoints.of(item), traffic_of(item)
        method = item.method if endpoint.role == "service" else endpoint.method
        method = redactor.redact_text(f"{method} {endpoint.subject}".rstrip() if subjects else method)
        server = redactor.redact_text(endpoint.server)
        stats = sums.setdefault((server, method), MethodStats("in", method, server))
        stats.count += 1
        stats.asked += item.request_body.size if item.request_body else 0
        stats.answered += item.body.size if item.body else 0
        stats.errors += outcome_of(item)[1]
        stats.input_tokens += traffic.input_tokens
        stats.output_tokens += traffic.output_tokens
        if item.status:
            stats.times.append(item.elapsed)
        else:
            stats.open += 1
    return list(sums.values())


def _of_cassette(path: Path, name: str, *, subjects: bool) -> list[MethodStats]:
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
                stats = sums.setdefault((event.kind, method), MethodStats(event.kind, method, name))
                stats.count += 1
                stats.asked += len(payload)
                calls.request(event, message, (event.time, stats))
    for unanswered in calls.values():
        for _, stats in unanswered:
            stats.open += 1
    return list(sums.values())


def merge_stats(counted: Iterable[list[MethodStats]]) -> list[MethodStats]:
    """Return the sums of several cassettes' statistics, the most frequent methods of each child or server first."""
    sums: dict[tuple[str, str, str], MethodStats] = {}
    for cassette in counted:
        for stats in cassette:
            key = (stats.where, stats.by, stats.method)
            sums.setdefault(key, MethodStats(stats.by, stats.method, stats.where)).add(stats)
    places = list(dict.fromkeys(where for where, _, _ in sums))
    return sorted(sums.values(), key=lambda stats: (places.index(stats.where), stats.by, -stats.count, stats.method))


def table(methods: list[MethodStats]) -> list[str]:
    """Return the lines of a table: texts aligned to the left, numbers to the right."""
    by_place, tokens = any(stats.where for stats in methods), any(stats.has_tokens for stats in methods)
    heads = ["", "method", "count", "errors", "open", *(f"p{rank}" for rank in PERCENTILES), "max", "asked", "answered"]
    heads += ["tokens in", "tokens out"] if tokens else []
    rows = [[*(["where"] if by_place else []), *heads]]
    where = ""
    for stats in methods:
        times = sorted(stats.times)
        durations = [_duration(percentile(times, rank)) for rank in (*PERCENTILES, 100)]
        sizes = [_size(stats.asked), _size(stats.answered) if times else "-"]
        counts = [str(stats.count), str(stats.errors), str(stats.open)]
        if tokens:
            sizes += [f"{stats.input_tokens:,}", f"{stats.output_tokens:,}"] if stats.has_tokens else ["", ""]
        place = [stats.where if stats.where != where else ""] if by_place else []
        rows.append([*place, "→" if stats.by == "in" else "←", stats.method, *counts, *durations, *sizes])
        where = stats.where
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column < TEXT_COLUMNS + by_place else cell.rjust(width)
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
