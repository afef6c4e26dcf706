"""`show`: print a cassette or a recorded run as a timeline, or as one JSON object per event.

    0.000  →  initialize #1            {"protocolVersion":"0.0.1"}
    0.021  ←  initialize #1     21 ms  {"name":"shell",…}
    0.030  →  execute #2               {"operation":"run",…}
    0.055  ←  log                      {"level":"info","message":"…"}
    0.056  ✗  execute #2        26 ms  failed: exit code 1
    0.057  !                           a line on stderr
    0.140  →  end of input
    0.150     exit 0

All output is redacted again, because a cassette may be written by hand. Control characters are escaped, so that a
message cannot control the terminal.
"""

from __future__ import annotations

import os
import sys
from heapq import merge
from io import TextIOWrapper
from pathlib import Path
from shutil import get_terminal_size
from typing import NamedTuple

from ext_recorder.cassette.events import Mark
from ext_recorder.cassette.reader import Reader
from ext_recorder.cassette.recording import opened
from ext_recorder.cassette.yaml_scalars import visible
from ext_recorder.messages.redaction import Redaction
from ext_sdk.core.text import cut
from ext_sdk.core.wire.json_codec import dumps

from .timeline import Entry, Timeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

    from ext_recorder.cassette.recording import Part, Recorded, RunHeader
    from ext_sdk.core.redaction.redactor import Redactor

PLAIN_WIDTH = 160  # characters per line if the output is not a terminal
_RED, _YELLOW, _DIM, _NORMAL = "\x1b[31m", "\x1b[33m", "\x1b[2m", "\x1b[0m"
_ARROWS = {"in": "→", "out": "←", "err": "!"}
_MARKS = {"http": "⇄", "error": "✗", "failure": "✗", "stderr": "!", "junk": "?"}
_COLORS = {"error": _RED, "failure": _RED, "stderr": _DIM, "junk": _YELLOW, "signal": _YELLOW}
_LANE_WIDTH = 24
_LABEL_WIDTH = 22  # most methods with their ids


def show(
    path: str,
    *,
    name: str = "",
    raw: bool = False,
    as_json: bool = False,
    file: TextIO | None = None,
    color: bool | None = None,
) -> None:
    """Print a cassette.

    Args:
        name: name of the cassette in the output; "" for its path.
        as_json: print one JSON object per line.
        file: output; None for standard output.
        color: None for colors on a terminal, unless NO_COLOR is set.

    Raises:
        CassetteError: the file cannot be read; the events before the error are printed.
        BrokenPipeError: the reader of the output has closed it.
    """
    if file is None:
        file = sys.stdout
        if isinstance(file, TextIOWrapper):
            file.reconfigure(errors="replace")  # a character set may have no arrows
    on_terminal = file.isatty()
    recorded = opened(Path(path))
    if color is None:
        color = on_terminal and "NO_COLOR" not in os.environ
    width = 0 if raw else get_terminal_size().columns if on_terminal else PLAIN_WIDTH
    style = _Style(width, raw=raw, color=color, as_json=as_json)
    if recorded.header is not None:
        _show_run(recorded, recorded.header, name or path, file, style)
    else:
        _show_cassette(path, name or path, file, style)


class _Style(NamedTuple):
    """Form of the lines: their width, 0 for complete messages, colors, and JSON."""

    width: int
    raw: bool
    color: bool
    as_json: bool


def _show_run(recorded: Recorded, header: RunHeader, name: str, file: TextIO, style: _Style) -> None:
    redactor = Redaction().redactor()
    children = ", ".join(
        child.name + (f" ({len(child.cassettes)} sessions)" if len(child.cassettes) != 1 else "")
        for child in header.children
    )
    lines = [f"{name}: run of {header.seconds:.1f} s, exit {header.exit}, recorded {header.recorded}"]
    lines += [f"command: {' '.join(header.command)}", f"children: {children or 'none'}"]
    if not style.as_json:
        file.writelines(redactor.redact_text(visible(line)) + "\n" for line in [*lines, ""])
    lanes = [part.name for part in recorded.parts] + [server.rpartition("/")[2] for server in header.endpoints]
    width = min(_LANE_WIDTH, max(map(len, lanes), default=0))
    for lane, entry in merged(recorded, redactor):
        line = (
            dumps({"lane": lane, **_as_json(entry)})
            if style.as_json
            else _line(entry, style, cut(lane, width).ljust(width))
        )
        file.write(f"{line}\n")


