"""Queue of notes from the proxy to the writer process, and the journal: the notes that were not sent yet.

Sending wakes the writer process, so the proxy sends while the session is idle. A proxy that is killed before (SIGKILL)
leaves its notes in the journal, which is shared memory; the writer process reads them when the pipe has ended. A note
is written before its bytes are forwarded, so everything that a host or a child has received is in the pipe or in the
journal, unless the journal was full. It is memory instead of a file because it contains secrets; the writer process,
which no signal to the group of the host reaches, keeps it.
"""

from __future__ import annotations

import marshal
import mmap
import os
import signal
from collections import deque
from contextlib import suppress
from select import POLLIN, POLLOUT, poll
from struct import Struct, error
from time import monotonic

from ext_recorder.posix.signals import signal_name
from ext_sdk.core.stdio import enlarge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    # Seconds since the start; then a stream and its bytes (b"" at its end), "signal" and its name, or "exit" and the
    # exit code or the name of the signal that ended it.
    Note: TypeAlias = tuple[float, str, bytes | str | int]
    Fresh: TypeAlias = tuple[float, str, bytes | memoryview | str | int]

# A last message of this size survives a kill of the proxy. Short notes use the first part only, so that a busy session
# of short messages stays within few pages.
JOURNAL_BYTES = 8_388_608
# Some 6,000 messages of 300 bytes; pages beyond are released once their notes have been sent.
_USUAL_BYTES = 2_097_152

# A note of this size is not kept a second time.
_LONG_BYTES = 16_384

# Generation; how many notes were handed over before the first one here.
_START = Struct("<IQ")

# Generation, seconds, bytes of the content, name. It is written after the content, so a note that a kill has cut in two
# has the head of an older generation, or none.
_HEAD = Struct("<IdI16s")
_HEAD_BYTES = _HEAD.size
_VALUE = b"="  # before the name: the content is marshal's form of a value


class Journal:
    """The latest notes. One process writes; another reads after the first one has ended, or handed over everything.

    Attributes:
        full: later notes are not in it.
    """

    __slots__ = ("_at", "_closed", "_generation", "_memory", "_pack_into", "_view", "full")

    def __init__(self, size: int = JOURNAL_BYTES) -> None:
        self._memory = mmap.mmap(-1, size)  # shared with processes that are forked later
        self._view = memoryview(self._memory)
        self._pack_into = _HEAD.pack_into
        self._generation = int.from_bytes(os.urandom(4), "little")  # not a number that messages have in them
        self._closed = False
        self._at = 0
        self.begin(0)

    def begin(self, count: int) -> None:
        """Begin again, empty: so many notes have been handed over."""
        if self._closed:
            return
        if self.is_long and hasattr(mmap, "MADV_REMOVE"):  # other systems keep the pages
            with suppress(OSError):
                self._memory.madvise(mmap.MADV_REMOVE, _USUAL_BYTES, len(self._memory) - _USUAL_BYTES)
        self._generation = (self._generation + 1) & 0xFFFF_FFFF
        _START.pack_into(self._memory, 0, self._generation, count)
        self._at = _START.size
        self.full = False

    @property
    def is_long(self) -> bool:
        """Return True if its notes take more memory than those of a usual session."""
        return self._at > _USUAL_BYTES

    def close(self) -> None:
        """Write no more: nothing is recorded, or another process writes."""
        self._closed = self.full = True

    def add(self, time: float, name: bytes, content: bytes) -> bytes | memoryview:
        """Write a note, unless the journal is full. Every chunk of the session passes here.

        Returns:
            The content; if it is long, that in the journal, so that no other copy of it has to be kept. It is valid
            until `begin`.

        Args:
            time: seconds since the start.
            name: the stream.
            content: its bytes.
        """
        if self.full:
            return content
        memory, at, size = self._memory, self._at, len(content)
        if at > _USUAL_BYTES and size < _LONG_BYTES:  # the rest is for long messages: short ones soon have been sent
            self.full = True
            return content
        start = at + _HEAD_BYTES
        try:
            memory[start : start + size] = content
            self._pack_into(memory, at, self._generation, time, size, name)
            self._at = start + size
        except (IndexError, error):  # beyond the end
            self.full = True
            return content
        return content if size < _LONG_BYTES else self._view[start : start + size]

    def add_value(self, time: float, name: str, value: str | int) -> None:
        """Write a note of what is not bytes, unless the journal is full."""
        self.add(time, _VALUE + name.encode(), marshal.dumps(value))

    def after(self, count: int) -> Iterator[Note]:
        """Read the notes after the first `count` notes of the session."""
        memory = self._memory
        generation, number = _START.unpack_from(memory)
        start = _START.size + _HEAD_BYTES
        while start <= len(memory):
            written, time, size, name = _HEAD.unpack_from(memory, start - _HEAD_BYTES)
            if written != generation:
                return
            if number >= count:
                content = memory[start : start + size]
                is_value = name.startswith(_VALUE)
                value = marshal.loads(content) if is_value else content  # noqa: S302 - written by our own parent process
                yield time, name.removeprefix(_VALUE).rstrip(b"\0").decode(), value
            number += 1
            start += size + _HEAD_BYTES


