"""Results, and the exceptions that stand for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_sdk import InvalidArgs, NotKept, OperationFailed, RequirementNotMet, Result, conclude_wait
from ext_sdk.result import ExtensionError

if TYPE_CHECKING:
    from ext_sdk import OnTimeout


def test_outputs_are_text_as_json_would_write_it() -> None:
    result = Result.ok("m", outputs={"a": "x", "b": 12, "c": True, "d": False, "e": -0, "f": ""})
    assert result.outputs == {"a": "x", "b": "12", "c": "true", "d": "false", "e": "0", "f": ""}


@pytest.mark.parametrize("name", ["a.b", ".", ""])
def test_a_name_that_a_host_would_split_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="a name without dots"):
        Result.ok(outputs={name: "x"})
    with pytest.raises(ValueError, match="a name without dots"):
        Result.ok(secret_outputs={name: "x"})


@pytest.mark.parametrize("value", [None, 1.5, b"x", ["x"], {"a": "b"}])
def test_an_output_of_another_type_is_refused_with_its_name(value: object) -> None:
    with pytest.raises(TypeError, match=f"output 'a' must be a string, .* not {type(value).__name__}"):
        Result.ok(outputs={"a": value})  # type: ignore[dict-item]


def test_a_failure_says_its_message_where_there_is_no_error() -> None:
    failed = Result.failed("not ready")
    assert (failed.success, failed.message, failed.error) == (False, "not ready", "not ready")
    assert Result.failed("not ready", error="expected x").error == "expected x"
    assert Result.ok("done").error == ""


def test_a_failure_that_was_raised_is_the_same_result() -> None:
    raised = OperationFailed("not ready", error="expected x, found y", outputs={"tries": 3})
    assert repr(Result.of_failure(raised)) == repr(
        Result.failed("not ready", error="expected x, found y", outputs={"tries": 3})
    )
    assert OperationFailed("m").error == "m"


def test_secrets_are_not_among_the_outputs_nor_in_a_log() -> None:
    result = Result.ok("m", outputs={"a": 1}, secret_outputs={"token": "t"})
    assert result.outputs == {"a": "1"}
    assert result.secret_outputs == {"token": "t"}
    assert repr(result) == "Result(True, 'm', error='', outputs={'a': '1'})"


def test_later_steps_get_the_complete_value_and_the_host_the_shown_one() -> None:
    result = Result.ok(
        "m", outputs={"a": "x…", "b": 1}, whole={"a": "xyz", "c": NotKept("why")}, secret_outputs={"t": "s"}
    )
    assert result.outputs == {"a": "x…", "b": "1"}
    kept = result.kept
    assert repr(kept.pop("c")) == "NotKept('why')"
    assert kept == {"a": "xyz", "b": "1", "t": "s"}
    with pytest.raises(ValueError, match="a name without dots"):
        Result.ok(whole={"a.b": "x"})
    with pytest.raises(TypeError, match="output 'a' must be a string"):
        Result.ok(whole={"a": b"x"})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OperationFailed("m", error="e"), "m"),
        (InvalidArgs("expect.exitCode", "expected 0"), "expect.exitCode: expected 0"),
        (InvalidArgs("", "expected an object"), "expected an object"),
        (RequirementNotMet("helm"), "required command not found in PATH: helm"),
        (RequirementNotMet("helm", "install it"), "required command not found in PATH: helm; install it"),
    ],
)
def test_what_an_operation_may_raise_reads_well(error: ExtensionError, text: str) -> None:
    assert isinstance(error, ExtensionError)
    assert str(error) == text


@pytest.mark.parametrize("on_timeout", ["fail", "ok"])
@pytest.mark.parametrize("timed_out", [True, False])
def test_only_lack_of_time_may_be_a_success(on_timeout: OnTimeout, timed_out: bool) -> None:
    failure = Result.failed("pod/web: ready not met", error="expected pod/web: ready", outputs={"count": 1})
    result = conclude_wait(failure, on_timeout, timed_out=timed_out, last_seen="Pending")
    assert result.outputs == {"count": "1", "done": "false"}
    if on_timeout == "ok" and timed_out:
        assert (result.success, result.error) == (True, "")
        assert result.message == "Not done yet: pod/web: ready not met; last seen: Pending"
    else:
        assert (result.success, result.message, result.error) == (False, failure.message, failure.error)


def test_a_wait_that_succeeds_is_done_with_all_its_values() -> None:
    result = Result.ok("m", outputs={"a": "x"}, secret_outputs={"b": "y"}, whole={"a": "xx"})
    concluded = conclude_wait(result, "ok", timed_out=True)
    assert (concluded.success, concluded.message, concluded.outputs["done"]) == (True, "m", "true")
    assert concluded.kept == {"a": "xx", "b": "y", "done": "true"}


def test_a_check_that_fails_after_the_wait_is_a_failure_of_a_wait_that_is_done() -> None:
    concluded = conclude_wait(Result.failed("exit code 1"), "ok", timed_out=True, done=True)
    assert (concluded.success, concluded.outputs) == (False, {"done": "true"})
