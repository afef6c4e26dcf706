"""Table of the page: a row for each call (request and responses), notification, stderr line, mark and HTTP interaction.

The table contains which message belongs to which call; the page only draws it.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from ext_recorder.protocols.dialect import id_key, pointers_of
from ext_recorder.tools.timeline import content_of
from ext_sdk.core.wire.json_codec import dumps
from ext_sdk.core.wire.json_pointer import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ext_recorder.protocols.dialect import ClassifiedMessage
    from ext_recorder.tools.timeline import Entry, Timeline

    from .bodies import Bodies

# More rows than this are counted, but not shown: `trim` makes a shorter cassette.
MOST_ROWS = 200_000

_COLUMNS = (
    "kind",  # call, notification, response (to no request), stderr, junk, other, mark, http
    "status",  # ok, error, open, cancelled; "" if the row cannot fail
    "outcome",  # the status in detail: error -32601, 404 Not Found
    "stream",  # the side that begins it: in (host), out (child), err; "" if neither does
    "conn",
    "time",  # µs since the start
    "took",  # µs until the last response, or the cancellation; -1 without an end
    "method",
    "subject",
    "id",
    "parent",  # the row of the call to which it belongs; -1 if none
    "number",  # of the host's requests, as `trim --calls` counts them; of the interactions; 0 of others
    "line",
    "request",  # the body of the request, or of the only message; -1 if none
    "response",  # the body of the last response; -1 if none
)
_TEXTS = frozenset(("kind", "status", "outcome", "stream", "method", "subject", "id"))
_MICRO = 1e6


class Rows:
    """Columns of the table, filled entry by entry.

    Attributes:
        left_out: number of entries that exceeded MOST_ROWS.
    """

    def __init__(self, timeline: Timeline, bodies: Bodies) -> None:
        self._timeline = timeline
        self._dialect = timeline.dialect
        self._bodies = bodies
        self._columns = {name: array("q") for name in _COLUMNS}
        self._texts: dict[str, int] = {"": 0}
        self._further: dict[int, list[int]] = {}  # bodies of responses before the last one
        self._calls: dict[int, int] = {}  # number of an open call of the timeline to its row
        self._open: dict[int, dict[int, None]] = {}  # rows of the host's open calls, by connection
        self._names: dict[tuple[int, str], int] = {}  # names in requests that the host generated, to their rows
        self._requests = 0
        self.left_out = 0

    def __len__(self) -> int:
        return len(self._columns["kind"])

    def add(self, entry: Entry, line: int) -> None:
        """Append an entry, or complete the row of the call that it answers."""
        if entry.call is not None and entry.call in self._calls and entry.kind != "request":
            self._answer(entry, line, self._calls[entry.call])
        elif len(self) >= MOST_ROWS:
            self.left_out += 1
        elif entry.message is not None:
            self._message(entry, entry.message, line)
        else:  # a stderr line, a mark, or bytes that are not a message
            # An empty line on standard error, and one that is not UTF-8, is a line.
            kind = "stderr" if entry.stream == "err" and entry.kind == "junk" else entry.kind
            mark = not entry.payload and kind not in {"stderr", "junk", "other"}
            text = entry.text if kind in {"stderr", "junk", "other"} else entry.payload  # without colors
            wrong = kind == "junk" or (kind == "exit" and entry.label != "exit 0")
            self.append(
                "mark" if mark else kind,
                entry.time,
                None,
                status="error" if wrong else "",
                stream=entry.stream,
                conn=entry.conn,
                method="" if kind == "stderr" else entry.label,
                line=line,
                request=-1 if mark else self._bodies.add_raw(text, line=line),
            )

    def append(self, kind: str, time: float, took: float | None, /, **values: int | str) -> int:
        """Append a row. Return its number. Columns that are not named are empty."""
        values |= {"kind": kind, "time": round(time * _MICRO), "took": -1 if took is None else round(took * _MICRO)}
        for name, column in self._columns.items():
            value = values.get(name, -1 if name in {"parent", "request", "response"} else 0)
            column.append(self._text(value) if isinstance(value, str) else value)
        return len(self) - 1

    def calls(self) -> Iterator[tuple[int, str, float, float]]:
        """Yield the row, id, start and end of each of the host's calls; the end is inf without an answer."""
        columns = self._columns
        texts = list(self._texts)
        kind, stream = self._texts.get("call", -1), self._texts.get("in", -1)
        for row in range(len(self)):
            if columns["kind"][row] == kind and columns["stream"][row] == stream:
                start, took = columns["time"][row] / _MICRO, columns["took"][row]
                yield row, texts[columns["id"][row]], start, float("inf") if took < 0 else start + took / _MICRO

    def data(self) -> dict[str, object]:
        """Return the table as JSON values and arrays."""
        return {"texts": list(self._texts), "further": self._further, **self._columns}

    # --- One entry ----------------------------------------------------------------------------------------------------

    def _message(self, entry: Entry, message: ClassifiedMessage, line: int) -> None:
        host = entry.stream == "in"
        kind = "call" if entry.kind == "request" else "notification" if entry.kind == "notification" else "response"
        failed = entry.kind in {"error", "failure"}
        self._requests += kind == "call" and host
        row = self.append(
            kind,
            entry.time,
            None,
            status="open" if kind == "call" else "error" if failed else "",
            outcome="no answer" if kind == "call" else _failure(entry) if failed else "",
            stream=entry.stream,
            conn=entry.conn,
            method=message.method or ("answer to nothing" if kind == "response" else ""),
            subject=self._dialect.about(message),
            id=message.id,
            parent=self._parent(entry, message),
            number=self._requests if kind == "call" and host else 0,
            line=line,
            request=self._bodies.add(entry.payload, content=content_of(message), line=line),
        )
        if kind == "call" and entry.call is not None:
            self._calls[entry.call] = row
            if host:
                self._open.setdefault(entry.conn, {})[row] = None
                for name in self._values(message, self._dialect.client_generated):
                    self._names[entry.conn, name] = row
        elif "cancel" in message.method.lower() and (call := self._referred(entry, message)) is not None:
            self._set(call, "status", "cancelled")
            self._set(call, "outcome", "cancelled")
            self._columns["took"][call] = self._columns["time"][row] - self._columns["time"][call]

    def _answer(self, entry: Entry, line: int, row: int) -> None:
        columns = self._columns
        if columns["response"][row] >= 0:
            self._further.setdefault(row, []).append(columns["response"][row])
        content = content_of(entry.message) if entry.message else ("", 0, 0)
        columns["response"][row] = self._bodies.add(entry.payload, content=content, line=line)
        columns["took"][row] = round((entry.took or 0.0) * _MICRO)
        if entry.last and entry.call is not None:
            del self._calls[entry.call]
            self._open.get(columns["conn"][row], {}).pop(row, None)
            if columns["status"][row] != self._text("cancelled"):
                failed = entry.kind != "response"
                self._set(row, "status", "error" if failed else "ok")
                self._set(row, "outcome", _failure(entry) if failed else "ok")

    def _parent(self, entry: Entry, message: ClassifiedMessage) -> int:
        """Return the row of the call that a message belongs to; -1 if it is not known.

        A message of the child belongs to the call whose id or name it repeats, else to the only one that is open.
        """
        if (call := self._referred(entry, message)) is not None:
            return call
        if entry.stream != "out" or entry.kind not in {"request", "notification"}:
            return -1
        for name in self._values(message, self._dialect.echoed_names):
            if (row := self._names.get((entry.conn, name))) is not None:
                return row
        opened = self._open.get(entry.conn, {})
        return next(iter(opened)) if len(opened) == 1 else -1

    def _referred(self, entry: Entry, message: ClassifiedMessage) -> int | None:
        """Return the row of the open call whose id a message names; None if it names none."""
        other = "in" if entry.stream == "out" else "out"
        for table, stream in ((self._dialect.references, entry.stream), (self._dialect.mentions, other)):
            for pointer in pointers_of(table, message.method):
                value = message.at(pointer)
                if value is not MISSING and isinstance(value, (str, int, float)):
                    call = self._timeline.open_call(stream, entry.conn, id_key(value, dumps(value)))
                    if call is not None and call in self._calls:
                        return self._calls[call]
        return None

    def _values(self, message: ClassifiedMessage, table: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
        for pointer in pointers_of(table, message.method):
            value = message.at(pointer)
            if isinstance(value, (str, int, float)):
                yield dumps(value)

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def _set(self, row: int, name: str, text: str) -> None:
        self._columns[name][row] = self._text(text)


def _failure(entry: Entry) -> str:
    """Return the outcome of an error: `error -32601`, or `failed` if the protocol reports it in a result."""
    return entry.text.partition(":")[0] if entry.kind == "error" else "failed"
