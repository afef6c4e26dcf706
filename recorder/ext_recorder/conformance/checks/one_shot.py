"""One-Shot Mode: a single execute request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.conformance.clauses import clauses_of_section
from ext_recorder.conformance.raw_host import Violation
from ext_recorder.conformance.target import error_code

from .shutdown import ended

if TYPE_CHECKING:
    from ext_recorder.conformance.target import Target


clause = clauses_of_section("spec", "One-Shot Mode")


@clause("one-shot", "A single execute request is processed, its result written, and the process exits.")
def execute_without_initialize_is_answered_and_the_process_exits(target: Target) -> None:
    with target.started() as host:
        id = host.request("execute", target.params("succeeds"))
        host.close_stdin()
        if "result" not in (response := host.response(id)):
            raise Violation(f"expected a result, found {response!r:.300}")
        ended(host)


@clause("one-shot-error", "An error is a response, too.")
def errors_are_answered_too(target: Target) -> None:
    with target.started() as host:
        id = host.request("execute", target.execute_params("no-such-operation", {}))
        host.close_stdin()
        error_code(host.response(id), -32601)
        host.rest()
        host.exit_code()
