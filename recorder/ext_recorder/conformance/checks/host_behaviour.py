"""Behaviour of real hosts beyond the specification, or against it, that an extension has to handle.

They read lines of 65,535 bytes at most, leave `phase` empty, send `args: null`, send the next call while the previous
one runs, limit a call to 30 s, and crash.
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ext_recorder.conformance.raw_host import READ_BYTES, NotApplicable, Violation, json_object, text
from ext_recorder.conformance.target import PROTOCOL_VERSION, clauses_of_section, error_code, result_of, still_serves

from .errors import error_after
from .execute import ended
from .initialize import operations

if TYPE_CHECKING:
    from ext_recorder.conformance.raw_host import Host
    from ext_recorder.conformance.target import Target

NESTING = 100_000
LINE_LIMIT_BYTES = 65_535
# RE2 has no look-around, no back references and no possessive or atomic groups.
NOT_RE2 = re.compile(r"\(\?(?:=|!|<=|<!|>|P=)|\\[1-9]|[*+?}]\+")
POLL_SECONDS = 0.02


def check_lines(host: Host) -> None:
    for line in host.lines:
        if len(line.data) > LINE_LIMIT_BYTES:
            raise Violation(f"a line of {len(line.data)} bytes, at which a host ends the session: {line.data!r:.200}")


def running(pid: int) -> bool:
    """Return True if the process exists and has not ended (a zombie has)."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except ProcessLookupError:
        return False
    except FileNotFoundError:  # it has ended meanwhile, or this system has no /proc
        return not Path("/proc").exists()
    return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def background(target: Target, host: Host) -> int:
    outputs = json_object(target.run(host, "background").get("outputs"), "outputs")
    pid = int(text(outputs.get(target.profile.value("background", "pid")), "pid"))
    if not running(pid):
        raise Violation(f"the process {pid} that the operation started does not exist")
    return pid


def gone(pid: int, host: Host, after: str) -> None:
    deadline = time.monotonic() + host.timeout
    while running(pid):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            raise Violation(f"the process {pid} that an operation started is still running after {after}")
        time.sleep(POLL_SECONDS)


clause = clauses_of_section("host", "reads lines of 65,535 bytes at most")


@clause("line-limit", "A result fits in a line.")
def no_line_is_longer_than_hosts_read(target: Target) -> None:
    with target.session() as host:
        target.run(host, "long")
    check_lines(host)


@clause("manifest-limit", "The manifest fits in a line.")
def the_manifest_fits_a_line(target: Target) -> None:
    with target.session() as host:
        check_lines(host)


@clause("error-limit", "An error about a long name fits in a line.")
def an_error_about_a_long_name_fits_a_line(target: Target) -> None:
    with target.session() as host:
        for name in ("x" * 100_000, "é" * 60_000, '"' * 60_000, "\x01" * 30_000, "🔑" * 30_000):
            error_code(host.call(name, {}), -32601)
            error_code(host.call("execute", target.execute_params(name, {})), -32601)
            error_code(host.call("execute", target.execute_params("no-such-operation", {name: name})), -32601)
    check_lines(host)


clause = clauses_of_section("host", "sends what the spec forbids")


@clause("args-null", "args may be null.")
def args_may_be_null(target: Target) -> None:
    with target.started() as host:
        for name, operation in target.operations(host).items():
            if json_object(operation["params"], name).get("required"):
                # null means no arguments: the missing argument is an error, not the null
                null = host.call("execute", target.execute_params(name, None))
                empty = host.call("execute", target.execute_params(name, {}))
                error_code(null, -32602)
                if null["error"] != empty["error"]:
                    raise Violation(f"expected the response to {{}}, {empty['error']!r}; found {null['error']!r}")
                return
    raise NotApplicable("no operation of the manifest requires an argument")


@clause("phase-empty", "phase may be empty or missing.")
def the_phase_may_be_empty_or_missing(target: Target) -> None:
    with target.session() as host:
        params = target.params("succeeds", phase="")
        empty = host.call("execute", params)
        del json_object(params["context"], "context")["phase"]
        missing = host.call("execute", params)
    for response in (empty, missing):
        if result_of(response).get("success") is not True:
            raise Violation(f"expected success: true, found {response!r:.300}")


@clause("initialize-twice", "initialize may come twice.")
def a_second_initialize_does_no_harm(target: Target) -> None:
    with target.session() as host:
        host.call("initialize", {"protocolVersion": PROTOCOL_VERSION})
        still_serves(target, host)


@clause("initialize-again", "After another version, the supported one may follow.")
def after_another_protocol_version_the_right_one_is_still_answered(target: Target) -> None:
    with target.started() as host:
        host.call("initialize", {"protocolVersion": "99.0.0"})
        target.initialize(host)


