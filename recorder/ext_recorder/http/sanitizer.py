"""Sanitizer: removes secrets and paths of the machine from an interaction before it is written.

Models stream a text in pieces, an event for each, so a path or a secret may be in several events. The first event that
contains a part of it gets the replacement, the others omit their part. Texts of known APIs are examined as a whole;
secrets are also found in the events of other servers, if consecutive events differ in one text (`SplitSecrets`).
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from bisect import bisect_right
from collections import deque
from contextlib import suppress
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from ext_recorder.record.split_secrets import SplitSecrets, StreamedText, may_be_delta
from ext_sdk.core.wire.frames import Frame

from .http1_observer import SWITCHING
from .interaction import ENCODINGS, Body, collected, decoded, encoded
from .known_apis import known_apis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ext_recorder.record.split_secrets import Replacements

    from .interaction import Headers, Interaction

    Clean = Callable[[bytes], bytes]

WHOLE = 4 * 1024 * 1024  # bytes of content examined as one text
WINDOW = 1024 * 1024  # bytes of longer content examined together
HELD_BACK = 16 * 1024  # bytes of the previous window: a secret may begin in one window and end in the next
BLOCK, TAR_MAGIC = 512, 257  # of a tar archive: bytes of its first header, and the position of "ustar" in it
SECRETS = re.compile(rb'"kind": ?"Secret(?:List)?"')
SECRET_DATA = re.compile(rb'"data": ?\{[^{}]*\}')
PLACEHOLDER = re.compile(rb'"(\[redacted:[^"\]]*\])"')
KUBERNETES_PROTOBUF = "application/vnd.kubernetes.protobuf"
# The envelope of an object: a magic number, then its version and kind, each with its field number and length.
KUBERNETES_MAGIC, SECRET_KIND = b"k8s\0", b"\x12\x06Secret"
ENCODED_SECRET = b"[redacted: Secret in Protocol Buffers]"
GZIP = b"\x1f\x8b"
EVENT_DATA = re.compile(rb"(data: ?)(\{.*\})(\r?\n)")  # line of server-sent events that may be a piece of a text
STREAMS = ("text/event-stream", "application/x-ndjson", "application/jsonl", "application/json-seq")
INDEXES = ("index", "output_index", "content_index", "item_id")  # members that distinguish texts of one stream


class Sanitizer:
    """Sanitizer of interactions.

    Args:
        clean: removes secrets and paths from one text.
        replacements: finds secrets in a text, for those that events of a stream have in parts; None to leave these.
        known: removes known values from the content of archives; None to leave archives as they are. Programs verify
            the digests of archives, so what looks like a secret in the files of a package must stay.
    """

    def __init__(self, clean: Clean, replacements: Replacements | None = None, known: Clean | None = None) -> None:
        self._clean = clean
        self._replacements = replacements
        self._in_archives: Sanitizer | None = None
        if known is not None:
            self._in_archives = self if known is clean else Sanitizer(known, known=known)

    def data(self, data: bytes) -> bytes:
        """Return bytes without secrets."""
        return self._clean(data)

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        return self._clean(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    def headers(self, headers: Headers) -> Headers:
        """Return headers without secrets. Name and value are examined together: the name may reveal a secret."""
        clean: Headers = []
        for name, value in headers:
            if name.lower() == "set-cookie":  # only the value is removed, so that a client can store the cookie
                cookie, equals, rest = value.partition("=")
                content, semicolon, attributes = rest.partition(";")
                hidden = self.text(f"{name}: {content}").removeprefix(f"{name}: ") if content else ""
                clean.append((name, f"{cookie}{equals}{hidden}{semicolon}{self.text(attributes)}"))
            else:
                clean.append((name, self.text(f"{name}: {value}").removeprefix(f"{name}: ")))
        return clean

    def interaction(self, interaction: Interaction) -> None:
        """Sanitize an interaction.

        Raises:
            ValueError: a part cannot be examined, so the interaction must not be written.
        """
        interaction.uri = self.text(interaction.uri)
        interaction.request_headers = self.headers(interaction.request_headers)
        sent = next(interaction.request_body.pieces(), b"")[:BLOCK] if interaction.request_body is not None else b""
        if sent.startswith(KUBERNETES_MAGIC) and SECRET_KIND in sent:  # no rule finds its data
            interaction.request_body = Body(ENCODED_SECRET)
        interaction.request_body = self.body(interaction.request_body, interaction.request_headers)
        interaction.reason = self.text(interaction.reason)
        interaction.headers = self.headers(interaction.headers)
        before = interaction.body
        if interaction.status == SWITCHING:
            interaction.body = self._messages(before)
        else:
            interaction.body = self.body(before, interaction.headers)
        if before is not None and interaction.body is not None and interaction.body.size != before.size:
            interaction.chunks = resized(interaction.chunks, before, interaction.body)
            interaction.headers = with_length(interaction.headers, before.size, interaction.body.size)

    def body(self, body: Body | None, headers: Headers) -> Body | None:
        """Return a body without secrets, also in compressed content; the same object if there are none."""
        if body is None or not body.size:
            return body
        codings = [value.strip().lower() for name, value in headers if name.lower() == "content-encoding"]
        encoding = codings[0] if codings else ""
        kind = next((value.lower() for name, value in headers if name.lower() == "content-type"), "")
        if kind.startswith(STREAMS) and body.size <= WHOLE:
            body = self._stream(body, encoding)
        if encoding in {"", "identity"}:
            # A compressed file without a Content-Encoding may contain secrets, too.
            is_compressed = next(body.pieces()).startswith(GZIP)
            if self._in_archives is not self and _is_archive(body, is_compressed=is_compressed):
                return self._in_archives.body(body, headers) if self._in_archives else body
            if is_compressed:
                return self._compressed(body, "gzip")
            body = self._plain(body)
            return self._events(body) if self._replacements and kind.startswith("text/event-stream") else body
        if encoding not in ENCODINGS or len(codings) > 1 or "," in encoding:
            raise ValueError(f"a body in {', '.join(codings)}, which cannot be searched for secrets")
        return self._compressed(body, encoding)

    def _stream(self, body: Body, encoding: str) -> Body:
        """Return a stream without secrets in the texts that a known API sends in pieces."""
        if encoding not in ENCODINGS:
            data = body.whole()
            clean = with_whole_texts(data, self._clean)
            return body if clean is data else Body(clean)
        try:
            data = b"".join(decoded(body.pieces(), encoding))
        except ValueError:  # not in the declared encoding
            return body
        clean = with_whole_texts(data, self._clean)
        return body if clean is data else collected(encoded(iter([clean]), encoding))

    def _plain(self, body: Body) -> Body:
        if body.size <= WHOLE:
            data = body.whole()
            clean = self._clean(data)
            return body if clean is data or clean == data else Body(clean)
        if not self._changes(body.pieces()):
            return body
        return collected(self._windows(body.pieces()))

    def _events(self, body: Body) -> Body:
        """Return server-sent events without secrets whose parts are in several of them, as models stream text."""
        texts = _Texts(self._replacements)
        for line in _lines(body):
            match = EVENT_DATA.fullmatch(line)
            if match is None or not may_be_delta(match[2]):
                texts.add(line)
            else:
                texts.add(match[1])
                texts.piece(match[2])
                texts.add(match[3])
        return texts.body(body)

    def _messages(self, body: Body | None) -> Body | None:
        """Return messages of a WebSocket without secrets. Binary messages are not searched as base64."""
        if body is None:
            return None
        texts = _Texts(self._replacements)
        for line in _lines(body):
            message = json.loads(line)
            if "base64" in message:
                data = b64decode(message["base64"])
                clean = self._clean(data)
                message["base64"] = b64encode(clean).decode()
                texts.add(line if clean == data else json.dumps(message, ensure_ascii=False).encode() + b"\n")
            elif "text" in message:
                text = message.pop("text")
                texts.add(json.dumps(message, ensure_ascii=False).encode().removesuffix(b"}") + b', "text": ')
                clean = self.text(text).encode("utf-8", "surrogateescape")
                if message.get("from") == "server" and may_be_delta(clean):
                    texts.piece(clean, quoted=True)
                else:
                    texts.add(_quoted(clean))
                texts.add(b"}\n")
            else:
                texts.add(self._clean(line))
        return texts.body(body)

    def _compressed(self, body: Body, encoding: str) -> Body:
        """Return a compressed body without secrets; its content is examined in windows, whatever its size."""
        try:
            if not self._changes(decoded(body.pieces(), encoding)):
                return body
            return collected(encoded(self._windows(decoded(body.pieces(), encoding)), encoding))
        except ValueError:  # not in the declared encoding
            return self._plain(body)

    def _changes(self, pieces: Iterable[bytes]) -> bool:
        held = b""
        for window in _gathered(pieces):
            overlapping = held + window
            if self._clean(overlapping) != overlapping:
                return True
            held = window[-HELD_BACK:]
        return False

    def _windows(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        held = b""
        for window in _gathered(pieces):
            clean = self._clean(held + window)
            cut = max(0, len(clean) - HELD_BACK)
            yield clean[:cut]
            held = clean[cut:]
        yield held


def with_decodable_secrets(data: bytes) -> bytes:
    """Return responses of an API server with base64 in the data of Secrets, as clients in Go require it."""
    if b"[redacted:" not in data or not SECRETS.search(data):
        return data
    return SECRET_DATA.sub(
        lambda found: PLACEHOLDER.sub(lambda value: b'"' + b64encode(value[1]) + b'"', found[0]), data
    )


def _is_archive(body: Body, *, is_compressed: bool) -> bool:
    """Return True if a body is a tar archive, or other compressed content that is not text."""
    try:
        begin = next(decoded(body.pieces(), "gzip") if is_compressed else body.pieces(), b"")[:BLOCK]
    except ValueError:  # not what it looks like
        return False
    return begin[TAR_MAGIC : TAR_MAGIC + 5] == b"ustar" or (is_compressed and b"\0" in begin)


class _Texts:
    """Body in which pieces of one text, each in a message of its own, are searched together."""

    def __init__(self, replacements: Replacements | None) -> None:
        self._split = SplitSecrets(replacements, lambda _, payload: payload) if replacements else None
        self._queue: deque[tuple[StreamedText | None, bytes, bool]] = deque()
        self._found = Body()

    def add(self, data: bytes) -> None:
        """Append bytes that are not a piece of a text."""
        self._queue.append((None, data, False))
        self._write()

    def piece(self, payload: bytes, *, quoted: bool = False) -> None:
        """Append a message that may be a piece of a text.

        Args:
            quoted: write it as a JSON string.
        """
        if self._split is None:
            self.add(_quoted(payload) if quoted else payload)
            return
        piece = StreamedText(0.0, Frame(payload, payload))
        self._queue.append((piece, b"", quoted))
        self._split.take(piece)
        self._write()

    def _write(self) -> None:
        while self._queue:
            piece, data, quoted = self._queue[0]
            if piece is not None:
                if piece.line is None:
                    return
                self._found.write(_quoted(piece.line) if quoted else piece.line)
            else:
                self._found.write(data)
            self._queue.popleft()

    def body(self, original: Body) -> Body:
        """Return the result; the original one if nothing was changed."""
        if self._split:
            self._split.release()
        self._write()
        if self._found.size == original.size and all(
            one == other for one, other in zip(self._found.pieces(), original.pieces(), strict=True)
        ):
            return original
        return self._found


def _quoted(text: bytes) -> bytes:
    return json.dumps(text.decode("utf-8", "surrogateescape"), ensure_ascii=False).encode("utf-8", "surrogateescape")


def _lines(body: Body) -> Iterator[bytes]:
    rest = b""
    for piece in body.pieces():
        *lines, rest = (rest + piece).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest


def with_length(headers: Headers, before: int, after: int) -> Headers:
    """Return headers with a corrected Content-Length, if it was correct before."""
    return [
        (name, str(after)) if name.lower() == "content-length" and value.strip() == str(before) else (name, value)
        for name, value in headers
    ]


def resized(sizes: Sequence[int], before: Body, after: Body) -> list[int]:
    """Return the sizes of chunks after a change, so that each chunk ends in the same line; [] if they are not known."""
    if sum(sizes) != before.size or max(before.size, after.size) > WHOLE:
        return []
    old, new = ([0, *(match.end() for match in re.finditer(b"\n", body.whole()))] for body in (before, after))
    if len(old) != len(new):
        return []
    ends = [0]
    for end in accumulate(sizes):
        line = bisect_right(old, end) - 1
        limit = new[line + 1] if line + 1 < len(new) else after.size
        ends.append(after.size if end == before.size else min(new[line] + end - old[line], limit))
    return [later - sooner for sooner, later in pairwise(ends) if later > sooner]


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield windows; the first is large, so that most contents are a single window."""
    gathered = bytearray()
    size = WHOLE
    for piece in pieces:
        gathered += piece
        if len(gathered) >= size:
            yield bytes(gathered)
            gathered.clear()
            size = WINDOW
    if gathered:
        yield bytes(gathered)


