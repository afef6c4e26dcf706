"""`merge`: write several sessions of one protocol as one, which can answer any request recorded in them.

The sessions follow each other as if one host had held them with one child:

- Only the last session keeps its end: the end of the input, signals, the exit, and requests that end the child
  (`shutdown`) are removed from the others, and so are their requests without a response.
- Only the first session keeps its handshake (all before the host's second request). It is removed from the others if
  their first request equals that of the first session.
- Times are added up. Ids are kept: an id that is used again after its response is another call.
- Placeholders are renumbered, so that two secrets never have the same placeholder.

The result can be replayed in order `any`, with any selection of the requests, and in order `strict`, with all of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ext_recorder.cassette.events import Data, note
from ext_recorder.cassette.reader import Reader, dialect_of
from ext_recorder.cassette.writer import encode_event, write_cassette
from ext_recorder.errors import CassetteError, UsageError
from ext_recorder.messages.json_values import content_hash
from ext_recorder.messages.matcher import MessageComparison
from ext_recorder.messages.open_calls import CallTracker
from ext_recorder.messages.redaction import PLACEHOLDER
from ext_recorder.tools.trim import MessageFilter
from ext_sdk.core.wire.framing import FRAMINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ext_recorder.cassette.header import Header
    from ext_recorder.protocols.dialect import ClassifiedMessage, Dialect


def merge(paths: Sequence[Path], target: Path, *, replace: bool = False) -> int:
    """Write several cassettes as one.

    Args:
        paths: the cassettes, in the order of their sessions in the result.
        target: the new cassette; it may be one of `paths`.

    Returns:
        The number of events.

    Raises:
        CassetteError, UsageError: a cassette cannot be read, or does not match the others.
        CassetteInUse, OSError: the new cassette cannot be written.
    """
    header, redacted = _header(paths)
    merged = _Merged(header)

    def lines() -> Iterator[bytes]:
        for count, path in enumerate(paths, 1):
            yield from merged.session(path, last=count == len(paths))

    return write_cassette(target, header, lines(), lambda: redacted, replace=replace)


def _header(paths: Sequence[Path]) -> tuple[Header, tuple[str, ...]]:
    """Return the common header and all redaction rules; reads every cassette, so that a damaged one is found first."""
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
            for name, expected, actual in (
                ("protocol", first.protocol, header.protocol),
                ("framing", first.framing, header.framing),
            ):
                if expected != actual:
                    raise UsageError(f"{path}: its {name} is {actual}, and that of {paths[0]} is {expected}")
            for name, placeholder in header.bindings.items():
                if bindings.setdefault(name, placeholder) != placeholder:
                    raise UsageError(f"{path}: its binding {name} is {placeholder}, and not {bindings[name]}")
            for event in reader:
                if event.conn != 1:
                    raise CassetteError(path, reader.line, "a session over sockets cannot be merged")
                if event.kind == "files":
                    raise CassetteError(path, reader.line, "a session with changed files cannot be merged")
            redacted.update(reader.redacted or ())
    assert first is not None
    merged = first.replace(
        command=first.command if len(commands) == 1 else (),  # () matches any command
        bindings=bindings,
        environment=first.environment if all(environment == first.environment for environment in environments) else {},
        redacted=None,
    )
    return merged, tuple(sorted(redacted))


class _Merged:
    """The sessions merged so far, which share one header."""

    def __init__(self, header: Header) -> None:
        self.dialect = dialect_of(header, "the merged cassette")
        self._comparison = MessageComparison(self.dialect)
        self._framing = FRAMINGS[header.framing]
        self._time = 0.0
        self._highest: dict[bytes, int] = {}  # highest number of a placeholder, by rule
        self._offsets: dict[bytes, int] = {}  # added to the numbers of the current session
        self._handshake: int | None = None  # content hash of the first request of the first session

    def session(self, path: Path, *, last: bool) -> Iterator[bytes]:
        """Yield the lines of the next session."""
        policy = _Policy(self, last=last, unanswered=set() if last else _unanswered(path, self.dialect))
        selection = MessageFilter(self.dialect, self._framing, policy)
        self._offsets = dict(self._highest)
        base = self._time
        with Reader(path) as reader:
            for event in reader:
                self._time = max(self._time, base + event.time)
                kept = selection.filter(event) if isinstance(event, Data) or last else None
                if kept is None:
                    continue
                kept.time += base
                if isinstance(kept, Data) and kept.raw and b"[redacted:" in kept.payload:
                    for item in kept.items(self._framing):
                        yield note(kept.kind, kept.time, item, kept.own_framing(self._framing), self._renumbered)
                    continue
                if isinstance(kept, Data):
                    kept.payload = self._renumbered(kept.payload)
                yield encode_event(kept, self._framing)

    def is_known(self, message: ClassifiedMessage) -> bool:
        """Return True if this first request of a session equals that of the first session."""
        content = content_hash(self._comparison.value(message))
        if self._handshake is None:
            self._handshake = content
            return False
        return content == self._handshake

    def _renumbered(self, data: bytes) -> bytes:
        """Return the data with placeholders whose numbers no previous session uses."""

        def renumbered(match: re.Match[bytes]) -> bytes:
            rule, number = match[1], int(match[2]) + self._offsets.get(match[1], 0)
            self._highest[rule] = max(number, self._highest.get(rule, 0))
            return b"[redacted:%b#%d]" % (rule, number)

        return re.sub(PLACEHOLDER, renumbered, data) if b"[redacted:" in data else data


class _Policy:
    """Keeps the messages of one session that belong into the merged one.

    Args:
        last: the session is the last one, which keeps its end.
        unanswered: numbers of the requests without a response.
    """

    def __init__(self, merged: _Merged, *, last: bool, unanswered: set[int]) -> None:
        self._merged = merged
        self._last = last
        self._unanswered = unanswered
        self._drops_handshake = False

    def keeps(self, message: ClassifiedMessage, _time: float, number: int) -> bool:
        if number == 1 and message.kind == "request":
            self._drops_handshake = self._merged.is_known(message)
        if number == 1 and self._drops_handshake:
            return False
        if number in self._unanswered and message.kind == "request":
            return False
        return self._last or message.method not in self._merged.dialect.final  # after which the child exits

    def keeps_output(self, _message: ClassifiedMessage, _time: float, *, in_call: bool) -> bool:
        return True


def _unanswered(path: Path, dialect: Dialect) -> set[int]:
    """Return the numbers of the host's requests without a response, counted from 1."""
    calls: CallTracker[int] = CallTracker(dialect)
    count = 0
    with Reader(path) as reader:
        for event, payload in reader.messages():
            message = dialect.classify(payload)
            if event.kind == "in":
                count += message.kind == "request"
                calls.request(event, message, count)
            else:
                calls.response(event, message)
    return {number for numbers in calls.values() for number in numbers}
