"""The scheduler of threads: what each of them waits for."""

from __future__ import annotations

from ext_recorder.cassette.events import Data, Event
from ext_recorder.cassette.header import Header
from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.replay.actions import ActionBuffer
from ext_recorder.replay.replay import Options, make_matcher_and_writer
from ext_recorder.replay.request_matcher import RecordedRequest
from ext_recorder.replay.threads import CallChain, ChildRequest, Dependency, Scheduler

REPLY = b'{"id":"q","result":1}'


def request(number: int) -> RecordedRequest:
    return RecordedRequest(b'{"id":%d,"method":"execute","params":{"n":%d}}' % (number, number), number)


def call(number: int, *steps: tuple[int, Event | Dependency]) -> CallChain:
    thread = CallChain(request(number), float(number), number)
    thread.steps.extend(steps)
    return thread


def output(text: str) -> Data:
    return Data("out", 0.0, text.encode())


class Session:
    def __init__(self) -> None:
        requests, _ = make_matcher_and_writer("x.yaml", Header("gevals", "ndjson"), Options(), {})
        self.played: list[str] = []
        self.scheduler = Scheduler(requests, ActionBuffer(), self._play)

    def _play(self, event: Event) -> None:
        assert isinstance(event, Data)
        self.played.append(event.payload.decode())


def test_a_thread_waits_for_a_message_of_the_host_and_then_continues() -> None:
    session = Session()
    second = call(2, (4, output("d")))
    first = call(1, (1, output("a")), (2, second), (3, output("c")))
    session.scheduler.begin(first)
    assert session.played == ["a"]
    assert [(origin.line, cause.line) for origin, cause in session.scheduler.blocked()] == [(1, 2)]
    session.scheduler.begin(second)
    assert session.played == ["a", "c", "d"]
    assert list(session.scheduler.waiting()) == []


def test_a_request_of_the_child_is_sent_once_all_threads_have_begun_that_may_have_sent_it() -> None:
    session = Session()
    first, second = call(1), call(2)
    question = ChildRequest(output("ask"), [b'"q"'], [first, second])
    answer = Dependency(RecordedRequest(REPLY, 9), 0.0)
    question.answers.append(answer)
    for thread in (first, second):
        thread.steps += [(1, question), (2, answer), (3, output(f"done {thread.number}"))]
    session.scheduler.begin(first)
    assert session.played == []
    session.scheduler.begin(second)
    assert session.played == ["ask"]
    assert not session.scheduler.answered(REPLY.replace(b"1}", b"2}"))
    assert session.scheduler.answered(REPLY)
    assert session.played == ["ask", "done 1", "done 2"]


def test_another_response_ends_the_calls_that_wait_for_the_recorded_one() -> None:
    session = Session()
    thread = call(1)
    question = ChildRequest(output('{"id":"q","method":"ask"}'), [b'"q"'], [thread])
    answer = Dependency(RecordedRequest(REPLY, 9), 0.0)
    question.answers.append(answer)
    thread.steps += [(1, question), (2, answer), (3, output("never"))]
    session.scheduler.begin(thread)
    spoiled = session.scheduler.spoiled(DIALECTS["gevals"].classify(REPLY.replace(b"1}", b"2}")), {b'"q"'})
    assert spoiled is not None
    assert (spoiled.recorded.line, spoiled.requests) == (9, 'request ask (id "q")')
    assert [item.line for item in spoiled.calls] == [1]
    assert session.played == ['{"id":"q","method":"ask"}']
    assert list(session.scheduler.unanswered()) == []


def test_a_call_that_is_sent_again_ends_the_one_that_waits() -> None:
    session = Session()
    thread = call(1, (1, call(2)), (2, output("never")))
    session.scheduler.begin(thread)
    assert not session.scheduler.withdraw(7)
    assert session.scheduler.withdraw(1)
    assert list(session.scheduler.waiting()) == []


def test_threads_continue_from_a_place_in_the_recording() -> None:
    session = Session()
    thread = call(1, (1, output("before")), (5, output("after")))
    session.scheduler.resume([thread], 3, 0.0)
    assert session.played == ["after"]


def test_a_request_of_the_child_no_longer_waits_for_calls_that_were_not_sent() -> None:
    session = Session()
    first, second = call(1), call(2)
    question = ChildRequest(output("ask"), [b"1"], [first, second])
    first.steps.append((1, question))
    second.steps.append((1, question))
    session.scheduler.begin(first)
    session.scheduler.untie()
    assert session.played == ["ask"]
