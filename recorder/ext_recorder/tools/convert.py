r"""`convert`: cassettes to JSON lines and back, recordings of other programs (`importers`) to cassettes, HTTP to HAR.

A format is detected from the first bytes of a file, not from its name. A cassette as JSON lines:

{"cassette":1,"recorder":"0.1.0","protocol":"gevals","framing":"ndjson","command":["ext-shell"],…}
{"t":0.000123,"in":"{\"jsonrpc\":\"2.0\",…}"}      a message of the host, as a string with its exact text
{"t":0.021000,"out":"…","head":["…"]}             a message of the child, with unusual header lines
{"t":0.021100,"err":"a line"}                     a line of its standard error
{"t":0.023000,"out":{"raw":"aGk="}}               exact bytes, in base64
{"t":0.140000,"conn":2,"eof":"in"}                of the second connection; also exit, signal and open
{"redacted":["bearer"]}
"""

from __future__ import annotations

import os
import sys
from binascii import b2a_base64
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import parse_qsl, urlsplit

from ext_recorder.batch.selection import begins_a_cassette
from ext_recorder.cassette.events import MARKS, STREAMS, Data, Mark
from ext_recorder.cassette.fast_parser import mark_of, raw_bytes
from ext_recorder.cassette.header import VERSION, Header, header_of
from ext_recorder.cassette.paths import SUFFIX, beside, target_of
from ext_recorder.cassette.reader import Reader
from ext_recorder.cassette.recording import opened as opened_recording
from ext_recorder.cassette.writer import encode_event, write_cassette
from ext_recorder.errors import CassetteError, UsageError
from ext_recorder.messages.path_bindings import RecordBindings
from ext_recorder.messages.redaction import Redaction
from ext_recorder.protocols.dialect import DIALECTS
from ext_sdk.core import __version__
from ext_sdk.core.atomic import atomic_write
from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.json_codec import dumps, loads

from .endpoints import content_of
from .importers import FRAMING, IMPORTS, PROTOCOL, events

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping

    from ext_recorder.cassette.events import Event
    from ext_recorder.cassette.yaml_scalars import Flow
    from ext_recorder.http.interaction import Body, Headers, Interaction

CASSETTE = "cassette"
JSONL = "jsonl"
HAR = "har"  # only as a target
HEAD_BYTES = 65_536  # some formats of other programs are detected by a member that is not at the beginning


NAMES = (CASSETTE, JSONL, *IMPORTS)


def format_of(path: Path) -> str:
    """Return the name of a file's format.

    Raises:
        CassetteError: the format is unknown, or the file does not exist.
    """
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except FileNotFoundError:
        raise CassetteError(path, 0, "no such file", "record it first: ext-recorder record") from None
    first = head.partition(b"\n")[0]
    try:
        value = loads(first.decode())
    except (MessageError, UnicodeDecodeError):
        value = {}
    members = value if isinstance(value, dict) else {}
    if "cassette" in members and ("framing" in members or "protocol" in members) and b"events" not in first:
        return JSONL
    for name, format in IMPORTS.items():
        if not format.document and format.members <= members.keys():
            return name
    if begins_a_cassette(head) and head.strip():
        return CASSETTE
    for name, format in IMPORTS.items():
        if format.document and head.lstrip()[:1] == b"{" and b'"format_version"' in head:
            return name
    raise CassetteError(path, 0, f"unknown format; known are {', '.join(NAMES)}", "name the format with --from")


class Source(Protocol):
    """Open file with events.

    Attributes:
        header: its header.
    """

    header: Header

    @property
    def redacted(self) -> tuple[str, ...] | None:
        """Redaction rules that have replaced something; complete after the last event."""

    def __iter__(self) -> Iterator[Event]: ...

    def close(self) -> None:
        """Close the file."""


_TEXTS = ("recorder", "protocol", "framing", "recorded")
_LATEST = 1e9  # seconds, as in cassettes


def written(source: Source) -> Iterator[str]:
    """Yield a session as JSON lines. Raises CassetteError."""
    header = source.header
    head: dict[str, object] = {"cassette": VERSION}
    head |= {name: value for name in _TEXTS if (value := getattr(header, name))}
    if header.command:
        head["command"] = list(header.command)
    if header.environment:
        head["environment"] = header.environment
    if header.bindings:
        head["bindings"] = header.bindings
    yield dumps(head) + "\n"
    for event in source:
        yield line(event)
    yield dumps({"redacted": list(source.redacted or ())}) + "\n"


