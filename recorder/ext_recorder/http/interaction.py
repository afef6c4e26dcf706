"""Interactions, their bodies and transfer. A short body stays in memory, a long one is in a file without a name."""

from __future__ import annotations

import os
import zlib
from binascii import a2b_base64
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Protocol

from ext_recorder.errors import CassetteError

from .inject.ext_recorder_agent.channel import frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


IN_MEMORY = 1024 * 1024  # bytes
PIECE = 64 * 1024  # bytes


class Body:
    """Bytes that are written once and read any number of times."""

    def __init__(self, data: bytes = b"") -> None:
        self._memory = bytearray(data)
        self._file: IO[bytes] | None = None
        self.size = len(data)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes."""
        self.size += len(data)
        if self._file is None and self.size > IN_MEMORY:
            self._file = TemporaryFile()  # noqa: SIM115 - closed by `close`
            self._file.write(self._memory)
            self._memory.clear()
        if self._file is None:
            self._memory += data
        else:
            self._file.write(data)

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes, piece by piece."""
        if self._file is None:
            for at in range(0, self.size, PIECE):
                yield bytes(self._memory[at : at + PIECE])
            return
        self._file.seek(0)
        while piece := self._file.read(PIECE):
            yield piece

    def whole(self) -> bytes:
        """Return all bytes; check `size` first."""
        return bytes(self._memory) if self._file is None else b"".join(self.pieces())

    def close(self) -> None:
        """Release the memory or the file."""
        self._memory.clear()
        if self._file is not None:
            self._file.close()


BINARY_LINE = 57  # bytes in a line of base64, 76 characters
LINES = PIECE // BINARY_LINE  # read at once


class FileBody(Body):
    """Body that stays in a file of interactions, in lines of base64 with the same indent, and is read when it is sent.

    Args:
        file: stays open as long as the body.
        at: offset of the first line.
        size: of the content.
    """

    def __init__(self, file: IO[bytes], at: int, size: int, indent: int) -> None:
        super().__init__()
        self.size = size
        self._source = file
        self._at = at
        self._indent = indent

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes, piece by piece. Raises CassetteError if the file has other content there."""
        at, left = self._at, self.size
        while left:
            size = min(left, LINES * BINARY_LINE)
            length = encoded_length(size, self._indent)
            text = os.pread(self._source.fileno(), length, at).translate(None, b" \n")
            try:
                piece = a2b_base64(text, strict_mode=True)
            except ValueError:
                piece = b""
            if len(piece) != size:
                raise CassetteError(Path(self._source.name), 0, f"expected base64 of {size} bytes at offset {at}")
            yield piece
            at, left = at + length, left - size

    def whole(self) -> bytes:
        """Return all bytes; check `size` first."""
        return b"".join(self.pieces())


def encoded_length(size: int, indent: int) -> int:
    """Return the length of the lines of a body in a file of interactions."""
    full, rest = divmod(size, BINARY_LINE)
    return full * (indent + 77) + (indent + 4 * -(-rest // 3) + 1 if rest else 0)


ENCODINGS = {"gzip": 31, "x-gzip": 31, "deflate": 47}  # Content-Encoding to the window bits of zlib


def decoded(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Yield the content of an encoded body, in pieces of at most PIECE bytes.

    Args:
        encoding: one of ENCODINGS.

    Raises:
        ValueError: the body is not in this encoding. Its end may be missing.
    """
    unpacking = zlib.decompressobj(ENCODINGS[encoding])
    try:
        for piece in pieces:
            data = piece
            while data:
                plain = unpacking.decompress(data, PIECE)
                if plain:
                    yield plain
                data = unpacking.unconsumed_tail
                if not plain and not data:
                    break
    except zlib.error as error:
        raise ValueError(f"not valid {encoding}: {error}") from error


