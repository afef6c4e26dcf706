"""One-Shot Mode: an execute request, and nothing before or after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.conformance.raw_host import Violation
from ext_recorder.conformance.target import error_code

from .shutdown import ended

if TYPE_CHECKING:
    from ext_recorder.conformance.target import Target


def execute_without_initialize_is_answered_and_the_process_exits(target: Target) -> None:
    with target.started() as host:
        id = host.request("execute", target.params("succeeds"))
        host.close_stdin()
        if "result" not in (response := host.response(id)):
            raise Violation(f"expected a result, found {response!r:.300}")
        ended(host)


def an_answer_does_not_wait_for_the_end_of_stdin(target: Target) -> None:
    with target.started() as host:
        target.run(host, "succeeds")
        host.close_stdin()
        ended(host)


def errors_are_answered_too(target: Target) -> None:
    with target.started() as host:
        id = host.request("execute", target.execute_params("no-such-operation", {}))
        host.close_stdin()
        error_code(host.response(id), -32601)
        host.rest()
        host.exit_code()


def a_configuration_can_be_given_on_the_command_line(target: Target) -> None:
    import json

    argument = target.profile.value("config", "argument")
    config = json.dumps(target.profile.entry("config")["value"])
    with target.started(argument, config) as host:
        id = host.request("execute", target.params("succeeds"))
        host.close_stdin()
        if "result" not in (response := host.response(id)):
            raise Violation(f"expected a result, found {response!r:.300}")
        ended(host)