def line(event: Event) -> str:
    """Return the line for an event."""
    connection = f',"conn":{event.conn}' if event.conn != 1 else ""
    head = f'{{"t":{event.time:.6f}{connection},"{event.kind}":'
    if isinstance(event, Mark):
        return f"{head}{dumps(event.value)}}}\n"
    try:
        text = None if event.raw else event.payload.decode()
    except UnicodeDecodeError:  # only in cassettes of other programs; `record` writes such bytes as raw
        text = None
    if text is None:
        return f'{head}{{"raw":"{b2a_base64(event.payload, newline=False).decode()}"}}}}\n'
    tail = f',"head":{dumps(list(event.head))}' if event.head else ""
    return f"{head}{dumps(text)}{tail}}}\n"


class JsonLines:
    """Reader of JSON lines. Iterate over it once to get the events.

    Attributes:
        header: the first line.
        redacted: the last line; () until it was read.

    Raises:
        CassetteError: a line is not valid, or the last line is missing; also while iterating.
    """

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._lines = _objects(path)
        self.redacted: tuple[str, ...] = ()
        _, first = next(self._lines, (0, {}))
        command, maps = first.get("command", []), {name: first.get(name, {}) for name in ("bindings", "environment")}
        if not isinstance(command, list):
            raise CassetteError(path, 1, "expected `command` to be a list")
        fields = {name: str(value) for name, value in first.items() if name in {"cassette", *_TEXTS}}
        listed = {"command": [str(word) for word in command]}
        named: dict[str, Flow] = {}
        for name, map in maps.items():
            if not isinstance(map, dict):
                raise CassetteError(path, 1, f"expected `{name}` to be an object")
            named[name] = {str(key): str(value) for key, value in map.items()}
        self.header: Header = header_of(self._path, {**fields, **listed, **named})

    def close(self) -> None:
        """Close the file."""
        self._lines.close()

    def __iter__(self) -> Iterator[Event]:
        number = 1
        for number, fields in self._lines:
            if "redacted" in fields:
                listed = fields["redacted"]
                self.redacted = tuple(map(str, listed)) if isinstance(listed, list) else ()
                return
            yield _event(self._path, number, fields)
        problem = 'the file ends without its last line, {"redacted":[…]}'
        raise CassetteError(self._path, number, problem, "the file is truncated")


def _objects(path: Path) -> Generator[tuple[int, dict[str, object]], None, None]:
    with path.open("rb") as file:
        for number, data in enumerate(file, 1):
            if data.isspace():
                continue
            try:
                value = loads(data.decode())
            except (MessageError, UnicodeDecodeError) as error:
                raise CassetteError(path, number, f"expected a line of JSON: {error}") from None
            if not isinstance(value, dict):
                raise CassetteError(path, number, "expected a JSON object")
            yield number, value


def _event(path: str, number: int, fields: Mapping[str, object]) -> Event:
    """Return the event of a line. Raises CassetteError."""
    kinds = [name for name in (*STREAMS, *MARKS) if name in fields]
    unknown = fields.keys() - {"t", "conn", "head", *kinds}
    if len(kinds) != 1 or unknown:
        known = ", ".join((*STREAMS, *MARKS))
        raise CassetteError(path, number, f"expected one of {known}, found {', '.join(fields) or 'nothing'}")
    time, conn = _number(path, number, fields, "t"), int(_number(path, number, {"conn": 1, **fields}, "conn"))
    mark = next((kind for kind in MARKS if kind in fields), None)
    if mark:
        value = fields[mark]
        word = str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
        parsed = mark_of(mark, time, word, conn) if word else None
        if parsed is None:
            raise CassetteError(path, number, f"{value!r} is not a value of `{mark}`")
        return parsed
    stream = next(kind for kind in STREAMS if kind in fields)
    value = fields[stream]
    head = fields.get("head", [])
    if not isinstance(head, list):
        raise CassetteError(path, number, "expected `head` to be a list of header lines")
    if isinstance(value, str):
        payload = value.encode("utf-8", "surrogatepass")
        return Data(stream, time, payload, head=tuple(map(str, head)), conn=conn)
    raw = value.get("raw") if isinstance(value, dict) and len(value) == 1 else None
    wire = raw_bytes(raw.encode()) if isinstance(raw, str) and raw.isascii() else None
    if wire is None:
        raise CassetteError(path, number, f'expected `{stream}` to be a text, or {{"raw":"<base64>"}}')
    return Data(stream, time, wire, raw=True, conn=conn)


