"""Command line of the recorder for the marker of a test."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.paths import beside
from ext_recorder.cli.command_line import resolve_values
from ext_recorder.cli.commands.record import COMMAND as RECORD
from ext_recorder.cli.options import check_playing, value_of
from ext_recorder.errors import UsageError
from ext_recorder.protocols.dialect import DIALECTS
from ext_sdk.core import own_program

from .cassette_files import cassette_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ext_recorder.cli import Values

MARKER = "recorded"
_RECORDING = frozenset({"protocol", "framing"})  # options of `record` alone
AUTO = "auto"  # the recorder detects the protocol from the first messages
_REWRITE = {"rewrite": "all"}  # our `all` replaces, as pytest-recording's `rewrite` does
# Options of the command line that reports name, and the same options of pytest and of the marker.
_OPTIONS = (
    (re.compile(r"(?:ext-recorder record )?--mode (\w+)"), r"pytest --record-mode=\1"),
    (re.compile(r"--ignore ([^\s)]+)"), r'ignore=["\1"] in the marker'),
    (re.compile(r"--mask (@\w+)"), r'mask=["\1"] in the marker'),
    (re.compile(r"--bind ([\w-]+)=([^\s,;)]+)"), r'bind={"\1": "\2"} in the marker'),
    (re.compile(r"--order (\w+)"), r'order="\1" in the marker'),
)


@dataclass(frozen=True, kw_only=True)
class _Marked:
    """Arguments of the marker, with the names of the options of `ext-recorder record`."""

    cassette: str | None = None
    protocol: str | None = None
    framing: str | None = None
    order: str | None = None
    ignore: Sequence[str] = ()
    mask: Sequence[str] = ()
    match_on: Sequence[str] = ()
    repeat: Sequence[str] = ()
    bind: Mapping[str, str] = field(default_factory=dict)
    redact: Sequence[str | Mapping[str, str]] = ()
    redact_except: Sequence[str] = ()
    no_redact: bool = False
    http: bool = False

    def values(self) -> Values:
        """Return the given arguments, by the names of the options."""
        values = {
            "http": ("",) if self.http else (),
            "protocol": (self.protocol,) if self.protocol else (),
            "framing": (self.framing,) if self.framing else (),
            "order": (self.order,) if self.order else (),
            "ignore": tuple(self.ignore),
            "mask": tuple(self.mask),
            "match-on": tuple(self.match_on),
            "repeat": tuple(self.repeat),
            "bind": tuple(f"{name}={value}" for name, value in self.bind.items()),
            "redact": tuple(each if isinstance(each, str) else json.dumps(each) for each in self.redact),
            "redact-except": tuple(self.redact_except),
            "no-redact": ("",) if self.no_redact else (),
        }
        return {name: texts for name, texts in values.items() if texts}

    def options(self, *, recording: bool) -> list[str]:
        """Return the arguments as words of a command line of `record` or `replay`."""
        return [
            f"--{name}={text}" if text else f"--{name}"
            for name, texts in self.values().items()
            if recording or name not in _RECORDING
            for text in texts
        ]

    def wrong(self) -> str:
        """Return the reason why the arguments are not valid; "" if they are."""
        if self.protocol not in (None, AUTO, *DIALECTS):
            return f"protocol={self.protocol!r}: expected one of {', '.join((AUTO, *DIALECTS))}"
        if self.http and self.repeat:
            return "repeat applies to recorded messages; with http=True the child's own are live: leave it out"
        if self.http and self.order not in (None, "strict"):
            return "order applies to recorded messages; with http=True the child's own are live: leave it out"
        return ""


@dataclass(frozen=True)
class Recorded:
    """Recorded child of a test.

    Attributes:
        words: the command that is recorded.
        mode: "none", "once", "new_episodes" or "all".
        values: options of `ext-recorder record`, with the project file and the defaults.
    """

    words: tuple[str, ...]
    marked: _Marked
    path: Path
    mode: str
    values: Values

    @classmethod
    def of(cls, item: pytest.Item, folder: Path, mode: str) -> Recorded:
        """Return the child that the marker of a test names.

        Raises:
            pytest.fail.Exception: the marker is missing or wrong, or the project file is.
        """
        marker = item.get_closest_marker(MARKER)
        if marker is None:
            raise _wrong(f'{item.nodeid}: expected a marker with the command: @pytest.mark.{MARKER}("ext-shell")')
        known = _Marked.__dataclass_fields__
        if unknown := [name for name in marker.kwargs if name not in known]:
            names = f"{', '.join(unknown)}; it takes: {', '.join(known)}"
            raise _wrong(f"{item.nodeid}: @pytest.mark.{MARKER} has no {names}")
        marked = _Marked(**marker.kwargs)
        if wrong := marked.wrong():
            raise _wrong(f"{item.nodeid}: {wrong}")
        words = tuple(str(word) for word in marker.args)
        path = folder / cassette_name(item, marked.cassette)
        given = {"CASSETTE": (str(path),), "COMMAND": words, **marked.values()}
        try:
            values = resolve_values(RECORD, given)
            check_playing(values)
        except UsageError as error:
            raise _wrong(f"{item.nodeid}: {error}") from None
        if not values["COMMAND"]:
            raise _wrong(
                f'{item.nodeid}: @pytest.mark.{MARKER} names no command, as ("ext-shell"), nor does a project file'
            )
        return cls(words, marked, path, _REWRITE.get(mode, mode), values)

    @property
    def framing(self) -> str:
        """Return the framing of the child: lines if the marker has neither a framing nor a protocol."""
        protocol = value_of(self.values, "protocol")
        return value_of(self.values, "framing") or DIALECTS["jsonrpc" if protocol == AUTO else protocol].framing

    def command(self, report: Path) -> list[str]:
        """Return the command line that replaces the child."""
        # --quiet: the line that names the replayed cassette would be noise in a test.
        options = [*self.marked.options(recording=self.mode != "none"), f"--report={report}", "--quiet"]
        options.append(f"--bind=tmp_path?={report.parent}")  # a test may pass paths below it to the child
        recorder = own_program("ext_recorder")
        if self.mode == "none":
            http = bool(self.values["http"])
            needed = self.path.parent / beside(self.path.name) if http else self.path
            if not needed.exists():
                raise _wrong(f"{needed}: no such cassette; record it: pytest --record-mode=once")
            child = ["--", *self.values["COMMAND"]] if http else []
            options += ["--accept-command"] if http else []
            return [*recorder, "replay", *options, str(self.path), *child]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        mode = f"--mode={self.mode}"
        return [*recorder, "record", mode, *options, str(self.path), "--", *self.values["COMMAND"]]

    def faults(self, report: Path) -> list[str]:
        """Return the differences from the recording in all sessions of the test; empty if the test was recorded."""
        if not report.exists():
            return []
        lines = [json.loads(line) for line in report.read_text("utf-8").splitlines()]
        sessions = {line["session"]: line for line in lines}  # the last line of each has everything
        faults = [with_pytest_options(text) for session in sessions.values() for text in session["told"]]
        if faults:
            faults.append(
                f"If the new requests are intended, record the test again: pytest --record-mode=all\n{self.path}"
            )
        return faults


def with_pytest_options(text: str) -> str:
    """Return a text of the recorder with pytest's options instead of those of its command line."""
    for option, word in _OPTIONS:
        text = option.sub(word, text)
    return text


def _wrong(text: str) -> BaseException:
    """Return a failure of the test with this text and without a traceback."""
    return pytest.fail.Exception(text, pytrace=False)
