"""Tests in process: calls of operations, their results and logs, the clock, and the fixtures."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated

import pytest
from msgspec import Meta

import ext_sdk
from ext_sdk.polling import attempts_until, exponential
from ext_sdk.testing import FakeClock, Host, Logged, call
from ext_sdk.wire import RpcError

if TYPE_CHECKING:
    from pathlib import Path


pytest_plugins = ["pytester"]


class ProbeConfig(ext_sdk.Config):
    greeting: str = "Hello"


class Greet(ext_sdk.Args):
    name: Annotated[str, Meta(min_length=1)]


class Await(ext_sdk.Args):
    path: str
    timeout: ext_sdk.Duration = ext_sdk.Duration.parse("20s")


class Counter:
    def __init__(self) -> None:
        self.count = 0
        self.closed = False

    def close(self) -> None:
        self.closed = True


PROBE = ext_sdk.Extension("probe", version="1.0.0", config=ProbeConfig)


@PROBE.operation()
def greet(args: Greet, context: ext_sdk.Context[ProbeConfig]) -> ext_sdk.Result:
    """Greet."""
    state = context.state(Counter)
    state.count += 1
    context.log.info(f"greeting {args.name}", count=state.count)
    text = f"{context.config.greeting}, {args.name}!"
    return ext_sdk.Result.ok(text, outputs={"text": text}, secret_outputs={"token": "s3cr3t-token"})


@PROBE.operation("await")
def await_(args: Await, context: ext_sdk.Context) -> ext_sdk.Result:
    """Wait for a file."""
    for attempt in attempts_until(context.deadline, exponential(1.0, 4.0), jitter=0.0):
        if (context.workdir / args.path).exists():
            return ext_sdk.Result.ok("found", outputs={"seconds": round(attempt.elapsed())})
    return ext_sdk.Result.failed("not found", outputs={"stopped": context.deadline.stopped.is_set()})


@PROBE.operation()
def fail(args: ext_sdk.Args, context: ext_sdk.Context) -> ext_sdk.Result:
    """Fail by a fault."""
    raise ZeroDivisionError("by zero")


@pytest.fixture
def extension() -> ext_sdk.Extension:
    return PROBE


@pytest.fixture
def extension_config() -> dict[str, object]:
    return {"greeting": "Salve"}


def test_a_call_gets_the_defaults_and_the_configuration(tmp_path: Path) -> None:
    assert call(PROBE, "greet", {"name": "Ada"}, workdir=tmp_path).message == "Hello, Ada!"
    result = call(PROBE, "greet", {"name": "Ada"}, workdir=tmp_path, config={"greeting": "Hi"})
    assert (result.success, result.outputs) == (True, {"text": "Hi, Ada!"})


@pytest.mark.parametrize(
    ("operation", "args", "error"),
    [
        ("greet", {}, "greet: name: this argument is required"),
        ("greet", {"name": 1}, "name: expected a string, found an integer"),
        ("greet", {"name": ""}, "name: expected a string of length >= 1"),
        ("gret", {}, "unknown operation: gret; did you mean 'greet'?"),
    ],
)
def test_a_call_that_a_host_would_refuse_is_refused(
    tmp_path: Path, operation: str, args: dict[str, object], error: str
) -> None:
    with pytest.raises(RpcError) as caught:
        call(PROBE, operation, args, workdir=tmp_path)
    assert error in caught.value.message


def test_an_argument_that_is_not_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        call(PROBE, "greet", {"name": tmp_path}, workdir=tmp_path)


def test_a_fault_is_the_exception_itself(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError, match="by zero"):
        call(PROBE, "fail", workdir=tmp_path)


def test_steps_of_a_host_share_state_and_outputs_and_close_the_state(tmp_path: Path) -> None:
    with Host(PROBE, workdir=tmp_path, env={"API_TOKEN": "opensesame-77"}) as host:
        host.call("greet", {"name": "Ada", "as": "first"})
        again = host.call("greet", {"name": "${first.text} opensesame-77"})
        assert again.message == "Hello, Hello, Ada! [redacted:env.API_TOKEN#1]!"
        assert again.secret_outputs == {"token": "s3cr3t-token"}
        assert host.log[0] == Logged("info", "greeting Ada", {"count": 1})
        assert "[redacted:env.API_TOKEN#1]" in host.log[1].message
        later = host.call("greet", {"name": "s3cr3t-token"})
        assert "s3cr3t-token" not in later.message


def test_the_state_of_operations_is_closed_at_the_end(tmp_path: Path) -> None:
    counters: list[Counter] = []
    extension = ext_sdk.Extension("probe", version="1.0.0")

    def counted() -> Counter:
        counters.append(Counter())
        return counters[-1]

    @extension.operation()
    def count(args: Greet, context: ext_sdk.Context) -> ext_sdk.Result:
        """Count."""
        context.state(counted)
        return ext_sdk.Result.ok()

    call(extension, "count", {"name": "a"}, workdir=tmp_path)
    assert [counter.closed for counter in counters] == [True]


def test_a_wait_takes_no_time_and_sees_what_happens_meanwhile(
    ext_host: Host, ext_clock: FakeClock, tmp_path: Path
) -> None:
    ext_clock.after(7, (tmp_path / "ready").touch)
    result = ext_host.call("await", {"path": "ready"})
    assert (result.success, ext_clock.now()) == (True, 8.125)  # after pauses of 1, 1.5, 2.25 and 3.375 s


def test_a_wait_ends_at_its_timeout_at_that_of_the_host_and_at_that_of_the_configuration(
    ext_host: Host, ext_clock: FakeClock
) -> None:
    assert not ext_host.call("await", {"path": "never"}).success
    assert ext_clock.now() == 20
    ext_host.call("await", {"path": "never"}, timeout="10s")
    assert ext_clock.now() == 29  # the host's time, less the reserve for the response
    ext_host.call("await", {"path": "never", "timeout": "1h"})
    assert ext_clock.now() == 29 + 28


def test_a_host_that_exits_ends_a_wait(ext_host: Host, ext_clock: FakeClock) -> None:
    ext_clock.after(3.5, ext_host.disconnect)
    assert ext_host.call("await", {"path": "never"}).outputs == {"stopped": "true"}
    assert ext_clock.now() == 3.5


def test_the_fixture_has_the_configuration_of_the_tests_and_the_real_clock_by_default(ext_host: Host) -> None:
    assert ext_host.call("greet", {"name": "Ada"}, agent_output="done").message == "Salve, Ada!"


def test_actions_run_in_the_order_of_their_times_and_may_plan_more() -> None:
    clock, seen = FakeClock(), list[tuple[str, float]]()
    clock.after(2, lambda: seen.append(("b", clock.now())))
    clock.after(1, lambda: clock.after(0.5, lambda: seen.append(("a", clock.now()))))
    clock.wait(threading.Event(), 1.75)
    clock.advance(5)
    assert seen == [("a", 1.5), ("b", 2.0)]
    assert clock.now() == 6.75


def test_without_a_fixture_for_the_extension_the_remedy_is_reported(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(ext_host): pass")
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.stdout.fnmatch_lines(["*ext_host needs a fixture `extension`*"])