def _number(path: str, number: int, fields: Mapping[str, object], name: str) -> float:
    value = fields.get(name)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _LATEST:
        return float(value)
    raise CassetteError(path, number, f"expected `{name}` to be a number from 0 on, found {value!r}")


STDOUT = "-"


class Options:
    """Options for recordings of other programs.

    Attributes:
        protocol: protocol of the messages.
        redact: redaction rules.
        bind: paths to replace by placeholders, by name.
        notes: about variables of a project file that do not exist.
    """

    __slots__ = ("bind", "notes", "protocol", "redact")

    def __init__(
        self, *, protocol: str = "", redact: Redaction | None = None, bind: Mapping[str, str] | None = None
    ) -> None:
        self.protocol = protocol or PROTOCOL
        self.redact = redact or Redaction()
        self.notes = self.redact.require(for_recording=False)
        self.bind = dict(bind or {})


def convert(path: Path, target: str, options: Options, *, source: str = "", to: str = "", replace: bool = False) -> str:
    """Convert one file.

    Args:
        target: the new file; "-" for standard output, only for JSON lines.
        source: format of the file; "" to detect it.
        to: format of the new file; "" for JSON lines from a cassette, and for a cassette from all other formats.

    Returns:
        A message for the user; "" if the output is standard output.

    Raises:
        CassetteError, UsageError, OSError: the file cannot be read, or the new one written.
    """
    if path.is_dir() or path.name.endswith(SUFFIX) or to == HAR:
        return _to_har(path, target, to, replace=replace)
    source = source or format_of(path)
    to = to or (JSONL if source == CASSETTE else CASSETTE)
    if to == CASSETTE and target == STDOUT:
        raise UsageError("a cassette cannot be written to standard output; give a file with -o FILE")
    opened: Source = (
        Reader(path) if source == CASSETTE else JsonLines(path) if source == JSONL else _Import(path, source, options)
    )
    with closing(opened):
        if to == CASSETTE:
            framing = FRAMINGS[opened.header.framing]
            lines = (encode_event(event, framing) for event in opened)
            count = write_cassette(Path(target), opened.header, lines, lambda: opened.redacted or (), replace=replace)
            return f"{target}: {count} events, from {source}"
        if not _write(target, written(opened), replace=replace):
            return ""
    return f"{target}: JSON lines, from {source}"


def _write(target: str, lines: Iterable[str], *, replace: bool) -> bool:
    """Write a new file. Return False for standard output."""
    if target == STDOUT:
        sys.stdout.writelines(lines)
        return False
    path = Path(target_of(target))
    if path.exists() and not replace:
        raise UsageError(f"{path} exists; choose another name, or replace it with --force")
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(str(path)) as file:
        file.writelines(line.encode("utf-8", "replace") for line in lines)
    return True


def _to_har(path: Path, target: str, to: str, *, replace: bool) -> str:
    """Write the HTTP traffic of a recording, or of a cassette, as a HAR file."""
    if to not in {"", HAR}:
        raise UsageError(f"{path}: a recording of a run becomes {HAR}; convert the cassettes in it one by one to {to}")
    recorded = None if path.name.endswith(SUFFIX) else opened_recording(path)
    traffic = path if recorded is None else recorded.traffic
    if traffic is None:
        raise UsageError(f"{path}: no HTTP traffic; expected {beside(str(path))}, which record --http writes")
    header = recorded.header if recorded else None
    title = " ".join(header.command) if header else path.name
    if not _write(target, har(traffic, title), replace=replace):
        return ""
    return f"{target}: HAR, from {traffic}"


