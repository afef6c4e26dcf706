"""Writer process: writes the cassette from the notes of the proxy, so that the session never waits for a disk.

It is forked without exec, because a new interpreter would take time to start. It detaches (own session, low priority,
no files of the host) and ends when the proxy closes the pipe or is killed. If the proxy was killed, it also reads the
notes that were not sent (`Journal`), and ends the child.

Most imports are in functions: they run after the fork, while the child starts and the proxy forwards.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import select
import signal
import sys
import time

from ext_recorder.cassette.paths import hold_new
from ext_recorder.errors import RecorderError
from ext_recorder.posix.output import open_files
from ext_recorder.posix.signals import PASSED_ON

from .note_queue import NO_PROCESS, Journal, NoteQueue, Report, unpacked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ext_recorder.cassette.writer import Writer
    from ext_recorder.replay.unanswered import CompletenessCheck
    from ext_sdk.core.redaction.redactor import Redactor

    from .config import RecordingConfig
    from .event_encoder import EventEncoder
    from .note_queue import Note

# Seconds for the child to end by itself after the recorder was killed, which closes the input of the child.
CHILD_GRACE_S = 5.0
CHILD_POLL_S = 0.05
# During a busy session the writer process gets a tenth of a core, on an idle machine all of it. Kernels that group
# processes by session (autogroup) share by group first: there it gets half.
NICENESS = 10
NO_GUARD = -1
AUTO = "auto"  # protocol: that of the first messages
# Most bytes that are held back until the protocol is known, stderr included; then the most likely one is used.
HELD_BYTES = 16_777_216
_HTTP_VERSIONS = frozenset((b"HTTP/1.1", b"HTTP/1.0"))


def start(session: RecordingConfig, child: int) -> NoteQueue:
    """Fork the writer process of a session.

    Args:
        session: configuration of the recording.
        child: process id of the recorded child; NO_PROCESS if the recorder has not started one.
    """
    batches, batches_in = os.pipe()
    report, report_in = os.pipe()
    journal = Journal()
    held = hold_new(session.partial)  # now, because the first step of the writer process may be seconds away
    # Until it has detached, it would report a signal to the group, too, by the wake-up pipe of the proxy.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    try:
        writer = os.fork()
    except OSError:  # the session is more important than its recording; the proxy gets an error from the pipe
        writer = NO_PROCESS
    if writer == 0:
        try:
            guard = NO_GUARD
            # A pidfd of Linux is readable after the exit of the child, and used to kill it.
            if child != NO_PROCESS and hasattr(os, "pidfd_open"):
                with contextlib.suppress(OSError):
                    guard = os.pidfd_open(child)
            detach_writer({batches, report_in, guard} | ({held} if held is not None else set()))
            outcome = _write(session, unpacked(batches, journal), held)
            if outcome is None:
                _terminate_orphan(child, guard)
            else:
                with contextlib.suppress(BrokenPipeError):
                    os.write(report_in, marshal.dumps((outcome.ok, outcome.text, outcome.warning)))
        finally:
            os._exit(0)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.close(batches)
    os.close(report_in)
    if held is not None:
        os.close(held)
    return NoteQueue(writer, batches_in, report, session.partial, journal)


def _terminate_orphan(child: int, guard: int) -> None:
    """Kill the child of a recorder that was killed, because the host meant the child; it may first end by itself.

    Args:
        guard: its pidfd (Linux); NO_GUARD: it is found by its id, which is not used again within the grace period.
    """
    if child == NO_PROCESS:
        return
    with contextlib.suppress(OSError):  # it has ended
        if guard != NO_GUARD and hasattr(signal, "pidfd_send_signal"):
            ended = select.poll()
            ended.register(guard, select.POLLIN)
            if not ended.poll(CHILD_GRACE_S * 1_000):
                signal.pidfd_send_signal(guard, signal.SIGKILL)
            return
        until = time.monotonic() + CHILD_GRACE_S
        while time.monotonic() < until:
            os.kill(child, 0)
            time.sleep(CHILD_POLL_S)
        os.kill(child, signal.SIGKILL)


def detach_writer(keep: set[int], *, nice: bool = True) -> None:
    """Detach the writer process: new session, forwarded signals ignored, inherited files closed, lower priority.

    Args:
        keep: files that stay open.
        nice: lower the priority, because no process waits for this one.
    """
    signal.set_wakeup_fd(-1)
    for number in PASSED_ON:
        signal.signal(number, signal.SIG_IGN)
    os.setsid()
    if nice:
        with contextlib.suppress(OSError):  # forbidden by a sandbox
            os.nice(NICENESS)
            if sys.platform == "linux":
                os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    for fd in open_files() - keep:
        os.close(fd)


def _write(session: RecordingConfig, batches: Iterator[list[Note]], held: int | None) -> Report | None:
    """Write the cassette. Return the result; None if the proxy was killed before the child ended."""
    recording = _Recording(session, held)
    try:
        return recording.write(batches)
    except RecorderError as failure:
        return Report(ok=False, text=str(failure))
    except OSError as failure:
        text = f"{failure.filename or session.partial}: {failure.strerror}"
        return Report(ok=False, text=text + recording.kept())
    except Exception as failure:  # noqa: BLE001 - it would not be reported otherwise
        from traceback import extract_tb

        frame = extract_tb(failure.__traceback__)[-1]
        # Without the text of the exception, which may contain a secret.
        place = f"{type(failure).__name__} in {os.path.basename(frame.filename)}:{frame.lineno}"  # noqa: PTH119
        return Report(ok=False, text=f"internal error: {place}{recording.kept()}")


class _Recording:
    """One session, from its notes to its cassette.

    Args:
        held: the partial file, locked; None to create it.
    """

    _redactor: Redactor

    def __init__(self, session: RecordingConfig, held: int | None) -> None:
        self._session = session
        self._held = held

    def write(self, batches: Iterator[list[Note]]) -> Report | None:
        """Write the cassette. Return the result; None if the proxy was killed before the child ended."""
        from pathlib import Path

        from ext_recorder.cassette.writer import Writer
        from ext_recorder.messages.redaction import Redaction
        from ext_recorder.protocols.detection import redirected_address
        from ext_recorder.protocols.dialect import DIALECTS
        from ext_recorder.replay.unanswered import CompletenessCheck

        session = self._session
        self._redactor = (session.redact or Redaction()).redactor()
        warning = ""
        with Writer(Path(session.cassette), None, held=self._held) as writer:
            detected = self._detected(batches, writer)
            check = CompletenessCheck(DIALECTS[detected.protocol])
            encoder = self._begin(writer, detected.protocol, detected.framing, check=check)
            for queue in detected.batches:
                if not encoder.counts["out"] and not warning:
                    first = next((data for _, name, data in queue if name == "out" and isinstance(data, bytes)), b"")
                    if place := redirected_address(first):
                        warning = f"the child redirects its host to {place}: that part of the session is not recorded"
                writer.append(encoder.lines(queue))
            if not encoder.finished:
                writer.append(encoder.close())
                return None
            writer.seal(self._redactor.fired)
            if not check.is_complete and (reason := self._interruption(detected)):
                text = f"{session.cassette}: not made, the session was interrupted: {reason}{self.kept()}"
                return Report(ok=False, text=text)
            if session.files:
                from ext_recorder.cassette.git_patch import publish

                publish(session.cassette)
            writer.publish()
        counts = ", ".join(f"{count} {name}" for name, count in encoder.counts.items())
        redacted = f"; redacted: {', '.join(self._redactor.fired)}" if self._redactor.fired else ""
        return Report(
            ok=True,
            text=f"recorded {session.cassette}: {counts}{redacted}",
            warning=warning or self._warning(encoder, detected),
        )

    def kept(self) -> str:
        """Return the end of a message: the file of what was recorded, if there is one."""
        if not os.path.exists(self._session.partial):  # noqa: PTH110
            return ""
        return f"; what was recorded until then is in {self._session.partial}, for `ext-recorder recover`"

    def _detected(self, batches: Iterator[list[Note]], writer: Writer) -> DetectedProtocol:
        """Return protocol and framing of the session: those that the user gives, or those of its first messages."""
        from ext_recorder.protocols.dialect import DIALECTS

        session = self._session
        if session.framing == "http":
            return DetectedProtocol("http", "http", batches)
        if session.protocol != AUTO:
            framing = session.framing or DIALECTS[session.protocol].framing
            return DetectedProtocol(session.protocol, framing, batches)
        draft: list[EventEncoder] = []

        def keep(queue: list[Note]) -> None:
            """Write notes as lines, in case that this process is killed before the protocol is known."""
            draft[:] = draft or [self._begin(writer, "raw", "ndjson")]
            writer.append(draft[0].lines(queue))

        return detect_protocol(batches, session.framing, keep)

    def _begin(
        self, writer: Writer, protocol: str, framing: str, *, check: CompletenessCheck | None = None
    ) -> EventEncoder:
        """Write the header of a session in this protocol, and return the encoder of its events."""
        from ext_recorder.cassette.header import Header, encode_header
        from ext_recorder.messages.path_bindings import RecordBindings
        from ext_recorder.messages.provenance import neutral_command, neutral_environment
        from ext_recorder.protocols.dialect import DIALECTS
        from ext_sdk.core import __version__
        from ext_sdk.core.wire.framing import FRAMINGS

        from .event_encoder import EventEncoder, HeadedLines

        session, redact = self._session, self._redactor.redact
        bindings = RecordBindings(DIALECTS[protocol], session.bind, os.environ.get("HOME", ""))
        if session.base:
            bindings.adopt(session.base.bindings)

        def clean(data: bytes) -> bytes:
            return bindings.clean(redact(data))

        patches = None
        if session.files:
            from ext_recorder.cassette.git_patch import PatchFile

            patches = PatchFile(session.cassette, redact, clean)
        header = Header(
            protocol,
            framing,
            command=neutral_command(session.command, clean),
            recorder=__version__,
            recorded=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            bindings=bindings.neutral(),
            environment=neutral_environment(session.match_env, clean),
        )
        writer.begin(header)
        since = 0.0
        if session.base:
            session.base.lines = encode_header(header).count(b"\n")
            since = session.base.copy_to(writer)
        return EventEncoder(
            HeadedLines() if session.headed else FRAMINGS[framing],
            clean,
            bindings,
            since=since,
            replacements=self._redactor.replacements,
            keeps_long=not DIALECTS[protocol].calls,
            check=check,
            patches=patches,
        )

    def _interruption(self, detected: DetectedProtocol) -> str:
        """Return why the session is not a complete one; "" if it is. Events that were copied are not checked."""
        from ext_recorder.cassette.reader import Reader
        from ext_recorder.protocols.dialect import DIALECTS
        from ext_recorder.replay.unanswered import interruption
        from ext_sdk.core.wire.framing import FRAMINGS

        session, dialect, server = self._session, DIALECTS[detected.protocol], bool(self._session.listen)
        with Reader(session.partial) as reader:
            reason = interruption(
                reader,
                dialect,
                FRAMINGS[detected.framing],
                after=session.base.lines if session.base else 0,
                server=server,
                script=session.http and not server and not dialect.calls,
            )
        if "has no response" in reason:
            with Reader(session.partial) as reader:
                if any(event.kind == "eof" and getattr(event, "value", "") == "in" for event in reader):
                    remedy = "keep it open, for example `(cat FILE; sleep 5) | ext-recorder …`"
                    reason += f"; the input ended before it: {remedy}"
        return reason

    def _warning(self, encoder: EventEncoder, detected: DetectedProtocol) -> str:
        """Return a warning about messages that are not in the cassette, or not as messages."""
        from ext_recorder.cassette.events import MESSAGE_LIMIT_BYTES

        session = self._session
        if encoder.omitted:
            sizes = ", ".join(f"{size} bytes" for size in encoder.omitted[:5]) + (", …" if encoder.omitted[5:] else "")
            subject = "a message was" if len(encoder.omitted) == 1 else f"{len(encoder.omitted)} messages were"
            limit = f"the limit is {MESSAGE_LIMIT_BYTES} bytes"
            return f"{session.cassette}: {subject} left out ({sizes}; {limit}): no replay has them"
        given = session.framing or session.protocol == detected.protocol
        if given and encoder.strays and not encoder.counts["in"] and not encoder.counts["out"]:
            return (
                f"{session.cassette}: no message of {detected.protocol} in framing {detected.framing} was recorded, "
                "only other bytes; without --protocol and --framing, both are detected"
            )
        return ""


class DetectedProtocol:
    """Protocol and framing of a session, as detected.

    Attributes:
        protocol: the name of a dialect.
        framing: the name of a framing.
        batches: all notes, including those that were read for the detection.
    """

    __slots__ = ("batches", "framing", "protocol")

    def __init__(self, protocol: str, framing: str, batches: Iterator[list[Note]]) -> None:
        self.protocol = protocol
        self.framing = framing
        self.batches = batches


def detect_protocol(
    batches: Iterator[list[Note]], framing: str, keep: Callable[[list[Note]], None]
) -> DetectedProtocol:
    """Read events of a session until protocol and framing are clear: `--protocol auto`.

    It does not delay the session: the proxy forwards all bytes. The notes are held back until a message, usually the
    first one, shows framing and protocol.

    Args:
        batches: the notes as they come; waited for.
        framing: where it is known; "" to find that out, too.
        keep: called with what is held back.
    """
    from itertools import chain

    from ext_recorder.protocols.detection import Detector

    detector = Detector(framing)
    held: list[list[Note]] = []
    size = 0
    for queue in batches:
        held.append(queue)
        for _, name, data in queue:
            if not isinstance(data, bytes):
                continue
            stream, _, connection = name.partition(":")  # "in:2": of the second connection of a socket server
            size += len(data)
            if connection == "0" or stream == "err":
                continue
            if connection and stream == "in" and not framing:
                words = data.partition(b"\r\n")[0].split(b" ")  # of the first line of an HTTP/1.1 request
                if len(words) == 3 and words[0].isalpha() and words[0].isupper() and words[2] in _HTTP_VERSIONS:
                    return DetectedProtocol("http", "http", chain(held, batches))
            detector.receive("in" if stream == "in" else "out", data)
        if detector.found or size > HELD_BYTES:
            break
        keep(queue)
    return DetectedProtocol(*detector.settle(), chain(held, batches))
