"""What all recordings of other programs have in common.

They hold messages of MCP in lines, some with times, none with the end of the process: a cassette made of them ends with
its last message. Their messages are redacted as a recorder does it, because not all of their recorders do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.cassette.events import Data
from ext_recorder.errors import CassetteError
from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.json_codec import loads
from ext_sdk.core.wire.json_object import scan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ext_recorder.cassette.events import Stream
    from ext_sdk.core.wire.json_object import Envelope

PROTOCOL = "mcp"
FRAMING = "ndjson"
NOT_STDIO = "it was recorded over HTTP, and a cassette is a session on stdio or a socket"


class Said:
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


def events(said: Iterator[Said]) -> Iterator[Data]:
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


def document(path: Path) -> object:
    """A file that is one JSON document. Raises CassetteError."""
    try:
        return loads(path.read_bytes().decode())
    except (MessageError, UnicodeDecodeError) as error:
        raise CassetteError(path, 0, f"no JSON document: {error}") from None


def side(path: Path, number: int, word: object, sides: dict[str, Stream]) -> Stream:
    """Who said it. Raises CassetteError."""
    found = sides.get(word) if isinstance(word, str) else None
    if found is None:
        raise CassetteError(path, number, f"expected one of {', '.join(sides)} for who said it, found {word!r}")
    return found


def seconds(path: Path, number: int, value: object, unit: float = 1.0) -> float:
    """A time. Raises CassetteError."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value * unit
    raise CassetteError(path, number, f"expected a time in numbers, found {value!r}")