# Seconds without progress after which an idle writer process is given up: a disk that hangs must not hang the session.
STALL_S = 10.0

# The same for a writer process that uses processor time, such as for the redaction of a message of 60 MB.
BUSY_S = 120.0

# Seconds for the writer process to write the last notes and rename the file. It is at most QUEUE_BYTES behind.
FINISH_S = 30.0

# Size of the pipe, so that one write sends a batch. Linux grants 1 MiB to every user.
PIPE_BYTES = 1_048_576
LENGTH_BYTES = 4

# Pieces of a streamed text arrive faster. After this time without notes, the writer process writes what it holds back.
IDLE_MS = 1_000

# Size of a batch, which takes about 400 µs to send.
BATCH_BYTES = 524_288

# Size of a note without its bytes.
NOTE_BYTES = 256
FILES = "files"  # name of the notes with changed files
NO_PROCESS = -1  # instead of a process id


class Report:
    """Result of a recording.

    Attributes:
        ok: the cassette is complete.
        text: message for the user, printed on a terminal or if `ok` is False; may be "".
        warning: message for the user that is always printed; usually "".
    """

    __slots__ = ("ok", "text", "warning")

    def __init__(self, *, ok: bool, text: str, warning: str = "") -> None:
        self.ok = ok
        self.text = text
        self.warning = warning


class NoteQueue:
    """Queue of notes from the proxy to the writer process.

    Args:
        writer: process id of the writer process; NO_PROCESS if it could not be started.
        pipe: file descriptor that batches are written to.
        report: file descriptor that the report of the writer process is read from.
        partial: name of the file that it writes, for messages.
        journal: memory shared with the writer process.

    Attributes:
        fresh: notes that are not sent yet. Always the same list: the proxy appends to it directly.
        journal: the same notes, for a writer process that outlives the proxy. The proxy writes to it directly.
        backlog: bytes sent that the writer process has not received yet.
        on: the session is being recorded.
    """

    def __init__(self, writer: int, pipe: int, report: int, partial: str, journal: Journal) -> None:
        self.journal = journal
        self._count = 0  # notes handed over
        self.fresh: list[Fresh] = []
        self.backlog = 0
        self.on = True
        self.pipe = pipe
        self.report = report
        self._writer = writer
        self._partial = partial
        self._queue: deque[memoryview] = deque()
        self._moved = monotonic()  # when the writer process last took something
        self._used = 0  # processor time of the writer process, in clock ticks, when that was last read
        self._worked = 0.0  # when that was more than before
        self._ended = False
        os.set_blocking(pipe, False)
        enlarge(pipe, PIPE_BYTES)

    def keep(self, time: float, name: str, what: bytes | str | int) -> None:
        """Note something; bytes, before they are forwarded."""
        if isinstance(what, bytes):
            self.fresh.append((time, name, self.journal.add(time, name.encode(), what)))
        else:
            self.journal.add_value(time, name, what)
            self.fresh.append((time, name, what))

    def flush(self) -> int:
        """Queue a batch of the oldest notes, and write as much as the pipe accepts. Return the weight of the batch."""
        if not self.on:
            self.fresh.clear()
            return 0
        weight = count = 0
        for _, _, content in self.fresh:
            count += 1
            weight += (len(content) if isinstance(content, (bytes, memoryview)) else 0) + NOTE_BYTES
            if weight > BATCH_BYTES:
                break
        batch = pack(self.fresh[:count])
        del self.fresh[:count]
        self._count += count
        if not self._queue:
            self._moved = monotonic()
        self._queue.append(memoryview(batch))
        self.backlog += len(batch)
        self.write()
        return weight

    def write(self) -> None:
        """Write as much of the backlog as the pipe takes."""
        while self._queue:
            piece = self._queue[0]
            try:
                sent = os.write(self.pipe, piece)
            except BlockingIOError:
                return
            except BrokenPipeError:  # the writer process has ended; its report says why
                self._drop()
                return
            self._moved = monotonic()
            self.backlog -= sent
            if sent == len(piece):
                self._queue.popleft()
            else:
                self._queue[0] = piece[sent:]
        if not self.fresh:
            self.journal.begin(self._count)

    def stalled(self) -> bool:
        """Return True if there is a backlog that has not moved for STALL_S, and is not being processed."""
        waited = monotonic() - self._moved
        return self.backlog > 0 and waited > STALL_S and (waited > BUSY_S or not self._is_working())

    def _is_working(self) -> bool:
        """Return True if the writer process has used processor time in the last STALL_S."""
        used = processor_ticks(self._writer)
        if used > self._used:
            self._used, self._worked = used, monotonic()
        return monotonic() - self._worked < STALL_S

    def stop(self) -> Report:
        """Stop recording while the session continues. Return the cause."""
        report = self._end(0.0 if self.stalled() else FINISH_S)
        return Report(ok=False, text=f"recording stopped, the session continues: {report.text}")

    def finish(self) -> Report:
        """Send the remaining notes, and wait until the cassette is written."""
        if self._ended:
            return Report(ok=False, text="")
        self.drain()
        report = self._end(0.0 if self.backlog else FINISH_S)
        return report if report.ok else Report(ok=False, text=f"the recording is not complete: {report.text}")

    def drain(self) -> None:
        """Wait until the writer process has received all notes, or does not read."""
        room = poll()
        room.register(self.pipe, POLLOUT)
        while (self.fresh or self.backlog) and (room.poll(STALL_S * 1_000) or not self.stalled()):
            self.write()
            while self.fresh and not self.backlog:
                self.flush()

    def forget(self) -> None:
        """Detach a forked copy of this process from the writer process, which belongs to the original."""
        if not self._ended:
            self._drop()
            os.close(self.pipe)
            os.close(self.report)

    def _drop(self) -> None:
        self.on = False
        self.journal.close()
        self.backlog = 0
        self._queue.clear()

    def _end(self, seconds: float) -> Report:
        """Close the pipe, which ends the writer process, and read its report. A process that does not end is killed."""
        self._ended = True
        self._drop()
        os.close(self.pipe)
        report = _read_to_end(self.report, seconds)
        until = monotonic() + BUSY_S
        while report is None and seconds and monotonic() < until and self._is_working():
            report = _read_to_end(self.report, 1.0)
        os.close(self.report)
        if self._writer == NO_PROCESS:
            return Report(ok=False, text="the writer process could not be started")
        if report is None:
            os.kill(self._writer, signal.SIGKILL)
        _, status = os.waitpid(self._writer, 0)
        if report:
            ok, text, warning = marshal.loads(report)  # noqa: S302 - by our own child process, a moment ago
            return Report(ok=ok, text=text, warning=warning)
        how = "the disk is too slow" if report is None else f"the writer process {how_it_ended(status)}"
        return Report(ok=False, text=f"{how}; what was recorded is in {self._partial}, for `ext-recorder recover`")


