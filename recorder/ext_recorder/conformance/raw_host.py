"""Host of gevals 0.0.1 on raw pipes, which can send an extension any bytes, valid or not.

It shares no code with `ext_sdk`, because a library cannot reveal an error that it makes on both sides. Every wait is
limited: a response that does not come within `TIMEOUT_SECONDS` is a `Violation`, and the process group is killed.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import subprocess
import tempfile
import termios
import time
from array import array
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Self

# Much longer than any response takes, and much shorter than the "slow" operation of a profile: a response within this
# time cannot have waited for that operation.
TIMEOUT_SECONDS = 20.0
QUIET_SECONDS = 0.3  # wait for output that should not come
POLL_SECONDS = 0.0002
READ_BYTES = 65_536
STDERR_BYTES = 1_000_000


class Violation(AssertionError):
    """The extension violates the clause."""


class NotApplicable(Exception):
    """The clause cannot be checked: the profile lacks an entry, or the manifest an operation."""


def json_object(value: object, what: str) -> dict[str, object]:
    """Return the value, which must be an object."""
    if not isinstance(value, dict):
        raise Violation(f"{what} must be an object, found {value!r:.200}")
    return value


def text(value: object, what: str) -> str:
    """Return the value, which must be a string."""
    if not isinstance(value, str):
        raise Violation(f"{what} must be a string, found {value!r:.200}")
    return value


@dataclass
class Line:
    """One line of stdout: its bytes without the line feed, and the message in it."""

    data: bytes
    message: dict[str, object]


@dataclass
class Host:
    """A running extension.

    Args:
        env: its entire environment.
        timeout: seconds to wait for expected output.
    """

    command: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    timeout: float = TIMEOUT_SECONDS
    lines: list[Line] = field(default_factory=list)
    _next_id: int = 1
    _pending: bytes = b""
    _taken: int = 0

    def __enter__(self) -> Self:
        """Start the extension. Raises Violation if that fails."""
        self._stderr = tempfile.TemporaryFile()  # a file: an extension can't block on it
        try:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                bufsize=0,
                cwd=self.cwd,
                env=dict(self.env),
                start_new_session=True,
            )
        except OSError as error:
            self._stderr.close()
            raise Violation(f"can't be started: {error}") from None
        return self

    def __exit__(self, *exc: object) -> None:
        """Kill the process group, if it still runs."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._stderr):
            if pipe is not None:
                pipe.close()

    @property
    def pid(self) -> int:
        """Return the process id of the extension."""
        return self._process.pid

    @property
    def stderr(self) -> str:
        """Return its output on stderr so far."""
        return os.pread(self._stderr.fileno(), STDERR_BYTES, 0).decode(errors="replace")

    # --- Sending ---

    def send_bytes(self, data: bytes) -> None:
        """Write to stdin, and read stdout while the extension does not read.

        A closed stdin is not an error here.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        view = memoryview(data)
        listening = [] if self._process.stdout.closed else [self._process.stdout]
        try:
            while view:
                readable, writable, _ = select.select(listening, [self._process.stdin], [], self.timeout)
                if not readable and not writable:
                    raise Violation(f"does not read its stdin{self._stderr_note()}")
                if writable:
                    # A pipe that is ready takes at least this much without blocking (POSIX, PIPE_BUF).
                    view = view[os.write(self._process.stdin.fileno(), view[: select.PIPE_BUF]) :]
                elif received := os.read(self._process.stdout.fileno(), READ_BYTES):
                    self._pending += received
                else:
                    listening = []
        except BrokenPipeError:
            pass

    def wait_until_read(self) -> None:
        """Wait until the extension has read everything from the pipe.

        Raises:
            Violation: it does not read.
        """
        assert self._process.stdin is not None
        deadline = time.monotonic() + self.timeout
        waiting = array("i", [1])
        while waiting[0]:
            if time.monotonic() > deadline:
                raise Violation(f"does not read its stdin{self._stderr_note()}")
            fcntl.ioctl(self._process.stdin, termios.FIONREAD, waiting)
            time.sleep(POLL_SECONDS)

    def send(self, message: object) -> None:
        """Send a JSON value as one line."""
        self.send_bytes(json.dumps(message, ensure_ascii=False).encode() + b"\n")

    def request(self, method: str, params: object = None, *, id: object = None) -> object:
        """Send a request, and return its id; by default a new one."""
        if id is None:
            id, self._next_id = self._next_id, self._next_id + 1
        members = {} if params is None else {"params": params}
        self.send({"jsonrpc": "2.0", "id": id, "method": method} | members)
        return id

    def close_stdin(self) -> None:
        """Close the stdin of the extension."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def close_stdout(self) -> None:
        """Stop reading the stdout of the extension."""
        assert self._process.stdout is not None
        self._process.stdout.close()

    def signal(self, number: int) -> None:
        """Send a signal to the extension alone."""
        self._process.send_signal(number)

    # --- Receiving ---

    def next_line(self) -> Line | None:
        """Return the next line of stdout; None at its end.

        Raises:
            Violation: it does not come before the deadline, or is not a JSON object in UTF-8.
        """
        assert self._process.stdout is not None
        deadline = time.monotonic() + self.timeout
        while self._taken == len(self.lines):
            line, feed, rest = self._pending.partition(b"\n")
            if feed:
                self._pending = rest
                try:
                    message = json_object(json.loads(line.decode()), "a line of stdout")
                except ValueError as error:
                    raise Violation(f"a line of stdout is not JSON in UTF-8 ({error}): {line!r:.200}") from None
                self.lines.append(Line(line, message))
                break
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                raise Violation(f"no line came within {self.timeout:.0f} s{self._stderr_note()}")
            data = os.read(self._process.stdout.fileno(), READ_BYTES)
            if not data and self._pending:
                raise Violation(f"the last line is not ended by a line feed: {self._pending!r:.200}")
            if not data:
                return None
            self._pending += data
        self._taken += 1
        return self.lines[self._taken - 1]

    def response(self, id: object) -> dict[str, object]:
        """Return the response with this id; skip notifications and other responses.

        Raises:
            Violation: it does not come.
        """
        for line in self.lines:
            if self._answers(line, id):
                return line.message
        while (received := self.next_line()) is not None:
            if self._answers(received, id):
                return received.message
        raise Violation(f"closed its stdout before it answered the request with id {id!r}{self._stderr_note()}")

    def call(self, method: str, params: object = None, *, id: object = None) -> dict[str, object]:
        """Send a request and wait for its response."""
        return self.response(self.request(method, params, id=id))

    def is_quiet(self, seconds: float = QUIET_SECONDS) -> bool:
        """Return True if no output comes for the given time."""
        assert self._process.stdout is not None
        return (
            not self._pending
            and self._taken == len(self.lines)
            and not select.select([self._process.stdout], [], [], seconds)[0]
        )

    def rest(self) -> list[Line]:
        """Return all lines up to the end of stdout.

        Raises:
            Violation: stdout is not closed before the deadline.
        """
        rest = []
        while (line := self.next_line()) is not None:
            rest.append(line)
        return rest

    def exit_code(self) -> int:
        """Return the exit code; a negative one is the signal that ended it.

        Raises:
            Violation: it does not end.
        """
        try:
            return self._process.wait(self.timeout)
        except subprocess.TimeoutExpired:
            raise Violation(f"does not end{self._stderr_note()}") from None

    def _answers(self, line: Line, id: object) -> bool:
        its = line.message.get("id", self)
        return "method" not in line.message and type(its) is type(id) and its == id

    def _stderr_note(self) -> str:
        return f"; its stderr: {self.stderr[-2000:]}" if self.stderr else ""
