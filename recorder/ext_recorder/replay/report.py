"""File of `--report`: the result of a replay as lines of JSON, which is complete even if the host kills this process.

A session adds a line when it begins and for each difference from the recording, before the host can receive the
response. The last line of a session contains everything; `exit` is null in it if the session was killed.
"""

from __future__ import annotations

import os
from contextlib import suppress

from ext_recorder.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MOST = 100  # differences that are written at once; the others only at the end


class Report:
    """Report lines of one session, in a file that several sessions of one test may share.

    Attributes:
        differences: differences as text. Appending to it adds a line to the file.
        repeated: returns the number of messages that were played again because of `--repeat`, for the last line.
    """

    def __init__(self, path: str, cassette: str) -> None:
        self._path = path
        self._cassette = cassette
        self._session = os.urandom(6).hex()
        self.differences: list[str] = _ReportedLines(lambda lines: self._add(None, lines))
        self.repeated: Callable[[], int] = int

    def begin(self) -> None:
        """Add the first line. Raises UsageError if the file cannot be written."""
        try:
            self._add(None, [])
        except OSError as error:
            raise UsageError(f"--report {self._path}: can't be written: {error.strerror}") from None

    def end(self, status: int | str, differences: Iterable[str] | None = None) -> None:
        """Add the last line.

        Args:
            status: the exit code, or the name of the signal.
            differences: by default those that were reported before.
        """
        self._add(status, self.differences if differences is None else differences)

    def prefixed(self, prefix: str) -> list[str]:
        """Return a list for another process: appending to it adds a line with all of it, each text with a prefix."""
        return _ReportedLines(lambda lines: self._add(None, (f"{prefix}{text}" for text in lines)))

    def _add(self, status: int | str | None, differences: Iterable[str]) -> None:
        from ext_sdk.core.wire.json_codec import dumps

        line = {"cassette": self._cassette, "session": self._session, "exit": status, "told": list(differences)}
        if repeated := self.repeated() if status is not None else 0:
            line["repeated"] = repeated
        # A pipe without a reader is an error, and does not make the session wait.
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, f"{dumps(line)}\n".encode("utf-8", "surrogateescape"))
        finally:
            os.close(fd)


class _ReportedLines(list[str]):
    """List of texts that reports all of them whenever a text is appended."""

    def __init__(self, report: Callable[[Iterable[str]], None]) -> None:
        super().__init__()
        self._report = report

    def append(self, text: str) -> None:
        super().append(text)
        if len(self) <= MOST:
            with suppress(OSError):  # the first line could be written; a session does not end because of the others
                self._report(self)
