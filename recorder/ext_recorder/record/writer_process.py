"""Writer process: writes the cassette from the notes of the proxy, so that the session never waits for a disk.

It is forked without exec, because a new interpreter would take time to start. It detaches (own session, low priority,
no files of the host) and ends when the proxy closes the pipe or is killed. If the proxy was killed, it also reads the
notes that were not sent (`Journal`), and ends the child.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import select
import signal
import time

from ext_recorder.errors import RecorderError
from ext_recorder.posix.output import open_files
from ext_recorder.posix.signals import PASSED_ON

from .event_queue import NOBODY, EventQueue, Journal, Report, unpacked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ext_recorder.cassette.writer import Writer
    from ext_recorder.replay.unanswered import CompletenessCheck
    from ext_sdk.core.redaction.redactor import Redactor

    from .config import RecordingConfig, ResumeFrom
    from .event_encoder import EventEncoder
    from .event_queue import Note
    from .protocol_detection import DetectedProtocol

# Seconds for the child to end by itself after the recorder was killed, which closes the input of the child.
CHILD_GRACE_S = 5.0
# During a busy session the writer process gets a tenth of a core, on an idle machine all of it. Kernels that group
# processes by session (autogroup) share by group first: there it gets half.
NICENESS = 10
NO_GUARD = -1


def start(session: RecordingConfig, child: int) -> EventQueue:
    """Fork the writer process of a session.

    Args:
        session: configuration of the recording.
        child: process id of the recorded child; NOBODY if the recorder has not started one.
    """
    batches, batches_in = os.pipe()
    report, report_in = os.pipe()
    journal = Journal()
    # Until it has detached, it would report a signal to the group, too, by the wake-up pipe of the proxy.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    try:
        scribe = os.fork()
    except OSError:  # the session is more important than its recording; the proxy gets an error from the pipe
        scribe = NOBODY
    if scribe == 0:
        try:
            _live(session, child, unpacked(batches, journal), {batches, report_in}, report_in)
        finally:
            os._exit(0)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.close(batches)
    os.close(report_in)
    return EventQueue(scribe, batches_in, report, session.partial, journal)


def _live(session: RecordingConfig, child: int, batches: Iterator[list[Note]], files: set[int], report: int) -> None:
    guard = _guard(child)
    detach_writer({*files, guard})
    outcome = _write(session, batches)
    if outcome is None:
        _terminate_orphan(guard)
        return
    with contextlib.suppress(BrokenPipeError):
        os.write(report, marshal.dumps((outcome.ok, outcome.text, outcome.warning)))


def _guard(child: int) -> int:
    """Return a file that is readable after the child's exit, and that can be used to kill it (a pidfd of Linux)."""
    if child == NOBODY:
        return NO_GUARD
    try:
        return os.pidfd_open(child)
    except (OSError, AttributeError):
        return NO_GUARD


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
        with contextlib.suppress(OSError, AttributeError):  # forbidden by a sandbox, or not supported
            os.nice(NICENESS)
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    for fd in open_files() - keep:
        os.close(fd)


def _write(session: RecordingConfig, batches: Iterator[list[Note]]) -> Report | None:
    """Write the cassette. Return the result; None if the proxy was killed before the child ended."""
    try:
        return _cassette(session, batches)
    except RecorderError as failure:
        return Report(ok=False, text=str(failure))
    except OSError as failure:
        return Report(ok=False, text=f"{failure.filename or session.partial}: {failure.strerror}{_kept(session)}")
    except Exception as failure:  # noqa: BLE001 - it would not be reported otherwise
        # Without its text, which may contain a secret.
        return Report(ok=False, text=f"internal error: {type(failure).__name__} in {_place(failure)}{_kept(session)}")


