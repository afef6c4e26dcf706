"""Formats and readers of recordings that other programs have written.

These contain MCP messages, some with times, none with the exit of the process: a cassette made from one ends with its
last message. The messages are redacted, because not every program redacts its recordings.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from ext_recorder.cassette.events import Data
from ext_recorder.errors import CassetteError
from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.json_codec import dumps, loads, scan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ext_recorder.cassette.events import Stream
    from ext_sdk.core.wire.json_codec import Envelope


PROTOCOL = "mcp"
FRAMING = "ndjson"
NOT_STDIO = "it was recorded over HTTP; only sessions on stdio can be converted"


class ImportedMessage(NamedTuple):
    """Message or line of a recording.

    Attributes:
        stream: its sender.
        time: seconds since any time.
        text: its text, as the recording has it.
    """

    stream: Stream
    time: float
    text: str


def events(messages: Iterator[ImportedMessage]) -> Iterator[Data]:
    """Yield events whose times begin at 0 and never decrease."""
    first: float | None = None
    latest = 0.0
    for message in messages:
        first = message.time if first is None else first
        latest = max(latest, message.time - first)
        for text in filter(None, message.text.split("\n")):
            yield Data(message.stream, latest, text.encode("utf-8", "surrogatepass"))


def envelopes(path: Path) -> Iterator[tuple[int, Envelope]]:
    """Yield line number and object of each line of a file, with the texts of its members. Raises CassetteError."""
    with path.open("rb") as file:
        for number, data in enumerate(file, 1):
            if data.isspace():
                continue
            try:
                yield number, scan(data.decode().strip())
            except (MessageError, UnicodeDecodeError) as error:
                raise CassetteError(path, number, f"expected a JSON object on the line: {error}") from None


def load_document(path: Path) -> object:
    """Read a file that is one JSON document. Raises CassetteError."""
    try:
        return loads(path.read_bytes().decode())
    except (MessageError, UnicodeDecodeError) as error:
        raise CassetteError(path, 0, f"not a JSON document: {error}") from None


def stream_of(path: Path, number: int, name: object, streams: dict[str, Stream]) -> Stream:
    """Return the stream that a recording calls by this name. Raises CassetteError."""
    stream = streams.get(name) if isinstance(name, str) else None
    if stream is None:
        raise CassetteError(path, number, f"expected one of {', '.join(streams)} as the sender, found {name!r}")
    return stream


def seconds_of(path: Path, number: int, value: object, unit: float = 1.0) -> float:
    """Return a time in seconds. Raises CassetteError."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value * unit
    raise CassetteError(path, number, f"expected the time to be a number, found {value!r}")


MCP_CASSETTE_VERSIONS = (1, 2, 3)
_MCP_CASSETTE_SIDES: dict[str, Stream] = {"client": "in", "server": "out"}


def read_mcp_cassette(path: Path) -> Iterator[ImportedMessage]:
    """Yield the messages of a recording by mcp-cassette for Python. Raises CassetteError."""
    document = load_document(path)
    version = document.get("format_version") if isinstance(document, dict) else None
    if not isinstance(document, dict) or version not in MCP_CASSETTE_VERSIONS:
        advice = "record the session again"
        raise CassetteError(path, 0, f"format_version {version!r}; known are 1, 2 and 3", advice)
    if document.get("transport") == "http":
        raise CassetteError(path, 0, NOT_STDIO)
    messages = document.get("messages")
    for number, message in enumerate(messages if isinstance(messages, list) else [], 1):
        if not isinstance(message, dict) or "payload" not in message:
            raise CassetteError(path, 0, f"message {number}: expected an object with its payload")
        payload = message["payload"]
        text = payload if isinstance(payload, str) else dumps(payload)
        time = seconds_of(path, 0, message.get("t_offset_ms"), 1e-3)
        yield ImportedMessage(stream_of(path, 0, message.get("sender"), _MCP_CASSETTE_SIDES), time, text)


_MCP_REC_SIDES: dict[str, Stream] = {"client->server": "in", "server->client": "out"}