class _Piece(NamedTuple):
    """Piece of a text: the line of its event, and the member that contains it."""

    line: int
    holder: dict[str, object]
    name: str

    @property
    def text(self) -> str:
        return str(self.holder[self.name])


def with_whole_texts(data: bytes, change: Clean) -> bytes:
    """Change the texts that the events of a stream send in pieces. Return the same object if nothing changes."""
    lines = data.split(b"\n")
    events: dict[int, object] = {}
    texts: dict[tuple[object, ...], list[_Piece]] = {}
    for number, line in enumerate(lines):
        at = line.find(b"{")
        if at >= 0 and line[:at].strip() in {b"", b"data:"}:
            with suppress(ValueError, RecursionError):
                events[number] = json.loads(line[at:])
                for tokens in known_apis().pieces:
                    _collect(events[number], tokens, number, texts, tokens)
    changed: set[int] = set()
    for pieces in texts.values():
        before = "".join(piece.text for piece in pieces)
        after = change(before.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
        if len(pieces) > 1 and after != before:
            _distribute(pieces, before, after)
            changed.update(piece.line for piece in pieces)
    if not changed:
        return data
    for number in changed:
        line = lines[number]
        end = b"\r" if line.endswith(b"\r") else b""
        lines[number] = line[: line.find(b"{")] + json.dumps(events[number], separators=(",", ":")).encode() + end
    return b"\n".join(lines)


def _collect(
    value: object,
    tokens: Sequence[str],
    line: int,
    texts: dict[tuple[object, ...], list[_Piece]],
    key: tuple[object, ...],
) -> None:
    """Collect the pieces of an event at a pointer, by text."""
    name, *rest = tokens
    if isinstance(value, list) and name == "*":
        for item in value:
            _collect(item, rest, line, texts, key)
    elif isinstance(value, dict) and name in value:
        key = (*key, *(value.get(index) for index in INDEXES))
        if rest:
            _collect(value[name], rest, line, texts, key)
        elif isinstance(value[name], str):
            texts.setdefault(key, []).append(_Piece(line, value, name))


def _distribute(pieces: Sequence[_Piece], before: str, after: str) -> None:
    """Write a changed text into its pieces: what has changed into the first one that it concerns."""
    most = min(len(before), len(after))
    start = next((at for at in range(most) if before[at] != after[at]), most)
    kept = next((at for at in range(most - start) if before[-1 - at] != after[-1 - at]), most - start)
    end, middle = len(before) - kept, after[start : len(after) - kept]
    at = 0
    for piece in pieces:
        text = piece.text
        begin, at = at, at + len(text)
        new = text[: max(0, start - begin)]
        if middle and (at > start or piece is pieces[-1]):
            new, middle = new + middle, ""
        piece.holder[piece.name] = new + (text[max(0, end - begin) :] if at > end else "")