def _cassette(session: RecordingConfig, batches: Iterator[list[Note]]) -> Report | None:
    # Imported here, after the fork: the child is already starting meanwhile, and the tap forwards.
    from pathlib import Path

    from ext_recorder.cassette.writer import Writer
    from ext_recorder.messages.redaction import Redaction
    from ext_recorder.protocols.dialect import DIALECTS
    from ext_recorder.replay.unanswered import CompletenessCheck

    redactor = (session.redact or Redaction()).redactor()
    draft: list[EventEncoder] = []
    warning = ""
    with Writer(Path(session.cassette), None) as writer:

        def keep(queue: list[Note]) -> None:
            """It is not clear yet what is spoken: as lines, should this process be killed now."""
            draft[:] = draft or [_begin(session, writer, redactor, "raw", "ndjson")]
            writer.append(draft[0].lines(queue))

        spoken = _spoken(session, batches, keep)
        check = CompletenessCheck(DIALECTS[spoken.protocol])
        transcript = _begin(session, writer, redactor, spoken.protocol, spoken.framing, check=check)
        for queue in spoken.batches:
            if not transcript.counts["out"] and not warning:
                warning = _elsewhere(queue)
            writer.append(transcript.lines(queue))
        if not transcript.finished:
            writer.append(transcript.close())
            return None
        writer.seal(redactor.fired)
        if not check.is_complete and (why := _interrupted(session, spoken)):
            if "has no response" in why and _input_ended(session):
                why += "; the input ended before it: keep it open, for example `(cat FILE; sleep 5) | ext-recorder …`"
            text = f"{session.cassette}: not made, the session was interrupted: {why}{_kept(session)}"
            return Report(ok=False, text=text)
        writer.publish()
    warning = warning or _left_out(session, transcript) or _misread(session, transcript, spoken)
    return Report(ok=True, text=_summary(session, transcript, redactor.fired), warning=warning)


def _input_ended(session: RecordingConfig) -> bool:
    from ext_recorder.cassette.reader import Reader

    with Reader(session.partial) as reader:
        return any(event.kind == "eof" and getattr(event, "value", "") == "in" for event in reader)


def _interrupted(session: RecordingConfig, spoken: DetectedProtocol) -> str:
    """Return why the session is not a complete one; "" if it is. What was recorded before it began is not checked."""
    from ext_recorder.cassette.reader import Reader
    from ext_recorder.protocols.dialect import DIALECTS
    from ext_recorder.replay.unanswered import interruption
    from ext_sdk.core.wire.framing import FRAMINGS

    dialect, server = DIALECTS[spoken.protocol], bool(session.listen)
    with Reader(session.partial) as reader:
        return interruption(
            reader,
            dialect,
            FRAMINGS[spoken.framing],
            after=session.base.lines if session.base else 0,
            server=server,
            script=session.http and not server and not dialect.calls,
        )


def _begin(
    session: RecordingConfig,
    writer: Writer,
    redactor: Redactor,
    protocol: str,
    framing: str,
    *,
    check: CompletenessCheck | None = None,
) -> EventEncoder:
    """Write the header of a session in this protocol, and return the encoder of its events."""
    from ext_recorder.cassette.header import Header, encode_header
    from ext_recorder.messages.path_bindings import RecordBindings as Bindings
    from ext_recorder.messages.provenance import neutral_command, neutral_environment
    from ext_recorder.protocols.dialect import DIALECTS
    from ext_sdk.core.version import __version__
    from ext_sdk.core.wire.framing import FRAMINGS

    from .event_encoder import EventEncoder

    bindings = Bindings(DIALECTS[protocol], session.bind, os.environ.get("HOME", ""))
    if session.base:
        bindings.adopt(session.base.bindings)

    def clean(data: bytes) -> bytes:
        return bindings.clean(redactor.redact(data))

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
    if session.base:
        session.base.lines = encode_header(header).count(b"\n")
    since = _copy(session.base, writer) if session.base else 0.0
    keeps_long = not DIALECTS[protocol].calls
    return EventEncoder(
        FRAMINGS[framing],
        clean,
        bindings,
        since=since,
        replacements=redactor.replacements,
        keeps_long=keeps_long,
        check=check,
    )


