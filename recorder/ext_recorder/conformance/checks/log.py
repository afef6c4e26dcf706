"""Log: notifications while an operation runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.conformance.clauses import clauses_of_section
from ext_recorder.conformance.raw_host import Violation, json_object, text
from ext_recorder.conformance.target import still_serves

if TYPE_CHECKING:
    from ext_recorder.conformance.target import Target

LEVELS = ("debug", "info", "warn", "error")


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