@clause("shutdown-first", "shutdown may come first.")
def shutdown_before_initialize_is_answered(target: Target) -> None:
    with target.started() as host:
        result_of(host.call("shutdown", {}))
        ended(host)


@clause("blank-line", "A blank line may come.")
def a_blank_line_does_no_harm(target: Target) -> None:
    with target.session() as host:
        host.send_bytes(b"\n\r\n")
        still_serves(target, host)


@clause("long-line", "A line may have any length.")
def a_long_line_is_read(target: Target) -> None:
    with target.session() as host:
        for length in (READ_BYTES - 1, READ_BYTES, 1_000_000):
            args = {"padding": "x" * length}
            error_code(host.call("execute", target.execute_params("no-such-operation", args)), -32601)


@clause("nesting", "JSON may be nested deeply.")
def deep_nesting_is_an_error_like_any_other(target: Target) -> None:
    deep = b"[" * NESTING + b"]" * NESTING
    error_code(error_after(target, deep), -32700, -32600)
    request = b'{"jsonrpc":"2.0","id":1,"method":"no-such-method","params":{"deep":' + deep + b"}}"
    error_code(error_after(target, request), -32700, -32600, -32601)


@clause("long-number", "A number may have any length.")
def a_number_of_any_length_is_an_error_at_most(target: Target) -> None:
    digits = b"9" * 10_000
    error_code(
        error_after(target, b'{"jsonrpc":"2.0","id":1,"method":"no-such-method","params":{"n":' + digits + b"}}"),
        *(-32700, -32600, -32601, -32602),
    )


@clause("unfinished-line", "The last line may lack its line feed.")
def an_unfinished_line_at_the_end_of_stdin_does_no_harm(target: Target) -> None:
    with target.session() as host:
        host.send_bytes(b'{"jsonrpc":"2.0","id":"half"')
        host.close_stdin()
        host.rest()
        host.exit_code()


@clause("no-traceback", "Invalid input causes no traceback on stderr.")
def stderr_tells_no_traceback_about_bad_input(target: Target) -> None:
    with target.session() as host:
        for line in (b"\xff\xfe", b"[" * 50_000, b"{}", b'{"jsonrpc":"2.0","id":1,"method":"execute","params":[]}'):
            host.send_bytes(line + b"\n")
        still_serves(target, host)
        if "Traceback" in host.stderr:
            raise Violation(f"writes a traceback to stderr: {host.stderr[-500:]}")


clause = clauses_of_section("host", "sends the next call while one runs, and gives each 30 s")


@clause("concurrent", "A fast call does not wait for a slow one.")
def a_fast_call_does_not_wait_for_a_slow_one(target: Target) -> None:
    with target.session() as host:
        slow = host.request("execute", target.params("slow", timeout="100s"))
        target.run(host, "succeeds")
        if any(line.message.get("id") == slow for line in host.lines):
            raise NotApplicable("the slow call of the profile is not slow")


@clause("many", "Thousands of requests may be open at once.")
def many_requests_may_be_open_at_once(target: Target) -> None:
    count = 2000
    with target.session() as host:
        ids = [host.request("no-such-method", {}) for _ in range(count)]
        for id in ids:
            error_code(host.response(id), -32601)


@clause("limited", "Without a phase, operations have a time limit.")
def without_a_phase_an_operation_is_limited(target: Target) -> None:
    with target.session(target.profile.entry("limit")["config"]) as host:
        result = target.run(host, "slow", phase="")
        still_serves(target, host)
    if result.get("success") is not False:
        raise Violation(f"expected success: false, found {result!r:.300}")


@clause("shutdown-at-once", "shutdown does not wait for an operation.")
def shutdown_does_not_wait_for_a_running_operation(target: Target) -> None:
    with target.session() as host:
        host.request("execute", target.params("slow"))
        host.call("shutdown", {})
        host.rest()
        if code := host.exit_code():
            raise Violation(f"expected exit code 0, found {code}")


clause = clauses_of_section("host", "validates by the schema only, and shows message and error only")


@clause("typos", "An unknown argument is -32602.")
def an_unknown_argument_is_refused(target: Target) -> None:
    with target.session() as host:
        params = target.params("succeeds")
        params["args"] = json_object(params["args"], "args") | {"noSuchArgument": "text"}
        error_code(host.call("execute", params), -32602)


@clause("typos-schema", "Schemas have additionalProperties: false.")
def schemas_refuse_unknown_arguments(target: Target) -> None:
    for name, operation in operations(target):
        if json_object(operation["params"], name).get("additionalProperties") is not False:
            raise Violation(
                f"params of {name} lack additionalProperties: false, the only protection of a host against typos"
            )


