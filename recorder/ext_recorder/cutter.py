"""Cutting a recording into threads, for order `any`: see `any_order` for what belongs to which."""

from __future__ import annotations

from itertools import islice

from ext_sdk.core.wire.frames import Junk
from ext_sdk.protocols.dialect import id_key, pointers_of
from ext_sdk.protocols.glance import glance

from .cassette.events import Data, pieces
from .threads import Question, Thread, Turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_sdk.core.wire.framing import Framing
    from ext_sdk.protocols.dialect import Classified, Pointers

    from .cassette.events import Event
    from .hearing import Ear, Recorded

# So many open calls, the latest, are thought of when a request of the child says nothing of where it belongs.
_THOUGHT_OF = 64


class Cutter:
    """Cuts a recording into threads, as it is read. Keeps those that something may still come to, and no other.

    Attributes:
        first: what the child did at the start.
        count: how many threads begin with a message.
        marks: those that begin with the end of the input, or with a signal, by its name.
        place: the number of host messages, host marks and child events read.
        asked: the ids of the child's requests, as far as the recording was read.
    """

    def __init__(self, ear: Ear, framing: Framing) -> None:
        dialect = ear.dialect
        self._dialect = dialect
        self._framing = framing
        self._glances = dialect.plain and dialect.by_id
        self.first = Thread(None, 0.0)
        self.count = 0
        self.marks: dict[str, list[Thread]] = {}
        self.place = 0
        self.asked: set[bytes] = set()
        self._last = self.first
        self._host_calls: dict[bytes, list[Thread]] = {}  # open calls by their id, the oldest first
        self._child_calls: dict[bytes, list[Question]] = {}
        self._named: dict[bytes, Thread] = {}  # by a lasting name: whose answer or stream speaks of it
        self._doubts: dict[Thread, list[Question]] = {}  # of which it is not clear who asks
        self._cancels: dict[Thread, list[Thread]] = {}  # calls, and by what the host took them back

    # The host

    def heard(self, item: Recorded, time: float) -> Thread | None:
        """A message of the host: the thread that it begins, or None where it goes on in one."""
        self.place += 1
        kind, key, last, message = self._look(item.payload) if item.is_message else ("other", b"", True, None)
        if kind == "response" and (asked := self._child_calls.get(key)):
            self._answer(asked[0], Turn(item, time), last=last)
            if last:
                del asked[0]
                if not asked:
                    del self._child_calls[key]
            return None
        thread = Thread(item, time, self.count)
        self.count += 1
        if not self._is_aside(item.payload):
            self._last = thread
        if kind == "request":
            self._host_calls.setdefault(key, []).append(thread)
            thread.open += 1
        if message is not None:
            self._concern(thread, message)
        return thread

    def _is_aside(self, payload: bytes) -> bool:
        """Does nothing follow from this but its answer?"""
        asides = self._dialect.asides
        return any(method.encode() in payload for method in asides) and self._dialect.classify(payload).method in asides

    def marked(self, name: str, time: float) -> None:
        """The end of the host's input, or a signal."""
        self.place += 1
        self._last = Thread(None, time)
        self.marks.setdefault(name, []).append(self._last)

    def _answer(self, question: Question, answer: Turn, *, last: bool) -> None:
        """All that may have asked wait for the answer."""
        question.answers.append(answer)
        for thread in question.threads:
            thread.steps.append((self.place, answer))
            if last:
                thread.open -= 1
        self._last = question.threads[-1]

    def _concern(self, thread: Thread, message: Classified) -> None:
        """What goes on, and this has a say in, waits for it; what is worked on from now on is this thread's."""
        dialect, method = self._dialect, message.method
        for key in _keys(message, dialect.references):
            for call in self._host_calls.get(key, ())[:1]:
                call.steps.append((self.place, thread))
                self._cancels.setdefault(call, []).append(thread)
        held = dialect.releases.get(method, ())
        for call in self._busy() if held else ():
            if call.origin is not None and call.origin.message(dialect).method in held:
                call.steps.append((self.place, thread))
        for key in _keys(message, dialect.steers):
            steered = self._named.get(key)
            if steered is not None:
                steered.steps.append((self.place, thread))
        for key in _keys(message, dialect.works):
            known = self._named.get(key)
            if known is None or not known.open:
                self._named[key] = thread

    # The child

    def said(self, event: Event) -> None:
        """Something of the child."""
        self.place += 1
        owner, asked = None, []
        if isinstance(event, Data) and event.kind == "out":
            for each in pieces(event.payload, self._framing) if event.raw else (event,):
                if not isinstance(each, Junk):
                    kind, key, found = self._owner(each.payload)
                    owner = owner or found
                    if kind == "request":
                        asked.append(key)
        if asked:
            self._ask(event, asked, [owner] if owner else self._busy() or [self._last])
        else:
            (owner or self._last).steps.append((self.place, event))

    def is_settled(self, thread: Thread) -> bool:
        """Is all that belongs to this thread read? Where streams name what they belong to, only the end tells."""
        return self._dialect.by_id and not thread.open and thread is not self._last

    def _ask(self, event: Event, keys: list[bytes], threads: list[Thread]) -> None:
        question = Question(event, keys, threads)
        self.asked.update(keys)
        for key in keys:
            self._child_calls.setdefault(key, []).append(question)
        for thread in threads:
            thread.steps.append((self.place, question))
            thread.open += len(keys)
            if len(threads) > 1:
                self._doubts.setdefault(thread, []).append(question)

    def _busy(self) -> list[Thread]:
        """The threads whose calls are open."""
        latest = islice(reversed(self._host_calls.values()), _THOUGHT_OF)
        found = [thread for threads in latest for thread in threads]
        return sorted(found, key=_number)[-_THOUGHT_OF:]

    def _owner(self, payload: bytes) -> tuple[str, bytes, Thread | None]:
        """The kind of a message of the child, its id, and the thread that it belongs to, if that shows."""
        kind, key, last, message = self._look(payload)
        owner = None
        if kind == "response":
            owner = self._answered(key, last, message, payload)
        if message is not None and not self._dialect.by_id:
            owner = self._named_owner(message, owner)
        return kind, key, owner

    def _answered(self, key: bytes, last: bool, message: Classified | None, payload: bytes) -> Thread | None:
        """The thread of the call that this answers."""
        if not key and message is not None and message.method and self._host_calls:
            key = next(iter(self._host_calls))  # it ends a call without a word about which
        waiting = self._host_calls.get(key)
        if not waiting or not last:
            return waiting[0] if waiting else None
        owner = waiting.pop(0)
        owner.open -= 1
        if not waiting:
            del self._host_calls[key]
        self._end(owner, payload)
        return owner

    def _end(self, owner: Thread, payload: bytes) -> None:
        """Its call has got its answer: it has not waited for what is asked and not answered yet."""
        for question in self._doubts.pop(owner, ()):
            if not question.answers and len(question.threads) > 1:
                question.threads.remove(owner)
                owner.open -= 1
        cancels = self._cancels.pop(owner, ())
        if cancels and not self._dialect.is_failure(self._dialect.classify(payload)):
            owner.steps = [each for each in owner.steps if each[1] not in cancels]  # they came too late

    def _named_owner(self, message: Classified, owner: Thread | None) -> Thread | None:
        """The same where more than ids may tell: a stream names its call, a progress its run."""
        calls = (self._host_calls.get(key) for key in _keys(message, self._dialect.mentions))
        owner = owner or next((threads[0] for threads in calls if threads), None)
        names = list(_keys(message, self._dialect.names))
        owner = owner or next((self._named[name] for name in names if name in self._named), None)
        if owner is None and names and message.kind != "request":
            owner = (self._busy() or [self._last])[-1]  # it has made up a name for what it does
        if owner is not None:
            for name in names:
                self._named.setdefault(name, owner)
        return owner

    def _look(self, payload: bytes) -> tuple[str, bytes, bool, Classified | None]:
        """The kind of a message, its id, whether it ends its call, and the message, where it had to be read."""
        seen = glance(payload) if self._glances else None
        if seen is not None:
            return seen[0], payload[seen[1] : seen[2]], True, None
        message = self._dialect.classify(payload)
        return message.kind, message.key or b"", self._dialect.is_last(message), message


def _number(thread: Thread) -> int:
    return thread.number


def _keys(message: Classified, table: Pointers) -> Iterator[bytes]:
    """The ids and names that stand where a table says."""
    for pointer in pointers_of(table, message.method) if table else ():
        value = message.at(pointer)
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            yield id_key(value, "")
