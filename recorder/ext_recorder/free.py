"""The threads that no live message has begun yet, and how they are found: for order `any`."""

from __future__ import annotations

from collections import deque

from ext_sdk.protocols.glance import glance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .hearing import Ear, Recorded
    from .threads import Thread


class FreeThreads:
    """Free threads, by the text of the message that begins them and by its meaning.

    Args:
        ear: finds the meaning of messages.
        accepts: returns True if a live message is the recorded one.
    """

    def __init__(self, ear: Ear, accepts: Callable[[Recorded, bytes], bool]) -> None:
        self._ear = ear
        self._accepts = accepts
        self._threads: dict[int, Thread] = {}  # by number, in the order of the recording
        self._by_text: dict[int, deque[Thread]] = {}
        self._by_key: dict[str, deque[Thread]] = {}
        self._keyed = 0  # threads from this number on are not in `_by_key`

    def __iter__(self) -> Iterator[Thread]:
        return iter(self._threads.values())

    def add(self, thread: Thread) -> None:
        """A thread that begins with a message."""
        self._threads[thread.number] = thread
        assert thread.origin is not None
        self._by_text.setdefault(_text_key(thread.origin.payload), deque()).append(thread)

    def take(self, thread: Thread) -> None:
        """A live message has begun it."""
        thread.taken = True
        del self._threads[thread.number]
        assert thread.origin is not None
        key = _text_key(thread.origin.payload)
        same = self._by_text[key]
        while same and same[0].taken:
            same.popleft()
        if not same:
            del self._by_text[key]

    def clear(self) -> None:
        """Nothing will be looked up any more."""
        self._threads.clear()
        self._by_text.clear()
        self._by_key.clear()

    def by_text(self, payload: bytes) -> Thread | None:
        """The first thread whose message has the same bytes but for its id."""
        for spelling in self._spellings(payload):
            thread = self._first(self._by_text.get(_text_key(spelling)), payload)
            if thread is not None:
                return thread
        return None

    def by_meaning(self, payload: bytes) -> Thread | None:
        """The first one whose message matches; the first time, all of them are read for that."""
        self._make_keys()
        ear = self._ear
        for spelling in self._spellings(payload):
            clean, unredacted = ear.neutral(spelling), ear.dialect.classify(spelling)
            # A cassette that was recorded without redaction has the secrets of the live message.
            for message in (clean,) if clean.text == unredacted.text else (clean, unredacted):
                thread = self._first(self._by_key.get(ear.matcher.key(message)), payload)
                if thread is not None:
                    return thread
        return None

    def _first(self, threads: deque[Thread] | None, payload: bytes) -> Thread | None:
        while threads and threads[0].taken:
            threads.popleft()
        for thread in threads or ():
            if not thread.taken and thread.origin is not None and self._accepts(thread.origin, payload):
                return thread
        return None

    def _make_keys(self) -> None:
        """A spelling for each thread that is the same for all messages that match."""
        ear = self._ear
        last = next(reversed(self._threads), -1)
        for number in range(self._keyed, last + 1):
            thread = self._threads.get(number)
            if thread is not None and thread.origin is not None and thread.origin.is_message:
                key = ear.matcher.key(ear.dialect.classify(ear.bindings.canonical(thread.origin.payload)))
                self._by_key.setdefault(key, deque()).append(thread)
        self._keyed = max(self._keyed, last + 1)

    def _spellings(self, payload: bytes) -> Iterator[bytes]:
        """The message, with its paths under each of the neutral spellings that they might have."""
        bindings = self._ear.bindings
        yield bindings.to_neutral(payload)
        for name, value in self._ear.unbound(payload):
            for neutral in self._neutrals(name):
                if bindings.live(neutral) is None:
                    yield bindings.to_neutral_if(neutral, value, payload)

    def _neutrals(self, name: str) -> Iterator[str]:
        """The neutral spellings of a binding that occur in what is free."""
        for spelling in self._ear.bindings.neutrals(name):
            spelled = spelling.encode()
            if self._ear.bindings.live(spelling) is None and not any(
                thread.origin is not None and spelled in thread.origin.payload for thread in self
            ):
                return
            yield spelling


def _text_key(payload: bytes) -> int:
    """What a message is found by: its bytes without its id."""
    seen = glance(payload)
    return hash(payload) if seen is None else hash((payload[: seen[1]], payload[seen[2] :]))
