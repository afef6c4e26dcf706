"""`wait`: until it is so, until it never will be, or until the time is up; and then it tells what there was."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from ext_http.operations.wait import MIN_RESERVE, AttemptLog, Wait, last_attempt_reserve, retry_after, wait
from ext_sdk import Deadline
from ext_sdk.polling import Attempt, attempts_until, exponential
from tests.support.ext_http import Result
from tests.support.host import execute
from tests.support.http_contexts import context_in
from tests.support.http_stub import Asked, Handler, Stub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.ext_http import Extension
    from tests.support.ports import NewPort

UNKNOWN = f"http://{'x' * 64}.test/"  # a label has 63 at most: that nobody knows it is known without asking a server
QUICK = {"interval": "1ms", "maxInterval": "5ms"}


def from_the(number: int, good: str = "ready", bad: int = 503) -> Callable[[Handler, Asked], None]:
    """Answers with an error before the given request, and well from then on."""
    count = iter(range(1, 1_000_000))

    def route(handler: Handler, asked: Asked) -> None:
        if next(count) >= number:
            handler.answer(200, good)
        else:
            handler.answer(bad, "starting", {"Content-Type": "text/plain"})

    return route


def test_the_first_attempt_is_made_at_once_and_is_enough(http: Extension, stub: Stub) -> None:
    """Tavern delays also on success (#318)."""
    result = http.ok("wait", url=stub.says("/", "ready"), interval="1h", timeout="20s")
    assert result.outputs["attempts"] == "1"
    assert result.outputs["body"] == "ready"


def test_it_asks_again_until_all_that_is_expected_holds(http: Extension, stub: Stub) -> None:
    """runn: a test with loop.until fails on the first try."""
    result = http.ok("wait", url=stub.does("/", from_the(4)), expect={"status": 200, "body": "ready"}, **QUICK)
    assert result.outputs["attempts"] == "4"
    assert "2 checks passed, after 4 attempts in" in result.message


def test_a_capture_can_be_waited_for(http: Extension, stub: Stub) -> None:
    count = iter(range(100))
    url = stub.does("/", lambda handler, asked: handler.answer(200, "id=7" if next(count) > 1 else "soon"))
    assert http.ok("wait", url=url, capture={"id": {"regex": r"id=(\d)"}}, **QUICK).outputs["id"] == "7"


def test_a_wait_may_go_on_in_the_next_step_but_permanent_failures_fail(http: Extension, stub: Stub) -> None:
    never = stub.does("/never", from_the(1_000_000))
    first = http.ok("wait", url=never, timeout="50ms", onTimeout="ok")
    assert first.outputs["done"] == "false"
    assert first.message.startswith("Not done yet: ")
    body = http.ok("wait", url=stub.says("/body", "soon"), timeout="1s", onTimeout="ok", expect={"body": "ready"})
    assert 'last: 200 OK; last seen: body: expected to equal "ready", got "soon"' in body.message
    assert http.ok("wait", url=stub.does("/", from_the(3)), onTimeout="ok", **QUICK).outputs["done"] == "true"
    refused = stub.does("/no", lambda handler, _: handler.answer(401, "no"))
    assert http.failed("wait", url=refused, onTimeout="ok", timeout="20s").outputs["done"] == "false"


def test_a_refused_connection_is_tried_again(http: Extension, new_port: NewPort) -> None:
    """runn: `until` did not retry on a refused connection (#1303)."""
    port = new_port()
    args = {"url": f"http://127.0.0.1:{port}/up", "interval": "20ms", "timeout": "1h"}
    http.peer.send(execute(9, "wait", args, workdir=str(http.workdir)))
    assert "Connection refused" in str(http.peer.message()["params"])  # logged, upon which the server comes up
    with Stub(port=port) as late:
        late.says("/up", "yes")
        while "id" not in (message := http.peer.message()):
            pass
    assert isinstance(message["result"], dict), message
    result = Result(message["result"])
    assert result.success, result
    assert int(result.outputs["attempts"]) > 1


def test_a_host_that_is_not_known_yet_is_waited_for(http: Extension) -> None:
    result = http.failed("wait", url=UNKNOWN, timeout="3s", **QUICK)
    assert int(result.outputs["attempts"]) > 1
    assert "check the name" in result.error
    result = http.failed("wait", url=UNKNOWN, timeout="20s", giveUpOn=["unknown-host"])
    assert result.outputs["attempts"] == "1"


def test_when_the_time_is_up_it_tells_attempts_and_the_last_answer(http: Extension, stub: Stub) -> None:
    """No other tool says what the last poll saw."""
    url = stub.says("/", "still starting", status=503, Content_Type="text/plain")
    result = http.failed("wait", url=url, timeout="3s", interval="10ms")
    attempts = int(result.outputs["attempts"])
    assert attempts > 2
    assert len(stub.asked) == attempts
    assert f"GET {url}: not as expected after {attempts} attempts in" in result.error
    assert "timed out" in result.error
    assert "status: expected to be 2xx, got 503" in result.error
    assert "response: 503 Service Unavailable (text/plain)\nbody: still starting" in result.error
    assert result.outputs["status"] == "503"
    assert result.outputs["body"] == "still starting"


def test_it_tells_what_came_of_all_attempts(http: Extension, stub: Stub) -> None:
    count = iter(range(1000))

    def route(handler: Handler, asked: Asked) -> None:
        number = next(count)
        if number < 3:
            handler.reset()
        else:
            handler.answer(500 if number < 7 else 501, "broken")

    result = http.failed("wait", url=stub.does("/", route), timeout="1h", **QUICK)  # 501 ends it
    assert "all attempts: 3 times connection" in result.error.replace("Connection", "connection")
    assert "4 times status 500" in result.error
    assert "once status 501" in result.error


def test_an_answer_that_came_before_the_server_went_is_told(http: Extension, stub: Stub) -> None:
    count = iter(range(1000))
    url = stub.does("/", lambda handler, asked: handler.answer(503, "bye") if next(count) == 0 else handler.reset())
    result = http.failed("wait", url=url, timeout="1h", giveUpOn=["connection"], **QUICK)
    assert "last attempt: Connection reset by peer" in result.error
    assert "last response (after" in result.error
    assert result.outputs["body"] == "bye"


@pytest.mark.parametrize("status", [400, 401, 403, 405, 410, 501])
def test_a_refusal_that_does_not_pass_ends_it_at_once(status: int, http: Extension, stub: Stub) -> None:
    """Tavern: retry until, with failing fast (#751)."""
    result = http.failed("wait", url=stub.says("/", "no", status=status), timeout="20s")
    assert result.outputs["attempts"] == "1"
    assert f"gave up early: status {status} is in `giveUpOn`" in result.error


def test_a_status_that_is_expected_is_waited_with(http: Extension, stub: Stub) -> None:
    count = iter(range(100))
    url = stub.does("/", lambda handler, asked: handler.answer(401, "locked" if next(count) > 2 else "not yet"))
    result = http.ok("wait", url=url, expect={"status": 401, "body": "locked"}, **QUICK)
    assert result.outputs["attempts"] == "4"


def test_what_ends_it_can_be_said(http: Extension, stub: Stub) -> None:
    assert http.ok("wait", url=stub.does("/", from_the(3, bad=403)), giveUpOn=[], **QUICK).outputs["attempts"] == "3"
    result = http.failed("wait", url=stub.says("/", status=503), giveUpOn=[503], timeout="20s")
    assert result.outputs["attempts"] == "1"


def test_a_permanent_redirect_ends_it_and_a_temporary_one_does_not(http: Extension, stub: Stub) -> None:
    result = http.failed("wait", url=stub.says("/", status=301, Location="/new"), timeout="20s")
    assert result.outputs["attempts"] == "1"
    assert "it redirects to /new" in result.error
    result = http.failed("wait", url=stub.says("/", status=302, Location="/login"), timeout="2s", **QUICK)
    assert int(result.outputs["attempts"]) > 1


def test_an_address_that_must_not_be_asked_ends_it(http: Extension) -> None:
    assert "credentials" in http.failed("wait", url="http://169.254.169.254/", timeout="20s").error


def test_a_wrong_scheme_ends_it(http: Extension, stub: Stub) -> None:
    result = http.failed("wait", url=stub.url().replace("http:", "https:"), timeout="20s")
    assert result.outputs["attempts"] == "1"
    assert "check that the scheme (http, https) is the server's" in result.error


def test_a_bad_url_is_refused_and_not_waited_for(http: Extension) -> None:
    assert "expected a URL" in http.refused("wait", url="shop.test", timeout="20s")


def test_one_attempt_that_hangs_does_not_take_all_the_time(http: Extension, stub: Stub) -> None:
    gone = threading.Event()
    count = iter(range(100))

    def route(handler: Handler, asked: Asked) -> None:
        if next(count) == 0:
            handler.close_after(gone)
        else:
            handler.answer(200, "ready")

    result = http.ok("wait", url=stub.does("/", route), attemptTimeout="200ms", **QUICK)
    gone.set()
    assert result.outputs["attempts"] == "2"


def test_the_end_of_the_extension_is_no_end_of_the_time(stub: Stub, tmp_path: Path) -> None:
    context = context_in(tmp_path)

    def route(handler: Handler, asked: Asked) -> None:
        context.deadline.stopped.set()
        handler.answer(503)

    result = wait(Wait(url=stub.does("/", route)), context)
    assert "the extension is shutting down" in str(result.error)
    assert "timed out" not in str(result.error)


def test_several_good_answers_in_a_row_can_be_wanted(http: Extension, stub: Stub) -> None:
    statuses = iter([200, 200, 503, 200, 200, 200])
    url = stub.does("/", lambda handler, asked: handler.answer(next(statuses)))
    assert http.ok("wait", url=url, successes=3, **QUICK).outputs["attempts"] == "6"


def test_good_answers_that_are_too_few_are_told(http: Extension, stub: Stub) -> None:
    url = stub.says("/", "x")
    result = http.failed("wait", url=url, successes=1000, interval="100ms", timeout="2s")
    assert "of 1000 consecutive responses as expected" in result.error


@pytest.mark.parametrize("args", [{"interval": "0s"}, {"attemptTimeout": "-1s"}, {"successes": 0}, {"giveUpOn": [99]}])
def test_a_wait_that_can_not_be_is_refused(args: dict[str, object], http: Extension, stub: Stub) -> None:
    assert next(iter(args)) in http.refused("wait", url=stub.url(), **args)


def test_a_server_that_asks_for_time_gets_it(http: Extension, stub: Stub) -> None:
    count = iter(range(100))
    url = stub.does(
        "/", lambda handler, asked: handler.answer(503 if next(count) == 0 else 200, "", {"Retry-After": "1"})
    )
    assert http.ok("wait", url=url, **QUICK).outputs["attempts"] == "2"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 60.0),
        ("Wednesday, 21-Oct-15 07:28:00 GMT", 60.0),
        ("Wed Oct 21 07:28:00 2015", 60.0),
        ("Wed, 21 Oct 2015 07:26:59 GMT", 0.0),
        ("-5", 0.0),
        ("soon", 0.0),
        ("9" * 5000, 0.0),
        ("Wed, 21 Oct 99999 07:28:00 GMT", 0.0),
        ("", 0.0),
    ],
)
def test_the_time_that_a_server_asks_for_is_a_number_or_a_date(value: str, seconds: float) -> None:
    seven_twenty_seven = 1_445_412_420
    assert retry_after(value, seven_twenty_seven) == seconds


