"""Interactions of NAME.http.yaml, read one by one in the order in which their requests began.

The file has them in the order in which they ended. Its last line, the index, lists those that began before one that
precedes them, and the bodies that stay in the file until they are sent. A file whose size does not match its index was
edited: it is scanned once, and a file that can't be read by lines is left to the YAML library.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import yaml

from ext_recorder.errors import CassetteError

from .interaction import BINARY_LINE, TEXT_LIMIT, FileBody, Interaction, encoded_length, interaction_of
from .interaction_yaml import BINARY, LOADER, parse_interaction
from .writer import TITLE, VERSION, Index, Indexer, load_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet
    from pathlib import Path
    from typing import Self

BEGIN, NONE, END = b"\ninteractions:\n", b"\ninteractions: []\n", b"\nversion: 1\n"
BUFFER, USUAL = 131_072, 16_384  # bytes that are read at once; of a usual interaction and the next line
LONGEST_HEAD = 1024 * 1024
TAILS = (64 * 1024, 1024 * 1024, 16 * 1024 * 1024)  # bytes at the end of a file that are searched, one after the other
RECENT, RECENT_BYTES = 50, 2 * 1024 * 1024  # interactions that are kept after they were read, and their text
_BLOCKS = {f"    body: {BINARY}\n".encode(): 6, f"      string: {BINARY}\n".encode(): 8}  # line to indent
_BASE64_LINE = re.compile(rb" *((?:[A-Za-z0-9+/]{4})*[A-Za-z0-9+/]{2}(?:==|[A-Za-z0-9+/](?:=|[A-Za-z0-9+/])))\n")
_COMPLETE = re.compile(rb"\n  elapsed: [^\n]*\n\Z")


class Unreadable(Exception):
    """A file that can't be read by lines."""


@dataclass(frozen=True)
class Frame:
    """A file without its interactions.

    Attributes:
        values: all other members.
        begin: offset of the first interaction.
        end: offset after the last one.
        index: None if the file was edited, or has none.
        is_whole: the file has lines after the interactions.
        is_closed: these lines are complete.
    """

    values: Mapping[str, object]
    begin: int
    end: int
    index: Index | None
    is_whole: bool
    is_closed: bool


class InteractionFile:
    """Interactions of a file that `writer` has written. The file is open until `close`.

    Raises:
        Unreadable: it has another form.
        OSError: it can't be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("rb", buffering=BUFFER)
        try:
            self.frame = read_frame(self._file)
        except Unreadable:
            self._file.close()
            raise
        self._recent: dict[int, tuple[int, Interaction]] = {}
        self._recent_bytes = 0
        self._index = self.frame.index or Index(self.frame.end)
        self._long = dict(self._index.long)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Bodies that were not sent cannot be read any more."""
        self._file.close()

    def prepare(self) -> None:
        """Make an index if the file has none. Raises Unreadable."""
        if self.frame.index is None:
            self._index = self.scan()
            self._long = dict(self._index.long)
        if not self.frame.is_whole or self._index.end != self.frame.end:
            raise Unreadable

    def __iter__(self) -> Iterator[tuple[int, Interaction]]:
        """Yield interactions with their offsets. Raises CassetteError if one is not valid."""
        late = sorted((start, at) for at, start in self._index.late)
        late.reverse()
        skipped = dict(self._index.late)
        at = self.frame.begin
        while at < self.frame.end:
            if at in skipped:
                _, _, at = self._lines(at)
                continue
            interaction, following = self._read(at)
            place = (interaction.time, at)
            while late and late[-1] < place:
                earlier = late.pop()[1]
                yield earlier, self.load(earlier)
            yield at, interaction
            at = following
        while late:
            at = late.pop()[1]
            yield at, self.load(at)

    def in_order(self) -> Iterator[tuple[int, Interaction]]:
        """Yield interactions with their offsets, in the order of the file: that in which they ended."""
        at = self.frame.begin
        while at < self.frame.end:
            interaction, following = self._read(at)
            yield at, interaction
            at = following

    @property
    def addresses(self) -> AbstractSet[str]:
        """Return the addresses of all servers."""
        return self._index.addresses

    @property
    def failures(self) -> int:
        """Return the number of failed connections."""
        return self._index.failures

    def load(self, at: int) -> Interaction:
        """Return the interaction at an offset. Raises CassetteError."""
        recent = self._recent.get(at)
        return self._read(at)[0] if recent is None else recent[1]

    def scan(self) -> Index:
        """Return an index of all interactions. If the last one is cut off, the index ends before it.

        Raises:
            CassetteError: another interaction is not valid.
        """
        indexer, at = Indexer(), self.frame.begin
        while at < self.frame.end:
            text, bodies, following = self._lines(at, scanned=indexer.long)
            is_last = following == self.frame.end
            if is_last and not self.frame.is_whole and not _COMPLETE.search(text):
                break
            interaction = self._interaction(text, bodies, at, following)
            indexer.add(at, interaction, interaction.time)
            at = following
        return indexer.index(at)

    def _read(self, at: int) -> tuple[Interaction, int]:
        text, bodies, following = self._lines(at)
        interaction = self._interaction(text, bodies, at, following)
        self._recent_bytes += len(text) - self._recent.pop(at, (0, None))[0]
        self._recent[at] = len(text), interaction
        while len(self._recent) > RECENT or (self._recent_bytes > RECENT_BYTES and len(self._recent) > 1):
            self._recent_bytes -= self._recent.pop(next(iter(self._recent)))[0]
        return interaction, following

    def _interaction(self, text: bytes, bodies: list[FileBody], at: int, following: int) -> Interaction:
        """Return the interaction that these lines are. Raises CassetteError."""
        try:
            item = parse_interaction(text, bodies)
            if item is None:
                item = _by_library(os.pread(self._file.fileno(), following - at, at) if bodies else text)
            return interaction_of(item)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            problem = f"the interaction at offset {at} is not valid: {type(error).__name__}: {error}"
            raise CassetteError(self._path, 0, problem) from None

    def _lines(self, at: int, scanned: list[tuple[int, int]] | None = None) -> tuple[bytes, list[FileBody], int]:
        """Return the lines of an interaction, its long bodies, which the lines do not have, and the offset after it.

        Args:
            scanned: gets the long bodies; None if the index lists them.
        """
        file, end = self._file, self.frame.end
        data = os.pread(file.fileno(), min(USUAL, end - at), at)
        length = data.find(b"\n- ") + 1
        if length and b"!!binary" not in data[:length]:
            return data[:length], [], at + length
        file.seek(at)
        line = file.readline()
        lines, bodies = [line], []
        at += len(line)
        while at < end:
            if indent := _BLOCKS.get(line, 0):
                size = self._long.get(at, 0) if scanned is None else _long_block(file, at, indent)
                if size:
                    bodies.append(FileBody(file, at, size, indent))
                    if scanned is not None:
                        scanned.append((at, size))
                    at += encoded_length(size, indent)
                file.seek(at)
                if at >= end:
                    break
            line = file.readline()
            if line[:1] not in b" #\n":
                break
            lines.append(line)
            at += len(line)
        return b"".join(lines), bodies, at


