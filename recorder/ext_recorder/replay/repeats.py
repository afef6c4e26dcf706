"""Recorded messages of the host that are played again: on request (`--repeat`), and after a fault.

A message that is played again brings all that belongs to it (see `any_order`): its notifications, its response, and the
child's requests in it, which need the recorded responses again. What the host said about the recorded call later (that
it takes it back, for one) is not waited for, and an end of the child is not repeated.
"""

from __future__ import annotations

from ext_recorder.cassette.events import Data

from .partition import RecordingPartitioner
from .threads import CallChain, ChildRequest, Dependency

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ext_recorder.cassette.events import Event
    from ext_recorder.cassette.reader import Reader
    from ext_recorder.protocols.dialect import ClassifiedMessage
    from ext_sdk.core.wire.framing import Framing

    from .request_matcher import RequestMatcher

    CutUp = Callable[[RecordingPartitioner, Event, int], Iterator[CallChain]]

ALL = "all"


class Repeats:
    """The recorded messages that may be played again.

    Args:
        what: the messages that may be sent again at any time: `all`, a method, or a method and what it is about.
        after_faults: any other message may be sent again if a fault applied to it.

    Attributes:
        are_read: the cassette has been read.
        count: the messages that were played again.
    """

    def __init__(self, what: tuple[str, ...], *, after_faults: bool) -> None:
        self._what = frozenset(what)
        self._after_faults = after_faults
        self._threads: dict[str, list[CallChain]] = {}  # by meaning, in recorded order
        self.are_read = False
        self.count = 0

    def allows(self, requests: RequestMatcher, live: ClassifiedMessage) -> bool:
        """Return whether this message may be sent again at any time."""
        what = self._what
        return bool(what) and (
            ALL in what or live.method in what or f"{live.method} {requests.dialect.about(live)}" in what
        )

    def read(self, reader: Reader, requests: RequestMatcher, framing: Framing, cut_up: CutUp) -> None:
        """Read the messages of a cassette, which is at its start."""
        partition = RecordingPartitioner(requests, framing)
        begun = [thread for event in reader for thread in cut_up(partition, event, reader.line)]
        self.are_read = True
        for thread in begun:
            if thread.origin is None or not thread.origin.is_message or thread.open:
                continue
            message = thread.origin.message(requests.dialect)
            if self._after_faults or self.allows(requests, message):
                self._threads.setdefault(requests.matcher.key(message), []).append(thread)

    def find(
        self, requests: RequestMatcher, payload: bytes, was_played: Callable[[CallChain], bool]
    ) -> CallChain | None:
        """Return the last recorded message that this one repeats, as a thread to begin; None if there is none.

        Args:
            requests: what is compared, and how; it takes the message in.
            payload: the live message.
            was_played: returns whether the message of a thread has been played.
        """
        found = self._threads.get(requests.matcher.key(requests.neutral(payload)), [])
        for thread in reversed(found):
            if thread.origin is not None and was_played(thread) and requests.accepts(thread.origin, payload):
                return _again(thread)
        return None


def _again(thread: CallChain) -> CallChain:
    """Return a thread with the same steps, none of which has been done."""
    fresh = CallChain(thread.origin, thread.time)
    answers: dict[Dependency, Dependency] = {}
    for place, step in thread.steps:
        if isinstance(step, ChildRequest):
            question = ChildRequest(step.event, step.keys, [fresh])
            answers.update((turn, Dependency(turn.origin, turn.time)) for turn in step.answers)
            question.answers = [answers[turn] for turn in step.answers]
            fresh.steps.append((place, question))
        elif isinstance(step, Data):
            fresh.steps.append((place, step))
        elif isinstance(step, Dependency) and step in answers:
            fresh.steps.append((place, answers[step]))
    return fresh
