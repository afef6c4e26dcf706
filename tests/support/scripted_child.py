"""A child in memory beside the script of a recorded host, with a clock of its own."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from ext_recorder.cassette.reader import Reader
from ext_recorder.messages.matcher import MessageComparison
from ext_recorder.messages.name_map import NameMap
from ext_recorder.messages.open_calls import IdMap
from ext_recorder.messages.path_bindings import ReplayBindings
from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.verify.child_messages import ChildMessages
from ext_recorder.verify.host_script import HostScript, LookaheadReader, RequestWriter
from ext_recorder.verify.pairing import LiveDifferences
from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS
from tests.support.player_host import cassette

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ext_recorder.messages.differences import Problem

CLOSED = "<closed>"


class Child:
    """The child's side of a session.

    Args:
        path: the folder for the cassette.
        events: as they stand in a cassette.
        protocol, framing, bindings: its header.
        ignore, mask, name, in_order, stderr, junk: what counts.
        secrets: known values, by their rule.
    """

    def __init__(
        self,
        path: Path,
        events: str,
        *,
        protocol: str = "jsonrpc",
        framing: str = "ndjson",
        bindings: Mapping[str, str] | None = None,
        ignore: Sequence[str] = (),
        mask: Sequence[str] = (),
        name: Sequence[str] = (),
        secrets: Mapping[str, str] | None = None,
        patience: float = 10.0,
        in_order: bool = True,
        stderr: bool = False,
        junk: bool = True,
    ) -> None:
        dialect = DIALECTS[protocol]
        self.now = 0.0
        self.folders: list[str] = []
        self._framing = FRAMINGS[framing]
        self._decoder = self._framing.decoder()
        known = bindings or {}
        self._reader = Reader(cassette(path / "c.yaml", events, protocol=protocol, framing=framing, bindings=known))
        weakref.finalize(self, self._reader.close)  # for tests that look at the middle of a session
        self.bindings = ReplayBindings(known)
        self.redactor = Redactor(secrets or {}, rules=True)
        self.findings = LiveDifferences("c.yaml")
        counterparts, calls, comparison = NameMap(), IdMap(), MessageComparison(dialect, ignore, mask, name)
        self.sender = RequestWriter(
            dialect,
            self._framing,
            bindings=self.bindings,
            counterparts=counterparts,
            child_calls=calls,
            secrets=secrets or {},
            new_folder=self._new_folder,
            handed=comparison.handed,
        )
        ahead = LookaheadReader(self._reader)
        hearing = ChildMessages(
            self._framing,
            clean=lambda data: self.bindings.to_placeholders(self.redactor.redact(data)),
            bindings=self.bindings,
            comparison=comparison,
            counterparts=counterparts,
            child_calls=calls,
            findings=self.findings,
            soon=ahead.soon,
            in_order=in_order,
            stderr=stderr,
            junk=junk,
        )
        self.script = HostScript(ahead, hearing, self.sender, self.findings, timeout=patience)
        self.script.start(self.now)

    def hears(self) -> list[str]:
        """What has come since the last time: messages, CLOSED, names of signals."""
        heard: list[str] = []
        while self.script.outbox:
            each = self.script.outbox.popleft()
            if isinstance(each, bytes):
                self._decoder.receive_data(each)
                while (item := self._decoder.next_event()) is not None:
                    heard.append((item.payload if isinstance(item, Frame) else item.wire).decode())
            else:
                heard.append(each or CLOSED)
            if not self.script.outbox:
                self.script.advance(self.now)
        return heard

    def says(self, *messages: str) -> list[str]:
        """Say messages; what comes back."""
        for each in messages:
            self.script.receive_data(self._framing.encode(each.encode()), self.now)
        return self.hears()

    def waits(self) -> list[str]:
        """Say nothing until the script loses its patience; what comes then."""
        self.now = self.script.deadline()
        self.script.timed_out(self.now)
        return self.hears()

    def ends(self) -> list[Problem]:
        """Say no more; what differed in the end."""
        self.script.receive_eof(self.now)
        self.script.finish()
        self._reader.close()
        return self.findings.problems()

    def kinds(self) -> list[str]:
        """What differed in the end: the kinds of it."""
        return [each.kind for each in self.ends()]

    def _new_folder(self, name: str) -> str:
        self.folders.append(name)
        return f"/live/{name}{len(self.folders)}"
