"""Excerpts of long outputs: beginning and end for the result of an operation, and a file with all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ext_sdk.core.redaction.streams import redacted_pieces

if TYPE_CHECKING:
    from collections.abc import Callable

    from .context import Context, Secrets
    from .result import NotKept


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
