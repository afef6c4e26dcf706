"""How long calls took, for each method: counts, errors, percentiles, bytes.

An answer's time is that from its request to its last part, as the recorder saw both. Percentiles are nearest-rank: p90
of 10 calls is the ninth of them in the order of their times, a time that was really measured.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from ext_recorder.cassette.events import OWN_FILES, Data, pieces
from ext_recorder.cassette.reader import Reader
from ext_recorder.protocols.dialect import DIALECTS
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ext_recorder.cassette.events import Stream
    from ext_recorder.protocols.dialect import ClassifiedMessage, Dialect

PERCENTILES = (50, 90, 99)
TEXTS = 2  # columns of the table that are no numbers
_MS = 1_000


class MethodStats:
    """What is known of one method.

    Attributes:
        by: who asks or tells: "in", the host, or "out", the child.
        method: its name.
        count: requests and notifications.
        errors: answers that tell of a failure.
        open: requests without an answer.
        times: seconds, of each answered request.
        asked: bytes of requests and notifications.
        answered: bytes of answers.
    """

    __slots__ = ("answered", "asked", "by", "count", "errors", "method", "open", "times")

    def __init__(self, by: Stream, method: str) -> None:
        self.by: Stream = by
        self.method = method
        self.count = self.errors = self.open = self.asked = self.answered = 0
        self.times = array("d")

    def add(self, other: MethodStats) -> None:
        """Take in what another cassette has."""
        self.count += other.count
        self.errors += other.errors
        self.open += other.open
        self.asked += other.asked
        self.answered += other.answered
        self.times.extend(other.times)

    def as_json(self) -> dict[str, object]:
        """For programs; times in milliseconds, null where nothing was answered."""
        times = sorted(self.times)
        shown = {f"p{each}_ms": percentile(times, each) for each in PERCENTILES} | {"max_ms": percentile(times, 100)}
        return {
            "by": {"in": "host", "out": "child"}[self.by],
            "method": self.method,
            "count": self.count,
            "answered": len(times),
            "errors": self.errors,
            "open": self.open,
            **{name: None if value is None else round(value * _MS, 3) for name, value in shown.items()},
            "bytes_asked": self.asked,
            "bytes_answered": self.answered,
        }


def percentile(times: list[float], rank: int) -> float | None:
    """The nearest-rank percentile of sorted times; None of none."""
    return times[max(0, -(-len(times) * rank // 100) - 1)] if times else None


def collect(path: Path, _name: str, *, subjects: bool = False) -> list[MethodStats]:
    """Count one cassette.

    Args:
        path: the file.
        subjects: keep apart what calls of one method are about: operations, tools.

    Raises:
        CassetteError: it can't be read.
    """
    with Reader(path) as reader:
        counter = _Counter(DIALECTS.get(reader.header.protocol) or DIALECTS["jsonrpc"], subjects=subjects)
        framing = FRAMINGS[reader.header.framing]
        for event in reader:
            if not isinstance(event, Data) or event.kind == "err" or event.conn == OWN_FILES:
                continue
            for item in pieces(event.payload, framing) if event.raw else (Frame(event.payload, b""),):
                if isinstance(item, Frame):
                    counter.see(event, item.payload)
    return counter.tallies()


def merge_stats(counted: Iterable[list[MethodStats]]) -> list[MethodStats]:
    """Several cassettes' tallies as one, the most frequent methods first."""
    found: dict[tuple[str, str], MethodStats] = {}
    for tallies in counted:
        for each in tallies:
            found.setdefault((each.by, each.method), MethodStats(each.by, each.method)).add(each)
    return sorted(found.values(), key=lambda each: (each.by, -each.count, each.method))


class _Counter:
    """Pairs answers with their requests."""

    def __init__(self, dialect: Dialect, *, subjects: bool) -> None:
        self._dialect = dialect
        self._subjects = subjects
        self._tallies: dict[tuple[str, str], MethodStats] = {}
        self._open: dict[tuple[str, int, bytes], list[tuple[float, MethodStats]]] = {}

    def see(self, event: Data, payload: bytes) -> None:
        message = self._dialect.classify(payload)
        if message.kind == "response":
            self._answer(event, message, len(payload))
        elif message.kind != "other":
            tally = self._tally(event, message)
            tally.count += 1
            tally.asked += len(payload)
            if message.kind == "request" and message.key is not None:
                self._open.setdefault((event.kind, event.conn, message.key), []).append((event.time, tally))

    def tallies(self) -> list[MethodStats]:
        for calls in self._open.values():
            for _, tally in calls:
                tally.open += 1
        return list(self._tallies.values())

    def _answer(self, event: Data, message: ClassifiedMessage, size: int) -> None:
        asker = "in" if event.kind == "out" else "out"
        place = (asker, event.conn, message.key or b"null")
        calls = self._open.get(place)
        if not calls:
            return  # to nothing: no method has asked for it
        began, tally = calls[0]
        tally.answered += size
        if not self._dialect.is_last(message):
            return
        tally.times.append(max(0.0, event.time - began))
        tally.errors += self._dialect.is_failure(message)
        calls.pop(0)
        if not calls:
            del self._open[place]

    def _tally(self, event: Data, message: ClassifiedMessage) -> MethodStats:
        about = self._dialect.about(message) if self._subjects else ""
        method = f"{message.method} {about}" if about else message.method
        return self._tallies.setdefault((event.kind, method), MethodStats(event.kind, method))


def table(tallies: list[MethodStats]) -> list[str]:
    """Rows for people."""
    heads = ["", "method", "count", "errors", "open", *(f"p{each}" for each in PERCENTILES), "max", "asked", "answered"]
    rows = [heads]
    for each in tallies:
        times = sorted(each.times)
        spent = [_duration(percentile(times, rank)) for rank in (*PERCENTILES, 100)]
        sizes = [_size(each.asked), _size(each.answered) if times else "-"]
        counts = [str(each.count), str(each.errors), str(each.open)]
        rows.append(["→" if each.by == "in" else "←", each.method, *counts, *spent, *sizes])
    widths = [max(len(row[at]) for row in rows) for at in range(len(heads))]
    return ["  ".join(map(_aligned, row, widths, range(len(heads)))) for row in rows]


def _aligned(cell: str, width: int, column: int) -> str:
    """Texts to the left, numbers to the right."""
    return cell.ljust(width) if column < TEXTS else cell.rjust(width)


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
