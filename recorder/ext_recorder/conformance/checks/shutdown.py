"""Lifecycle and Shutdown: how a session goes on, and how it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.conformance.raw_host import Violation
from ext_recorder.conformance.target import error_code, still_serves

if TYPE_CHECKING:
    from ext_recorder.conformance.raw_host import Host
    from ext_recorder.conformance.target import Target


def ended(host: Host) -> None:
    """Nothing more comes, and the exit code is 0."""
    if rest := host.rest():
        raise Violation(f"wrote after the end: {rest[0].data!r:.300}")
    if code := host.exit_code():
        raise Violation(f"expected exit code 0, found {code}; stderr: {host.stderr[-1000:]}")


def shutdown_is_answered_with_an_empty_object(target: Target) -> None:
    with target.session() as host:
        response = host.call("shutdown", {})
    if response.get("result") != {}:
        raise Violation(f"expected the result {{}}, found {response!r:.300}")


def after_shutdown_the_process_exits_with_0(target: Target) -> None:
    with target.session() as host:
        host.call("shutdown", {})
        ended(host)


def shutdown_needs_no_params(target: Target) -> None:
    with target.session() as host:
        if "result" not in (response := host.call("shutdown")):
            raise Violation(f"expected a result, found {response!r:.300}")
        ended(host)


def shutdown_before_initialize_is_answered(target: Target) -> None:
    with target.started() as host:
        if "result" not in (response := host.call("shutdown", {})):
            raise Violation(f"expected a result, found {response!r:.300}")
        ended(host)


def a_session_goes_on_until_shutdown(target: Target) -> None:
    with target.session() as host:
        for _ in range(3):
            target.run(host, "succeeds")
        error_code(host.call("execute", target.execute_params("no-such-operation", {})), -32601)
        still_serves(target, host)
        host.call("shutdown", {})
        ended(host)


def shutdown_does_not_wait_for_a_running_operation(target: Target) -> None:
    with target.session() as host:
        host.request("execute", target.params("slow"))
        host.call("shutdown", {})
        host.rest()
        if code := host.exit_code():
            raise Violation(f"expected exit code 0, found {code}")
