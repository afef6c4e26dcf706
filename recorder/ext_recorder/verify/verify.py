"""Verification of one cassette against a live child, on stdio or as a socket server with all its clients."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from copy import copy
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from ext_recorder.cassette.age import check as check_age
from ext_recorder.cassette.events import OWN_FILES, STDERR_FRAMING, Data
from ext_recorder.cassette.header import Header
from ext_recorder.cassette.paths import beside
from ext_recorder.cassette.reader import Reader
from ext_recorder.cassette.writer import Writer
from ext_recorder.errors import CassetteError, RecorderError
from ext_recorder.messages.path_bindings import ReplayBindings, RewriteBindings
from ext_recorder.messages.provenance import neutral_command, neutral_environment
from ext_recorder.protocols.mcp import DIALECT
from ext_recorder.record.event_encoder import EventEncoder
from ext_recorder.sockets.address import Address
from ext_recorder.sockets.connections import ConnectionReader, connections
from ext_recorder.verify.child_process import VerifiedChild
from ext_recorder.verify.clients import HEADERS, NOT_BEGUN, Clients, client_of, running_server
from ext_recorder.verify.session import LiveSession
from ext_sdk.core import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    from ext_recorder.batch.reports import Case
    from ext_recorder.http.controller import HttpController
    from ext_recorder.verify.child_process import Note
    from ext_recorder.verify.host_script import HostScript
    from ext_recorder.verify.session import VerifyOptions

NOBODY = -1  # number of no connection
BATCH_NOTES = 200  # of --update, are written at once


def verify(path: Path, name: str, options: VerifyOptions) -> Case:
    """Send the requests of a cassette to a real child, and compare its messages.

    Args:
        name: of the cassette, for messages.

    Raises:
        CassetteError, UsageError: the cassette or the options are invalid.
        RecorderError: the child cannot be started.
        OSError: the cassette can't be rewritten.
    """
    started = monotonic()
    with Reader(path) as reader, ExitStack() as stack:
        check_age(name, reader.header, options.max_age)
        if options.recorded_command:
            options = copy(options)
            options.command = recorded_command(name, reader.header, options, os.environ)
            if options.command and options.command[0].startswith(("http://", "https://")):
                options.connect, options.command = options.connect or options.command[0], ()
        session = LiveSession(reader, name, options, os.environ, stack)
        update = stack.enter_context(Update(reader, options, session, os.environ)) if options.update else None
        environment: Mapping[str, str] = os.environ
        if options.connect.startswith(("http://", "https://")):
            options, environment = copy(options), {**os.environ, HEADERS: "\n".join(options.headers)}
            stack.enter_context(running_server(options.command, options.connect))
            options.command, options.connect = client_of(options.connect, must_begin=_begins(path)), ""
        run = _Run(reader, session, options, environment, update.note if update else lambda _when, _name, _what: None)
        case = run.play_clients() if options.connect else run.play()
        if update is not None:
            count = len(case.problems) + case.more
            if not count:
                note = "not updated: nothing differs"
            elif run.gave_up:
                note = "not updated: the session did not get to its end"
            else:
                update.finish(reader.redacted or ())
                note = f"updated: {count} difference{'s' if count > 1 else ''} accepted"
                case.problems, case.more = (), 0
            case.notes = (*case.notes, note)
        case.seconds = monotonic() - started
        return case


def recorded_command(
    name: str, header: Header, options: VerifyOptions, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the command that a cassette was recorded from, with the paths of this machine.

    Args:
        name: of the cassette, for messages.
        options: bindings; without a recorded command, a server at `connect` is expected to run.

    Raises:
        CassetteError: the cassette has no command, or only a part of it.
    """
    if not header.command and options.connect:
        return ()
    advice = "name it: ext-recorder verify CASSETTE -- COMMAND…"
    if not header.command:
        raise CassetteError(name, 0, "has no recorded command", advice)
    bindings = ReplayBindings(header.bindings, options.bind, environment.get("HOME", ""))
    words = []
    for word in header.command:
        data = word.encode("utf-8", "surrogateescape")
        missing = next(bindings.unbound(data), None)
        if missing:
            raise CassetteError(
                name, 0, f"its recorded command has a path of another machine: {word}", f"--bind {missing}=…"
            )
        if "[redacted:" in word or "\ufffd" in word:
            raise CassetteError(name, 0, f"its recorded command is not complete: {word}", advice)
        words.append(bindings.to_live(data, json=False).decode("utf-8", "surrogateescape"))
    return tuple(words)


def _begins(path: Path) -> bool:
    """Return True if the first message of a recorded server is not an error."""
    with Reader(path) as reader:
        messages = (event.payload for event in reader if isinstance(event, Data) and event.kind == "out")
        first = next(messages, None)
        return first is not None and not isinstance(DIALECT.classify(first).at("/error"), dict)


