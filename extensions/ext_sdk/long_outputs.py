"""Long outputs: redacted in pieces, in files that are written while a command runs, and as excerpts.

An excerpt has the beginning and the end for the result of an operation; a file has all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

    from .context import Context, Secrets
    from .result import NotKept


PIECE_BYTES = 256 * 1024  # redacted at once; the redactor needs some fifty times as much memory
LONGEST_SECRET = 16 * 1024  # bytes, in any encoding, that are found across the end of a piece
CANDIDATES = 64  # positions tried for the end of a piece


def redacted(data: bytes, secrets: Secrets) -> bytes:
    """Return the bytes without secrets; bytes that are not UTF-8 stay as they are."""
    text = data.decode("utf-8", "surrogateescape")
    hidden = secrets.redact(text)
    return data if hidden is text else hidden.encode("utf-8", "surrogateescape")


def redacted_pieces(data: bytes, secrets: Secrets) -> Iterator[bytes]:
    """Yield the bytes without secrets in pieces, split at positions outside of secrets."""
    at = 0
    while len(data) - at > PIECE_BYTES:
        end = _safe_cut(data, at, at + PIECE_BYTES, secrets)
        yield redacted(data[at:end], secrets)
        at = end
    yield redacted(data[at:], secrets)


def _safe_cut(data: bytes, start: int, wanted: int, secrets: Secrets) -> int:
    """Return the last position up to `wanted` that splits no secret, preferably an end of a line."""
    cut = wanted
    for _ in range(CANDIDATES):
        line_end = data.rfind(b"\n", max(start, cut - 1024), cut) + 1
        while not line_end and cut > 0 and data[cut] & 0xC0 == 0x80:  # within a character of UTF-8
            cut -= 1
        cut = line_end or cut
        if cut <= start:
            break
        before, after = data[max(start, cut - LONGEST_SECRET) : cut], data[cut : cut + LONGEST_SECRET]
        if redacted(before + after, secrets) == redacted(before, secrets) + redacted(after, secrets):
            return cut
        cut -= 256
    return wanted


class RedactingFile:
    """Redacted file for several streams, written line by line up to a limit; a note ends a file that reached it.

    Args:
        path: path of the file, which is opened when there is something to write.
        cap: limit in bytes.
    """

    def __init__(self, path: Path, secrets: Secrets, cap: int) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._secrets = secrets
        self._cap = cap
        self._room = cap
        self._pending: dict[str, bytes] = {}

    def write(self, stream: str, data: bytes) -> None:
        """Append output of a stream. Raises OSError if the file can't be written."""
        if self._room <= 0:
            return
        pending = self._pending.get(stream, b"") + data[: self._room]
        self._room -= len(data)
        end = pending.rfind(b"\n") + 1
        if not end and len(pending) > PIECE_BYTES:
            end = _safe_cut(pending, 0, len(pending) - LONGEST_SECRET, self._secrets)
        self._put(pending[:end])
        self._pending[stream] = pending[end:]
        if self._room <= 0:
            self._put_pending()
            self._put(f"\n[... the log ends here: {self._cap} bytes are kept, see outputLimit ...]\n".encode())

    def close(self) -> None:
        """Write the last lines, if they had no end, and close the file. Raises OSError."""
        self._put_pending()
        if self._file:
            self._file.close()

    def _put_pending(self) -> None:
        for rest in self._pending.values():
            self._put(rest)
        self._pending.clear()

    def _put(self, data: bytes) -> None:
        if data:
            self._file = self._file or self._path.open("wb")
            for piece in redacted_pieces(data, self._secrets):
                self._file.write(piece)
            self._file.flush()


class Sizes(NamedTuple):
    """Limits of an output in a result, in bytes.

    Attributes:
        complete: longest output that is shown completely.
        head: of the beginning that is shown of a longer one.
        tail: of its end.
    """

    complete: int
    head: int
    tail: int


class Shown(NamedTuple):
    """An output as a result has it.

    Attributes:
        text: complete if it is short, else beginning and end around a note.
        path: of the file with all that was kept, without secrets; "" if the text is complete.
        whole: the output for later steps: complete, and with its secrets. NotKept if it is not available.
    """

    text: str
    path: str = ""
    whole: str | NotKept = ""


def write_excerpt(
    data: bytes, name: str, context: Context, sizes: Sizes, *, file_name: str, all_kept: bool = True
) -> tuple[str, str]:
    """Write an output without its secrets to a file, and return its beginning and end, and the path of the file.

    Args:
        name: name of the output, such as `stdout`; the output with the path is `stdoutFile`.
        context: names the file. If the file cannot be written, a warning is logged, and the returned path is "".
        sizes: limits of the returned text.
        file_name: end of the name of the file.
        all_kept: whether `data` is the entire output.
    """
    try:
        file_path = context.artifact(file_name)
        with file_path.open("wb") as file:
            head, tail, size = _copy_redacted(data, context.secrets, sizes, file.write)
        path = str(file_path)
    except OSError as error:
        context.log.warn(f"failed to write all of {name} to a file: {error}")
        head, tail, size = _copy_redacted(data, context.secrets, sizes, len)
        path = ""
    if size <= sizes.complete:
        return head.decode("utf-8", "replace"), path
    hint = f"all of it is in {name}File" if path and all_kept else f"{name}File has more" if path else "lost"
    note = f"\n[... {size - sizes.head - sizes.tail:,} of {size:,} bytes left out; {hint} ...]\n"
    ends = (head[: sizes.head], (head + tail)[-sizes.tail :])
    return note.join(end.decode("utf-8", "replace").strip("\ufffd") for end in ends), path


def _copy_redacted(
    data: bytes, secrets: Secrets, sizes: Sizes, write: Callable[[bytes], object]
) -> tuple[bytes, bytes, int]:
    """Write data without secrets; return its first `sizes.complete` bytes, its end after them, and its size."""
    head, tail, size = b"", b"", 0
    for piece in redacted_pieces(data, secrets):  # before it is cut: half a secret would not be recognized
        write(piece)
        size += len(piece)
        room = sizes.complete - len(head)
        head += piece[:room]
        tail = (tail + piece[room:])[-sizes.tail :]
    return head, tail, size
