"""`show`: print a cassette as a timeline, or as one JSON object per event.

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
from io import TextIOWrapper
from shutil import get_terminal_size

from ext_recorder.cassette.reader import Reader
from ext_recorder.cassette.yaml_scalars import visible
from ext_recorder.messages.redaction import Redaction
from ext_sdk.core.wire.json_codec import dumps

from .timeline import Timeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from .timeline import Entry

PLAIN_WIDTH = 160  # characters per line if the output is not a terminal
_RED, _YELLOW, _DIM, _NORMAL = "\x1b[31m", "\x1b[33m", "\x1b[2m", "\x1b[0m"
_ARROWS = {"in": "→", "out": "←", "err": "!"}
_MARKS = {"error": "✗", "failure": "✗", "stderr": "!", "junk": "?"}
_COLORS = {"error": _RED, "failure": _RED, "stderr": _DIM, "junk": _YELLOW, "signal": _YELLOW}
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
    redactor = Redaction().redactor()
    with Reader(path) as reader:
        timeline = Timeline(reader.header, redactor.redact)
        if as_json:
            for event in reader:
                file.writelines(dumps(_as_json(entry)) + "\n" for entry in timeline.entries(event))
            return
        if color is None:
            color = on_terminal and "NO_COLOR" not in os.environ
        width = get_terminal_size().columns if on_terminal else PLAIN_WIDTH
        header = reader.header
        when = f", recorded {header.recorded}" if header.recorded else ""
        by = f" by ext-recorder {header.recorder}" if header.recorder else ""
        lines = [f"{name or path}: {header.protocol} over {header.framing}{when}{by}"]
        for title, values in (
            ("command", " ".join(header.command)),
            ("environment", ", ".join(f"{variable}={value}" for variable, value in header.environment.items())),
            ("bindings", ", ".join(f"{binding} is {value}" for binding, value in header.bindings.items())),
        ):
            lines += [visible(f"{title}: {values}")] if values else []
        file.writelines(redactor.redact_text(line) + "\n" for line in [*lines, ""])
        for event in reader:
            for entry in timeline.entries(event):
                file.write(_line(entry, 0 if raw else width, raw=raw, color=color) + "\n")
        if reader.redacted:
            file.write(f"\nredacted: {', '.join(reader.redacted)}\n")


def _line(entry: Entry, width: int, *, raw: bool, color: bool) -> str:
    """Return a line, cut to `width` characters unless that is 0."""
    mark = _MARKS.get(entry.kind) or _ARROWS.get(entry.stream, " ")
    took = "" if entry.took is None else f"{entry.took * 1000:.0f} ms"
    label = (f"[{entry.conn}] " if entry.conn != 1 else "") + entry.label
    shown = entry.payload if raw else entry.text
    # Without a duration, the label may use its column. So the texts are aligned.
    columns = f"{label:<{_LABEL_WIDTH}}  {took:>8}" if took else f"{label:<{_LABEL_WIDTH + 10}}"
    line = f"{entry.time:10.3f}  {mark}  {visible(columns)}  {visible(shown)}".rstrip()
    if width and len(line) > width:
        line = line[: width - 1] + "…"
    paint = _RED if entry.kind == "exit" and entry.label != "exit 0" else _COLORS.get(entry.kind, "")
    return f"{paint}{line}{_NORMAL}" if color and paint else line


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
