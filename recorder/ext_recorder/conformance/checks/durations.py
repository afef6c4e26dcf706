"""Duration Format: durations of Go, in timeouts and arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.conformance.clauses import clauses_of_section
from ext_recorder.conformance.raw_host import Violation, json_object, text
from ext_recorder.conformance.target import error_code, result_of

if TYPE_CHECKING:
    from ext_recorder.conformance.target import Target

VALID = ("30s", "5m", "1h30m", "100s", "10000ms", "1.5h", "90000000us", "90000000µs", "+30s", "1m30.5s")
INVALID = ("", "5", "5 minutes", "30S", "1d", "1h-30m", "s", "1e3s", "½s")


def arguments(target: Target, duration: str) -> dict[str, object]:
    entry = target.profile.entry("duration")
    args = json_object(entry["args"], "args") | {text(entry["argument"], "argument"): duration}
    return target.execute_params(text(entry["operation"], "operation"), args)


clause = clauses_of_section("spec", "Duration Format")


@clause("timeout-forms", "timeout accepts every format of Go durations.")
def every_form_of_a_timeout_is_accepted(target: Target) -> None:
    with target.session() as host:
        for duration in VALID:
            if target.run(host, "succeeds", timeout=duration).get("success") is not True:
                raise Violation(f"fails with the timeout {duration!r}")


@clause("timeout-other", "timeout accepts no other format.")
def a_timeout_of_another_form_is_refused(target: Target) -> None:
    with target.session() as host:
        for duration in INVALID[1:]:  # an empty timeout is valid: none
            error_code(host.call("execute", target.params("succeeds", timeout=duration)), -32602, -32600)


@clause("duration-forms", "Duration arguments accept every format of Go durations.")
def an_argument_takes_every_form(target: Target) -> None:
    with target.session() as host:
        for duration in VALID:
            result_of(host.call("execute", arguments(target, duration)))


@clause("duration-other", "Duration arguments accept no other format.")
def an_argument_of_another_form_is_refused(target: Target) -> None:
    with target.session() as host:
        for duration in INVALID:
            error_code(host.call("execute", arguments(target, duration)), -32602)
