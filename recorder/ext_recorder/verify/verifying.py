"""One cassette verified: a live child beside it, and what differs."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from ext_recorder.bindings import Playing
from ext_recorder.calls import Calls
from ext_recorder.cassette.events import OWN_FILES, STDERR_FRAMING
from ext_recorder.cassette.reader import Reader
from ext_recorder.compare.comparing import Comparison
from ext_recorder.compare.counterparts import Counterparts
from ext_recorder.errors import RecorderError
from ext_recorder.http.naming import beside
from ext_recorder.reports.cases import Case
from ext_recorder.session import environment_secrets
from ext_recorder.sockets.address import Address
from ext_recorder.sockets.players import Part
from ext_recorder.sockets.recorded import connections
from ext_recorder.speaking import dialect_of
from ext_sdk.redaction import Redactor, secret_variables
from ext_sdk.wire.framing import FRAMINGS

from .clients import Clients
from .findings import Findings
from .running import Live
from .script import Script
from .sending import FOLDERS, Sender
from .updating import Update

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ext_recorder.http.layer import Layer
    from ext_sdk.wire.framing import Framing

    from .options import Options


def verify(path: Path, name: str, options: Options) -> Case:
    """Play a cassette's requests to a real child, and compare what it says.

    Args:
        path: the file.
        name: what the cassette is called in messages.
        options: the command, and what counts.

    Raises:
        CassetteError, UsageError: the cassette, or the options, can't be used.
        RecorderError: the child can't be started.
        OSError: the cassette can't be rewritten.
    """
    started = monotonic()
    with Reader(path) as reader, ExitStack() as stack:
        run = _Run(reader, name, options, dict(os.environ), stack)
        case = run.play_clients() if options.connect else run.play()
        if run.update is not None:
            case.notes = (*case.notes, run.accept(reader))
            case.problems, case.more = (() if run.accepted else case.problems), 0 if run.accepted else case.more
        case.seconds = monotonic() - started
        return case


NOBODY = -1  # a connection that there is none of
NOT_LOADED = "the child has not loaded the HTTP layer: it is no Python program, or was started with -I, -E or -S"


class _Run:
    """One run of one cassette, with all that belongs to it."""

    def __init__(
        self, reader: Reader, name: str, options: Options, environment: Mapping[str, str], stack: ExitStack
    ) -> None:
        header = reader.header
        dialect = dialect_of(header, str(reader.path))
        framing = FRAMINGS[header.framing]
        self._name = name
        self._path = str(reader.path)
        self._started_there = bool(header.command)  # by the recorder: of a socket server, its end is recorded, too
        self._environment = environment
        self._options = options
        self._stack = stack
        self._folders = 0
        self._folder = ""
        self._bindings = Playing(header.bindings, options.bind, environment.get("HOME", ""))
        self._unbound = [
            each for each in header.bindings if each not in (*FOLDERS, "home") and each not in options.bind
        ]
        secrets = secret_variables(environment) | environment_secrets(options.redact, environment)
        self._redactor = Redactor(secrets, rules=True)
        self._findings = Findings(name)
        self._dialect = dialect
        self._framing = framing
        self._secrets = secrets
        self._counterparts = Counterparts()
        self._comparison = Comparison(dialect, options.ignore, options.mask)
        self._senders: list[Sender] = []
        self._script = self._make_script(reader, framing)
        self.accepted = False
        self.update: Update | None = None
        if options.update:
            home = environment.get("HOME", "")
            update = Update(Path(reader.path), options, dialect=dialect, framing=framing, secrets=secrets, home=home)
            self.update = stack.enter_context(update)

    def _make_script(self, reader: Reader, framing: Framing, may: Callable[[int], bool] | None = None) -> Script:
        """The host's part of one connection; ids of calls are its own, names are known to all."""
        options, child_calls = self._options, Calls()
        sender = Sender(
            self._dialect,
            framing,
            bindings=self._bindings,
            counterparts=self._counterparts,
            child_calls=child_calls,
            secrets=self._secrets,
            new_folder=self._new_folder,
        )
        self._senders.append(sender)
        return Script(
            reader,
            framing,
            sender=sender,
            clean=self._clean,
            comparison=self._comparison,
            counterparts=self._counterparts,
            child_calls=child_calls,
            findings=self._findings,
            patience=options.patience,
            in_order=options.in_order,
            stderr=options.stderr,
            junk=options.junk,
            may=may,
        )

    def play_clients(self) -> Case:
        """Be all the clients of a server, until the session is over."""
        address = Address.parse(self._options.connect, "--connect")
        recorded = connections(self._path)
        own_number = OWN_FILES if self._started_there else NOBODY

        def script(number: int, may: Callable[[int], bool]) -> Script:
            own = number == OWN_FILES
            part = self._stack.enter_context(Part(self._path, own_number if own else number))
            return self._make_script(part, STDERR_FRAMING if own else self._framing, may)

        with ExitStack() as stack:
            live = (
                stack.enter_context(Live(self._options.command, self._environment)) if self._options.command else None
            )
            note = self.update.note if self.update else _no_note
            clients = stack.enter_context(Clients(address, recorded, script, live, note))
            by_itself = clients.play()
            for each in clients.scripts:
                each.finish()
            self._script = clients.own or self._script
            if clients.own and self._started_there:
                clients.own.finish()
            status, words = (live.status, live.last_words) if live else (None, "")
        if live and self._started_there:
            self._look_at_end(by_itself=by_itself, status=status)
        return self._case(self._notes(), status, words)

    def play(self) -> Case:
        """Run the child to its end."""
        layer = self._stack.enter_context(self._http()) if self._options.http else None
        variables = layer.variables if layer else {}
        with Live(self._options.command, {**self._environment, **variables}) as live:
            if layer and not layer.wait_loaded(live.has_ended):
                raise RecorderError(f"{NOT_LOADED}; so it was ended, before it could use the network")
            by_itself = live.play(self._script, self.update.note if self.update else _no_note)
            self._script.finish()
            status, words = live.status, live.last_words
        self._look_at_end(by_itself=by_itself, status=status)
        return self._case([*self._notes(), *(self._finish(layer) if layer else ())], status, words)

    def _case(self, notes: list[str], status: int | str | None, words: str) -> Case:
        """What became of it; with what the child said last on stderr, where that may tell why."""
        if self._findings and words and status not in (0, self._script.exit):
            notes.append(
                "its last words on stderr:\n" + _indented(self._clean(words.encode()).decode("utf-8", "replace"))
            )
        return Case(self._name, problems=self._findings.problems(), more=self._findings.more, notes=notes)

    def _http(self) -> Layer:
        """The recorded answers of servers."""
        from ext_recorder.http.layer import replaying

        secrets = environment_secrets(self._options.redact, self._environment)
        return replaying(Path(beside(self._path)), bind=self._options.bind, secrets=secrets)

    def _finish(self, layer: Layer) -> list[str]:
        """What the child asked servers for, and was not recorded, is a difference. Returns further remarks."""
        report = layer.finish()
        if not report.ok:
            self._findings.add("http", f"{self._name}: {report.text}", 0, {"text": report.text})
        return report.warning.splitlines()

    def accept(self, reader: Reader) -> str:
        """Keep the new session, for --update. Returns what is to be said about it."""
        assert self.update is not None
        if not self._findings:
            return "not updated: nothing differs"
        if self._script.gave_up:
            return "not updated: the session did not get to its end"
        self.update.finish(reader.redacted or ())
        self.accepted = True
        count = len(self._findings.problems()) + self._findings.more
        return f"updated: {count} difference{'s' if count > 1 else ''} accepted"

    def _look_at_end(self, *, by_itself: bool, status: int | str | None) -> None:
        recorded = self._script.exit
        if self._script.gave_up or recorded is None:
            return
        if not by_itself:
            text = f"{self._name}: the exit\n  expected  {recorded}\n  found     none in time; the child was stopped"
            self._findings.add("exit", text, 0, {"expected": recorded, "found": None})
        elif status != recorded:
            text = f"{self._name}: the exit\n  expected  {recorded}\n  found     {status}"
            self._findings.add("exit", text, 0, {"expected": recorded, "found": status})

    def _notes(self) -> list[str]:
        notes = []
        if self._unbound and self._findings:
            names = ", ".join(f"--bind {each}=…" for each in self._unbound)
            notes.append(f"paths that stand for others in this cassette may need their live values: {names}")
        unknown = {each: None for sender in self._senders for each in sender.unknown_secrets}
        if unknown:
            placeholders = ", ".join(unknown)
            notes.append(f"sent as they stand, because the cassette does not have these secrets: {placeholders}")
        return notes

    def _new_folder(self, name: str) -> str:
        """A fresh folder, removed in the end."""
        if not self._folder:
            made = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="verify-", ignore_cleanup_errors=True))
            self._folder = os.path.realpath(made)
        self._folders += 1
        folder = Path(self._folder) / (name if self._folders == 1 else f"{name}-{self._folders}")
        if self._options.files and self._folders == 1:
            shutil.copytree(self._options.files, folder, symlinks=True)
        else:
            folder.mkdir()
        return str(folder)

    def _clean(self, data: bytes) -> bytes:
        return self._bindings.to_neutral(self._redactor.redact(data))


def _no_note(_when: float, _name: str, _what: bytes | str | int) -> None:
    """Nothing is written."""


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