def _copy(base: ResumeFrom, writer: Writer) -> float:
    """Take over what is recorded already. Returns when it ends."""
    from ext_recorder.cassette.events import Data, event_line
    from ext_recorder.cassette.reader import Reader

    last, last_early = 0.0, max(base.early, default=0)
    with Reader(base.path) as reader:
        for event in reader:
            if base.upto and reader.line >= base.upto and reader.line not in base.early:
                if reader.line > last_early:
                    break
                continue
            if isinstance(event, Data) or event.kind in {"signal", "omitted"}:
                writer.append([event_line(event)])
                base.lines += 1
                last = event.time
    return last


def _spoken(
    session: RecordingConfig, batches: Iterator[list[Note]], keep: Callable[[list[Note]], None]
) -> DetectedProtocol:
    """Return protocol and framing of the session: as its user gives them, or as its first messages show."""
    from ext_recorder.protocols.dialect import DIALECTS

    from .protocol_detection import AUTO, DetectedProtocol, detect_protocol

    if session.framing == "http":
        return DetectedProtocol("http", "http", batches)
    if session.protocol == AUTO:
        return detect_protocol(batches, session.framing, keep)
    return DetectedProtocol(session.protocol, session.framing or DIALECTS[session.protocol].framing, batches)


def _elsewhere(queue: list[Note]) -> str:
    """Return a warning if the first output of the child redirects the session to another address."""
    from ext_recorder.protocols.detection import redirected_address

    first = next((what for _, name, what in queue if name == "out" and isinstance(what, bytes)), b"")
    place = redirected_address(first)
    return place and f"the child says that it is spoken to at {place}: that part of the session is not recorded"


def _left_out(session: RecordingConfig, transcript: EventEncoder) -> str:
    """Return a warning if messages over the limit are not in the cassette."""
    from ext_recorder.cassette.events import MESSAGE_LIMIT_BYTES

    if not transcript.omitted:
        return ""
    sizes = ", ".join(f"{size} bytes" for size in transcript.omitted[:5]) + (", …" if transcript.omitted[5:] else "")
    what = "a message was" if len(transcript.omitted) == 1 else f"{len(transcript.omitted)} messages were"
    return (
        f"{session.cassette}: {what} left out ({sizes}; the limit is {MESSAGE_LIMIT_BYTES} bytes): no replay has them"
    )


def _misread(session: RecordingConfig, transcript: EventEncoder, spoken: DetectedProtocol) -> str:
    """Return a warning if no message was found with the protocol or framing that the user gave."""
    said = session.framing or session.protocol == spoken.protocol
    if not (said and transcript.strays) or transcript.counts["in"] or transcript.counts["out"]:
        return ""
    return (
        f"{session.cassette}: nothing that was said is a message of {spoken.protocol} in {spoken.framing}; without "
        "--protocol and --framing it is found out what is spoken"
    )


def _summary(session: RecordingConfig, transcript: EventEncoder, redacted: tuple[str, ...]) -> str:
    counts = ", ".join(f"{count} {name}" for name, count in transcript.counts.items())
    hidden = f"; redacted: {', '.join(redacted)}" if redacted else ""
    return f"recorded {session.cassette}: {counts}{hidden}"


def _kept(session: RecordingConfig) -> str:
    if not os.path.exists(session.partial):  # noqa: PTH110
        return ""
    return f"; what was recorded until then is in {session.partial}, for `ext-recorder recover`"


def _place(failure: Exception) -> str:
    trace = failure.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "?"  # noqa: PTH119


def _terminate_orphan(guard: int) -> None:
    """The recorder was killed, which its host meant for the child. One that ends at the end of its input may do so."""
    if guard == NO_GUARD:
        return
    ended = select.poll()
    ended.register(guard, select.POLLIN)
    if not ended.poll(CHILD_GRACE_S * 1_000):
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(guard, signal.SIGKILL)
