"""Options of `verify`, and the state of one session with a real child: all of its connections share it."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ext_recorder.batch.reports import Case
from ext_recorder.cassette.paths import beside
from ext_recorder.cassette.reader import dialect_of
from ext_recorder.messages.matcher import MessageComparison
from ext_recorder.messages.name_map import NameMap
from ext_recorder.messages.open_calls import IdMap
from ext_recorder.messages.path_bindings import HOME, ReplayBindings
from ext_recorder.messages.redaction import Redaction
from ext_recorder.verify.host_script import PROJECTS, RequestWriter
from ext_sdk.core.wire.framing import FRAMINGS

from .child_messages import ChildMessages
from .host_script import HostScript, LookaheadReader
from .pairing import LiveDifferences

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import ExitStack

    from ext_recorder.cassette.reader import Reader
    from ext_sdk.core.wire.framing import Framing


TIMEOUT_S = 10.0


@dataclass
class VerifyOptions:
    """Options of `verify`; picklable.

    Attributes:
        command: program and arguments of the child; () for a socket server that is already running.
        recorded_command: run the command of the cassette instead.
        max_age: age from which on a cassette is refused; "" for none.
        ignore: JSON pointers of values that may differ.
        mask: patterns of parts of texts that may differ.
        name: JSON pointers of values that the child generates and the host sends back.
        bind: live values of bindings, by name.
        redact: redaction rules.
        timeout: maximum seconds that a response may take in addition to its time in the recording.
        in_order: whether the order of the child's messages is compared.
        stderr: whether its stderr is compared.
        junk: whether lines that are not messages are compared.
        update: write the new session to the cassette, if it differs.
        files: folder whose content is copied to the working directory before a session; "" for none.
        http: replay responses to HTTP requests of the child from the file next to the cassette.
        connect: address of a socket server, or URL of an MCP endpoint; "" for a child on stdio.
        headers: of HTTP requests to that URL, as "NAME: VALUE".
    """

    command: Sequence[str]
    _: KW_ONLY
    recorded_command: bool = False
    max_age: str = ""
    ignore: Sequence[str] = ()
    mask: Sequence[str] = ()
    name: Sequence[str] = ()
    bind: Mapping[str, str] = field(default_factory=dict)
    redact: Redaction = field(default_factory=Redaction)
    timeout: float = TIMEOUT_S
    in_order: bool = True
    stderr: bool = False
    junk: bool = True
    update: bool = False
    files: str = ""
    http: bool = False
    connect: str = ""
    headers: Sequence[str] = ()


class LiveSession:
    """State of one run of one cassette.

    Args:
        name: of the cassette, for messages.

    Attributes:
        secrets: values to redact, by name.
        make_redactor: returns a new redactor, without the numbers of this one's placeholders.
        bindings: paths of the cassette with their live values.

    Raises:
        CassetteError, UsageError: the cassette or the options are invalid.
    """

    def __init__(
        self, reader: Reader, name: str, options: VerifyOptions, environment: Mapping[str, str], stack: ExitStack
    ) -> None:
        header = reader.header
        self.dialect = dialect_of(header, str(reader.path))
        self.framing = FRAMINGS[header.framing]
        self.findings = LiveDifferences(name)
        options.redact.require(environment, for_recording=False)
        self.secrets = options.redact.secrets(environment)
        self._name = name
        self._path = str(reader.path)
        self._options = options
        self._stack = stack
        self._folder = ""
        self._early_exit = ""
        self._folders: list[str] = []  # names of the bindings for which one was created
        self.bindings = ReplayBindings(header.bindings, options.bind, environment.get("HOME", ""))
        self.make_redactor = partial(options.redact.redactor, environment)
        self._redactor = self.make_redactor()
        self._counterparts = NameMap()
        self._comparison = MessageComparison(self.dialect, options.ignore, options.mask, options.name)
        self._senders: list[RequestWriter] = []

    def script(self, reader: Reader, framing: Framing, may: Callable[[int], bool] | None = None) -> HostScript:
        """Return the script of the host for one connection. Ids of calls are its own, names are shared."""
        options, child_calls, ahead = self._options, IdMap(), LookaheadReader(reader)
        sender = RequestWriter(
            self.dialect,
            framing,
            bindings=self.bindings,
            counterparts=self._counterparts,
            child_calls=child_calls,
            secrets=self.secrets,
            new_folder=self._new_folder,
            handed=self._comparison.handed,
        )
        self._senders.append(sender)
        child = ChildMessages(
            framing,
            clean=self._clean,
            bindings=self.bindings,
            comparison=self._comparison,
            counterparts=self._counterparts,
            child_calls=child_calls,
            findings=self.findings,
            soon=ahead.soon,
            in_order=options.in_order,
            stderr=options.stderr,
            junk=options.junk,
        )
        return HostScript(ahead, child, sender, self.findings, timeout=options.timeout, may=may)

    def compare_exit(self, script: HostScript, status: int | str | None, *, by_itself: bool) -> None:
        """Compare the exit status of the child with the recorded one.

        Args:
            script: has the recorded exit status.
            by_itself: False if the child was stopped.
        """
        recorded = script.exit
        if script.gave_up and by_itself and status is not None:
            reason = f"exit code {status}" if isinstance(status, int) else status
            self._early_exit = f"the child exited before the end of the session: {reason}"
        if script.gave_up or recorded is None:
            return
        if not by_itself:
            self.findings.exit(recorded, None, "none in time; the child was stopped")
        elif status != recorded:
            self.findings.exit(recorded, status)

    def case(self, recorded: int | str | None, status: int | str | None, words: str, remarks: list[str]) -> Case:
        """Return the result, with the end of stderr if that may explain it.

        Args:
            recorded: exit status of the recorded child.
            status: exit status of the live child.
        """
        notes = [self._early_exit] if self._early_exit else []
        unbound = {name: None for sender in self._senders for name in sender.unbound if name != HOME}
        if unbound and self.findings:
            names = ", ".join(f"--bind {name}=…" for name in unbound)
            notes.append(f"placeholders of paths in this cassette may need live values: {names}")
        project = next((name for name in self._folders if name in PROJECTS), None)
        if project and self.findings and not self._options.files:
            notes.append(
                f"{project} was a new, empty folder; --files FOLDER copies files into it, "
                f"--bind {project}=… names another"
            )
        if self.findings and not self._options.http and Path(beside(self._path)).exists():
            notes.append(f"{beside(self._name)} has the HTTP traffic of this session; --http replays it to the child")
        unknown = {placeholder: None for sender in self._senders for placeholder in sender.unknown_secrets}
        if unknown:
            placeholders = ", ".join(unknown)
            notes.append(f"sent unchanged, because the cassette does not have these secrets: {placeholders}")
        notes += remarks
        if self.findings and words and status not in (0, recorded):
            clean = self._clean(words.encode()).decode("utf-8", "replace")
            notes.append("the end of its output on stderr:\n" + "\n".join(f"  {line}" for line in clean.splitlines()))
        return Case(self._name, problems=self.findings.problems(), more=self.findings.more, notes=notes)

    def _new_folder(self, name: str) -> str:
        """Create a folder, which is removed at the end."""
        if not self._folder:
            temporary = tempfile.TemporaryDirectory(prefix="verify-", ignore_cleanup_errors=True)
            self._folder = os.path.realpath(self._stack.enter_context(temporary))
        self._folders.append(name)
        number = len(self._folders)
        folder = Path(self._folder) / (name if number == 1 else f"{name}-{number}")
        if self._options.files and number == 1:
            shutil.copytree(self._options.files, folder, symlinks=True)
        else:
            folder.mkdir()
        return str(folder)

    def _clean(self, data: bytes) -> bytes:
        return self.bindings.to_placeholders(self._redactor.redact(data))