def _by_library(text: bytes) -> dict[str, object]:
    """Return an interaction as the YAML library reads it. Raises ValueError."""
    if re.search(rb"\n[^\n #]", text):
        raise ValueError("expected the lines of one interaction")
    content = load_yaml(text.decode())
    if not isinstance(content, list) or len(content) != 1 or not isinstance(content[0], dict):
        raise ValueError("expected one interaction")
    return content[0]


def _long_block(file: IO[bytes], at: int, indent: int) -> int:
    """Return the size of the content of lines of base64; 0 unless it is long, and in lines as `writer` writes them."""
    file.seek(at)
    size = length = 0
    while (match := _BASE64_LINE.fullmatch(line := file.readline())) is not None and match.start(1) == indent:
        size += len(match[1]) // 4 * 3 - match[1].count(b"=")
        length += len(line)
        if size % BINARY_LINE:  # the last line
            break
    return size if size > TEXT_LIMIT and encoded_length(size, indent) == length else 0


def read_frame(file: IO[bytes]) -> Frame:
    """Read the lines before and after the interactions. Raises Unreadable, OSError."""
    text = file.read(LONGEST_HEAD)
    head, separator, _ = text.partition(NONE if NONE in text and BEGIN not in text else BEGIN)
    if not head.startswith(TITLE.encode()) or not separator:
        raise Unreadable
    begin = len(head) + len(separator)
    tail = _tail(file, begin)
    end = file.seek(0, os.SEEK_END) - len(tail)
    last = tail[tail.rfind(b"\n", 0, -1) + 1 :]
    index = Index.of_line(last)
    is_closed = index is not None or (last.startswith(b"redacted: ") and last.endswith(b"\n"))
    values, is_whole = _plain(head), bool(tail)
    try:
        values |= _plain(tail.removesuffix(last) if index else tail)
    except Unreadable:
        if is_closed:
            raise
        is_whole = False
    values.pop("index", None)
    if values.get("http") != VERSION or "interactions" in values:
        raise Unreadable
    return Frame(values, begin, end, index if index and index.end == end else None, is_whole, is_closed)


def _tail(file: IO[bytes], begin: int) -> bytes:
    """Return the lines after the interactions; b"" if they are missing, or too many."""
    size = file.seek(0, os.SEEK_END)
    for length in TAILS:
        file.seek(max(begin - 1, size - length))
        _, found, tail = file.read().rpartition(END)
        if found:
            return END[1:] + tail
    return b""


def _plain(text: bytes) -> dict[str, object]:
    """Return lines of YAML as data. Raises Unreadable."""
    try:
        content = yaml.load(text.decode(), Loader=LOADER)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError):
        raise Unreadable from None
    if not isinstance(content, (dict, type(None))):
        raise Unreadable
    return content or {}
