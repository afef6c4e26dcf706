"""What a marker says, as the command line of a recorder."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from ext_recorder.http.naming import beside
from ext_sdk.protocols.dialect import DIALECTS

from .names import cassette_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

MARKER = "recorded"
AUTO = "auto"  # the recorder finds out the protocol by the first messages
_REWRITE = {"rewrite": "all"}  # our `all` replaces, as pytest-recording's `rewrite` does
# A report names options of the command line; here, the same things have other names.
_OPTIONS = (
    (re.compile(r"--mode (\w+)"), r"pytest --record-mode=\1"),
    (re.compile(r"--ignore ([^\s)]+)"), r'ignore=["\1"] in the marker'),
    (re.compile(r"--order (\w+)"), r'order="\1" in the marker'),
)


@dataclass(frozen=True, kw_only=True)
class _Marked:
    """The arguments of the marker; the names are those of `ext-recorder record`."""

    cassette: str | None = None
    protocol: str = AUTO
    framing: str | None = None
    order: str = "strict"
    ignore: Sequence[str] = ()
    match_on: Sequence[str] = ()
    bind: Mapping[str, str] = field(default_factory=dict)
    redact: Sequence[str] = ()
    http: bool = False

    def options(self) -> list[str]:
        """As they stand on a command line."""
        return [
            *(["--http"] if self.http else []),
            f"--order={self.order}",
            *(f"--ignore={each}" for each in self.ignore),
            *(f"--match-on={each}" for each in self.match_on),
            *(f"--bind={name}={value}" for name, value in self.bind.items()),
            *(f"--redact={each}" for each in self.redact),
        ]

    def wrong(self) -> str:
        """What does not go together, or is not known; "" where all is well."""
        if self.protocol not in (AUTO, *DIALECTS):
            return f"protocol={self.protocol!r}: expected one of {', '.join((AUTO, *DIALECTS))}"
        if self.http and self.order != "strict":
            return "order applies to recorded messages; with http=True the child's own are live: leave it out"
        return ""

    def recording(self) -> list[str]:
        """What only counts while recording."""
        return [f"--protocol={self.protocol}", *([f"--framing={self.framing}"] if self.framing else [])]


@dataclass(frozen=True)
class Recorded:
    """A child that a test wants.

    Attributes:
        words: the command that is recorded.
        marked: how.
        path: the cassette.
        mode: "none", "once", "new_episodes" or "all".
    """

    words: tuple[str, ...]
    marked: _Marked
    path: Path
    mode: str

    @classmethod
    def of(cls, item: pytest.Item, folder: Path, mode: str) -> Recorded:
        """What the marker of a test says.

        Args:
            item: the test.
            folder: where its cassettes are.
            mode: the value of `--record-mode`.

        Raises:
            pytest.fail.Exception: there is no marker, or it says nothing that can be understood.
        """
        words, marked = _read(item)
        return cls(words, marked, folder / cassette_name(item, marked.cassette), _REWRITE.get(mode, mode))

    @staticmethod
    def framing_of(item: pytest.Item) -> str:
        """Return the framing of a test's child: lines if the marker names neither a framing nor a protocol."""
        marked = _read(item)[1]
        return marked.framing or DIALECTS["jsonrpc" if marked.protocol == AUTO else marked.protocol].framing

    def command(self, report: Path) -> list[str]:
        """The command line that stands in for the child.

        Args:
            report: where a replay says how it went.
        """
        options = [*self.marked.options(), f"--report={report}", "--quiet"]  # a test knows what it replays
        recorder = [sys.executable, "-P", "-m", "ext_recorder"]
        if self.mode == "none":
            needed = self.path.parent / beside(self.path.name) if self.marked.http else self.path
            if not needed.exists():
                raise _wrong(f"{needed}: no such cassette; record it: pytest --record-mode=once")
            child = ["--", *self.words] if self.marked.http else []
            return [*recorder, "replay", *options, str(self.path), *child]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        mode = f"--mode={self.mode}"
        return [*recorder, "record", mode, *self.marked.recording(), *options, str(self.path), "--", *self.words]

    def faults(self, report: Path) -> list[str]:
        """What went otherwise than recorded, in all sessions of the test; none where it was recorded."""
        if not report.exists():
            return []
        lines = [json.loads(line) for line in report.read_text("utf-8").splitlines()]
        sessions = {line["session"]: line for line in lines}  # the last line of each has everything
        faults = [_in_words_of_pytest(text) for session in sessions.values() for text in session["told"]]
        if faults:
            faults.append(
                f"If the test means to ask otherwise now, record it anew: pytest --record-mode=all\n{self.path}"
            )
        return faults


def _in_words_of_pytest(text: str) -> str:
    for option, word in _OPTIONS:
        text = option.sub(word, text)
    return text


def _read(item: pytest.Item) -> tuple[tuple[str, ...], _Marked]:
    found = item.get_closest_marker(MARKER)
    if found is None:
        raise _wrong(f'{item.nodeid}: expected a marker that says what is recorded: @pytest.mark.{MARKER}("ext-shell")')
    known = _Marked.__dataclass_fields__
    if unknown := [name for name in found.kwargs if name not in known]:
        raise _wrong(f"{item.nodeid}: @pytest.mark.{MARKER} has no {', '.join(unknown)}; it takes: {', '.join(known)}")
    marked = _Marked(**found.kwargs)
    if wrong := marked.wrong():
        raise _wrong(f"{item.nodeid}: {wrong}")
    words = tuple(str(word) for word in found.args)
    if not words:
        raise _wrong(f'{item.nodeid}: @pytest.mark.{MARKER} names no command: ("ext-shell",) for one')
    return words, marked


def _wrong(text: str) -> BaseException:
    """A failure of the test that tells its reader this, without our own lines."""
    return pytest.fail.Exception(text, pytrace=False)
