"""`trim`: a part of a session, such that it still plays.

What is cut away is cut away as a whole (see `selecting`). How the session begins (all before the host's second request:
the handshake) and how it ends (what the child ends after, the end of its input, its exit) always stays: a host does
both in any case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.cassette.reader import Reader, dialect_of
from ext_recorder.cassette.writer import encode_event, write_cassette
from ext_recorder.errors import UsageError
from ext_sdk.core.wire.framing import FRAMINGS

from .selection import MessageFilter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from ext_recorder.protocols.dialect import ClassifiedMessage, Dialect
    from ext_sdk.core.wire.framing import Framing


class Part:
    """What stays of a session, beside its beginning and its end. What is not given cuts nothing away.

    Attributes:
        after, before: seconds of the session between which the host asked.
        calls: the host's requests by their numbers, counted from 1: (first, last).
        only: methods that stay, or methods and what they are about: "execute", "execute run".
        without: those that go.
    """

    __slots__ = ("after", "before", "calls", "only", "without")

    def __init__(
        self,
        *,
        after: float = 0.0,
        before: float = float("inf"),
        calls: tuple[tuple[int, int], ...] = (),
        only: Iterable[str] = (),
        without: Iterable[str] = (),
    ) -> None:
        self.after = after
        self.before = before
        self.calls = calls
        self.only = frozenset(only)
        self.without = frozenset(without)

    def has_time(self, time: float) -> bool:
        """Does what was said then stay?"""
        return self.after <= time < self.before

    def has_call(self, number: int) -> bool:
        """Does the request of this number stay?"""
        return not self.calls or any(first <= number <= last for first, last in self.calls)

    def has_method(self, method: str, about: str) -> bool:
        """Return True if messages of this method stay."""
        return not self.drops(method, about) and (not self.only or bool({method, f"{method} {about}"} & self.only))

    def drops(self, method: str, about: str) -> bool:
        """Return True if `without` names messages of this method."""
        return bool({method, f"{method} {about}"} & self.without)


def parse_calls(text: str) -> tuple[tuple[int, int], ...]:
    """`3-7,9` as ranges. Raises UsageError."""
    ranges = []
    for piece in filter(None, text.split(",")):
        first, dash, last = piece.partition("-")
        if not (first.isascii() and first.isdigit()) or (dash and last and not (last.isascii() and last.isdigit())):
            raise UsageError(f"--calls {text}: expected numbers of requests, as in --calls 3-7,9 or --calls 5-")
        ranges.append((int(first), int(last or 10**9) if dash else int(first)))
        if ranges[-1][1] < ranges[-1][0]:
            raise UsageError(f"--calls {text}: expected the first number of a range to be the smaller one, as in 3-7")
    return tuple(ranges)


def trim(path: Path, target: Path, part: Part, *, replace: bool = False) -> tuple[int, int]:
    """Write a part of a cassette as another one.

    Args:
        path: the cassette.
        target: the new one; it may be the same.
        part: what stays.
        replace: a file that is there gives way.

    Returns:
        How many messages stay, of how many.

    Raises:
        UsageError: the part names a call or a method that the session does not have.
        CassetteError, UsageError, CassetteInUse, OSError: it can't be read, or written.
    """
    with Reader(path) as reader:
        dialect = dialect_of(reader.header, str(path))
        framing = FRAMINGS[reader.header.framing]
        selection = MessageFilter(dialect, framing, _Policy(dialect, part))
        lines = _lines(reader, selection, part, framing)
        write_cassette(target, reader.header, lines, lambda: reader.redacted or (), replace=replace)
    return selection.kept, selection.all


def _lines(reader: Reader, selection: MessageFilter, part: Part, framing: Framing) -> Iterator[bytes]:
    """What stays; at the end it is clear whether all that the part names was there."""
    for event in reader:
        left = selection.of(event)
        if left is not None:
            yield encode_event(left, framing)
    beyond = [first for first, _ in part.calls if first > selection.requests]
    if beyond:
        raise UsageError(f"--calls {beyond[0]}: the host's requests in {reader.path} are 1 to {selection.requests}")
    known = [method for method in selection.methods if method]
    for option, names in (("only", part.only), ("without", part.without)):
        for name in sorted(names):
            if name.partition(" ")[0] not in known:
                raise UsageError(f"--{option} {name}: no such method in {reader.path}; there are {', '.join(known)}")


class _Policy:
    """The part, and the beginning and the end of the session."""

    def __init__(self, dialect: Dialect, part: Part) -> None:
        self._dialect = dialect
        self._part = part

    def keeps(self, message: ClassifiedMessage, time: float, number: int) -> bool:
        """See Policy."""
        if number <= 1 or message.method in self._dialect.final:
            return True
        return self._part.has_time(time) and self._part.has_call(number) and self._allows(message)

    def keeps_told(self, message: ClassifiedMessage, time: float, *, in_call: bool) -> bool:
        """Return True if a message of the child stays, see Policy.

        A request of the child in a call that stays belongs to it: without it, the call's response would depend on a
        response that is missing. A message outside all calls has a time of its own.
        """
        if in_call and message.kind == "request":
            return not self._part.drops(message.method, self._dialect.about(message))
        return self._allows(message) and (in_call or time < self._part.before)

    def _allows(self, message: ClassifiedMessage) -> bool:
        return message.kind == "other" or self._part.has_method(message.method, self._dialect.about(message))
