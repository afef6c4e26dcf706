"""`record --mode new_episodes`: replay a cassette as far as it matches, and record the rest of the session.

At the first message without a recorded response, the command is started and brought up to date: it receives the
messages of the host so far, each request after the response to the previous one. Its output is dropped, because the
host has received it from the cassette. From then on the session is live. The new cassette contains, in order `strict`,
the replayed and the new events; in order `any`, all recorded and the new events.
"""

from __future__ import annotations

import os
from time import monotonic

from ext_recorder.cassette.reader import Reader
from ext_recorder.errors import RecorderError
from ext_recorder.posix.channel import ByteChannel, wait
from ext_recorder.posix.child import exit_like, exit_status, spawn
from ext_recorder.posix.output import host_outlet, write_message
from ext_recorder.posix.signals import Signals
from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.record import writer_process
from ext_recorder.replay.event_loop import EXIT_CANNOT_PLAY, play
from ext_recorder.replay.player import Divergence
from ext_recorder.replay.replay import Options, die, introduce, make_action_buffer, make_player, reporting
from ext_recorder.replay.strict import StrictPlayer
from ext_sdk.core.stdio import claim_standard_files
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS

from .config import ResumeFrom
from .proxy import StdioProxy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_recorder.posix.child import Child
    from ext_recorder.posix.output import OutputSink
    from ext_recorder.protocols.dialect import ClassifiedMessage, Dialect
    from ext_recorder.replay.actions import Output
    from ext_recorder.replay.report import Report
    from ext_sdk.core.wire.framing import Framing

    from .config import RecordingConfig

# Seconds to wait for responses of a child that is brought up to date: before the next message of the host, which
# the child may need for the response, and at the end.
NEXT_S = 5.0
ANSWERS_S = 30.0
_DROPPED = "not sent in this session, and will not be in the new cassette (--order any keeps such messages)"


def run_new_episodes(session: RecordingConfig, options: Options) -> int:
    """Replay a cassette, and record from the first request without a response.

    Args:
        session: configuration of the recording; its cassette exists.
        options: options of the replay.

    Returns:
        The exit code of a session that was replayed completely; otherwise this process exits as the child does.
    """
    claim_standard_files()
    outlets: dict[Output, OutputSink] = {"out": host_outlet(1), "err": host_outlet(2)}
    received: list[bytes] = []  # from the host
    report: Report | None = None
    try:
        with Reader(session.cassette) as reader:
            stage = make_action_buffer(reader.header, options)
            player = make_player(reader, stage, options)
            introduce(session.cassette, reader.header, options, outlets["err"])
            player.on_host_data = received.append
            player.diverges = True
            try:
                report = reporting(options.report, session.cassette, player)
                status = play(player, stage, outlets, options.speed, report.end if report else None)
            except Divergence as here:
                header = reader.header
                upto = player.played_to + 1 if isinstance(player, StrictPlayer) else 0
                early = player.played_early() if isinstance(player, StrictPlayer) else frozenset()
                session.base = ResumeFrom(reader.path, upto, early, player.bindings)
                text, rest = str(here), player.unconsumed_input()
                dropped = player.left_out(_DROPPED) if upto else ""
            else:
                return status if isinstance(status, int) else die(status)
    except RecorderError as error:
        write_message(outlets["err"], str(error))
        return EXIT_CANNOT_PLAY
    write_message(outlets["err"], f"{text}; {session.command[0]} is started, and recorded from here on")
    for line in dropped.splitlines():
        write_message(outlets["err"], line)
    session.protocol, session.framing = header.protocol, header.framing
    data = b"".join(received)
    return _go_on(session, outlets["err"], data[: len(data) - len(rest)], rest, report)


def _go_on(session: RecordingConfig, stderr: OutputSink, answered: bytes, rest: bytes, report: Report | None) -> int:
    """Start the command, bring it up to date, and record the rest of the session.

    Args:
        session: configuration of the recording.
        stderr: standard error of the host.
        answered: input of the host that has been answered.
        rest: its further input.
        report: report of `--report`; None without that option.
    """
    signals = Signals()
    signals.catch()
    child = spawn(session.command)
    signals.catch_ignored()
    queue = writer_process.start(session, child.pid)  # it ends the child, too, if this process is killed
    _ChildCatchUp(child, DIALECTS[session.protocol], FRAMINGS[session.framing], signals.fd).up(answered)
    proxy = StdioProxy(child, signals, queue, stderr)
    proxy.say(rest)
    status = proxy.run()
    proxy.linger()
    done = queue.finish()
    if not done.ok or os.isatty(2):
        write_message(stderr, done.text)
    if report:
        report.end(exit_status(status))
    exit_like(status)


class _ChildCatchUp:
    """Brings a child up to state.

    Args:
        child: freshly started.
        dialect: protocol of the messages.
        framing: their framing.
        signals: file that is readable after a signal, which ends the waiting.
    """

    def __init__(self, child: Child, dialect: Dialect, framing: Framing, signals: int) -> None:
        self._dialect = dialect
        self._framing = framing
        self._decoder = framing.decoder()
        self._asked: list[ClassifiedMessage] = []  # requests of the child without a response
        self._open: list[bytes] = []  # ids of requests that it has not answered
        self._ended = False
        self._channel = ByteChannel(child.stdout, child.stdin)
        self._errors = ByteChannel(child.stderr)
        self._signals = signals

    def up(self, answered: bytes) -> None:
        """Send the input of the host to the child."""
        decoder = self._framing.decoder()
        decoder.receive_data(answered)
        decoder.receive_eof()
        while (item := decoder.next_event()) is not None and not self._ended:
            wire = item.wire
            message = self._dialect.classify(item.payload) if isinstance(item, Frame) else None
            if message is not None and message.kind == "response":
                self._wait(NEXT_S, lambda: bool(self._asked))
                asked = self._asked.pop(0) if self._asked else None
                id = asked.text[slice(*asked.span)] if asked else ""  # of the live request of the child
                start, end = message.span
                if asked is None:
                    wire = b""
                elif id and id != message.text[start:end]:
                    text = message.text[:start] + id + message.text[end:]
                    wire = self._framing.encode(text.encode("utf-8", "surrogateescape"))
            elif message is not None and message.kind == "request" and message.key is not None:
                self._open.append(message.key)
            self._channel.send(wire)
            self._wait(ANSWERS_S, lambda: not self._channel.unsent)
            if self._channel.error:
                self._ended = True
            self._wait(NEXT_S, lambda: not self._open or bool(self._asked))
        self._wait(ANSWERS_S, lambda: not self._open)

    def _wait(self, seconds: float, done: Callable[[], bool]) -> None:
        """Read output of the child until a condition holds, or for a number of seconds."""
        until = monotonic() + seconds
        while not done() and not self._ended and (left := until - monotonic()) > 0:
            readable = wait((self._channel, self._errors), left, (self._signals,))
            if self._errors.source in readable:
                self._errors.read()
            if self._channel.source in readable:
                self._read()
            if self._signals in readable:  # it is not read, so that the proxy forwards the signal
                self._ended = True

    def _read(self) -> None:
        data = self._channel.read()
        if data is None:
            return
        self._ended = not data
        self._decoder.receive_data(data)
        while (item := self._decoder.next_event()) is not None:
            if isinstance(item, Frame):
                message = self._dialect.classify(item.payload)
                if message.kind == "request":
                    self._asked.append(message)
                elif message.kind == "response" and message.key in self._open and self._dialect.is_last(message):
                    self._open.remove(message.key)