def pack(queue: Sequence[Fresh]) -> bytes:
    """Return a batch as bytes."""
    body = marshal.dumps(queue, 2)  # type: ignore[arg-type]  # it also takes a memoryview
    return len(body).to_bytes(LENGTH_BYTES, "little") + body


def unpacked(pipe: int, journal: Journal) -> Iterator[list[Note]]:
    """Yield the batches that come through a pipe, and an empty one whenever none has come for IDLE_MS.

    After the end of the pipe, yield the notes that a killed proxy has left in the journal.
    """
    count = 0  # notes of complete batches; those of a torn one at the end are still in the journal
    readable = poll()
    readable.register(pipe, POLLIN)
    read = bytearray()
    start = 0  # of the next batch in what was read
    patience: int | None = IDLE_MS
    while True:
        end = start + LENGTH_BYTES
        if len(read) >= end:
            stop = end + int.from_bytes(read[start:end], "little")
            if len(read) >= stop:
                batch = marshal.loads(memoryview(read)[end:stop])  # noqa: S302 - written by our own parent process
                start = stop
                count += len(batch)
                yield batch
                continue
        del read[:start]
        start = 0
        if readable.poll(patience):
            patience = IDLE_MS
            data = os.read(pipe, PIPE_BYTES)
            if not data:
                break
            read += data
        else:
            patience = None  # once is enough until more comes
            yield []
    if left := list(journal.after(count)):
        yield left


def processor_ticks(pid: int) -> int:
    """Return the processor time that a process has used, in clock ticks; 0 if the system has no /proc."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib costs 5 ms
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])  # utime and stime, see proc(5)


def how_it_ended(status: int) -> str:
    """Describe a wait status."""
    if os.WIFSIGNALED(status):
        return f"was ended by {signal_name(os.WTERMSIG(status))}"
    return f"ended with exit code {os.WEXITSTATUS(status)}"


def _read_to_end(fd: int, seconds: float) -> bytes | None:
    """Return all bytes up to the end of file; None if it does not come in time."""
    data = b""
    deadline = monotonic() + seconds
    readable = poll()
    readable.register(fd, POLLIN)
    while readable.poll(max(0.0, deadline - monotonic()) * 1_000):
        piece = os.read(fd, PIPE_BYTES)
        if not piece:
            return data
        data += piece
    return None
