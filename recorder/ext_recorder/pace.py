"""Pace of a replay: keep a response and the notifications around it apart, so that a client reads them separately.

Clients register handlers between two reads: a promise that a response resolves runs its continuation after the chunk
that has the response in it, and a notification in the same chunk has no handler yet. A live child needs time between
the two; a replay does not, so it waits until the first one was read.
"""

from __future__ import annotations

from time import monotonic

from .outlets import unread

# Pause after the reader has taken what was written before, in seconds: its handlers run then.
PAUSE_S = 0.001
# Interval at which the outlet is polled, in seconds. No event reports an empty pipe.
POLL_S = 0.001
# Maximum wait for a reader that reads nothing, in seconds. It is waited for once, not for every message.
PATIENCE_S = 0.25


class Apart:
    """Wait between two writes to one outlet, until its reader has taken the first one.

    Args:
        fd: the file of the outlet.

    Attributes:
        stalled: the reader has read nothing for PATIENCE_S; it is not waited for until it has read everything.
    """

    __slots__ = ("_fd", "_read_at", "_since", "stalled")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._since = 0.0  # start of the current wait; 0.0: none
        self._read_at = 0.0  # when everything was read; 0.0: not yet
        self.stalled = False

    def is_read(self) -> bool:
        """Return True if the reader has taken everything that was written."""
        if unread(self._fd):
            return False
        self.stalled = False
        return True

    def due(self) -> float:
        """Return when to write the next message: a time in the past if now, else the time to call this again."""
        now = monotonic()
        if not self._since:
            self._since = now
        if self.is_read():
            if not self._read_at:
                self._read_at = now
            at = self._read_at + PAUSE_S
        elif self.stalled or now - self._since > PATIENCE_S:
            self.stalled = True
            at = now
        else:
            at = now + POLL_S
        if at <= now:
            self._since = self._read_at = 0.0
        return at
