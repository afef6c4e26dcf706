"""The page: a template with its style, its script, and the events as JSON in it."""

from __future__ import annotations

import os
import shlex
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from ext_recorder.cassette.reader import Reader
from ext_recorder.timeline import Timeline
from ext_sdk.redaction import Redactor, secret_variables
from ext_sdk.wire.json_text import dumps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ext_recorder.cassette.header import Header
    from ext_recorder.timeline import Entry

# A page with more is no help to anybody, and no browser's friend.
LONGEST_PAYLOAD = 1_000_000  # characters of one message


def page(path: str, environ: Mapping[str, str] = os.environ) -> str:
    """A cassette as an HTML page.

    Args:
        path: the cassette.
        environ: variables whose values are secrets, if their names look so: a cassette may be older than they are.

    Raises:
        CassetteError: it can't be read.
    """
    redactor = Redactor(secret_variables(environ), rules=True)
    with Reader(path) as reader:
        header = reader.header
        timeline = Timeline(header, redactor.redact)
        command = _command_maker(header, redactor)
        events = [_row(entry, command) for event in reader for entry in timeline.entries(event)]
    style, script = (_part(name) for name in ("page.css", "page.js"))
    return _part("page.html") % {
        "title": escape(os.path.basename(path)),  # noqa: PTH119 - no more of the path belongs into a page
        "about": escape(redactor.redact_text(_about(header))),
        "style": style,
        "style_hash": _hash(style),
        "script": script,
        "script_hash": _hash(script),
        "events": _harmless(dumps(events)),
    }


def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _row(entry: Entry, command: Callable[[Entry], str]) -> list[object]:
    """An event as the script takes it."""
    payload = entry.payload
    if len(payload) > LONGEST_PAYLOAD:
        payload = f"{payload[:LONGEST_PAYLOAD]}… and {len(payload) - LONGEST_PAYLOAD} characters more"
    took = None if entry.took is None else round(entry.took, 6)
    return [
        round(entry.time, 6),
        entry.kind,
        entry.stream,
        entry.label,
        _printable(payload),
        took,
        entry.conn,
        command(entry),
    ]


def _about(header: Header) -> str:
    when = f" · recorded {header.recorded}" if header.recorded else ""
    command = f" · {shlex.join(header.command)}" if header.command else ""
    return f"{header.protocol} over {header.framing}{when}{command}"


def _command_maker(header: Header, redactor: Redactor) -> Callable[[Entry], str]:
    """What makes a shell command of a request, where a shell can spell its framing."""
    program = redactor.redact_text(shlex.join(header.command))
    if not program or header.framing not in {"ndjson", "content-length"}:
        return lambda entry: ""

    def command(entry: Entry) -> str:
        if entry.kind != "request" or entry.stream != "in" or len(entry.payload) > LONGEST_PAYLOAD:
            return ""
        text = shlex.quote(entry.payload)
        if header.framing == "ndjson":
            return f"printf '%s\\n' {text} | {program}"
        size = len(entry.payload.encode("utf-8", "surrogateescape"))
        return f"printf 'Content-Length: {size}\\r\\n\\r\\n%s' {text} | {program}"

    return command


def _hash(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()


def _harmless(text: str) -> str:
    """JSON that can't end the script element that it stands in, in ASCII but for letters."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _printable(text: str) -> str:
    """Text that is UTF-8: what no character is becomes U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
