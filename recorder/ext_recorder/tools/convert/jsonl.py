r"""A cassette as JSON lines: the header, one line per event, and the redaction rules.

{"cassette":1,"recorder":"0.1.0","protocol":"gevals","framing":"ndjson","command":["ext-shell"],…}
{"t":0.000123,"in":"{\"jsonrpc\":\"2.0\",…}"}      a message of the host, as a string with its exact text
{"t":0.021000,"out":"…","head":["…"]}             a message of the child, with unusual header lines
{"t":0.021100,"err":"a line"}                     a line of its standard error
{"t":0.023000,"out":{"raw":"aGk="}}               exact bytes, in base64
{"t":0.140000,"conn":2,"eof":"in"}                of the second connection; also exit, signal and open
{"redacted":["bearer"]}
"""

from __future__ import annotations

from binascii import b2a_base64
from typing import TYPE_CHECKING, Protocol

from ext_recorder.cassette.events import MARKS, STREAMS, Data, Mark
from ext_recorder.cassette.fast_parser import mark_of, raw_bytes
from ext_recorder.cassette.header import VERSION, Header, header_of
from ext_recorder.errors import CassetteError
from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.json_codec import dumps, loads

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping
    from pathlib import Path

    from ext_recorder.cassette.events import Event, MarkKind
    from ext_recorder.cassette.yaml_scalars import Flow


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
    except UnicodeDecodeError:  # only in cassettes of other programs; ours contains such bytes as raw
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
    kinds = [name for name in (*STREAMS, *MARKS) if name in fields]
    unknown = fields.keys() - {"t", "conn", "head", *kinds}
    if len(kinds) != 1 or unknown:
        known = ", ".join((*STREAMS, *MARKS))
        raise CassetteError(path, number, f"expected one of {known}, found {', '.join(fields) or 'nothing'}")
    time, conn = _number(path, number, fields, "t"), int(_number(path, number, {"conn": 1, **fields}, "conn"))
    mark = next((kind for kind in MARKS if kind in fields), None)
    if mark:
        return _mark(path, number, mark, fields[mark], time=time, conn=conn)
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


def _mark(path: str, number: int, kind: MarkKind, value: object, *, time: float, conn: int) -> Mark:
    word = str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
    mark = mark_of(kind, time, word, conn) if word else None
    if mark is None:
        raise CassetteError(path, number, f"{value!r} is not a value of `{kind}`")
    return mark


def _number(path: str, number: int, fields: Mapping[str, object], name: str) -> float:
    value = fields.get(name)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _LATEST:
        return float(value)
    raise CassetteError(path, number, f"expected `{name}` to be a number from 0 on, found {value!r}")
