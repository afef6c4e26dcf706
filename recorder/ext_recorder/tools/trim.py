"""`trim`: write a part of a session that can still be replayed.

A call is removed with its response, with the messages of the child until the next message of the host, and with the
responses to those. The start of the session (all before the host's second
request: the handshake) and its end (the request that ends the child, the end of its input, its exit) are always kept,
because every host needs both.
"""

from __future__ import annotations

from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING

from ext_recorder.cassette.events import OWN_FILES, Data
from ext_recorder.cassette.git_patch import file_of
from ext_recorder.cassette.reader import Reader, dialect_of
from ext_recorder.cassette.writer import encode_event, write_cassette
from ext_recorder.errors import UsageError
from ext_recorder.messages.open_calls import CallTracker
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Protocol

    from ext_recorder.cassette.events import Event
    from ext_recorder.protocols.dialect import ClassifiedMessage, Dialect
    from ext_sdk.core.wire.framing import Framing

    class Policy(Protocol):
        """Decision about each message; responses follow the decision about their requests."""

        def keeps(self, message: ClassifiedMessage, time: float, number: int) -> bool:
            """Return True if a request or notification of the host is kept.

            Args:
                time: seconds since the start of the session.
                number: of the latest request of the host, which may be this message; counted from 1.
            """

        def keeps_output(self, message: ClassifiedMessage, time: float, *, in_call: bool) -> bool:
            """Return True if a request or notification of the child is kept; its host's last message is kept.

            Args:
                time: seconds since the start of the session.
                in_call: a call that is kept is open.
            """


class Part:
    """Criteria for the messages to keep, in addition to the start and end of the session. The default keeps all.

    Attributes:
        after, before: the requests of the host between these times, in seconds of the session.
        calls: ranges of the host's requests, (first, last), counted from 1.
        only: methods to keep, or methods with their subjects: "execute", "execute run".
        without: the same, to remove.
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
        """Return True if messages of this time are kept."""
        return self.after <= time < self.before

    def has_call(self, number: int) -> bool:
        """Return True if the request with this number is kept."""
        return not self.calls or any(first <= number <= last for first, last in self.calls)

    def has_method(self, method: str, about: str) -> bool:
        """Return True if messages of this method are kept."""
        return not self.drops(method, about) and (not self.only or bool({method, f"{method} {about}"} & self.only))

    def drops(self, method: str, about: str) -> bool:
        """Return True if `without` names messages of this method."""
        return bool({method, f"{method} {about}"} & self.without)

    def check(self, path: str, selection: MessageFilter) -> None:
        """Check, after the last event, that the session has all calls and methods. Raises UsageError."""
        beyond = [first for first, _ in self.calls if first > selection.requests]
        if beyond:
            raise UsageError(f"--calls {beyond[0]}: the host's requests in {path} are 1 to {selection.requests}")
        known = [method for method in selection.methods if method]
        for option, names in (("only", self.only), ("without", self.without)):
            for name in sorted(names):
                if name.partition(" ")[0] not in known:
                    raise UsageError(f"--{option} {name}: no such method in {path}; there are {', '.join(known)}")


def parse_calls(text: str) -> tuple[tuple[int, int], ...]:
    """Parse ranges such as `3-7,9`. Raises UsageError."""
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
    """Write a part of a cassette to another one.

    Args:
        target: the new cassette; it may be the same file.

    Returns:
        The number of messages that are kept, and of all messages.

    Raises:
        UsageError: `part` names a call or a method that the session does not have.
        CassetteError, UsageError, CassetteInUse, OSError: the cassette cannot be read, or the new one written.
    """
    with Reader(path) as reader:
        dialect = dialect_of(reader.header, str(path))
        framing = FRAMINGS[reader.header.framing]
        selection = MessageFilter(dialect, framing, _Policy(dialect, part))

        def lines() -> Iterator[bytes]:
            for event in reader:
                kept = selection.filter(event)
                if kept is not None:
                    yield encode_event(kept, framing)
            part.check(reader.path, selection)

        write_cassette(target, reader.header, lines(), lambda: reader.redacted or (), replace=replace)
    patches, copy = Path(file_of(str(path))), Path(file_of(str(target)))
    if patches.exists() and patches != copy:
        copyfile(patches, copy)
    return selection.kept, selection.all


class _Policy:
    """Keeps the part, and the start and end of the session."""

    def __init__(self, dialect: Dialect, part: Part) -> None:
        self._dialect = dialect
        self._part = part

    def keeps(self, message: ClassifiedMessage, time: float, number: int) -> bool:
        if number <= 1 or message.method in self._dialect.final:
            return True
        return self._part.has_time(time) and self._part.has_call(number) and self._allows(message)

    def keeps_output(self, message: ClassifiedMessage, time: float, *, in_call: bool) -> bool:
        # A request of the child belongs to the open call: without it, the call's response would depend on a response
        # that is missing. A message outside all calls is selected by its own time.
        if in_call and message.kind == "request":
            return not self._part.drops(message.method, self._dialect.about(message))
        return self._allows(message) and (in_call or time < self._part.before)

    def _allows(self, message: ClassifiedMessage) -> bool:
        return message.kind == "other" or self._part.has_method(message.method, self._dialect.about(message))


class MessageFilter:
    """Filter of events, in their order.

    Attributes:
        kept: number of messages kept so far.
        all: number of messages so far.
        methods: methods of all messages so far, in their order.
        requests: number of requests of the host so far.
    """

    def __init__(self, dialect: Dialect, framing: Framing, policy: Policy) -> None:
        self._dialect = dialect
        self._framing = framing
        self._policy = policy
        self._keeps_last = True  # the host's last message is kept
        self._calls: CallTracker[bool] = CallTracker(dialect)  # True for calls that are kept
        self.kept = self.all = self.requests = 0
        self.methods: dict[str, None] = {}

    def filter(self, event: Event) -> Event | None:
        """Return the event with the messages that are kept; None if no message is."""
        if not isinstance(event, Data) or event.conn == OWN_FILES:
            return event
        if event.kind == "err":
            return event if self._keeps_last else None
        if not event.raw:
            return event if self._keeps(event, event.payload) else None
        kept = [
            item.wire
            for item in event.items(self._framing)
            if (self._keeps(event, item.payload) if isinstance(item, Frame) else self._keeps_last)
        ]
        return Data(event.kind, event.time, b"".join(kept), raw=True, conn=event.conn) if kept else None

    def _keeps(self, event: Data, payload: bytes) -> bool:
        message = self._dialect.classify(payload)
        self.methods.setdefault(message.method)
        if message.kind == "response":
            call = self._calls.response(event, message)
            keeps = self._keeps_last if call is None else call  # without a request, as the messages around it
        elif event.kind == "in":
            self.requests += message.kind == "request"
            keeps = self._keeps_last = self._policy.keeps(message, event.time, self.requests)
        else:
            in_call = any(any(calls) for calls in self._calls.values())
            keeps = self._keeps_last and self._policy.keeps_output(message, event.time, in_call=in_call)
        self._calls.request(event, message, keeps)
        self.all += 1
        self.kept += keeps
        return keeps
