"""Writing a cassette: lines go to NAME.partial as things happen, and a rename at the end makes it NAME.

A crash loses at most the last line, and never an older cassette of the same name.
"""

from __future__ import annotations

import os

from ext_recorder.targets import target_of

from .claim import claim, partial_of
from .header import Header, encode_header, encode_trailer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self


class Writer:
    """One cassette being written. A context manager: an exception leaves the partial file, without its lock.

        writer = Writer(path, header)
        writer.append([note(…), note(…)])
        writer.finish(redactor.fired)

    Args:
        path: the cassette. Its folder is made where it is missing.
        header: its first lines; secrets and machine paths are already out of it. None: `begin` will bring them.

    Attributes:
        path: the cassette.
        left_behind: where the partial file of a crashed recorder was moved to, or None.

    Raises:
        CassetteInUse: another recorder is writing it.
        UsageError: the path is that of something else than a file.
        OSError: it can't be created.
    """

    def __init__(self, path: Path, header: Header | None) -> None:
        self.path = path = type(path)(target_of(str(path)))
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd, self.left_behind = claim(path)
        self._size = 0  # bytes of whole lines
        if header:
            self.begin(header)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def begin(self, header: Header) -> None:
        """Write the first lines, where they were not known from the start. What was written before is taken back.

        Raises:
            OSError: it can't be written.
        """
        os.ftruncate(self._fd, 0)
        self._size = 0
        self._write(encode_header(header))

    def append(self, lines: list[bytes]) -> None:
        """Append event lines by one write; a kill of this process loses none of them from then on.

        Raises:
            OSError: the disk is full, or the like; a line that got on the disk in part is taken back.
        """
        self._write(b"".join(lines))

    def seal(self, redacted: tuple[str, ...] = ()) -> None:
        """Write the last line: the partial file can be read from now on.

        Args:
            redacted: names of the redaction rules that took something out.
        """
        self._write(encode_trailer(redacted))

    def publish(self) -> None:
        """Give the cassette its name."""
        partial_of(self.path).replace(self.path)
        self.close()

    def finish(self, redacted: tuple[str, ...] = ()) -> None:
        """Write the last line, and give the cassette its name."""
        self.seal(redacted)
        self.publish()

    def discard(self) -> None:
        """Nothing was recorded: take the partial file away."""
        partial_of(self.path).unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Let go of the file as it is, and of the claim. Harmless when it was finished already."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        written = 0
        try:
            while written < len(data):
                written += os.write(self._fd, view[written:])
        except OSError:
            written = data.rfind(b"\n", 0, written) + 1
            os.ftruncate(self._fd, self._size + written)
            raise
        finally:
            self._size += written