def read_mcp_rec(path: Path) -> Iterator[ImportedMessage]:
    """Yield the messages of a recording by mcp-rec. Raises CassetteError."""
    for number, line in envelopes(path):
        message, text = line.value("msg"), line.member_text("msg")
        if text is None:
            raise CassetteError(path, number, "expected `ts`, `dir` and `msg`")
        if isinstance(message, dict) and message.get("_unparsed") is True:
            text = str(message.get("_raw", ""))
        yield ImportedMessage(
            stream_of(path, number, line.value("dir"), _MCP_REC_SIDES), seconds_of(path, number, line.value("ts")), text
        )


_MCPSNOOP_META = "meta"  # the command of the session, for information
_MCPSNOOP_SIDES: dict[str, Stream] = {"c2s": "in", "s2c": "out", "stderr": "err"}


def read_mcpsnoop(path: Path) -> Iterator[ImportedMessage]:
    """Yield the messages of a log of mcpsnoop. Raises CassetteError."""
    session: object = None
    for number, envelope in envelopes(path):
        session = envelope.value("session_id") if session is None else session
        if envelope.value("session_id") != session:
            raise CassetteError(path, number, "a second session", "convert each session from a separate file")
        if envelope.value("transport") == "http":
            raise CassetteError(path, number, NOT_STDIO)
        if envelope.value("truncated") is True:
            raise CassetteError(path, number, "the message was cut by its recorder", "record the session again")
        if envelope.value("direction") == _MCPSNOOP_META:
            continue
        text = envelope.member_text("raw") or envelope.value("text")
        stream = stream_of(path, number, envelope.value("direction"), _MCPSNOOP_SIDES)
        timestamp = envelope.value("ts")
        try:
            time = datetime.fromisoformat(str(timestamp)).timestamp()
        except ValueError:
            raise CassetteError(path, number, f"expected an ISO 8601 time in `ts`, found {timestamp!r}") from None
        yield ImportedMessage(stream, time, text if isinstance(text, str) else "")


TYPESCRIPT_VERSIONS = (1, 2)
_TYPESCRIPT_SIDES: dict[str, Stream] = {"c2s": "in", "s2c": "out"}


def read_mcp_cassette_ts(path: Path) -> Iterator[ImportedMessage]:
    """Yield the messages of a recording by mcp-cassette for TypeScript. Raises CassetteError."""
    lines = envelopes(path)
    number, header = next(lines)
    version = header.value("cassetteVersion")
    if version not in TYPESCRIPT_VERSIONS:
        advice = "record the session again"
        raise CassetteError(path, number, f"cassetteVersion {version!r}; known are 1 and 2", advice)
    if header.value("transport") == "http":
        raise CassetteError(path, number, NOT_STDIO)
    for number, entry in lines:
        kind = entry.value("type")
        if kind not in {"frame", "raw"}:
            raise CassetteError(path, number, f"an entry of type {kind!r}; known on stdio are frame and raw")
        text = entry.member_text("frame") if kind == "frame" else entry.value("data")
        if not isinstance(text, str):
            raise CassetteError(path, number, f"an entry of type {kind} without its content")
        time = seconds_of(path, number, entry.value("t"), 1e-3)
        yield ImportedMessage(stream_of(path, number, entry.value("dir"), _TYPESCRIPT_SIDES), time, text)


class ImportFormat(NamedTuple):
    """Format of another program.

    Attributes:
        title: description.
        members: members of its first line, or of its document, by which it is detected.
        document: True if it is one JSON document, False if it is JSON lines.
        read: yields the messages; raises CassetteError.
    """

    title: str
    members: frozenset[str]
    read: Callable[[Path], Iterator[ImportedMessage]]
    document: bool = False


IMPORTS = {
    "mcp-rec": ImportFormat("mcp-rec: JSON lines", frozenset({"ts", "dir", "msg"}), read_mcp_rec),
    "mcp-cassette-ts": ImportFormat(
        "mcp-cassette for TypeScript: JSON lines, versions 1 and 2",
        frozenset({"type", "cassetteVersion"}),
        read_mcp_cassette_ts,
    ),
    "mcp-cassette": ImportFormat(
        "mcp-cassette for Python: a JSON document, versions 1 to 3",
        frozenset({"format_version", "messages"}),
        read_mcp_cassette,
        document=True,
    ),
    "mcpsnoop": ImportFormat("mcpsnoop: session logs", frozenset({"session_id", "direction", "ts"}), read_mcpsnoop),
}
