"""Order `strict`: the host repeats what it did, message by message.

The cassette is read as it is played, one event ahead, so neither start nor memory depend on its length.

A message out of turn is a miss. After one, the next message that is recorded later continues there, so that one
difference does not make every later message a miss; so does a message that ends the session (`Dialect.final`), at
once. What is skipped counts as never played, and the session as a different one.
"""

from __future__ import annotations

from itertools import chain, islice

from .cassette.events import MESSAGE_LIMIT_BYTES, Data, Mark, omitted
from .errors import UsageError
from .hearing import Recorded
from .player import LISTED, MUCH_BYTES, NEAR, SECOND_CONNECTION, Player
from .unanswered import unanswered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_sdk.wire.framing import Framing

    from .cassette.events import Event
    from .cassette.reader import Reader
    from .hearing import Ear
    from .stage import Stage
    from .voice import Voice


class StrictPlayer(Player):
    """Plays a cassette in its order.

    Args:
        reader: the cassette, at its start.
        ear, voice, stage, framing: see Player.
    """

    _is_coupled = False  # to other connections: `_may` has to be asked

    def __init__(self, reader: Reader, ear: Ear, voice: Voice, stage: Stage, framing: Framing) -> None:
        super().__init__(ear, voice, stage, framing, str(reader.path))
        self._reader = reader
        self._events: Iterator[Event] = iter(reader)
        self._kept: Event | None = None  # was read, and is still to come
        self._due: list[Recorded] = []  # messages of the host that are next, the first one last
        self._mark: Mark | None = None  # or something else of the host that is next
        self._last: Recorded | None = None  # the message of the host that was accepted last
        self._child_ended = False
        self.played_to = 0  # the line of the last message that was played, be it the host's or the child's
        self._time = 0.0  # of what the host did last, in the recording
        self._lost = False  # the last message of the host was a miss
        self._skipped: list[Recorded] = []  # messages of the host that were never played, and never will be

    def start(self) -> None:
        self._release()

    def _release(self) -> None:
        """Play everything up to what the host has to do next."""
        self._mark = None
        self._go_on()

    def _coming(self) -> Iterator[Event]:
        """The events from here on."""
        if self._kept is None:
            return self._events
        event, self._kept = self._kept, None
        return chain([event], self._events)

    def _go_on(self) -> None:
        stage, base = self._stage, self._time
        for event in self._coming():
            stage.after = event.time - base
            if event.conn != 1:
                raise UsageError(f"{self._name}:{self._reader.line}: {SECOND_CONNECTION}")
            if self._is_coupled and not self._may(event):
                self._kept = event
                self.held = True
                return
            if self._mark is not None and not _is_said(event):
                self._kept = event  # only owed answers overtake the end of the input
                break
            waits = self._pass(event) if isinstance(event, Data) else self._pass_mark(event)
            if stage.over or (waits and self._mark is None):
                return
            if waits:
                break
            if stage.size > MUCH_BYTES:
                self.more = True
                return
        if self._voice.owes:
            self._refuse_open()

    def _refuse_open(self) -> None:
        """Refuse the open calls that have no answer in the recording: its host sends no further message."""
        with self._reader.again() as reader:
            for item in unanswered(reader, self._ear.dialect, self._framing):
                self._refuse_unanswered(item)

    def _may(self, event: Event) -> bool:
        """May this be played as far as other connections are concerned?"""
        return True

    def next_line(self) -> int:
        """All that the host said above this line of the cassette has come."""
        return self._due[-1].line if self._due else self._reader.line

    def _pass(self, event: Data) -> bool:
        """Say what the child said, or wait for what the host said. Returns whether it is the host's turn."""
        if event.kind == "in":
            line = self._reader.line
            self._due = self._items(event, line)[::-1] if event.raw else [Recorded(event.payload, line)]
            self._time = event.time
            return True
        self.played_to = self._reader.line
        self._play(event)
        return self._mark is not None and not self._voice.owes

    def _pass_mark(self, mark: Mark) -> bool:
        """The same for what happened without bytes."""
        if self._is_wait(mark):
            self._mark = mark
            self._time = mark.time
            return mark.kind != "eof" or not self._voice.owes
        self._child_ended = mark.kind == "exit"
        self._play(mark)
        if mark.kind == "omitted" and self._voice.owes:
            self._refuse_open()
        return False

    def _is_wait(self, mark: Mark) -> bool:
        """Is this something that the host has to do?"""
        if mark.kind == "omitted":
            return omitted(mark)[1] == "in"
        return mark.kind == "signal" or (mark.kind == "eof" and mark.value == "in" and not self._is_final())

    def _is_final(self) -> bool:
        """Does the child end by itself now? Its host need not close its input first: some wait for the exit."""
        last = self._last
        return last is not None and last.message(self._ear.dialect).method in self._ear.dialect.final

    def _hear(self, payload: bytes) -> None:
        due = self._due
        if due and self._ear.accepts(due[-1], payload):
            self._last = due.pop()
            self._lost = False
            if not due:
                self.played_to = self._last.line
                self._release()
        elif self._mark is not None and self._mark.kind == "omitted" and len(payload) > MESSAGE_LIMIT_BYTES:
            self._release()
        elif self._catch_up(payload):
            self._hear(payload)
        else:
            ends = self._ends_session(payload)
            self._miss(payload, turn=self._turn())
            self._lost = True
            if ends:
                self._end(0)

    # A host that has left the recorded order

    def _catch_up(self, payload: bytes) -> bool:
        """Skip to a later recorded message that this one matches. Return whether there is one."""
        ends = self._ends_session(payload)
        if self.diverges or not (self._lost or ends):
            return False
        line = self._line_ahead(payload, within=None if ends else NEAR)
        if not line:
            return False
        self._skip_to(line, payload)
        return True

    def _line_ahead(self, payload: bytes, within: int | None) -> int:
        """Return the line of the next recorded message that this one matches; 0 if there is none.

        Args:
            payload: the live message.
            within: the number of events to search; None: all of them.
        """
        here = self._reader.line
        matches = (item for item in self._due[-2::-1] if self._ear.matches(item, payload))
        if any(matches):
            return here
        with self._reader.again() as reader:
            later = (
                event for event in reader if reader.line > here or (reader.line == here and self._kept is not None)
            )
            for event in islice(later, within):
                if isinstance(event, Mark) and event.kind == "exit":
                    break  # the child answered nothing after it
                items = self._items(event, reader.line) if isinstance(event, Data) and event.kind == "in" else ()
                if any(self._ear.matches(item, payload) for item in items):
                    return reader.line
        return 0

    def _skip_to(self, line: int, payload: bytes) -> None:
        """Make the message on this line, which the live one matches, the next one.

        Of what the child said in between, only the answers to open calls are played.
        """
        self._mark = None
        if self._reader.line != line or self._kept is not None:
            self._skip_due()
            for event in self._coming():
                if isinstance(event, Data) and event.kind == "in":
                    self._due = self._items(event, self._reader.line)[::-1]
                    self._time = event.time
                    if self._reader.line == line:
                        break
                    self._skip_due()
                elif isinstance(event, Data) and event.kind == "out" and self._voice.owes_this(event):
                    self._play(event)
        while self._due and not self._ear.matches(self._due[-1], payload):
            self._skipped.append(self._due.pop())

    def _skip_due(self) -> None:
        self._skipped += reversed(self._due)
        self._due = []

    def _hear_junk(self, wire: bytes) -> None:
        due = self._due
        if due and not due[-1].is_message and self._ear.accepts(due[-1], wire):
            self._last = due.pop()
            if not due:
                self._release()
        elif not wire.isspace():  # blank lines that nobody waits for say nothing
            self._miss(wire, turn=self._turn(), is_message=False)

    def _turn(self) -> str:
        """What the host has to do next."""
        if self._due:
            return f"line {self._due[-1].line}"
        if self._mark is not None:
            if self._mark.kind == "omitted":
                return f"a message over {MESSAGE_LIMIT_BYTES} bytes, which was left out"
            return "the end of its input" if self._mark.kind == "eof" else f"its signal {self._mark.value}"
        return "nothing: the session is over"

    def _hear_eof(self) -> None:
        if self._mark is not None and self._mark.kind == "eof":
            self._release()
        else:
            self._end(0)

    def _hear_signal(self, name: str) -> None:
        if self._mark is not None and self._mark.kind == "signal" and self._mark.value == name:
            self._release()
        else:
            self._end(name)

    def _never_played(self) -> tuple[list[Recorded], int]:
        never = [*self._skipped, *reversed(self._due)]
        count = len(never)
        if self._mark is not None and self._mark.kind != "eof":
            count += 1
        # The child has ended where it ended; what its host still wrote then could not be played.
        for event in () if self._child_ended else self._coming():
            if isinstance(event, Data) and event.kind == "in":
                items = self._items(event, self._reader.line)
                count += len(items)
                never += items if len(never) < LISTED else []
        return never, count

    def _history(self) -> Iterator[tuple[Recorded, bool, bool]]:
        with self._reader.again() as reader:
            here = self._reader.line
            due = here if self._due else here + 1
            skipped = {item.line for item in self._skipped}
            for event in reader:
                if isinstance(event, Data) and event.kind == "in":
                    played = reader.line < due and reader.line not in skipped
                    for item in self._items(event, reader.line):
                        yield item, played, abs(reader.line - here) < NEAR


def _is_said(event: Event) -> bool:
    """Return True for output of the child, which may be an answer."""
    if isinstance(event, Data):
        return event.kind != "in"
    return event.kind == "omitted" and omitted(event)[1] == "out"