class _Run:
    """Run of the live child, with HTTP replay if requested."""

    def __init__(
        self, reader: Reader, session: LiveSession, options: VerifyOptions, environment: Mapping[str, str], note: Note
    ) -> None:
        self._reader = reader
        self._path = str(reader.path)
        self._started_there = bool(reader.header.command)  # by the recorder: then a socket server's end is recorded
        self._session = session
        self._options = options
        self._environment = environment
        self._note = note
        self.gave_up = False  # the session did not get to its end

    def play(self) -> Case:
        """Act as the host of a child on stdio until it exits."""
        with ExitStack() as stack:
            layer = self._http(stack)
            script = self._session.script(self._reader, self._session.framing)
            with self._live(layer) as live:
                by_itself = live.play(script, self._note)
                script.finish()
                status, words = live.status, live.last_words
            if status == NOT_BEGUN and HEADERS in self._environment:
                raise RecorderError(words.rpartition("\n")[2])
            self._session.compare_exit(script, status, by_itself=by_itself)
            self.gave_up = script.gave_up
            return self._session.case(script.exit, status, words, self._traffic(layer))

    def play_clients(self) -> Case:
        """Act as all clients of a server until the session is over."""
        with ExitStack() as stack:
            layer = self._http(stack)
            parts = stack.enter_context(ExitStack())
            with ExitStack() as running:
                live = running.enter_context(self._live(layer)) if self._options.command else None
                own_number = OWN_FILES if self._started_there else NOBODY

                def script(number: int, may: Callable[[int], bool]) -> HostScript:
                    own = number == OWN_FILES
                    part = parts.enter_context(ConnectionReader(self._path, own_number if own else number))
                    return self._session.script(part, STDERR_FRAMING if own else self._session.framing, may)

                address = Address.parse(self._options.connect, "--connect")
                clients = running.enter_context(Clients(address, connections(self._path), script, live, self._note))
                by_itself = clients.play()
                own = clients.own if self._started_there else None
                for finished in (*clients.scripts, *([own] if own else [])):
                    finished.finish()
                status, words = (live.status, live.last_words) if live else (None, "")
            if own:
                self._session.compare_exit(own, status, by_itself=by_itself)
            self.gave_up = any(script.gave_up for script in clients.scripts)
            return self._session.case(own.exit if own else None, status, words, self._traffic(layer))

    def _live(self, layer: HttpController | None) -> VerifiedChild:
        """Start the child. Raises RecorderError if it cannot start, or does not load the HTTP layer."""
        live = VerifiedChild(self._options.command, {**self._environment, **(layer.variables if layer else {})})
        try:
            if layer:
                layer.wait_loaded(live.has_exited)
        except BaseException:
            live.close()
            raise
        return live

    def _http(self, stack: ExitStack) -> HttpController | None:
        """Start the replay of recorded HTTP responses, if requested."""
        if not self._options.http:
            return None
        from ext_recorder.http.controller import replaying
        from ext_recorder.http.request_matching import RequestRules

        redaction = self._options.redact
        path, matching = Path(beside(self._path)), RequestRules(self._options.ignore, self._options.mask)
        return stack.enter_context(replaying(path, bind=self._options.bind, redaction=redaction, matching=matching))

    def _traffic(self, layer: HttpController | None) -> list[str]:
        """Report unrecorded HTTP requests of the child as a difference. Return further remarks."""
        if layer is None:
            return []
        report = layer.finish()
        if not report.ok:
            self._session.findings.http(report.text)
        return report.warning.splitlines()


class Update:
    """The new session as a cassette, for --update, redacted and written as by `record`.

    It is written next to the old one, and replaces it at the end. A context manager; without `finish`, it is removed.

    Args:
        reader: the cassette, whose bindings and names of environment variables are kept.

    Attributes:
        done: True after it has replaced the old one.
    """

    def __init__(
        self, reader: Reader, options: VerifyOptions, session: LiveSession, environment: Mapping[str, str]
    ) -> None:
        redactor = self._redactor = session.make_redactor()
        self._bindings = RewriteBindings(session.dialect, session.bindings, environment.get("HOME", ""))
        self._encoder = EventEncoder(session.framing, self._clean, self._bindings, replacements=redactor.replacements)
        header = Header(
            session.dialect.name,
            session.framing.name,
            command=neutral_command(options.command, self._clean),
            recorder=__version__,
            recorded=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            bindings=self._bindings.neutral(),
            environment=neutral_environment(reader.header.environment, self._clean),
        )
        self._notes: list[tuple[float, str, bytes | str | int]] = []
        self._writer = Writer(Path(reader.path), header)
        self.done = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if not self.done:
            self._writer.discard()

    def note(self, when: float, name: str, what: bytes | str | int) -> None:
        """Record an event of the session."""
        self._notes.append((when, name, what))
        if len(self._notes) >= BATCH_NOTES:
            self._write()

    def finish(self, redacted: tuple[str, ...]) -> None:
        """Replace the old cassette.

        Args:
            redacted: redacted names of the old one, because the host's messages still have their placeholders.
        """
        self._write()
        self._writer.finish(tuple(sorted({*redacted, *self._redactor.fired})))
        self.done = True

    def _write(self) -> None:
        self._writer.append(self._encoder.lines(self._notes))
        self._notes.clear()

    def _clean(self, data: bytes) -> bytes:
        return self._bindings.clean(self._redactor.redact(data))
