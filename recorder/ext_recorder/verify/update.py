"""New session as a cassette, for --update: redacted and written as by `record`; it replaces the old one at the end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ext_recorder.cassette.header import Header
from ext_recorder.cassette.writer import Writer
from ext_recorder.messages.path_bindings import RewriteBindings
from ext_recorder.messages.provenance import neutral_command, neutral_environment
from ext_recorder.record.event_encoder import EventEncoder
from ext_sdk.core.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Self

    from ext_recorder.messages.path_bindings import ReplayBindings
    from ext_recorder.protocols.dialect import Dialect
    from ext_sdk.core.redaction.redactor import Redactor
    from ext_sdk.core.wire.framing import Framing

    from .options import Options

BATCH_NOTES = 200  # are written at once


class Update:
    """A cassette that is written next to the old one. A context manager; without `finish`, it is removed.

    Args:
        path: the cassette.
        options: of the verification.
        dialect, framing: of the session.
        redactor: redacts the new session.
        bindings: of the cassette, which are kept with their names.
        home: HOME, or "".
        match_env: names of the environment variables that it keeps.

    Attributes:
        done: True after it has replaced the old one.
    """

    def __init__(
        self,
        path: Path,
        options: Options,
        *,
        dialect: Dialect,
        framing: Framing,
        redactor: Redactor,
        bindings: ReplayBindings,
        home: str,
        match_env: Iterable[str] = (),
    ) -> None:
        self._redactor = redactor
        self._bindings = RewriteBindings(dialect, bindings, home)
        self._transcript = EventEncoder(framing, self._clean, self._bindings, replacements=redactor.replacements)
        header = Header(
            dialect.name,
            framing.name,
            command=neutral_command(options.command, self._clean),
            recorder=__version__,
            recorded=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            bindings=self._bindings.neutral(),
            environment=neutral_environment(match_env, self._clean),
        )
        self._notes: list[tuple[float, str, bytes | str | int]] = []
        self._writer = Writer(path, header)
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
        self._writer.append(self._transcript.lines(self._notes))
        self._notes.clear()

    def _clean(self, data: bytes) -> bytes:
        return self._bindings.clean(self._redactor.redact(data))
