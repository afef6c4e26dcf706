"""Threads of a recording: which event of the child belongs to which message of the host."""

from __future__ import annotations

from ext_recorder.cassette.events import Data, Event, Mark
from ext_recorder.cassette.header import Header
from ext_recorder.replay.partition import RecordingPartitioner
from ext_recorder.replay.replay import Options, make_matcher_and_writer
from ext_recorder.replay.threads import CallChain, ChildRequest, Dependency
from ext_sdk.core.wire.framing import FRAMINGS


def partitioned(*events: Event, protocol: str = "gevals") -> tuple[RecordingPartitioner, list[CallChain]]:
    requests, _ = make_matcher_and_writer("x.yaml", Header(protocol, "ndjson"), Options(), {})
    partition = RecordingPartitioner(requests, FRAMINGS["ndjson"])
    return partition, [thread for line, event in enumerate(events) for thread in partition.take(event, line)]


def host(text: str) -> Data:
    return Data("in", 0.0, text.encode())


def child(text: str) -> Data:
    return Data("out", 0.0, text.encode())


def steps(thread: CallChain) -> list[object]:
    return [step for _, step in thread.steps]


ONE, TWO = host('{"id":1,"method":"execute"}'), host('{"id":2,"method":"execute"}')


def test_a_response_belongs_to_its_call_and_a_notification_to_the_latest_message() -> None:
    banner, news = child('{"method":"a"}'), child('{"method":"b"}')
    first, second = child('{"id":1,"result":1}'), child('{"id":2,"result":2}')
    partition, threads = partitioned(banner, ONE, TWO, first, news, second)
    assert steps(partition.first) == [banner]
    assert [steps(thread) for thread in threads] == [[first], [news, second]]
    assert [thread.open for thread in threads] == [0, 0]
    assert partition.is_complete(threads[0])
    assert not partition.is_complete(threads[1])  # later notifications may follow


def test_a_request_of_the_child_may_belong_to_each_open_call_until_one_ends() -> None:
    ask, end = child('{"id":"q","method":"ask"}'), child('{"id":2,"result":2}')
    partition, threads = partitioned(ONE, TWO, ask, end)
    (question,) = steps(threads[0])
    assert isinstance(question, ChildRequest)
    assert question.threads == [threads[0]]
    assert partition.asked == {b'"q"'}


def test_a_response_of_the_host_continues_the_thread_of_the_request() -> None:
    ask, reply = child('{"id":"q","method":"ask"}'), host('{"id":"q","result":1}')
    _, threads = partitioned(ONE, ask, reply, child('{"id":1,"result":1}'))
    assert len(threads) == 1
    question, answer, _ = steps(threads[0])
    assert isinstance(question, ChildRequest)
    assert isinstance(answer, Dependency)
    assert question.answers == [answer]


def test_a_cancellation_is_waited_for_unless_it_came_too_late() -> None:
    cancel = host('{"method":"notifications/cancelled","params":{"requestId":1}}')
    failed, done = child('{"id":1,"error":{"code":-1,"message":"cancelled"}}'), child('{"id":1,"result":{}}')
    _, (call, cancelled) = partitioned(ONE, cancel, failed, protocol="mcp")
    assert steps(call) == [cancelled, failed]
    _, (call, _) = partitioned(ONE, cancel, done, protocol="mcp")
    assert steps(call) == [done]


def test_the_end_of_the_input_and_signals_begin_threads_of_their_own() -> None:
    log, exit = Data("err", 0.0, b"bye"), Mark("exit", 0.0, 0)
    partition, threads = partitioned(
        Mark("signal", 0.0, "SIGTERM"), log, Mark("eof", 0.0, "in"), exit, Mark("omitted", 0.0, "70 bytes of in")
    )
    assert threads == []
    assert {name: [steps(thread) for thread in marks] for name, marks in partition.marks.items()} == {
        "SIGTERM": [[log]],
        "in": [[exit]],
        "omitted": [[]],
    }
