"""The file of `--report`: how a replay went, as lines of JSON that are there even if the host kills this process.

A session adds a line when it begins and whenever something differs from the recording, before the host can receive the
response to it. The last line of a session has everything; `exit` is null in it if the session was killed.
"""

from __future__ import annotations

import os
from contextlib import suppress

from ext_recorder.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MOST = 100  # lines of what differs are written as they come; the others at the end


class Report:
    """Report lines of one session, in a file that several sessions of one test may share.

    Args:
        path: the file.
        cassette: what is replayed.

    Attributes:
        told: what differs, for people. Appending to it adds a line to the file.
        repeated: returns the number of messages that were played again, on request, for the last line.
    """

    def __init__(self, path: str, cassette: str) -> None:
        self._path = path
        self._cassette = cassette
        self._session = os.urandom(6).hex()
        self.told: list[str] = _Told(self._tell)
        self.repeated: Callable[[], int] = int

    def begin(self) -> None:
        """Add the first line. Raises UsageError if the file cannot be written."""
        try:
            self._add(None, [])
        except OSError as error:
            raise UsageError(f"--report {self._path}: can't be written: {error.strerror}") from None

    def end(self, status: int | str, told: Iterable[str] | None = None) -> None:
        """Add the last line.

        Args:
            status: the exit code, or the name of the signal.
            told: what differs; by default what was told before.
        """
        self._add(status, self.told if told is None else told)

    def prefixed(self, prefix: str) -> list[str]:
        """Return another list, for another process: appending to it adds a line with all of it, after a prefix."""
        return _Told(lambda texts: self._tell(f"{prefix}{text}" for text in texts))

    def _tell(self, told: Iterable[str]) -> None:
        self._add(None, told)

    def _add(self, status: int | str | None, told: Iterable[str]) -> None:
        from ext_sdk.core.wire.json_codec import dumps

        line = {"cassette": self._cassette, "session": self._session, "exit": status, "told": list(told)}
        if repeated := self.repeated() if status is not None else 0:
            line["repeated"] = repeated
        # A pipe without a reader is an error, and does not make the session wait.
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, f"{dumps(line)}\n".encode("utf-8", "surrogateescape"))
        finally:
            os.close(fd)


class _Told(list[str]):
    def __init__(self, note: Callable[[Iterable[str]], None]) -> None:
        super().__init__()
        self._note = note

    def append(self, text: str) -> None:
        super().append(text)
        if len(self) <= MOST:
            with suppress(OSError):  # the first line could be written; the session counts more than the rest
                self._note(self)