def har(path: Path, title: str) -> Iterator[str]:
    """Yield the HTTP interactions of a file as a HTTP Archive 1.2, which tools of browsers and proxies open.

    Args:
        title: of its only page.

    Raises:
        CassetteError: the file cannot be read.
    """
    from ext_recorder.http.reader import interactions, open_document

    document = open_document(path)
    if document.file is not None:
        document.file.close()
    epoch, recorded = document.values.get("epoch"), str(document.values.get("recorded") or "1970-01-01T00:00:00Z")
    zero = datetime.fromisoformat(recorded)
    if isinstance(epoch, int):
        zero = datetime.fromtimestamp(epoch / 1e9, UTC)
    redactor = Redaction().redactor()
    page = {"startedDateTime": zero.isoformat(), "id": "run", "title": title, "pageTimings": {}}
    log = {"version": "1.2", "creator": {"name": "ext-recorder", "version": __version__}, "pages": [page]}
    yield redactor.redact_text(f'{{"log":{dumps(log)[:-1]},"entries":[')
    separator = "\n"
    for item in interactions(path):
        yield separator + redactor.redact_text(dumps(_har_entry(item, zero)))
        separator = ",\n"
    yield "\n]}}\n"


def _har_entry(item: Interaction, zero: datetime) -> dict[str, object]:
    took, url = round(item.elapsed * 1000, 3), urlsplit(item.uri)
    query = [{"name": name, "value": value} for name, value in parse_qsl(url.query, keep_blank_values=True)]
    sent, received = _har_content(item.request_headers, item.request_body), _har_content(item.headers, item.body)
    request: dict[str, object] = {
        "method": item.method, "url": item.uri, "httpVersion": "HTTP/1.1", "cookies": [],
        "headers": _har_headers(item.request_headers), "queryString": query, "headersSize": -1,
        "bodySize": item.request_body.size if item.request_body else 0,
    }  # fmt: skip
    if item.request_body and item.request_body.size:
        request["postData"] = {"mimeType": sent["mimeType"], "text": sent["text"]} | (
            {"encoding": sent["encoding"]} if "encoding" in sent else {}
        )
    response = {
        "status": item.status, "statusText": item.reason, "httpVersion": f"HTTP/{item.http_version}", "cookies": [],
        "headers": _har_headers(item.headers), "content": received, "headersSize": -1,
        "redirectURL": next((value for name, value in item.headers if name.lower() == "location"), ""),
        "bodySize": item.body.size if item.body else 0,
    }  # fmt: skip
    entry: dict[str, object] = {
        "pageref": "run", "startedDateTime": (zero + timedelta(seconds=item.time)).isoformat(), "time": took,
        "request": request, "response": response, "cache": {}, "timings": {"send": 0, "wait": took, "receive": 0},
    }  # fmt: skip
    address = item.peer.rpartition(":")[0].strip("[]")
    entry |= {"serverIPAddress": address} if address else {}
    return entry | ({"_error": str(item.error.get("message") or item.error.get("type"))} if item.error else {})


def _har_headers(headers: Headers) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in headers]


def _har_content(headers: Headers, body: Body | None) -> dict[str, object]:
    """Return a body without its encoding: as text, or in base64."""
    kind = next((value for name, value in headers if name.lower() == "content-type"), "application/octet-stream")
    data = content_of(headers, body, HAR_BYTES)
    if data is None:  # in an unknown encoding, or too long
        data = body.whole() if body is not None and body.size <= HAR_BYTES else b""
    content: dict[str, object] = {"size": len(data), "mimeType": kind}
    try:
        return {**content, "text": data.decode()}
    except UnicodeDecodeError:
        return {**content, "text": b2a_base64(data, newline=False).decode(), "encoding": "base64"}


HAR_BYTES = 64 * 1024 * 1024  # of a body; a longer one is left out


class _Import:
    """Recording of another program: redacted, with placeholders for paths."""

    def __init__(self, path: Path, source: str, options: Options) -> None:
        self._messages = IMPORTS[source].read(path)
        self._redactor = options.redact.redactor()
        dialect = DIALECTS[options.protocol]
        self._bindings = RecordBindings(dialect, options.bind, os.environ.get("HOME", ""))
        self.header = Header(dialect.name, FRAMING, recorder=__version__, bindings=self._bindings.neutral())

    @property
    def redacted(self) -> tuple[str, ...]:
        """Redaction rules that have replaced something so far."""
        return self._redactor.fired

    def __iter__(self) -> Iterator[Event]:
        for event in events(self._messages):
            if event.kind == "in":
                self._bindings.observe(event.payload)
            payload = self._bindings.clean(self._redactor.redact(event.payload))
            yield Data(event.kind, event.time, payload)

    def close(self) -> None:
        """Do nothing: the iterator closes the file."""
