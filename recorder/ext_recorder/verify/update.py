"""The new session as a cassette: redacted and written as a recorder does it, in the place of the old one at the end."""

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
    """A cassette being written beside the old one. A context manager; without `finish`, nothing of it is left.

    Args:
        path: the cassette.
        options: how it is verified.
        dialect, framing: of the session.
        redactor: redacts the new session.
        bindings: of the cassette; they stay, with their names.
        home: HOME, or "".
        match_env: names of the environment variables that it keeps.

    Attributes:
        done: it is in the place of the old one.
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
        """Something has happened."""
        self._notes.append((when, name, what))
        if len(self._notes) >= BATCH_NOTES:
            self._write()

    def finish(self, redacted: tuple[str, ...]) -> None:
        """Put it in the place of the old cassette.

        Args:
            redacted: what was redacted in the old one, whose placeholders the host's messages still have.
        """
        self._write()
        self._writer.finish(tuple(sorted({*redacted, *self._redactor.fired})))
        self.done = True

    def _write(self) -> None:
        self._writer.append(self._transcript.lines(self._notes))
        self._notes.clear()

    def _clean(self, data: bytes) -> bytes:
        return self._bindings.clean(self._redactor.redact(data))
