"""What real hosts do beyond the spec, or against it, and an extension has to stand.

They read lines of 65,535 bytes at most, leave `phase` empty, send `args: null`, send the next call while the last one
runs, give a call 30 s, and die.
"""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ext_recorder.conformance.raw_host import NotApplicable, Violation, json_object, text
from ext_recorder.conformance.target import error_code, still_serves

from .initialize import operations
from .shutdown import ended

if TYPE_CHECKING:
    from ext_recorder.conformance.raw_host import Host
    from ext_recorder.conformance.target import Target

LINE_LIMIT_BYTES = 65_535
# RE2 has no look-around, no back references and no possessive or atomic groups.
NOT_RE2 = re.compile(r"\(\?(?:=|!|<=|<!|>|P=)|\\[1-9]|[*+?}]\+")
POLL_SECONDS = 0.02


def check_lines(host: Host) -> None:
    for line in host.lines:
        if len(line.data) > LINE_LIMIT_BYTES:
            raise Violation(f"a line of {len(line.data)} bytes, which ends the session of a host: {line.data!r:.200}")


def no_line_is_longer_than_hosts_read(target: Target) -> None:
    with target.session() as host:
        target.run(host, "long")
    check_lines(host)


def the_manifest_fits_a_line(target: Target) -> None:
    with target.session() as host:
        check_lines(host)


def an_error_about_a_long_name_fits_a_line(target: Target) -> None:
    with target.session() as host:
        for name in ("x" * 100_000, "é" * 60_000, '"' * 60_000, "\x01" * 30_000, "🔑" * 30_000):
            error_code(host.call(name, {}), -32601)
            error_code(host.call("execute", target.execute_params(name, {})), -32601)
            error_code(host.call("execute", target.execute_params("no-such-operation", {name: name})), -32601)
    check_lines(host)


def args_may_be_null(target: Target) -> None:
    with target.started() as host:
        for name, operation in target.operations(host).items():
            if json_object(operation["params"], name).get("required"):
                # null is no arguments at all: it is the missing one that is refused, not the null
                null = host.call("execute", target.execute_params(name, None))
                empty = host.call("execute", target.execute_params(name, {}))
                error_code(null, -32602)
                if null["error"] != empty["error"]:
                    raise Violation(f"expected what answers {{}}, {empty['error']!r}; found {null['error']!r}")
                return
    raise NotApplicable("no operation of the manifest requires an argument")


def the_phase_may_be_empty_or_missing(target: Target) -> None:
    with target.session() as host:
        params = target.params("succeeds", phase="")
        empty = host.call("execute", params)
        del json_object(params["context"], "context")["phase"]
        missing = host.call("execute", params)
    for response in (empty, missing):
        if json_object(response.get("result"), f"the result in {response!r:.300}").get("success") is not True:
            raise Violation(f"expected success: true, found {response!r:.300}")


def a_fast_call_does_not_wait_for_a_slow_one(target: Target) -> None:
    with target.session() as host:
        slow = host.request("execute", target.params("slow", timeout="100s"))
        target.run(host, "succeeds")
        if any(line.message.get("id") == slow for line in host.lines):
            raise NotApplicable("the slow call of the profile is not slow")


def without_a_phase_an_operation_is_limited(target: Target) -> None:
    with target.session(target.profile.entry("limit")["config"]) as host:
        result = target.run(host, "slow", phase="")
        still_serves(target, host)
    if result.get("success") is not False:
        raise Violation(f"expected success: false, found {result!r:.300}")


def an_unknown_argument_is_refused(target: Target) -> None:
    with target.session() as host:
        params = target.params("succeeds")
        params["args"] = json_object(params["args"], "args") | {"noSuchArgument": "text"}
        error_code(host.call("execute", params), -32602)


def schemas_refuse_unknown_arguments(target: Target) -> None:
    for name, operation in operations(target):
        if json_object(operation["params"], name).get("additionalProperties") is not False:
            raise Violation(f"params of {name} lack additionalProperties: false, a host's only guard against typos")


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