def encoded(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Yield the encoded form of a content, the inverse of `decoded`."""
    bits = 15 if encoding == "deflate" else 31
    packing = zlib.compressobj(wbits=bits)
    for piece in pieces:
        if data := packing.compress(piece):
            yield data
    yield packing.flush()


def collected(pieces: Iterable[bytes]) -> Body:
    """Return a body made of pieces."""
    body = Body()
    for piece in pieces:
        body.write(piece)
    return body


class Observer(Protocol):
    """Observer of one interaction while it is recorded."""

    def sent(self) -> None:
        """Process the complete request."""

    def received(self, *, complete: bool) -> None:
        """Process what has arrived of the response, before the program gets it."""

    def finished(self) -> bool:
        """Process the end of the interaction. Return False if it is still to be recorded as HTTP."""


Headers = list[tuple[str, str]]
Call = int | str | float | None  # id of a request of the host; None: outside calls
CONNECT = "CONNECT"  # method of an interaction that records a failed connection
TCP, TLS = "tcp://", "tls://"  # before the address of a failed connection
HEAD_LIMIT = 1024 * 1024  # bytes of the lines before a body
TEXT_LIMIT = 256 * 1024  # bytes of a body that is written as text; longer ones are streamed


def call_id(value: object) -> Call:
    """Return a value as the id of a request; None if it is not one."""
    return value if isinstance(value, (int, str, float)) else None


@dataclass(slots=True)
class Interaction:
    """Request with its response or error.

    Attributes:
        method, uri, request_headers, request_body: the request.
        status, reason, headers, body: the response; status 0 if there was none.
        chunks: sizes of the chunks of the body, if it was chunked.
        reads: sizes of the pieces in which the child read the response, head included, if there were several.
        call: call of the host that it served.
        time: seconds from the start to the beginning of the request.
        elapsed: seconds until the end of the response.
        http_version: of the response.
        error: exception that ended it: type, errno, message.
        cut: the child did not read the body to its end.
        peer: address that it was sent to.
        tls: version, alpn and certificate of the connection.
        socket: path of the Unix socket, if one was used.
        client: name of the child that has sent the request; "" if it was the command itself, or is not known.
        observer: takes part in the recording.
    """

    method: str = ""
    uri: str = ""
    request_headers: Headers = field(default_factory=list)
    request_body: Body | None = None
    status: int = 0
    reason: str = ""
    headers: Headers = field(default_factory=list)
    body: Body | None = None
    chunks: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    call: Call = None
    time: float = 0.0
    elapsed: float = 0.0
    http_version: str = "1.1"
    error: dict[str, object] | None = None
    cut: bool = False
    peer: str = ""
    tls: dict[str, str] = field(default_factory=dict)
    socket: str = ""
    client: str = ""
    observer: Observer | None = field(default=None, compare=False, repr=False)


def interaction_of(item: Mapping[str, object]) -> Interaction:
    """Return an interaction from its data in a file.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: it is not valid.
    """
    request, response = item["request"], item["response"]
    if not isinstance(request, dict) or not isinstance(response, dict):
        raise TypeError("expected mappings as `request` and `response`")
    interaction = Interaction(str(request["method"]), str(request["uri"]), _pairs(request.get("headers")))
    interaction.request_body = _body(request.get("body"))
    status, body = response["status"], response["body"]
    if not isinstance(status, dict) or not isinstance(body, dict):
        raise TypeError("expected mappings as `status` and `body`")
    interaction.status, interaction.reason = int(status["code"]), str(status.get("message") or "")
    interaction.headers, order = _pairs(response.get("headers")), item.get("order")
    names = [str(name) for name in order] if isinstance(order, list) else []
    # The headers of one name are grouped in the file. Headers edited by hand keep their order there.
    if sorted(names) == sorted(name for name, _ in interaction.headers):
        values: dict[str, list[str]] = {}
        for name, value in interaction.headers:
            values.setdefault(name, []).append(value)
        interaction.headers = [(name, values[name].pop(0)) for name in names]
    interaction.body = _body(body.get("string"))
    interaction.call = call_id(item.get("call"))
    interaction.time, interaction.elapsed = _number(item.get("t")), _number(item.get("elapsed"))
    interaction.http_version = str(item.get("http_version") or "1.1")
    error = item.get("error")
    interaction.error = dict(error) if isinstance(error, dict) else None
    interaction.chunks, interaction.reads = _sizes(item.get("chunks")), _sizes(item.get("reads"))
    interaction.cut = item.get("cut") is True
    interaction.peer, interaction.socket = str(item.get("peer") or ""), str(item.get("socket") or "")
    interaction.client = str(item.get("client") or "")
    return interaction


def _sizes(value: object) -> list[int]:
    return [int(size) for size in value] if isinstance(value, list) else []


def _pairs(headers: object) -> Headers:
    pairs: Headers = []
    for name, values in headers.items() if isinstance(headers, dict) else ():
        pairs += [(str(name), str(value)) for value in (values if isinstance(values, (list, tuple)) else [values])]
    return pairs


def _body(body: object) -> Body:
    if body is None:
        return Body()
    if isinstance(body, Body):
        return body
    if isinstance(body, bytes):
        return Body(body)
    if isinstance(body, str):
        return Body(body.encode("utf-8", "surrogatepass"))
    raise TypeError(f"expected a body as text or !!binary, found {type(body).__name__}")


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def place_of(interaction: Interaction) -> str:
    """Return host and port of an interaction."""
    scheme, _, rest = interaction.uri.partition("://")
    host = rest.partition("/")[0].partition("?")[0].rpartition("@")[2].lower()
    name, _, port = host.rpartition(":")
    if name and port.isdigit() and not name.endswith(":"):
        return host
    return f"{host}:{'443' if scheme == 'https' else '80'}"


def addresses_of(interaction: Interaction) -> set[str]:
    """Return all addresses of the server of an interaction."""
    return {place_of(interaction), interaction.peer, interaction.socket} - {""}


# --- Transfer between processes --------------------------------------------------------------------------------------
# Interactions are sent by the process of the proxy to the worker that writes them: as frames, like those of agents.
# A body that is long follows in pieces before its interaction, so that neither process has it in memory.

SHORT_BYTES = 65_536  # of both bodies together, which are sent with their interaction
SENT = (
    "method", "uri", "status", "reason", "chunks", "reads", "call", "time", "elapsed", "http_version", "error", "cut",
    "peer", "tls", "socket", "client",
)  # fmt: skip
INTERACTION, BODY_PIECE = "interaction", "piece"  # kinds of frames


def frames_of(interaction: Interaction, number: int) -> Iterator[bytes]:
    """Yield the frames of an interaction. Its bodies are released at the end.

    Args:
        number: of the interaction, for its pieces.
    """
    bodies = {"request": interaction.request_body or Body(), "response": interaction.body or Body()}
    short = sum(body.size for body in bodies.values()) <= SHORT_BYTES
    if not short:
        for part, body in bodies.items():
            for piece in body.pieces():
                yield frame({"k": BODY_PIECE, "n": number, "part": part}, piece)
    event: dict[str, object] = {name: getattr(interaction, name) for name in SENT}
    event |= {"k": INTERACTION, "n": number, "request": interaction.request_headers, "response": interaction.headers}
    event["split"] = bodies["request"].size if short else None
    event["none"] = interaction.body is None
    yield frame(event, b"".join(body.whole() for body in bodies.values()) if short else b"")
    for body in bodies.values():
        body.close()


def held_bytes(interaction: Interaction) -> int:
    """Return the bytes of the bodies of an interaction that are in memory."""
    bodies = (interaction.request_body, interaction.body)
    return sum(body.size for body in bodies if body is not None and body.size <= IN_MEMORY)


class Arrivals:
    """Interactions that are arriving."""

    def __init__(self) -> None:
        self._bodies: dict[tuple[object, object], Body] = {}

    def piece(self, event: Mapping[str, object], data: bytes) -> None:
        """Take a piece of a body."""
        self._bodies.setdefault((event["n"], event["part"]), Body()).write(data)

    def interaction(self, event: Mapping[str, object], data: bytes) -> Interaction:
        """Return an interaction whose frames have all arrived."""
        interaction = Interaction(**{name: event[name] for name in SENT})  # type: ignore[arg-type]  # our own frame
        interaction.call = call_id(event["call"])
        interaction.request_headers, interaction.headers = _listed(event["request"]), _listed(event["response"])
        number, split = event["n"], event["split"]
        if isinstance(split, int):
            interaction.request_body, interaction.body = Body(data[:split]), Body(data[split:])
        else:
            interaction.request_body = self._bodies.pop((number, "request"), Body())
            interaction.body = self._bodies.pop((number, "response"), Body())
        if event["none"]:
            interaction.body = None
        return interaction


def _listed(headers: object) -> Headers:
    return [(str(name), str(value)) for name, value in headers] if isinstance(headers, list) else []