@clause("re2", "A pattern is RE2.")
def patterns_are_re2(target: Target) -> None:
    def look(schema: object, where: str) -> None:
        if isinstance(schema, list):
            for item in schema:
                look(item, where)
        if isinstance(schema, dict):
            pattern = schema.get("pattern")
            if isinstance(pattern, str) and NOT_RE2.search(pattern):
                raise Violation(f"{where}: the pattern {pattern!r} is not RE2; hosts written in Go refuse the schema")
            for key, value in schema.items():
                look(value, f"{where}.{key}")

    for name, operation in operations(target):
        look(operation["params"], name)


@clause("output-keys", "Keys of outputs have no dots.")
def keys_of_outputs_have_no_dots(target: Target) -> None:
    with target.session() as host:
        for entry in ("succeeds", "fails", "logs", "long"):
            if entry in target.profile.entries:
                outputs = target.run(host, entry).get("outputs", {})
                for key in json_object(outputs, "outputs"):
                    if "." in key:
                        raise Violation(f"the output {key!r} cannot be named in a template, because it contains a dot")


@clause("failure-told", "A failure has message and error.")
def a_failure_tells_why(target: Target) -> None:
    with target.session() as host:
        result = target.run(host, "fails")
    if not (result.get("message") and result.get("error")):
        raise Violation(f"a user sees only message and error; found {result!r:.300}")


clause = clauses_of_section("host", "calls once from a shell")


@clause("one-shot-open", "A response does not wait for the end of stdin.")
def an_answer_does_not_wait_for_the_end_of_stdin(target: Target) -> None:
    with target.started() as host:
        target.run(host, "succeeds")
        host.close_stdin()
        ended(host)


@clause("one-shot-config", "The command line may contain the configuration.")
def a_configuration_can_be_given_on_the_command_line(target: Target) -> None:
    argument = target.profile.value("config", "argument")
    config = json.dumps(target.profile.entry("config")["value"])
    with target.started(argument, config) as host:
        id = host.request("execute", target.params("succeeds"))
        host.close_stdin()
        result_of(host.response(id))
        ended(host)


clause = clauses_of_section("host", "exits in many ways")


@clause("eof", "The end of stdin ends the process.")
def the_end_of_stdin_ends_the_process(target: Target) -> None:
    with target.session() as host:
        host.close_stdin()
        ended(host)


@clause("sigterm", "SIGTERM ends the process.")
def sigterm_ends_the_process(target: Target) -> None:
    with target.session() as host:
        host.signal(signal.SIGTERM)
        host.rest()
        if host.exit_code() not in (0, -signal.SIGTERM, 128 + signal.SIGTERM):
            raise Violation(f"expected exit code 0 or the signal, found {host.exit_code()}")


@clause("sigterm-busy", "SIGTERM ends the process during an operation, too.")
def sigterm_ends_the_process_while_an_operation_runs(target: Target) -> None:
    with target.session() as host:
        host.request("execute", target.params("slow", timeout="100s"))
        target.run(host, "succeeds")  # then the slow call has been read
        host.signal(signal.SIGTERM)
        host.rest()
        host.exit_code()


@clause("deaf", "A host that does not read stdout ends the process.")
def a_host_that_does_not_listen_ends_the_process(target: Target) -> None:
    with target.session() as host:
        host.close_stdout()
        for _ in range(3):
            host.request("execute", target.execute_params("no-such-operation", {}))
        host.close_stdin()
        host.exit_code()
        if "Traceback" in host.stderr or "panic" in host.stderr:
            raise Violation(f"writes a traceback to stderr: {host.stderr[-500:]}")


@clause("kin-shutdown", "shutdown leaves no process behind.")
def shutdown_leaves_no_process_behind(target: Target) -> None:
    with target.session() as host:
        pid = background(target, host)
        host.call("shutdown", {})
        host.exit_code()
        gone(pid, host, "shutdown")


@clause("kin-eof", "The end of stdin leaves no process behind.")
def the_end_of_stdin_leaves_no_process_behind(target: Target) -> None:
    with target.session() as host:
        pid = background(target, host)
        host.close_stdin()
        host.exit_code()
        gone(pid, host, "the end of stdin")


@clause("kin-sigterm", "SIGTERM leaves no process behind.")
def sigterm_leaves_no_process_behind(target: Target) -> None:
    with target.session() as host:
        pid = background(target, host)
        host.signal(signal.SIGTERM)
        host.exit_code()
        gone(pid, host, "SIGTERM")


@clause("kin-sigkill", "SIGKILL leaves no process behind.")
def sigkill_leaves_no_process_behind(target: Target) -> None:
    with target.session() as host:
        pid = background(target, host)
        host.signal(signal.SIGKILL)
        host.exit_code()
        gone(pid, host, "SIGKILL")
