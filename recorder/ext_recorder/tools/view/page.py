"""Page of a cassette or a recorded run: the template, its style and scripts, and the data. Memory use is bounded.

The table comes before the scripts, so that rows are drawn while the browser still reads the messages behind them.
"""

from __future__ import annotations

import os
import shlex
from array import array
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from ext_recorder.cassette.reader import Reader
from ext_recorder.cassette.recording import HEADER, opened
from ext_recorder.messages.redaction import Redaction
from ext_recorder.tools.endpoints import BY_PROTOCOL, ROLES
from ext_recorder.tools.timeline import Timeline
from ext_sdk.core.wire.json_codec import dumps

from .bodies import Bodies
from .rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ext_recorder.cassette.recording import Recorded
    from ext_sdk.core.redaction.redactor import Redactor

# Concatenated in this order: each uses definitions of the previous ones.
SCRIPTS = (
    "format", "bodies", "rows", "lanes", "json", "contents", "chat", "state", "command", "overview", "figures",
    "list", "detail", "controls", "keys", "main",
)  # fmt: skip
# Present in every page, and in no other HTML: `view` replaces such a file without --force.
SIGNATURE = b'<script id="rows" type="application/json">'


def page(path: Path, environ: Mapping[str, str] = os.environ) -> Iterator[bytes]:
    """Yield an HTML page, piece by piece.

    Args:
        path: a cassette, with NAME.http.yaml next to it, or the folder of a recording.
        environ: variables; those with secret names are redacted again, because a cassette may be older than they are.

    Raises:
        CassetteError: a file cannot be read; raised before the first piece.
    """
    recorded = opened(path)
    bodies = Bodies()
    try:
        data = _data(recorded, bodies, Redaction().redactor(environ))
        style, script = _part("page.css"), "".join(_part("scripts", f"{name}.js") for name in SCRIPTS)
        values = {"title": escape(path.resolve().name), "style": style, "style_hash": _hash(style)}
        values |= {"script": script, "script_hash": _hash(script)}
        before, _, after = _part("page.html").partition("%(rows)s")
        yield (before % values).encode("utf-8", "replace")
        for text in _json(data):
            # Without these characters, the data cannot end the script element around it.
            harmless = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
            yield harmless.encode("utf-8", "replace")
        yield (after % values).encode()
        yield from bodies.elements()
        yield b"</body>\n</html>\n"
    finally:
        bodies.close()


def _data(recorded: Recorded, bodies: Bodies, redactor: Redactor) -> dict[str, object]:
    """Return the table of a recording, and what the page has about it. Raises CassetteError."""
    rows, header = Rows(bodies), recorded.header
    sources: list[dict[str, object]] = []
    protocol = framing = recorded_at = ""
    for number, part in enumerate(recorded.parts):
        with Reader(part.path) as reader:
            head = reader.header
            protocol, framing, recorded_at = head.protocol, head.framing, head.recorded
            timeline = Timeline(head, redactor.redact)
            rows.begin(timeline, number, part.started)
            for event in reader:
                for entry in timeline.entries(event):
                    rows.add(entry, reader.line)
        role = BY_PROTOCOL.get(protocol, "child") if header else "child"
        lane = part.name or recorded.path.stem
        values: dict[str, object] = {"role": role, "lane": lane, "file": part.label, "name": part.path.stem}
        values |= {"command": redactor.redact_text(shlex.join(head.command))}
        sources.append(values | {each: getattr(head, each) for each in ("protocol", "framing", "bindings")})
    about: dict[str, object] = {"file": recorded.path.resolve().name, "protocol": protocol, "framing": framing}
    left_out = {"http": ""}
    if recorded.traffic is not None:
        from ext_recorder.http.writer import without_clients

        from .traffic import Traffic

        without_clients()
        traffic = Traffic(recorded.traffic, redactor.redact_text, own_clock=header is None)
        try:
            traffic.add_to(rows, bodies, len(sources))
        finally:
            traffic.close()
        left_out["http"] = traffic.left_out
        about |= {"chats": traffic.chats, "tokens": traffic.tokens}
        for role, name in traffic.lanes:
            sources.append({"role": role, "lane": redactor.redact_text(name), "file": recorded.traffic.name})
    if header is None:
        about |= {"recorded": recorded_at, "command": sources[0]["command"]}
    else:
        rows.add_phases(len(sources))
        ended = {"source": len(sources), "status": "error" if header.exit != 0 else ""}
        rows.append("mark", header.seconds, None, method=f"exit {header.exit}", **ended)
        about |= {"recorded": header.recorded, "command": redactor.redact_text(shlex.join(header.command))}
        about |= {"exit": header.exit, "seconds": header.seconds, "steps": rows.totals()}
        sources.append({"role": "host", "lane": "host", "file": HEADER})
    lanes = sorted(dict.fromkeys((str(each["role"]), str(each["lane"])) for each in sources), key=_rank)
    for values in sources:
        values["lane"] = lanes.index((str(values.pop("role")), str(values["lane"])))
    if header is not None:
        rows.nest([int(str(values["lane"])) for values in sources], [name for _, name in lanes])
    about["leftOut"] = {**left_out, "rows": rows.left_out, "bodies": len(bodies.cut)}
    about |= {"lanes": [{"role": role, "name": name} for role, name in lanes], "sources": sources}
    return {"about": about, "bodies": bodies.columns(), **rows.data()}


def _rank(lane: tuple[str, str]) -> int:
    return ROLES.index(lane[0])


def _json(value: object) -> Iterator[str]:
    """Yield JSON text, column by column: all of it at once would take several times the memory of the columns."""
    if isinstance(value, array):
        yield f"[{','.join(map(str, value))}]"
    elif isinstance(value, dict):
        separator = "{"
        for key, item in value.items():
            yield f"{separator}{dumps(str(key))}:"
            yield from _json(item)
            separator = ","
        yield "}" if value else "{}"
    else:
        yield dumps(value)


def _part(*names: str) -> str:
    return files(__package__).joinpath(*names).read_text("utf-8")


def _hash(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()
