"""JSON-RPC 2.0, which the protocol is based on: ids, notifications, several requests at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.conformance.raw_host import Violation
from ext_recorder.conformance.target import error_code, still_serves

if TYPE_CHECKING:
    from ext_recorder.conformance.target import Target

IDS: tuple[object, ...] = (0, -1, 7, 2**53 + 1, 1.5, "", "7", 'a/b ~"\\ é', "x" * 1000)


def an_id_comes_back_as_it_was(target: Target) -> None:
    with target.session() as host:
        for id in IDS:
            host.call("execute", target.execute_params("no-such-operation", {}), id=id)


def an_id_that_is_null_is_answered_with_null(target: Target) -> None:
    with target.session() as host:
        host.send_bytes(b'{"jsonrpc":"2.0","id":null,"method":"no-such-method"}\n')
        error_code(host.response(None), -32601, -32600)


def an_id_of_another_type_is_an_invalid_request(target: Target) -> None:
    for spelling in (b"[1]", b"{}", b"true"):
        with target.session() as host:
            host.send_bytes(b'{"jsonrpc":"2.0","id":%b,"method":"no-such-method"}\n' % spelling)
            error_code(host.response(None), -32600)


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


def several_requests_are_answered_each_by_its_id(target: Target) -> None:
    with target.session() as host:
        ids = [host.request("execute", target.params("succeeds")) for _ in range(8)]
        for id in reversed(ids):
            if "result" not in (response := host.response(id)):
                raise Violation(f"expected a result for {id}, found {response!r:.300}")


def many_requests_may_be_open_at_once(target: Target) -> None:
    count = 2000
    with target.session() as host:
        ids = [host.request("no-such-method", {}) for _ in range(count)]
        for id in ids:
            error_code(host.response(id), -32601)