def test_each_new_outcome_is_logged_once(http: Extension, stub: Stub) -> None:
    http.peer.send({"jsonrpc": "2.0", "id": 7, "method": "execute", "params": {
        "operation": "wait",
        "args": {"url": stub.does("/", from_the(5)), **QUICK},
        "context": {"workdir": str(http.workdir), "phase": "setup"},
    }})  # fmt: skip
    logs = []
    while "id" not in (message := http.peer.message()):
        params = message["params"]
        assert isinstance(params, dict)
        logs.append(params["message"])
    assert logs == [f"GET {stub.url('/')}: status 503", f"GET {stub.url('/')}: status 200 as expected"]


def test_secrets_are_not_in_the_log(http: Extension, stub: Stub) -> None:
    url = stub.says("/", "x") + "?api_key=key-in-the-url-1"
    args = {"url": url, "auth": {"bearer": "token-in-the-header-1"}}
    params = {"operation": "wait", "args": args, "context": {"workdir": str(http.workdir), "phase": "setup"}}
    http.peer.send({"jsonrpc": "2.0", "id": 8, "method": "execute", "params": params})
    told = []
    while "id" not in (message := http.peer.message()):
        told.append(message)
    assert told
    assert "-1" not in repr([told, message]).replace("#1", "")


class FakeDeadline(Deadline):
    """Time that passes when somebody waits."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.left = seconds
        self.pauses: list[float] = []

    def remaining(self) -> float:
        return self.left

    def wait(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        self.left -= seconds
        return self.left > 0

    def attempts(self, first: float, longest: float) -> Iterator[Attempt]:
        reserve = last_attempt_reserve(self.left)
        backoff = exponential(first, longest)
        return attempts_until(self, backoff, reserve=reserve, jitter=0.0, clock=lambda: -self.left)


def test_pauses_grow_up_to_a_limit_and_the_last_attempt_is_shortly_before_the_deadline() -> None:
    deadline = FakeDeadline(10.0)
    for _ in deadline.attempts(0.1, 2.0):
        pass
    assert deadline.pauses[:3] == pytest.approx([0.1, 0.15, 0.225])
    assert max(deadline.pauses) == pytest.approx(2.0)
    assert deadline.left == pytest.approx(MIN_RESERVE)


def test_slow_attempts_get_the_time_for_a_last_one() -> None:
    deadline = FakeDeadline(10.0)
    for attempt in deadline.attempts(1.0, 1.0):
        if attempt.last:
            break
        deadline.left -= 0.4
    assert deadline.left == pytest.approx(0.8)


def test_a_server_sets_the_next_pause() -> None:
    deadline = FakeDeadline(10.0)
    for attempt in deadline.attempts(1.0, 1.0):
        attempt.at_least = 3.0 if attempt.number == 1 else 0.0
        if attempt.number == 3:
            break
    assert deadline.pauses == [3.0, 1.0]


def test_outcomes_are_told_in_the_order_in_which_they_were_seen_first() -> None:
    seen = AttemptLog()
    assert [seen.record(outcome, at) for at, outcome in enumerate(["a", "a", "b", "a"])] == [True, False, True, True]
    assert str(seen) == "3 times a (0.0 s to 3.0 s), once b (2.0 s)"
    for number in range(10):
        seen.record(f"other {number}", 9.0)
    assert str(seen).endswith("and 6 other outcomes")


def test_a_wait_for_a_body_needs_a_good_status_too(http: Extension, stub: Stub) -> None:
    stub.routes["/"] = lambda handler, asked: handler.json({"up": True}, 200 if len(stub.asked) > 1 else 503)
    expect = {"body": {"jsonContains": {"up": True}}}
    result = http.ok("wait", url=stub.url(), interval="10ms", expect=expect)
    assert (result.outputs["status"], result.outputs["attempts"]) == ("200", "2")
    stub.json("/gone", {"up": True}, 410)
    assert "gave up early: status 410" in http.failed("wait", url=stub.url("/gone"), expect=expect).error
