"""Shutdown: its response, and the exit of the process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.conformance.clauses import clauses_of_section
from ext_recorder.conformance.raw_host import Violation

if TYPE_CHECKING:
    from ext_recorder.conformance.raw_host import Host
    from ext_recorder.conformance.target import Target


def ended(host: Host) -> None:
    """Check that no more output comes, and that the exit code is 0."""
    if rest := host.rest():
        raise Violation(f"wrote after the end: {rest[0].data!r:.300}")
    if code := host.exit_code():
        raise Violation(f"expected exit code 0, found {code}; stderr: {host.stderr[-1000:]}")


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
        if "result" not in (response := host.call("shutdown")):
            raise Violation(f"expected a result, found {response!r:.300}")
        ended(host)
