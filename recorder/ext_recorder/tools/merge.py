"""`merge`: several sessions of one protocol as one, in which can be asked what was asked in any of them.

The sessions follow each other as if one host had held them with one child:

- only the last one ends: the end of the input, signals, the exit, and calls after which the child ends by itself
  (`shutdown`) of the others are left out, and so are their calls that were never answered;
- only the first one begins: a handshake (all before the host's second request) whose request is that of the first
  session is left out in the others;
- times go on, ids stay: an id that comes back once its call is answered is another call;
- numbers of placeholders go on, so that no two secrets become one.

It plays in order `any`, where a host asks for what it wants of all that, and in order `strict`, where it asks for all.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ext_recorder.cassette.events import STDERR_FRAMING, Data, note, pieces
from ext_recorder.cassette.header import Header
from ext_recorder.cassette.reader import Reader, dialect_of
from ext_recorder.cassette.writer import encode_event, write_cassette
from ext_recorder.errors import CassetteError, UsageError
from ext_recorder.messages.matcher import MessageComparison
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS

from .message_list import number
from .selection import MessageFilter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ext_recorder.cassette.events import Event
    from ext_recorder.protocols.dialect import ClassifiedMessage, Dialect
    from ext_sdk.core.wire.framing import Framing

_PLACEHOLDER = re.compile(rb"\[redacted:([A-Za-z0-9_.-]{1,96})#([0-9]{1,9})\]")


def merge(paths: Sequence[Path], target: Path, *, replace: bool = False) -> int:
    """Write several cassettes as one.

    Args:
        paths: the cassettes, in the order in which their sessions follow each other.
        target: the new one; it may be one of them.
        replace: a file that is there gives way.

    Returns:
        The number of events.

    Raises:
        CassetteError, UsageError: one can't be read, or they don't go together.
        CassetteInUse, OSError: the new one can't be written.
    """
    header, redacted = _header(paths)
    merged = _Merged(header)

    def lines() -> Iterator[bytes]:
        for count, path in enumerate(paths, 1):
            yield from merged.session(path, last=count == len(paths))

    return write_cassette(target, header, lines(), lambda: redacted, replace=replace)


def _header(paths: Sequence[Path]) -> tuple[Header, tuple[str, ...]]:
    """The header of all of them; every cassette is read once to its end, so that a broken one is told at once."""
    first: Header | None = None
    commands: set[tuple[str, ...]] = set()
    environments: list[dict[str, str]] = []
    bindings: dict[str, str] = {}
    redacted: set[str] = set()
    for path in paths:
        with Reader(path) as reader:
            header = reader.header
            first = first or header
            commands.add(header.command)
            environments.append(header.environment)
            for what, one, other in (
                ("protocol", first.protocol, header.protocol),
                ("framing", first.framing, header.framing),
            ):
                if one != other:
                    raise UsageError(f"{path}: its {what} is {other}, and that of {paths[0]} is {one}")
            for name, neutral in header.bindings.items():
                if bindings.setdefault(name, neutral) != neutral:
                    raise UsageError(f"{path}: its binding {name} is {neutral}, and not {bindings[name]}")
            for event in reader:
                if event.conn != 1:
                    raise CassetteError(path, reader.line, "a session over sockets can't be merged")
            redacted.update(reader.redacted or ())
    assert first is not None
    made = Header(
        first.protocol,
        first.framing,
        command=first.command if len(commands) == 1 else (),  # () is for any command
        recorder=first.recorder,
        recorded=first.recorded,
        bindings=bindings,
        environment=first.environment if all(each == first.environment for each in environments) else {},
    )
    return made, tuple(sorted(redacted))


class _Merged:
    """The sessions so far.

    Args:
        header: of all of them.
    """

    def __init__(self, header: Header) -> None:
        self._dialect = dialect_of(header, "the merged cassette")
        self._comparison = MessageComparison(self._dialect)
        self._framing = FRAMINGS[header.framing]
        self._time = 0.0
        self._highest: dict[bytes, int] = {}  # numbers of placeholders, by their rules
        self._offsets: dict[bytes, int] = {}  # what is added to those of the session
        self._handshake: int | None = None  # what the first request of the first session says

    def session(self, path: Path, *, last: bool) -> Iterator[bytes]:
        """The lines of one more session."""
        policy = _Policy(self, last=last, unanswered=set() if last else _unanswered(path, self._dialect, self._framing))
        selection = MessageFilter(self._dialect, self._framing, policy)
        self._offsets = dict(self._highest)
        base = self._time
        with Reader(path) as reader:
            for event in reader:
                self._time = max(self._time, base + event.time)
                left = selection.of(event) if isinstance(event, Data) or last else None
                if left is not None:
                    left.time += base
                    yield from self._lines(left)

    def is_known(self, message: ClassifiedMessage) -> bool:
        """Is this first request of a session that of the first session?"""
        says = number(self._comparison.value(message))
        if self._handshake is None:
            self._handshake = says
            return False
        return says == self._handshake

    def is_final(self, message: ClassifiedMessage) -> bool:
        """Does the child end by itself after this?"""
        return message.method in self._dialect.final

    def _lines(self, event: Event) -> Iterator[bytes]:
        if not isinstance(event, Data) or b"[redacted:" not in event.payload:
            yield encode_event(event, self._framing)
        elif not event.raw:
            event.payload = self._renumbered(event.payload)
            yield encode_event(event, self._framing)
        else:
            own = STDERR_FRAMING if event.kind == "err" else self._framing
            for item in pieces(event.payload, own):
                yield note(event.kind, event.time, item, own, self._renumbered)

    def _renumbered(self, data: bytes) -> bytes:
        """Placeholders with numbers that no earlier session has."""

        def renumbered(match: re.Match[bytes]) -> bytes:
            rule, its = match[1], int(match[2]) + self._offsets.get(match[1], 0)
            self._highest[rule] = max(its, self._highest.get(rule, 0))
            return b"[redacted:%b#%d]" % (rule, its)

        return _PLACEHOLDER.sub(renumbered, data)


class _Policy:
    """What stays of one session.

    Args:
        merged: the sessions so far.
        last: this one ends.
        unanswered: numbers of requests that were never answered.
    """

    def __init__(self, merged: _Merged, *, last: bool, unanswered: set[int]) -> None:
        self._merged = merged
        self._last = last
        self._unanswered = unanswered
        self._begun = False  # its first request was the first session's

    def keeps(self, message: ClassifiedMessage, _time: float, number: int) -> bool:
        """See Policy."""
        if number == 1 and message.kind == "request":
            self._begun = self._merged.is_known(message)
        if number == 1 and self._begun:
            return False
        if number in self._unanswered and message.kind == "request":
            return False
        return self._last or not self._merged.is_final(message)

    def keeps_told(self, _message: ClassifiedMessage, _time: float, *, in_call: bool) -> bool:
        """See Policy."""
        return True


def _unanswered(path: Path, dialect: Dialect, framing: Framing) -> set[int]:
    """The numbers of the host's requests that were never answered, counted from 1."""
    waiting: dict[bytes, list[int]] = {}
    count = 0
    with Reader(path) as reader:
        for event in reader:
            if not isinstance(event, Data) or event.kind == "err":
                continue
            for item in pieces(event.payload, framing) if event.raw else (Frame(event.payload, b""),):
                message = dialect.classify(item.payload) if isinstance(item, Frame) else None
                if message is None or message.key is None:
                    count += bool(message and event.kind == "in" and message.kind == "request")
                elif event.kind == "in" and message.kind == "request":
                    count += 1
                    waiting.setdefault(message.key, []).append(count)
                elif event.kind == "out" and message.kind == "response" and dialect.is_last(message):
                    calls = waiting.get(message.key)
                    if calls:
                        calls.pop(0)
    return {number for calls in waiting.values() for number in calls}
