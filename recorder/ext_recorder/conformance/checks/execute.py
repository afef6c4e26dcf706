"""Execute, with durations of Go in timeouts and arguments; its log notifications, and shutdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.conformance.raw_host import NotApplicable, Violation, json_object, text
from ext_recorder.conformance.target import clauses_of_section, error_code, result_of, still_serves

if TYPE_CHECKING:
    from ext_recorder.conformance.raw_host import Host
    from ext_recorder.conformance.target import Target

PHASES = ("setup", "verify", "cleanup")
LEVELS = ("debug", "info", "warn", "error")


def results(target: Target) -> list[dict[str, object]]:
    with target.session() as host:
        entries = [name for name in ("succeeds", "fails", "logs", "long") if name in target.profile.entries]
        if not entries:
            raise NotApplicable("the profile names no operation")
        return [target.run(host, name) for name in entries]


def logged(target: Target) -> list[dict[str, object]]:
    """Return the log notifications that a call sends before its response."""
    with target.session() as host:
        id = host.request("execute", target.params("logs"))
        host.response(id)
        found = [line.message for line in host.lines if "method" in line.message]
    if not found:
        raise Violation("the call sent no log notification before its response")
    return found


def log_params(target: Target) -> list[dict[str, object]]:
    return [json_object(message.get("params"), "params of log") for message in logged(target)]


def ended(host: Host) -> None:
    """Check that no more output comes, and that the exit code is 0."""
    if rest := host.rest():
        raise Violation(f"wrote after the end: {rest[0].data!r:.300}")
    if code := host.exit_code():
        raise Violation(f"expected exit code 0, found {code}; stderr: {host.stderr[-1000:]}")


clause = clauses_of_section("spec", "Execute, Params Fields")


@clause("operation-required", "operation is required.")
def the_operation_is_required(target: Target) -> None:
    with target.session() as host:
        params = target.execute_params("", {})
        del params["operation"]
        error_code(host.call("execute", params), -32602, -32600)
        still_serves(target, host)


@clause("args-context", "A request without args or context gets a response.")
def a_request_without_args_or_context_is_answered(target: Target) -> None:
    with target.session() as host:
        for missing in ("args", "context"):
            params = target.params("succeeds")
            del params[missing]
            response = host.call("execute", params)
            if "result" not in response:
                error_code(response, -32602, -32600)
        still_serves(target, host)


@clause("args-type", "args and context are objects.")
def args_and_context_of_another_type_are_refused(target: Target) -> None:
    with target.session() as host:
        for wrong in ({"args": "text"}, {"args": [1]}, {"context": "text"}):
            error_code(host.call("execute", target.params("succeeds") | wrong), -32602, -32600)


clause = clauses_of_section("spec", "Execute, Context Object")


@clause("workdir", "Relative paths are resolved from workdir.")
def relative_paths_are_meant_from_the_workdir(target: Target) -> None:
    name = target.profile.value("relative", "creates")
    with target.session() as host:
        result = target.run(host, "relative")
        # The process runs there as well; another workdir shows which of the two it was.
        other = target.workdir / "another directory"
        other.mkdir()
        target.run(host, "relative", workdir=str(other))
    for directory in (target.workdir, other):
        if not (directory / name).exists():
            raise Violation(f"expected {name} in {directory}, but it does not exist; the result was {result!r:.300}")


@clause("phase", "phase is setup, verify or cleanup.")
def every_phase_is_accepted(target: Target) -> None:
    with target.session() as host:
        for phase in PHASES:
            if target.run(host, "succeeds", phase=phase).get("success") is not True:
                raise Violation(f"fails in phase {phase}")


@clause("env", "env holds environment variables from the task.")
def the_environment_of_the_task_is_used(target: Target) -> None:
    variable, output = target.profile.value("env", "variable"), target.profile.value("env", "output")
    with target.session() as host:
        result = target.run(host, "env", env={variable: "a value of the task"})
    outputs = json_object(result.get("outputs"), f"the outputs of {result!r:.300}")
    if "a value of the task" not in text(outputs.get(output), output):
        raise Violation(f"expected the value of {variable} in the output {output}, found {outputs[output]!r:.300}")


@clause("timeout", "timeout is the maximum execution time.")
def a_timeout_ends_the_operation(target: Target) -> None:
    with target.session() as host:
        response = host.call("execute", target.params("slow", timeout="200ms"))
        still_serves(target, host)
    if "error" in response:
        error_code(response, -32001)
    elif result_of(response).get("success") is not False:
        raise Violation(f"expected success: false or the error -32001, found {response!r:.300}")


@clause("agent", "agent contains prompt and output in the verify phase.")
def the_agent_is_known_in_verify(target: Target) -> None:
    said = target.profile.value("agent", "text")
    with target.session() as host:
        for output, expected in ((f"so {said}.", True), ("something else", False)):
            agent = {"prompt": "a prompt", "output": output}
            result = target.run(host, "agent", phase="verify", agent=agent)
            if result.get("success") is not expected:
                raise Violation(f"expected success: {expected} if the agent answered {output!r}, found {result!r:.300}")


@clause("agent-ignored", "agent may be sent to any operation.")
def an_agent_is_accepted_by_operations_that_ask_for_none(target: Target) -> None:
    with target.session() as host:
        agent = {"prompt": "a prompt", "output": 'an "answer"\nof two lines'}
        if target.run(host, "succeeds", phase="verify", agent=agent).get("success") is not True:
            raise Violation("fails when an agent is given")


clause = clauses_of_section("spec", "Execute, Result Fields")


@clause("success", "success is true if the operation succeeded.")
def an_operation_that_succeeds_says_so(target: Target) -> None:
    with target.session() as host:
        result = target.run(host, "succeeds")
    if result.get("success") is not True:
        raise Violation(f"expected success: true, found {result!r:.500}")


@clause("failure", "A failed operation is a result with success: false.")
def an_operation_that_fails_is_a_result(target: Target) -> None:
    with target.session() as host:
        result = target.run(host, "fails")
        still_serves(target, host)
    if result.get("success") is not False:
        raise Violation(f"expected success: false, found {result!r:.500}")


@clause("message", "message and error are strings.")
def message_and_error_are_text(target: Target) -> None:
    for result in results(target):
        text(result.get("message", ""), "message")
        text(result.get("error", ""), "error")


@clause("error-when", "error is present only with success: false.")
def an_error_is_given_where_success_is_false_alone(target: Target) -> None:
    for result in results(target):
        if result.get("success") is True and result.get("error"):
            raise Violation(f"a result that is a success has an error: {result['error']!r:.300}")


@clause("outputs", "outputs map strings to strings.")
def outputs_are_text_by_name(target: Target) -> None:
    for result in results(target):
        for name, value in json_object(result.get("outputs", {}), "outputs").items():
            text(value, f"the output {name}")


@clause("result-members", "A result has no members but the specified ones.")
def a_result_has_no_members_that_the_spec_does_not_name(target: Target) -> None:
    for result in results(target):
        if unknown := result.keys() - {"success", "message", "error", "outputs"}:
            raise Violation(f"a result has members that hosts do not know: {', '.join(sorted(unknown))}")


clause = clauses_of_section("spec", "Log")


@clause("log", "log is a notification: no id.")
def a_log_is_a_notification(target: Target) -> None:
    for message in logged(target):
        if "id" in message or message["method"] != "log":
            raise Violation(f"expected a notification with the method log, found {message!r:.300}")


@clause("log-during", "Logs are sent during the execution.")
def logs_come_before_the_result(target: Target) -> None:
    logged(target)
    with target.session() as host:
        target.run(host, "logs")
        if not host.is_quiet():
            raise Violation(f"a message follows the response: {host.next_line()}")
        before = len(host.lines)
        still_serves(target, host)
        if late := host.lines[before:-1]:
            raise Violation(f"a message follows the response: {late[0]}")


@clause("log-level", "level is debug, info, warn or error.")
def a_log_has_a_known_level(target: Target) -> None:
    for params in log_params(target):
        if params.get("level") not in LEVELS:
            raise Violation(f"expected a level of {', '.join(LEVELS)}; found {params.get('level')!r}")


@clause("log-message", "message is required, a string.")
def a_log_has_a_message(target: Target) -> None:
    for params in log_params(target):
        text(params.get("message"), "message of log")


@clause("log-data", "data, if present, is an object.")
def data_of_a_log_is_an_object(target: Target) -> None:
    for params in log_params(target):
        json_object(params.get("data", {}), "data of log")


clause = clauses_of_section("spec", "Shutdown")


@clause("shutdown", "The result of shutdown is {}.")
def shutdown_is_answered_with_an_empty_object(target: Target) -> None:
    with target.session() as host:
        response = host.call("shutdown", {})
    if response.get("result") != {}:
        raise Violation(f"expected the result {{}}, found {response!r:.300}")


@clause("exit", "The extension exits after shutdown.")
def after_shutdown_the_process_exits_with_0(target: Target) -> None:
    with target.session() as host:
        host.call("shutdown", {})
        ended(host)


@clause("shutdown-params", "params may be omitted (JSON-RPC 2.0).")
def shutdown_needs_no_params(target: Target) -> None:
    with target.session() as host:
        result_of(host.call("shutdown"))
        ended(host)


VALID_DURATIONS = ("30s", "5m", "1h30m", "100s", "10000ms", "1.5h", "90000000us", "90000000µs", "+30s", "1m30.5s")
INVALID_DURATIONS = ("", "5", "5 minutes", "30S", "1d", "1h-30m", "s", "1e3s", "½s")


def arguments_with(target: Target, duration: str) -> dict[str, object]:
    entry = target.profile.entry("duration")
    args = json_object(entry["args"], "args") | {text(entry["argument"], "argument"): duration}
    return target.execute_params(text(entry["operation"], "operation"), args)


clause = clauses_of_section("spec", "Duration Format")


@clause("timeout-forms", "timeout accepts every format of Go durations.")
def every_form_of_a_timeout_is_accepted(target: Target) -> None:
    with target.session() as host:
        for duration in VALID_DURATIONS:
            if target.run(host, "succeeds", timeout=duration).get("success") is not True:
                raise Violation(f"fails with the timeout {duration!r}")


@clause("timeout-other", "timeout accepts no other format.")
def a_timeout_of_another_form_is_refused(target: Target) -> None:
    with target.session() as host:
        for duration in INVALID_DURATIONS[1:]:  # an empty timeout is valid: none
            error_code(host.call("execute", target.params("succeeds", timeout=duration)), -32602, -32600)


@clause("duration-forms", "Duration arguments accept every format of Go durations.")
def an_argument_takes_every_form(target: Target) -> None:
    with target.session() as host:
        for duration in VALID_DURATIONS:
            result_of(host.call("execute", arguments_with(target, duration)))


@clause("duration-other", "Duration arguments accept no other format.")
def an_argument_of_another_form_is_refused(target: Target) -> None:
    with target.session() as host:
        for duration in INVALID_DURATIONS:
            error_code(host.call("execute", arguments_with(target, duration)), -32602)
