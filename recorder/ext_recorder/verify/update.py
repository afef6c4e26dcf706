"""New session as a cassette, for --update: redacted and written as by `record`; it replaces the old one at the end."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from ext_recorder.cassette.header import Header
from ext_recorder.cassette.writer import Writer
from ext_recorder.messages.path_bindings import RewriteBindings
from ext_recorder.messages.provenance import neutral_command, neutral_environment
from ext_recorder.record.event_encoder import EventEncoder
from ext_sdk.core import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from ext_recorder.cassette.reader import Reader

    from .session import LiveSession, VerifyOptions

BATCH_NOTES = 200  # are written at once


class Update:
    """A cassette that is written next to the old one. A context manager; without `finish`, it is removed.

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
