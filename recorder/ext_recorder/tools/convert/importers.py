"""What all recordings of other programs have in common.

They hold messages of MCP in lines, some with times, none with the end of the process: a cassette made of them ends with
its last message. Their messages are redacted as a recorder does it, because not all of their recorders do.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from ext_recorder.cassette.events import Data
from ext_recorder.errors import CassetteError
from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.json_codec import dumps, loads
from ext_sdk.core.wire.json_object import scan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ext_recorder.cassette.events import Stream
    from ext_sdk.core.wire.json_object import Envelope


PROTOCOL = "mcp"
FRAMING = "ndjson"
NOT_STDIO = "it was recorded over HTTP, and a cassette is a session on stdio or a socket"


class ImportedMessage:
    """One message or line of a foreign recording.

    Attributes:
        stream: who said it.
        time: seconds; any beginning.
        text: as it was, or as its recorder spells it.
    """

    __slots__ = ("stream", "text", "time")

    def __init__(self, stream: Stream, time: float, text: str) -> None:
        self.stream = stream
        self.time = time
        self.text = text


def events(said: Iterator[ImportedMessage]) -> Iterator[Data]:
    """As events, with times that begin at 0."""
    first: float | None = None
    latest = 0.0
    for each in said:
        first = each.time if first is None else first
        latest = max(latest, each.time - first)
        for text in filter(None, each.text.split("\n")):
            yield Data(each.stream, latest, text.encode("utf-8", "surrogatepass"))


def envelopes(path: Path) -> Iterator[tuple[int, Envelope]]:
    """The objects of a file of JSON lines, with their members as they are spelled. Raises CassetteError."""
    with path.open("rb") as file:
        for number, data in enumerate(file, 1):
            if data.isspace():
                continue
            try:
                yield number, scan(data.decode().strip())
            except (MessageError, UnicodeDecodeError) as error:
                raise CassetteError(path, number, f"expected a JSON object on the line: {error}") from None


def load_document(path: Path) -> object:
    """A file that is one JSON document. Raises CassetteError."""
    try:
        return loads(path.read_bytes().decode())
    except (MessageError, UnicodeDecodeError) as error:
        raise CassetteError(path, 0, f"no JSON document: {error}") from None


def stream_of(path: Path, number: int, word: object, sides: dict[str, Stream]) -> Stream:
    """Who said it. Raises CassetteError."""
    found = sides.get(word) if isinstance(word, str) else None
    if found is None:
        raise CassetteError(path, number, f"expected one of {', '.join(sides)} for who said it, found {word!r}")
    return found


def seconds_of(path: Path, number: int, value: object, unit: float = 1.0) -> float:
    """A time. Raises CassetteError."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value * unit
    raise CassetteError(path, number, f"expected a time in numbers, found {value!r}")


MCP_CASSETTE_VERSIONS = (1, 2, 3)
_MCP_CASSETTE_SIDES: dict[str, Stream] = {"client": "in", "server": "out"}


def read_mcp_cassette(path: Path) -> Iterator[ImportedMessage]:
    """What was said. Raises CassetteError."""
    whole = load_document(path)
    version = whole.get("format_version") if isinstance(whole, dict) else None
    if not isinstance(whole, dict) or version not in MCP_CASSETTE_VERSIONS:
        advice = "record the session anew"
        raise CassetteError(path, 0, f"format_version {version!r}; known are 1, 2 and 3", advice)
    if whole.get("transport") == "http":
        raise CassetteError(path, 0, NOT_STDIO)
    messages = whole.get("messages")
    for number, message in enumerate(messages if isinstance(messages, list) else [], 1):
        if not isinstance(message, dict) or "payload" not in message:
            raise CassetteError(path, 0, f"message {number}: expected an object with its payload")
        payload = message["payload"]
        text = payload if isinstance(payload, str) else dumps(payload)
        time = seconds_of(path, 0, message.get("t_offset_ms"), 1e-3)
        yield ImportedMessage(stream_of(path, 0, message.get("sender"), _MCP_CASSETTE_SIDES), time, text)


_MCP_REC_SIDES: dict[str, Stream] = {"client->server": "in", "server->client": "out"}


def read_mcp_rec(path: Path) -> Iterator[ImportedMessage]:
    """What was said. Raises CassetteError."""
    for number, line in envelopes(path):
        message, text = line.value("msg"), line.member_text("msg")
        if text is None:
            raise CassetteError(path, number, "expected `ts`, `dir` and `msg`")
        if isinstance(message, dict) and message.get("_unparsed") is True:
            text = str(message.get("_raw", ""))
        yield ImportedMessage(
            stream_of(path, number, line.value("dir"), _MCP_REC_SIDES), seconds_of(path, number, line.value("ts")), text
        )


_MCPSNOOP_META = "meta"  # the command of the session; for people
_MCPSNOOP_SIDES: dict[str, Stream] = {"c2s": "in", "s2c": "out", "stderr": "err"}


def read_mcpsnoop(path: Path) -> Iterator[ImportedMessage]:
    """What was said. Raises CassetteError."""
    session: object = None
    for number, envelope in envelopes(path):
        session = envelope.value("session_id") if session is None else session
        if envelope.value("session_id") != session:
            raise CassetteError(path, number, "a second session", "convert each session from a file of its own")
        if envelope.value("transport") == "http":
            raise CassetteError(path, number, NOT_STDIO)
        if envelope.value("truncated") is True:
            raise CassetteError(path, number, "the message was cut by its recorder", "record the session anew")
        if envelope.value("direction") == _MCPSNOOP_META:
            continue
        text = envelope.member_text("raw") or envelope.value("text")
        stream = stream_of(path, number, envelope.value("direction"), _MCPSNOOP_SIDES)
        yield ImportedMessage(
            stream, _mcpsnoop_time(path, number, envelope.value("ts")), text if isinstance(text, str) else ""
        )


def _mcpsnoop_time(path: Path, number: int, text: object) -> float:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        raise CassetteError(path, number, f"expected a time of day in `ts`, found {text!r}") from None


TYPESCRIPT_VERSIONS = (1, 2)
_TYPESCRIPT_SIDES: dict[str, Stream] = {"c2s": "in", "s2c": "out"}


def read_mcp_cassette_ts(path: Path) -> Iterator[ImportedMessage]:
    """What was said. Raises CassetteError."""
    lines = envelopes(path)
    number, header = next(lines)
    version = header.value("cassetteVersion")
    if version not in TYPESCRIPT_VERSIONS:
        raise CassetteError(path, number, f"cassetteVersion {version!r}; known are 1 and 2", "record the session anew")
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
