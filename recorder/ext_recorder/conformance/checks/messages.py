"""Messages: lines of UTF-8 on stdin and stdout, JSON-RPC 2.0, and the lifecycle of a session."""

from __future__ import annotations

import json
from time import monotonic
from typing import TYPE_CHECKING

from ext_recorder.conformance.raw_host import Violation
from ext_recorder.conformance.target import PROTOCOL_VERSION, clauses_of_section, error_code, result_of, still_serves

from .execute import ended

if TYPE_CHECKING:
    from ext_recorder.conformance.target import Target

# Minimum wait for output of a starting extension; on a busy machine, the next start may take longer.
STARTING_SECONDS = 1.0
IDS: tuple[object, ...] = (0, -1, 7, 2**53 + 1, 1.5, "", "7", 'a/b ~"\\ é', "x" * 1000)


clause = clauses_of_section("spec", "Transport")


@clause("line", "Each message is one line, ended by a line feed.")
def each_message_is_one_line(target: Target) -> None:
    # Host.next_line refuses a line that is not one JSON object, and an end without a line feed.
    with target.session() as host:
        host.call("execute", target.execute_params("no-such-operation", {}))
        host.call("shutdown", {})
        host.rest()
        blank = [line for line in host.lines if not line.data.strip()]
    if blank or len(host.lines) < 3:
        raise Violation(f"expected three messages, a line each; found {[line.data for line in host.lines]!r:.500}")


@clause("version-2", "Messages are JSON-RPC 2.0.")
def every_message_says_version_2(target: Target) -> None:
    with target.session() as host:
        host.call("execute", target.execute_params("no-such-operation", {}))
        host.send_bytes(b"{\n")
        host.response(None)
        host.call("shutdown", {})
        host.rest()
    for line in host.lines:
        if line.message.get("jsonrpc") != "2.0":
            raise Violation(f'expected "jsonrpc": "2.0" in every message, found {line.data!r:.300}')


@clause("utf-8", "The encoding is UTF-8.")
def text_is_utf_8_in_both_directions(target: Target) -> None:
    with target.session() as host:
        for id in ("clé", "鍵 🔑", "\u2028"):
            error_code(host.call("no-such-method", {}, id=id), -32601)


@clause("escapes", "Escaped text is the same text.")
def escaped_text_is_the_same_text(target: Target) -> None:
    with target.session() as host:
        host.send_bytes(b'{"jsonrpc":"2.0","id":"cl\\u00e9 \\ud83d\\udd11","method":"no-such-method"}\n')
        error_code(host.response("clé 🔑"), -32601)


@clause("stdout-is-the-wire", "Messages go to stdout, debug logs to stderr: stdout contains nothing but messages.")
def stdout_carries_responses_and_log_notifications_alone(target: Target) -> None:
    with target.session() as host:
        for entry in ("succeeds", "fails", "logs"):
            if entry in target.profile.entries:
                target.run(host, entry)
        host.call("shutdown", {})
        host.rest()
    for line in host.lines:
        is_response = "id" in line.message and ("result" in line.message) != ("error" in line.message)
        is_log = line.message.get("method") == "log" and "id" not in line.message
        if not (is_response or is_log):
            raise Violation(f"neither a response nor a log notification: {line.data!r:.300}")


@clause("pieces", "A message ends at its line feed, even if it arrives in pieces.")
def a_message_may_come_in_any_pieces(target: Target) -> None:
    request = {"jsonrpc": "2.0", "id": "é", "method": "initialize", "params": {"protocolVersion": PROTOCOL_VERSION}}
    with target.started() as host:
        for byte in json.dumps(request, ensure_ascii=False).encode() + b"\n":
            host.send_bytes(bytes([byte]))
            host.wait_until_read()  # so the bytes arrive one by one
        host.response("é")
        still_serves(target, host)


@clause("one-write", "Several messages may come in one write.")
def messages_in_one_write_are_all_answered(target: Target) -> None:
    with target.session() as host:
        ids = [f"piece {number}" for number in range(20)]
        requests = [{"jsonrpc": "2.0", "id": id, "method": "no-such-method"} for id in ids]
        host.send_bytes(b"".join(json.dumps(request).encode() + b"\n" for request in requests))
        for id in ids:
            error_code(host.response(id), -32601)


@clause("white-space", "White space around JSON is not part of it.")
def white_space_around_a_message_is_no_part_of_it(target: Target) -> None:
    with target.session() as host:
        host.send_bytes(b' \t{ "jsonrpc" : "2.0", "id" : "spaced", "method" : "no-such-method" } \r\n')
        error_code(host.response("spaced"), -32601)


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
            result_of(host.response(id))


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
