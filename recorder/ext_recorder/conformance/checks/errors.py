"""Error Handling: invalid messages, requests and methods, and their error codes; and One-Shot Mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.conformance.raw_host import NotApplicable, Violation, json_object, text
from ext_recorder.conformance.target import clauses_of_section, error_code, result_of, still_serves

from .execute import ended

if TYPE_CHECKING:
    from ext_recorder.conformance.target import Target

OF_OTHER_TYPE: dict[object, object] = {
    "string": ["a", "list"],
    "integer": "a text",
    "number": "a text",
    "boolean": "a text",
    "array": "a text",
    "object": "a text",
}
NOT_JSON = (
    b"this is no JSON",
    b'{"jsonrpc":"2.0","id":1,"method":"initialize"',
    b'{"jsonrpc":"2.0","id":NaN,"method":"initialize"}',
    b'{"jsonrpc":"2.0","id":1,"method":"initialize"}}',
    b"{'jsonrpc':'2.0'}",
    b'{"jsonrpc":"2.0","id":1,"method":"a\ttab"}',
)
NO_REQUEST = (
    b"42",
    b"null",
    b'"text"',
    b"{}",
    b'{"jsonrpc":"2.0","id":1}',
    b'{"jsonrpc":"2.0","id":1,"method":7}',
    b'{"id":1,"method":"initialize"}',
    b'{"jsonrpc":"1.0","id":1,"method":"initialize"}',
    b"[]",
)
CODES = {-32700, -32600, -32601, -32602, -32603, *range(-32099, -31999)}


def error_after(target: Target, line: bytes) -> dict[str, object]:
    """Return the response to a line, of any id; the session must continue after it."""
    with target.session() as host:
        host.send_bytes(line + b"\n")
        answer = host.next_line()
        if answer is None:
            raise Violation(f"ended at the line {line!r:.200}; stderr: {host.stderr[-1000:]}")
        still_serves(target, host)
        return answer.message


clause = clauses_of_section("spec", "Error Handling")


@clause("parse-error", "Invalid JSON is -32700.")
def what_is_no_json_is_a_parse_error(target: Target) -> None:
    for line in NOT_JSON:
        answer = error_after(target, line)
        error_code(answer, -32700)
        if answer.get("id", 0) is not None:
            raise Violation(f"expected id null, because the id of {line!r} is unknown; found {answer!r:.200}")


@clause("parse-error-utf-8", "Invalid UTF-8 is -32700, too.")
def broken_utf_8_is_a_parse_error(target: Target) -> None:
    for broken in (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80"):
        error_code(error_after(target, b'{"jsonrpc":"2.0","id":1,"method":"' + broken + b'"}'), -32700)


@clause("invalid-request", "Missing required fields are -32600.")
def json_that_is_no_request_is_an_invalid_request(target: Target) -> None:
    for line in NO_REQUEST:
        error_code(error_after(target, line), -32600)


@clause("unknown-method", "An unknown method is -32601.")
def an_unknown_method_is_an_error(target: Target) -> None:
    with target.session() as host:
        for method in ("no-such-method", "", "Execute", "rpc.discover"):
            error_code(host.call(method, {}), -32601)


@clause("unknown-operation", "An unknown operation is -32601.")
def an_unknown_operation_is_an_error(target: Target) -> None:
    with target.session() as host:
        error_code(host.call("execute", target.execute_params("appply-me", {})), -32601)
        error_code(host.call("execute", target.execute_params("", {})), -32601)


@clause("unknown-named", "The error message names the unknown operation.")
def an_error_names_what_was_unknown(target: Target) -> None:
    with target.session() as host:
        answer = host.call("execute", target.execute_params("appply-me", {}))
    message = text(json_object(answer.get("error"), "the error").get("message"), "message")
    if "appply-me" not in message:
        raise Violation(f"expected the unknown operation in the message, found {message!r:.200}")


@clause("missing-argument", "A missing required argument is -32602.")
def a_missing_argument_is_refused(target: Target) -> None:
    with target.started() as host:
        for name, operation in target.operations(host).items():
            if json_object(operation["params"], name).get("required"):
                error_code(host.call("execute", target.execute_params(name, {})), -32602)
                return
    raise NotApplicable("no operation of the manifest requires an argument")


@clause("argument-type", "An argument of another type is -32602.")
def an_argument_of_another_type_is_refused(target: Target) -> None:
    with target.started() as host:
        for name, operation in target.operations(host).items():
            params = json_object(operation["params"], name)
            for argument, schema in json_object(params.get("properties", {}), name).items():
                kind = schema.get("type") if isinstance(schema, dict) else None
                required = params.get("required") or []
                if isinstance(kind, str) and kind in OF_OTHER_TYPE and required in ([], [argument]):
                    wrong = {argument: OF_OTHER_TYPE[kind]}
                    error_code(host.call("execute", target.execute_params(name, wrong)), -32602)
                    return
    raise NotApplicable("no operation of the manifest can be called with one wrong argument alone")


@clause("params-type", "params of another type are an error.")
def params_of_another_type_are_an_error(target: Target) -> None:
    with target.session() as host:
        for params in ("text", 7, [1, 2]):
            error_code(host.call("execute", params), -32600, -32602)
        still_serves(target, host)


@clause("error-object", "An error has a code of the table and a message.")
def an_error_has_a_code_of_the_table_and_a_message(target: Target) -> None:
    with target.session() as host:
        answers = [
            host.call("no-such-method", {}),
            host.call("execute", target.execute_params("no-such-operation", {})),
            host.call("execute", {}),
        ]
        host.send_bytes(b"no JSON\n")
        answers.append(host.response(None))
    for answer in answers:
        error = json_object(answer.get("error"), f"the error in {answer!r:.200}")
        if type(error.get("code")) is not int or error["code"] not in CODES:
            raise Violation(f"expected a code in the table of the specification, found {error!r:.200}")
        if not text(error.get("message"), "message of an error"):
            raise Violation("the message of an error is empty")
        if unknown := error.keys() - {"code", "message", "data"}:
            raise Violation(f"an error has members that JSON-RPC does not define: {', '.join(sorted(unknown))}")


@clause("either", "A response is a result or an error.")
def an_answer_is_a_result_or_an_error_never_both(target: Target) -> None:
    with target.session() as host:
        host.call("no-such-method", {})
        for entry in ("succeeds", "fails"):
            if entry in target.profile.entries:
                target.run(host, entry)
        host.call("shutdown", {})
    for line in host.lines:
        if "method" not in line.message and ("result" in line.message) == ("error" in line.message):
            raise Violation(f"expected a result or an error, found {line.data!r:.300}")


clause = clauses_of_section("spec", "One-Shot Mode")


@clause("one-shot", "A single execute request is processed, its result written, and the process exits.")
def execute_without_initialize_is_answered_and_the_process_exits(target: Target) -> None:
    with target.started() as host:
        id = host.request("execute", target.params("succeeds"))
        host.close_stdin()
        result_of(host.response(id))
        ended(host)


@clause("one-shot-error", "An error is a response, too.")
def errors_are_answered_too(target: Target) -> None:
    with target.started() as host:
        id = host.request("execute", target.execute_params("no-such-operation", {}))
        host.close_stdin()
        error_code(host.response(id), -32601)
        host.rest()
        host.exit_code()
