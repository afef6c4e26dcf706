"""JSON-RPC 2.0: ids, notifications, concurrent requests; and the lifecycle of a session."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from ext_recorder.conformance.clauses import clauses_of_section
from ext_recorder.conformance.raw_host import Violation
from ext_recorder.conformance.target import error_code, still_serves

from .shutdown import ended

if TYPE_CHECKING:
    from ext_recorder.conformance.target import Target

STARTING_SECONDS = (
    1.0  # minimum wait for output of a starting extension; on a busy machine the next start may take longer
)
IDS: tuple[object, ...] = (0, -1, 7, 2**53 + 1, 1.5, "", "7", 'a/b ~"\\ é', "x" * 1000)


clause = clauses_of_section("spec", "JSON-RPC 2.0, Request object")


@clause("id", "A response has the id of its request, unchanged.")
def an_id_comes_back_as_it_was(target: Target) -> None:
    with target.session() as host:
        for id in IDS:
            host.call("execute", target.execute_params("no-such-operation", {}), id=id)


@clause("id-null", "null is a valid, if discouraged, id.")
def an_id_that_is_null_is_answered_with_null(target: Target) -> None:
    with target.session() as host:
        host.send_bytes(b'{"jsonrpc":"2.0","id":null,"method":"no-such-method"}\n')
        error_code(host.response(None), -32601, -32600)


@clause("id-type", "An id is a string, a number or null.")
def an_id_of_another_type_is_an_invalid_request(target: Target) -> None:
    for spelling in (b"[1]", b"{}", b"true"):
        with target.session() as host:
            host.send_bytes(b'{"jsonrpc":"2.0","id":%b,"method":"no-such-method"}\n' % spelling)
            error_code(host.response(None), -32600)


@clause("one-response", "Every request gets one response.")
def every_request_gets_one_response(target: Target) -> None:
    with target.session() as host:
        ids = [
            host.request("execute", target.execute_params("no-such-operation", {})),
            host.request("no-such-method", {}),
            *([host.request("execute", target.params("succeeds"))] if "succeeds" in target.profile.entries else []),
        ]
        for id in ids:
            host.response(id)
        host.call("shutdown", {})
        host.rest()
    answered = [line.message["id"] for line in host.lines if "id" in line.message]
    if sorted(map(str, answered)) != sorted(map(str, [*ids, 1, max(map(int, map(str, ids))) + 1])):
        raise Violation(f"expected one response for each of {ids}, found {answered}")


@clause("notification", "A notification gets no response.")
def a_notification_gets_no_response(target: Target) -> None:
    with target.session() as host:
        host.send({"jsonrpc": "2.0", "method": "no-such-notification", "params": {}})
        host.send({"jsonrpc": "2.0", "method": "execute", "params": target.execute_params("no-such-operation", {})})
        if not host.is_quiet():
            raise Violation(f"answered a notification: {host.next_line()}")
        before = len(host.lines)
        still_serves(target, host)
        if late := [line for line in host.lines[before:-1] if "method" not in line.message]:
            raise Violation(f"answered a notification: {late[0]}")


@clause("several", "Several requests may be open at once.")
def several_requests_are_answered_each_by_its_id(target: Target) -> None:
    with target.session() as host:
        ids = [host.request("execute", target.params("succeeds")) for _ in range(8)]
        for id in reversed(ids):
            if "result" not in (response := host.response(id)):
                raise Violation(f"expected a result for {id}, found {response!r:.300}")


clause = clauses_of_section("spec", "Lifecycle")


@clause("silence", "The host sends the first message.")
def nothing_is_written_before_the_first_request(target: Target) -> None:
    with target.started() as host:
        began = monotonic()
        target.initialize(host)
        started = monotonic() - began
    with target.started() as host:
        if not host.is_quiet(max(STARTING_SECONDS, 4 * started)):
            raise Violation(f"wrote before the first request: {host.next_line()}")
        target.initialize(host)


@clause("goes-on", "More execute requests may come, until shutdown.")
def a_session_goes_on_until_shutdown(target: Target) -> None:
    with target.session() as host:
        for _ in range(3):
            target.run(host, "succeeds")
        error_code(host.call("execute", target.execute_params("no-such-operation", {})), -32601)
        still_serves(target, host)
        host.call("shutdown", {})
        ended(host)