def keys_of_outputs_have_no_dots(target: Target) -> None:
    with target.session() as host:
        for entry in ("succeeds", "fails", "logs", "long"):
            if entry in target.profile.entries:
                outputs = target.run(host, entry).get("outputs", {})
                for key in json_object(outputs, "outputs"):
                    if "." in key:
                        raise Violation(f"the output {key!r} can't be named in a template: it has a dot")


def a_failure_tells_why(target: Target) -> None:
    with target.session() as host:
        result = target.run(host, "fails")
    if not (result.get("message") and result.get("error")):
        raise Violation(f"message and error are all that a user sees; found {result!r:.300}")


def the_end_of_stdin_ends_the_process(target: Target) -> None:
    with target.session() as host:
        host.close_stdin()
        ended(host)


def sigterm_ends_the_process(target: Target) -> None:
    with target.session() as host:
        host.signal(signal.SIGTERM)
        host.rest()
        if host.exit_code() not in (0, -signal.SIGTERM, 128 + signal.SIGTERM):
            raise Violation(f"expected exit code 0, or the signal, found {host.exit_code()}")


def sigterm_ends_the_process_while_an_operation_runs(target: Target) -> None:
    with target.session() as host:
        host.request("execute", target.params("slow", timeout="100s"))
        target.run(host, "succeeds")  # so that the slow one has been read
        host.signal(signal.SIGTERM)
        host.rest()
        host.exit_code()


def a_host_that_does_not_listen_ends_the_process(target: Target) -> None:
    with target.session() as host:
        host.close_stdout()
        for _ in range(3):
            host.request("execute", target.execute_params("no-such-operation", {}))
        host.close_stdin()
        host.exit_code()
        if "Traceback" in host.stderr or "panic" in host.stderr:
            raise Violation(f"tells its user about its inside: {host.stderr[-500:]}")


def an_unfinished_line_at_the_end_of_stdin_does_no_harm(target: Target) -> None:
    with target.session() as host:
        host.send_bytes(b'{"jsonrpc":"2.0","id":"half"')
        host.close_stdin()
        host.rest()
        host.exit_code()


def stderr_tells_no_traceback_about_bad_input(target: Target) -> None:
    with target.session() as host:
        for line in (b"\xff\xfe", b"[" * 50_000, b"{}", b'{"jsonrpc":"2.0","id":1,"method":"execute","params":[]}'):
            host.send_bytes(line + b"\n")
        still_serves(target, host)
        if "Traceback" in host.stderr:
            raise Violation(f"tells its user about its inside: {host.stderr[-500:]}")


def running(pid: int) -> bool:
    """Whether the process is there and has not ended (a zombie has)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def background(target: Target, host: Host) -> int:
    outputs = json_object(target.run(host, "background").get("outputs"), "outputs")
    pid = int(text(outputs.get(target.profile.value("background", "pid")), "pid"))
    if not running(pid):
        raise Violation(f"the process {pid} that the operation started is not there")
    return pid


def gone(pid: int, host: Host, after: str) -> None:
    deadline = time.monotonic() + host.patience
    while running(pid):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            raise Violation(f"the process {pid} that an operation started goes on after {after}")
        time.sleep(POLL_SECONDS)


def shutdown_leaves_no_process_behind(target: Target) -> None:
    with target.session() as host:
        pid = background(target, host)
        host.call("shutdown", {})
        host.exit_code()
        gone(pid, host, "shutdown")


def the_end_of_stdin_leaves_no_process_behind(target: Target) -> None:
    with target.session() as host:
        pid = background(target, host)
        host.close_stdin()
        host.exit_code()
        gone(pid, host, "the end of stdin")


def sigterm_leaves_no_process_behind(target: Target) -> None:
    with target.session() as host:
        pid = background(target, host)
        host.signal(signal.SIGTERM)
        host.exit_code()
        gone(pid, host, "SIGTERM")


def sigkill_leaves_no_process_behind(target: Target) -> None:
    with target.session() as host:
        pid = background(target, host)
        host.signal(signal.SIGKILL)
        host.exit_code()
        gone(pid, host, "SIGKILL")
