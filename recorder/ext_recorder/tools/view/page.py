"""Page of a cassette: the template, its style and scripts, and the data. Memory use is bounded.

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
from pathlib import Path
from typing import TYPE_CHECKING

from ext_recorder.cassette.paths import beside
from ext_recorder.cassette.reader import Reader
from ext_recorder.messages.redaction import Redaction
from ext_recorder.tools.timeline import Timeline
from ext_sdk.core.wire.json_codec import dumps

from .bodies import Bodies
from .rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Concatenated in this order: each uses definitions of the previous ones.
SCRIPTS = (
    "format", "bodies", "rows", "json", "contents", "state", "command", "overview", "figures",
    "list", "detail", "controls", "keys", "main",
)  # fmt: skip
# Present in every page, and in no other HTML: `view` replaces such a file without --force.
SIGNATURE = b'<script id="rows" type="application/json">'


def page(path: Path, environ: Mapping[str, str] = os.environ) -> Iterator[bytes]:
    """Yield an HTML page, piece by piece.

    Args:
        path: the cassette; NAME.http.yaml next to it is included.
        environ: variables; those with secret names are redacted again, because a cassette may be older than they are.

    Raises:
        CassetteError: a file cannot be read; raised before the first piece.
    """
    redactor = Redaction().redactor(environ)
    bodies = Bodies()
    try:
        with Reader(path) as reader:
            header = reader.header
            timeline = Timeline(header, redactor.redact)
            rows = Rows(timeline, bodies)
            for event in reader:
                for entry in timeline.entries(event):
                    rows.add(entry, reader.line)
        traffic_left_out = ""
        if (traffic := Path(beside(str(path)))).is_file():
            from ext_recorder.http.writer import without_clients

            from .traffic import add_traffic

            without_clients()
            traffic_left_out = add_traffic(traffic, rows, bodies, redactor.redact_text)
        left_out = {"http": traffic_left_out, "rows": rows.left_out, "bodies": len(bodies.cut)}
        about = {"file": path.name, "command": redactor.redact_text(shlex.join(header.command)), "leftOut": left_out}
        about |= {name: getattr(header, name) for name in ("protocol", "framing", "recorded", "bindings")}
        style, script = _part("page.css"), "".join(_part("scripts", f"{name}.js") for name in SCRIPTS)
        values = {"title": escape(path.name), "style": style, "style_hash": _hash(style)}
        values |= {"script": script, "script_hash": _hash(script)}
        before, _, after = _part("page.html").partition("%(rows)s")
        yield (before % values).encode("utf-8", "replace")
        for text in _json({"about": about, "bodies": bodies.columns(), **rows.data()}):
            # Without these characters, the data cannot end the script element around it.
            harmless = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
            yield harmless.encode("utf-8", "replace")
        yield (after % values).encode()
        yield from bodies.elements()
        yield b"</body>\n</html>\n"
    finally:
        bodies.close()


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