def _show_cassette(path: str, name: str, file: TextIO, style: _Style) -> None:
    redactor = Redaction().redactor()
    with Reader(path) as reader:
        timeline = Timeline(reader.header, redactor.redact)
        if style.as_json:
            for event in reader:
                file.writelines(dumps(_as_json(entry)) + "\n" for entry in timeline.entries(event))
            return
        header = reader.header
        when = f", recorded {header.recorded}" if header.recorded else ""
        by = f" by ext-recorder {header.recorder}" if header.recorder else ""
        lines = [f"{name}: {header.protocol} over {header.framing}{when}{by}"]
        for title, values in (
            ("command", " ".join(header.command)),
            ("environment", ", ".join(f"{variable}={value}" for variable, value in header.environment.items())),
            ("bindings", ", ".join(f"{binding} is {value}" for binding, value in header.bindings.items())),
        ):
            lines += [visible(f"{title}: {values}")] if values else []
        file.writelines(redactor.redact_text(line) + "\n" for line in [*lines, ""])
        for event in reader:
            file.writelines(_line(entry, style) + "\n" for entry in timeline.entries(event))
        if reader.redacted:
            file.write(f"\nredacted: {', '.join(reader.redacted)}\n")


def merged(recorded: Recorded, redactor: Redactor) -> Iterator[tuple[str, Entry]]:
    """Yield lane and entry of all events of a recording, in the order of time. Raises CassetteError."""
    lanes = [_entries(part, redactor) for part in recorded.parts]
    if recorded.traffic is not None:
        lanes.append(_requests(recorded.traffic, redactor))
    yield from merge(*lanes, key=lambda item: item[1].time)


def _entries(part: Part, redactor: Redactor) -> Iterator[tuple[str, Entry]]:
    with Reader(part.path) as reader:
        timeline = Timeline(reader.header, redactor.redact)
        for event in reader:
            for entry in timeline.entries(event):
                entry.time += part.started
                yield part.name, entry


def _requests(path: Path, redactor: Redactor) -> Iterator[tuple[str, Entry]]:
    """Yield the HTTP requests of a recording, each with its response."""
    from ext_recorder.http.reader import interactions

    from .endpoints import Endpoints, chat_of, content_of, outcome_of, summary

    endpoints = Endpoints(interactions(path))
    for item in interactions(path):
        endpoint = endpoints.of(item)
        chat = chat_of(item) if endpoint.is_chat else None
        subject = chat.model if chat else endpoint.subject
        body = (content_of(item.headers, item.body) or b"").decode("utf-8", "replace")
        text = f"{chat.asked} ⇒ {chat.answered}" if chat else summary([{"text": body}])
        status, failed = outcome_of(item)
        label = f"{endpoint.method} {subject}".rstrip()
        entry = Entry(Mark("open", item.time, "in"), "error" if failed else "http", label)
        entry.text, entry.payload = redactor.redact_text(f"{status}  {text}"), redactor.redact_text(body)
        entry.label, entry.took = redactor.redact_text(entry.label), item.elapsed
        yield endpoint.role if endpoint.role == "service" else redactor.redact_text(endpoint.server), entry


def _line(entry: Entry, style: _Style, lane: str = "") -> str:
    """Return a line, cut to the width unless that is 0."""
    mark = _MARKS.get(entry.kind) or _ARROWS.get(entry.stream, " ")
    took = "" if entry.took is None else f"{entry.took * 1000:.0f} ms"
    label = (f"[{entry.conn}] " if entry.conn != 1 else "") + entry.label
    shown = entry.payload if style.raw else entry.text
    # Without a duration, the label may use its column. So the texts are aligned.
    columns = f"{label:<{_LABEL_WIDTH}}  {took:>8}" if took else f"{label:<{_LABEL_WIDTH + 10}}"
    where = f"{visible(lane)}  " if lane else ""
    line = f"{entry.time:10.3f}  {where}{mark}  {visible(columns)}  {visible(shown)}".rstrip()
    if style.width and len(line) > style.width:
        line = line[: style.width - 1] + "…"
    paint = _RED if entry.kind == "exit" and entry.label != "exit 0" else _COLORS.get(entry.kind, "")
    return f"{paint}{line}{_NORMAL}" if style.color and paint else line


def _as_json(entry: Entry) -> dict[str, object]:
    fields: dict[str, object] = {"t": round(entry.time, 6), "kind": entry.kind}
    if entry.stream:
        fields["stream"] = entry.stream
    if entry.conn != 1:
        fields["conn"] = entry.conn
    if entry.label:
        fields["label"] = entry.label
    if entry.took is not None:
        fields["took"] = round(entry.took, 6)
    if entry.payload:
        # A lone surrogate represents a byte that is not valid UTF-8. JSON cannot contain it.
        fields["payload"] = "".join("\ufffd" if 0xD800 <= ord(char) <= 0xDFFF else char for char in entry.payload)
    return fields
