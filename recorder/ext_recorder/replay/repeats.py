"""Recorded messages of the host that are played again: because of `--repeat`, or after a fault.

A message is played again with its complete thread (see `partition`): its notifications, its response, and the child's
requests in it, which need the recorded responses again. Later messages of the host about the recorded call, such as a
cancellation, are not waited for, and an exit of the child is not repeated.
"""

from __future__ import annotations

from ext_recorder.cassette.events import Data

from .partition import RecordingPartitioner
from .threads import CallChain, ChildRequest, Dependency

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_recorder.cassette.reader import Reader
    from ext_recorder.protocols.dialect import ClassifiedMessage
    from ext_sdk.core.wire.framing import Framing

    from .request_matcher import RequestMatcher

ALL = "all"


class Repeats:
    """Recorded messages that may be played again.

    Args:
        what: messages that may be sent again at any time: `all`, a method, or a method with its subject.
        after_faults: any other message may be sent again if a fault applied to it.

    Attributes:
        are_read: the cassette has been read.
        count: number of messages that were played again.
    """

    def __init__(self, what: tuple[str, ...], *, after_faults: bool) -> None:
        self._what = frozenset(what)
        self._after_faults = after_faults
        self._threads: dict[str, list[CallChain]] = {}  # by meaning, in recorded order
        self.are_read = False
        self.count = 0

    def allows(self, requests: RequestMatcher, live: ClassifiedMessage) -> bool:
        """Return True if this message may be sent again at any time."""
        what = self._what
        return bool(what) and (
            ALL in what or live.method in what or f"{live.method} {requests.dialect.about(live)}" in what
        )

    def read(self, reader: Reader, requests: RequestMatcher, framing: Framing) -> None:
        """Read the messages of a cassette, which is at its start."""
        partition = RecordingPartitioner(requests, framing)
        begun = [thread for event in reader for thread in partition.take(event, reader.line)]
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
            requests: compares the messages, and stores the ids and names of the live one.
            payload: the live message.
            was_played: returns True if the message of a thread has been played.
        """
        repeated = requests.matcher.key(requests.as_recorded(payload))
        for thread in reversed(self._threads.get(repeated, [])):
            if thread.origin is not None and was_played(thread) and requests.accepts(thread.origin, payload):
                break
        else:
            return None
        fresh = CallChain(thread.origin, thread.time)
        answers: dict[Dependency, Dependency] = {}
        for place, step in thread.steps:
            if isinstance(step, ChildRequest):
                question = ChildRequest(step.event, step.keys, [fresh])
                answers.update((answer, Dependency(answer.origin, answer.time)) for answer in step.answers)
                question.answers = [answers[answer] for answer in step.answers]
                fresh.steps.append((place, question))
            elif isinstance(step, Data):
                fresh.steps.append((place, step))
            elif isinstance(step, Dependency) and step in answers:
                fresh.steps.append((place, answers[step]))
        return fresh
